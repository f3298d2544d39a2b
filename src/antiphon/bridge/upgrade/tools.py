"""Tool calls of a v1 agent as v2 has them, and the terminals that were run for it (24.4, TOOL, DIFF).

In v1 `null` means unchanged, in v2 it clears. So nothing that v1 leaves out may become `null`, except in a
`tool_call`, which contains all of a call.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from typing import Any

from msgspec import UNSET, Struct, structs

from antiphon.bridge import diffs, losses
from antiphon.bridge.content import ContentUp, recast
from antiphon.bridge.losses import Ledger, mark
from antiphon.schema import v1, v2


class _Call(Struct):
    """What has to be remembered of a call."""

    title: str | None = None
    running: bool = False


class Tools:
    """The tool calls of one session, and the client terminals that this side runs for its agent."""

    __slots__ = ("_calls", "_content", "_ledger", "_terminals")

    def __init__(self, content: ContentUp, ledger: Ledger) -> None:
        self._content = content
        self._ledger = ledger
        self._terminals: set[str] = set()
        self.restart()

    def restart(self) -> None:
        """The agent replays the conversation from its start."""
        self._calls: dict[str, _Call] = {}

    def __contains__(self, id: str) -> bool:
        """Whether a call was seen."""
        return id in self._calls

    def title(self, id: str) -> str | None:
        call = self._calls.get(id)
        return None if call is None else call.title

    def running(self, besides: Collection[str]) -> bool:
        """Whether a call is in progress other than these."""
        return any(call.running and id not in besides for id, call in self._calls.items())

    def stop(self) -> None:
        """A turn opens: what runs now is not part of its work."""
        for call in self._calls.values():
            call.running = False

    def create(self, call: v1.ToolCall) -> v2.SessionToolCallUpdate:
        """Return a call with all fields, so that it resets a call of the same id (24.4)."""
        kind = v2.ToolKind.OTHER if call.kind is UNSET else v2.ToolKind(call.kind)
        status = v2.ToolCallStatus.PENDING if call.status is UNSET else v2.ToolCallStatus(call.status)
        self._calls[call.tool_call_id] = _Call(call.title, status == v2.ToolCallStatus.IN_PROGRESS)
        return v2.SessionToolCallUpdate(
            tool_call_id=v2.ToolCallId(call.tool_call_id),
            title=call.title,
            name=call.name,
            kind=kind,
            status=status,
            content=self._items(call.content),
            locations=self._locations(call.locations),
            raw_input=None if call.raw_input is UNSET else call.raw_input,
            raw_output=None if call.raw_output is UNSET else call.raw_output,
            meta=UNSET if call.meta is None else call.meta,
        )

    def update(self, update: v1.SessionToolCallUpdate) -> v2.SessionToolCallUpdate:
        return v2.SessionToolCallUpdate(
            tool_call_id=v2.ToolCallId(update.tool_call_id), **self._patch(update)
        )

    def subject(self, call: v1.ToolCallUpdate) -> v2.ToolCallUpdate:
        """Return the call that a permission is about: an update of it, often the first (PERM-V2-03)."""
        return v2.ToolCallUpdate(tool_call_id=v2.ToolCallId(call.tool_call_id), **self._patch(call))

    def see(self, id: str) -> None:
        """Note a call that the agent sent as in v2."""
        self._calls.setdefault(id, _Call())

    def terminal_created(
        self, terminal_id: str, params: v1.CreateTerminalRequest, *, cwd: str
    ) -> v2.TerminalUpdate:
        """Return the terminal that was run for the agent, which in v2 is shown as its own. `cwd` is the
        session's."""
        self._terminals.add(terminal_id)
        return v2.TerminalUpdate(
            terminal_id=v2.TerminalId(terminal_id),
            command=shlex.join([params.command, *params.args]) if params.args else params.command,
            cwd=cwd if params.cwd is None else params.cwd,
        )

    def _patch(self, update: v1.ToolCallUpdate) -> dict[str, Any]:
        """Return the fields of an update that v1 does not leave out."""
        call = self._calls.setdefault(update.tool_call_id, _Call())  # TOOL-V1-04
        fields: dict[str, Any] = {}
        if update.title is not None:
            fields["title"] = call.title = update.title
        if update.name is not None:  # TOOL-V1-09
            fields["name"] = update.name
        if update.kind is not None:
            fields["kind"] = v2.ToolKind(update.kind)
        if update.status is not None:
            fields["status"] = v2.ToolCallStatus(update.status)
            call.running = update.status is v1.ToolCallStatus.IN_PROGRESS
        if update.content is not None:
            fields["content"] = self._items(update.content)
        if update.locations is not None:
            fields["locations"] = self._locations(update.locations)
        if update.raw_input is not UNSET and update.raw_input is not None:
            fields["raw_input"] = update.raw_input
        if update.raw_output is not UNSET and update.raw_output is not None:
            fields["raw_output"] = update.raw_output
        if update.meta is not None:
            fields["meta"] = update.meta
        return fields

    def _items(self, content: Iterable[v1.ToolCallContent]) -> list[v2.ToolCallContent]:
        return [self._item(item) for item in content]

    def _item(self, item: v1.ToolCallContent) -> v2.ToolCallContent:
        match item:
            case v1.Content():
                return v2.Content(content=self._content.block(item.content), meta=item.meta)
            case v1.Diff():
                diff = diffs.whole_diff(item.path, item.old_text, item.new_text)
                return diff if item.meta is None else structs.replace(diff, meta=item.meta)
        if item.terminal_id in self._terminals:
            return recast(item, v2.Terminal)
        # Both call it a terminal, but v1's is the client's and v2's the agent's: never by shape (24.4).
        self._ledger.lose(losses.CLIENT_TERMINAL, item)
        text = v2.TextContent(text=f"[terminal {item.terminal_id}]")
        return v2.Content(content=text, meta=mark(item.meta, item))

    def _locations(self, locations: Iterable[v1.ToolCallLocation]) -> list[v2.ToolCallLocation]:
        upgraded = []
        for location in locations:
            line, meta = location.line, location.meta
            if line == 0:  # TOOL-V1-10
                self._ledger.lose(losses.LOCATION_LINE, location)
                line, meta = None, mark(meta, {"line": 0})
            upgraded.append(v2.ToolCallLocation(path=location.path, line=line, meta=meta))
        return upgraded
