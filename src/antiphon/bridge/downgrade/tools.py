"""Tool calls towards a v1 client, with the agent's terminals folded in as text (24.4, TOOL, TERMV2)."""

from __future__ import annotations

import binascii
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, field

from antiphon.bridge import diffs, losses
from antiphon.bridge.content import ContentDown, placeholder, recast
from antiphon.bridge.downgrade.terminal_text import TerminalText
from antiphon.bridge.losses import Ledger, mark
from antiphon.engine.content import patch_meta
from antiphon.schema import v1, v2

Sent: TypeAlias = v1.ToolCall | v1.SessionToolCallUpdate
UNTITLED = "Tool call"
EAGER = 4096
"""Up to this size every piece of content is sent at once; v1 resends all of it each time."""
GROWTH = 4
"""Beyond, when it has grown by this fraction: then all resending together costs linear, not square."""
_ITEM = 64
"""The size of an item besides its text."""

_STATUS = {
    v2.ToolCallStatus.PENDING: v1.ToolCallStatus.PENDING,
    v2.ToolCallStatus.IN_PROGRESS: v1.ToolCallStatus.IN_PROGRESS,
    v2.ToolCallStatus.COMPLETED: v1.ToolCallStatus.COMPLETED,
    v2.ToolCallStatus.FAILED: v1.ToolCallStatus.FAILED,
}
_STATUS_INSTEAD = {v2.ToolCallStatus.CANCELLED: v1.ToolCallStatus.FAILED}
_KIND = {v2.ToolKind(kind): kind for kind in v1.ToolKind}
_CLEARABLE = ("title", "name", "raw_input", "raw_output")
_WIRE_NAME = {"title": "title", "name": "name", "raw_input": "rawInput", "raw_output": "rawOutput"}


class _TerminalItem(Struct):
    """The place where a tool call shows a terminal."""

    terminal: _Terminal
    meta: dict[str, Any] | None

    def show(self) -> v1.ToolCallContent:
        terminal = self.terminal
        return v1.Content(
            content=v1.TextContent(text=terminal.shown), meta=mark(self.meta, terminal.original)
        )


_Item: TypeAlias = list[v1.ToolCallContent] | _TerminalItem


class _Terminal(Struct, eq=False):
    id: str
    alone: bool = False
    """Whether it was reported that no call refers to it."""
    calls: dict[str, _Call] = {}
    facts: dict[str, Any] = {}
    output: TerminalText = field(default_factory=TerminalText)

    @property
    def shown(self) -> str:
        parts = []
        command, exit_status = self.facts.get("command"), self.facts.get("exitStatus")
        if command is not None:
            parts.append(f"$ {' '.join(command.split())}")
        if output := self.output.text:
            parts.append(output.removesuffix("\n") if exit_status is not None else output)
        if exit_status is not None and exit_status.signal is not None:
            parts.append(f"[signal {exit_status.signal}]")
        elif exit_status is not None and exit_status.exit_code:
            parts.append(f"[exit code {exit_status.exit_code}]")
        return "\n".join(parts)

    @property
    def original(self) -> dict[str, Any]:
        return {"type": "terminal", "terminalId": self.id, **self.facts}


class _Call(Struct, eq=False):
    """The fold of one tool call, and what the client was last sent of it."""

    id: str
    title: str | None = None
    name: str | None = None
    kind: v2.ToolKind | None = None
    status: v2.ToolCallStatus | None = None
    content: list[_Item] = []
    locations: list[v1.ToolCallLocation] = []
    raw_input: Any = None
    raw_output: Any = None
    meta: dict[str, Any] = {}
    cleared: set[str] = set()
    """Fields that v2 cleared and v1 still shows."""
    created: bool = False
    stale: bool = False
    """Whether the client's content is out of date."""
    sent: int = 0
    unsent: int = 0
    sent_meta: dict[str, Any] = {}

    def shown_content(self) -> list[v1.ToolCallContent]:
        shown: list[v1.ToolCallContent] = []
        for item in self.content:
            if isinstance(item, _TerminalItem):
                shown.append(item.show())
            else:
                shown += item
        return shown

    def shown_status(self) -> v1.ToolCallStatus:
        status = v2.ToolCallStatus.PENDING if self.status is None else self.status
        return _STATUS.get(status) or _STATUS_INSTEAD.get(status, v1.ToolCallStatus.IN_PROGRESS)

    def shown_kind(self) -> v1.ToolKind:
        return v1.ToolKind.OTHER if self.kind is None else _KIND.get(self.kind, v1.ToolKind.OTHER)

    def shown_meta(self) -> dict[str, Any]:
        """Return the merged `_meta` (24.6), with the originals of what v1 shows differently."""
        original: dict[str, Any] = {_WIRE_NAME[name]: None for name in _CLEARABLE if name in self.cleared}
        if self.status is not None and self.status not in _STATUS:
            original["status"] = self.status
        if self.kind is not None and self.kind not in _KIND:
            original["kind"] = self.kind
        return mark(self.meta, original) if original else dict(self.meta)


class Tools:
    """Every tool call and terminal of a session as one v1 client knows them."""

    __slots__ = ("_calls", "_client_terminals", "_content", "_ledger", "_stale", "_terminals")

    def __init__(self, content: ContentDown, ledger: Ledger) -> None:
        self._content = content
        self._ledger = ledger
        self._calls: dict[str, _Call] = {}
        self._terminals: dict[str, _Terminal] = {}
        self._stale: dict[str, _Call] = {}
        self._client_terminals: dict[str, v1.TerminalId] = {}

    def note_client_terminal(self, terminal_id: str, known_as: v1.TerminalId) -> None:
        """Note that the client runs this terminal itself, under another id: it is shown by that id, and its
        updates are not sent to the client (24.4, TOOL-V1-05)."""
        self._client_terminals[terminal_id] = known_as

    def update(self, update: v2.ToolCallUpdate, *, untitled: str = UNTITLED) -> list[Sent]:
        call = self._call(update.tool_call_id)
        self._merge(call, update)
        if not call.created:
            return [self._create(call, untitled)]
        given = {name for name in update.__struct_fields__ if getattr(update, name) is not UNSET}
        return self._patch(call, given)

    def chunk(self, chunk: v2.ToolCallContentChunk) -> list[Sent]:
        if chunk.meta:
            self._ledger.lose(losses.TOOL_CHUNK_META, chunk)
        call = self._call(chunk.tool_call_id)
        item = self._item(call, chunk.content)
        call.content.append(item)
        return self._grown(call, _size(item))

    def terminal_update(self, update: v2.TerminalUpdate) -> list[Sent]:
        if update.terminal_id in self._client_terminals:
            return []
        terminal = self._terminal(update.terminal_id)
        before = dict(terminal.facts)
        for name, key in (
            ("command", "command"), ("cwd", "cwd"), ("size", "size"), ("exit_status", "exitStatus"),
        ):  # fmt: skip
            value = getattr(update, name)
            if value is None:
                terminal.facts.pop(key, None)
            elif value is not UNSET:
                terminal.facts[key] = value
        meta = patch_meta(terminal.facts.pop("_meta", {}), update.meta)
        if meta:
            terminal.facts["_meta"] = meta
        changed = terminal.facts != before
        if update.output is not UNSET:  # TERMV2-04: the whole of it
            changed = True
            terminal.output = TerminalText()
            if update.output is not None:
                self._feed(terminal, update.output.data, update)
        if not changed:
            return []
        return [sent for call in terminal.calls.values() for sent in self._show_content(call)]

    def terminal_chunk(self, chunk: v2.TerminalOutputChunk) -> list[Sent]:
        if chunk.terminal_id in self._client_terminals:
            return []
        terminal = self._terminal(chunk.terminal_id)
        size = self._feed(terminal, chunk.data, chunk)
        if size == 0:
            return []
        return [sent for call in terminal.calls.values() for sent in self._grown(call, size)]

    def flush(self) -> list[Sent]:
        """Return the updates that were held back because v1 resends all content of a call for every piece of
        it."""
        return [sent for call in list(self._stale.values()) for sent in self._show_content(call)]

    def snapshot(self, id: str) -> v1.ToolCallUpdate | None:
        """Return all that is known of a call that the client has seen."""
        call = self._calls.get(id)
        if call is None:
            return None
        return v1.ToolCallUpdate(
            tool_call_id=v1.ToolCallId(id),
            title=call.title,
            name=call.name,
            kind=call.shown_kind(),
            status=call.shown_status(),
            content=call.shown_content() or None,
            locations=list(call.locations) or None,
            raw_input=UNSET if call.raw_input is None else call.raw_input,
            raw_output=UNSET if call.raw_output is None else call.raw_output,
            meta=call.shown_meta() or None,
        )

    def repeat_content(self, id: str) -> None:
        """Send the content of a call with its next update: the client is shown other content for now."""
        call = self._calls.get(id)
        if call is not None:
            call.stale = True

    def _merge(self, call: _Call, update: v2.ToolCallUpdate) -> None:
        for name in _CLEARABLE:
            value = getattr(update, name)
            if value is None and getattr(call, name) is not None:
                setattr(call, name, None)
                if call.created:
                    call.cleared.add(name)
                    self._ledger.lose(losses.TOOL_CLEARED, update)
            elif value is not UNSET and value is not None:
                setattr(call, name, value)
                call.cleared.discard(name)
        if update.kind is not UNSET:
            call.kind = update.kind
            if update.kind is not None and update.kind not in _KIND:
                self._ledger.lose(losses.TOOL_KIND, update)
        if update.status is not UNSET:
            call.status = update.status
            if update.status is not None and update.status not in _STATUS:
                self._ledger.lose(losses.TOOL_STATUS, update)
        if update.content is not UNSET:
            self._set_content(call, update.content or [])
        if update.locations is not UNSET:
            call.locations = [recast(location, v1.ToolCallLocation) for location in update.locations or ()]
        if update.capabilities:
            self._ledger.lose(losses.TOOL_CAPABILITIES, update)
        call.meta = patch_meta(call.meta, update.meta)

    def _set_content(self, call: _Call, content: list[v2.ToolCallContent]) -> None:
        for item in call.content:
            if isinstance(item, _TerminalItem):
                item.terminal.calls.pop(call.id, None)
        call.content = [self._item(call, item) for item in content]

    def _item(self, call: _Call, item: v2.ToolCallContent) -> _Item:
        match item:
            case v2.Content():
                return [v1.Content(content=self._content.block(item.content), meta=item.meta)]
            case v2.Diff():
                return self._diff(item)
            case v2.Terminal() if item.terminal_id in self._client_terminals:
                return [v1.Terminal(terminal_id=self._client_terminals[item.terminal_id], meta=item.meta)]
            case v2.Terminal():
                self._ledger.lose(losses.TERMINAL, item)
                terminal = self._terminals.setdefault(item.terminal_id, _Terminal(item.terminal_id))
                terminal.calls[call.id] = call
                terminal.alone = False
                return _TerminalItem(terminal, item.meta)
        self._ledger.lose(losses.TOOL_CONTENT_TYPE, item)
        return [v1.Content(content=placeholder(item))]

    def _diff(self, diff: v2.Diff) -> list[v1.ToolCallContent]:
        texts = diffs.texts_of(diff)
        if texts is not None:
            return [
                v1.Diff(path=path, old_text=old, new_text=new, meta=diff.meta) for path, old, new in texts
            ]
        self._ledger.lose(losses.DIFF, diff)
        text = v1.TextContent(text=diffs.summary(diff))
        return [v1.Content(content=text, meta=mark(diff.meta, diff))]

    def _create(self, call: _Call, untitled: str) -> v1.ToolCall:
        call.created = True
        call.sent_meta = call.shown_meta()
        self._content_sent(call)
        return v1.ToolCall(
            tool_call_id=v1.ToolCallId(call.id),
            title=next(name for name in (call.title, call.name, untitled) if name is not None),
            name=call.name,
            kind=UNSET if call.kind is None else call.shown_kind(),
            status=UNSET if call.status is None else call.shown_status(),
            content=call.shown_content(),
            locations=list(call.locations),
            raw_input=UNSET if call.raw_input is None else call.raw_input,
            raw_output=UNSET if call.raw_output is None else call.raw_output,
            meta=call.sent_meta or None,
        )

    def _patch(self, call: _Call, given: set[str]) -> list[Sent]:
        fields: dict[str, Any] = {}
        for name in _CLEARABLE:
            if name in given and getattr(call, name) is not None:
                fields[name] = getattr(call, name)
        if "kind" in given:
            fields["kind"] = call.shown_kind()
        if "status" in given:
            fields["status"] = call.shown_status()
        if "locations" in given:
            fields["locations"] = list(call.locations)
        if "content" in given or (fields and call.stale):
            fields["content"] = call.shown_content()
            self._content_sent(call)
        meta = call.shown_meta()
        if meta != call.sent_meta:
            fields["meta"] = call.sent_meta = meta
        if not fields:
            return []
        return [v1.SessionToolCallUpdate(tool_call_id=v1.ToolCallId(call.id), **fields)]

    def _grown(self, call: _Call, size: int) -> list[Sent]:
        if not call.created:
            return [self._create(call, UNTITLED)]
        call.unsent += size
        if call.sent < EAGER or call.unsent * GROWTH >= call.sent:
            return self._show_content(call)
        self._hold(call)
        return []

    def _show_content(self, call: _Call) -> list[Sent]:
        if not call.created:
            return [self._create(call, UNTITLED)]
        return self._patch(call, {"content"})

    def _content_sent(self, call: _Call) -> None:
        call.sent, call.unsent = sum(map(_size, call.content)), 0
        call.stale = False
        self._stale.pop(call.id, None)

    def _hold(self, call: _Call) -> None:
        call.stale = True
        self._stale[call.id] = call

    def _feed(self, terminal: _Terminal, data: str, update: Any) -> int:
        try:
            return terminal.output.feed(binascii.a2b_base64(data, strict_mode=True))
        except ValueError:
            self._ledger.lose(losses.TERMINAL_DATA, update)
            return 0

    def _call(self, id: str) -> _Call:
        call = self._calls.get(id)
        if call is None:
            call = self._calls[id] = _Call(id)
        return call

    def _terminal(self, id: str) -> _Terminal:
        terminal = self._terminals.get(id)
        if terminal is None:
            terminal = self._terminals[id] = _Terminal(id)
        if not terminal.calls and not terminal.alone:
            terminal.alone = True
            self._ledger.lose(losses.TERMINAL_ALONE, id)
        return terminal


def _size(item: _Item) -> int:
    if isinstance(item, _TerminalItem):
        return _ITEM + item.terminal.output.size
    total = 0
    for shown in item:
        total += _ITEM
        if isinstance(shown, v1.Diff):
            total += len(shown.old_text or "") + len(shown.new_text)
        elif isinstance(shown, v1.Content):
            block = shown.content
            total += len(block.text) if isinstance(block, v1.TextContent) else 4 * _ITEM
            total += len(block.data) if isinstance(block, v1.ImageContent | v1.AudioContent) else 0
    return total
