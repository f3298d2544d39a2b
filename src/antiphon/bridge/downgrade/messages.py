"""Messages towards a v1 client: v2 patches them by id, v1 only ever appends (24.4, MSG)."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, field

from antiphon.bridge import losses
from antiphon.bridge.content import ContentDown
from antiphon.bridge.losses import Ledger, mark
from antiphon.engine.content import patch_meta
from antiphon.engine.transcript import MESSAGE_CHUNKS, TYPE_OF, MessageType, is_deletion, without_deleted
from antiphon.schema import v1, v2
from antiphon.schema.v1 import optins
from antiphon.schema.version import OptIns, with_ours

Chunk: TypeAlias = v2.UserMessageChunk | v2.AgentMessageChunk | v2.AgentThoughtChunk
Whole: TypeAlias = v2.UserMessage | v2.AgentMessage | v2.AgentThought
Sent: TypeAlias = (
    v1.UserMessageChunk
    | v1.AgentMessageChunk
    | v1.AgentThoughtChunk
    | optins.MessageUpdate
    | optins.UserMessage
)

_Text = v2.TextContent
_WAITING = 64
_WAITING_SIZE = 16 * 1024
"""How many texts wait to be digested together, and of how many characters."""
_encode = msgspec.json.Encoder().encode


_CHUNK_OF: dict[MessageType, type[v1.UserMessageChunk | v1.AgentMessageChunk | v1.AgentThoughtChunk]] = {
    MessageType.USER: v1.UserMessageChunk,
    MessageType.AGENT: v1.AgentMessageChunk,
    MessageType.THOUGHT: v1.AgentThoughtChunk,
}


class _Shown:
    """The content of one message that a v1 client has: enough to know whether other content extends it.

    Adjacent plain texts count as one text. Only a digest is kept, so that the cost of an attachment depends
    on the number of messages and not on their length. Texts are gathered first, because one digest of many
    costs less than many.
    """

    __slots__ = ("_digest", "_size", "_waiting", "_waiting_size")

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=16)
        self._size = 0
        self._waiting: list[str] = []
        self._waiting_size = 0

    def add(self, block: v2.ContentBlock) -> None:
        if type(block) is _Text and block.annotations is None and block.meta is None:
            self._waiting.append(block.text)
            self._waiting_size += len(block.text)
            if len(self._waiting) < _WAITING and self._waiting_size < _WAITING_SIZE:
                return
            block = self._waited()
        elif self._waiting:
            self._digest_of(self._waited())
        self._digest_of(block)

    def flush(self) -> None:
        """Digest the gathered texts, because another message follows."""
        if self._waiting:
            self._digest_of(self._waited())

    @property
    def any(self) -> bool:
        self.flush()
        return self._size > 0

    def _waited(self) -> v2.TextContent:
        text = "".join(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        return _Text(text=text)

    def _digest_of(self, block: v2.ContentBlock) -> None:
        data = _flat(block)
        self._digest.update(data)
        self._size += len(data)

    def rest(self, content: list[v2.ContentBlock]) -> list[v2.ContentBlock] | None:
        """Return the content after what is shown, or `None` if the beginning differs."""
        self.flush()
        if self._size == 0:
            return content
        digest, left = blake2b(digest_size=16), self._size
        for index, block in enumerate(content):
            data = _flat(block)
            digest.update(data[:left])
            if len(data) >= left:
                if digest.digest() != self._digest.digest():
                    return None
                rest = content[index + 1 :]
                if len(data) > left:
                    text = data[left:].replace(b"\0\0", b"\0").decode("utf-8", "surrogatepass")
                    rest.insert(0, v2.TextContent(text=text))
                return rest
            left -= len(data)
        return None


def _flat(block: v2.ContentBlock) -> bytes:
    """Return a block as bytes that no other sequence of blocks yields: text as it is, the rest with its
    length."""
    if isinstance(block, _Text) and block.annotations is None and block.meta is None:
        return block.text.encode("utf-8", "surrogatepass").replace(b"\0", b"\0\0")
    data = _encode(block)
    return b"\0\1%d:" % len(data) + data


class _Message(Struct, eq=False):
    role: MessageType
    id: str
    """The id it has for the v1 client."""
    marks: dict[str, Any] | None = None
    """The original that the next chunk carries in its `_meta`."""
    meta: dict[str, Any] = {}
    meta_due: bool = False
    known: bool = False
    """Whether the client was sent something of it: then it knows the role."""
    shown: _Shown = field(default_factory=_Shown)
    silent: bool = False
    """Whether the client has it because it wrote it."""


class Messages:
    """Every message of a session as one v1 client knows it."""

    __slots__ = (
        "_content", "_ids", "_last", "_ledger", "_messages", "_opt_ins", "_pass", "_passing_id",
        "_passing_type", "_prompted",
    )  # fmt: skip

    def __init__(self, content: ContentDown, ledger: Ledger, opt_ins: OptIns) -> None:
        self._content = content
        self._ledger = ledger
        self._opt_ins = opt_ins
        self._messages: dict[tuple[MessageType, str], _Message] = {}
        self._ids: set[str] = set()
        self._prompted: dict[str, None] = {}
        self._last: _Message | None = None
        # The message whose chunks pass, until something is done to another: nearly always the next chunk's.
        self._passing_type: type[Chunk] | None = None
        self._passing_id = ""
        self._pass: Callable[[v2.ContentBlock], None]

    def note_prompted(self, message_id: str) -> str:
        """Note that the client itself prompted this message; return the id that the client knows it by.

        Without the future flag it is not echoed to its author (PROMPT-V1-22).
        """
        known = (MessageType.USER, message_id) in self._messages
        message = self._message(MessageType.USER, message_id)
        message.silent = message.silent or not (known or self._opt_ins.prompt_lifecycle)
        if message.silent:
            self._prompted[message_id] = None
        return message.id

    def adopt(self, other: Messages) -> None:
        """Note the client's own messages, when everything is written to it again."""
        for message_id in other._prompted:
            self.note_prompted(message_id)

    def known_as(self, role: str, id: str) -> str:
        """Return the id that a message has for the client."""
        message = self._messages.get((MessageType(role), id))
        return id if message is None else message.id

    def original_of(self, id: str) -> tuple[str, str] | None:
        """Return the role and the id of the message that the client knows by this id."""
        return next(((str(role), own) for (role, own), m in self._messages.items() if m.id == id), None)

    def passes(self, update: v2.SessionUpdate) -> bool:
        """Whether an update is the same in v1 and v2, byte for byte. If so, it counts as sent."""
        if type(update) not in MESSAGE_CHUNKS:
            return False
        chunk: Any = update
        content = chunk.content
        if type(content) is not _Text or content.annotations is not None:
            return False
        if type(chunk) is not self._passing_type or chunk.message_id != self._passing_id:
            message = self._message(TYPE_OF[type(chunk)], chunk.message_id)
            if message.id != chunk.message_id or message.silent or message.meta_due or message.marks:
                return False
            message.known = True
            self._passing_type, self._passing_id = type(chunk), message.id
            self._pass = message.shown.add
        self._pass(content)
        return True

    def chunk(self, chunk: Chunk) -> list[Sent]:
        message = self._message(TYPE_OF[type(chunk)], chunk.message_id)
        message.shown.add(chunk.content)
        if message.silent:
            return []
        return [self._chunk(message, chunk.content, chunk.meta)]

    def whole(self, update: Whole) -> list[Sent]:
        message = self._message(TYPE_OF[type(update)], update.message_id)
        if message.role is MessageType.USER and self._opt_ins.prompt_lifecycle:
            return [self._as_patch(message, update)]
        meta_changed = self._patch_meta(message, update.meta)
        if update.content is UNSET:
            if meta_changed and message.shown.any:
                self._ledger.lose(losses.MESSAGE_META, update)
            return []
        if is_deletion(update):
            return self._delete(message, update)
        content = update.content or []
        rest = message.shown.rest(content)
        if rest is not None:
            for block in rest:
                message.shown.add(block)
            if meta_changed and not rest and message.shown.any:
                self._ledger.lose(losses.MESSAGE_META, update)
            return [] if message.silent else [self._chunk(message, block) for block in rest]
        return self._replace(message, update, content)

    def _replace(self, message: _Message, update: Whole, content: list[v2.ContentBlock]) -> list[Sent]:
        message.shown = _Shown()
        for block in content:
            message.shown.add(block)
        if self._opt_ins.message_update and not message.silent:
            message.meta_due = False
            blocks = self._content.blocks(content)
            return [
                optins.MessageUpdate(
                    message_id=v1.MessageId(message.id),
                    update_type="replace",
                    content=blocks[0] if len(blocks) == 1 else blocks,
                    meta=dict(message.meta) or None,
                )
            ]
        self._ledger.lose(losses.MESSAGE_REPLACED if content else losses.MESSAGE_CLEARED, update)
        message.silent = False
        message.marks = {"messageId": update.message_id, "replaces": message.id}
        message.meta_due = bool(message.meta)
        message.id = self._free_id(update.message_id)
        return [self._chunk(message, block) for block in content]

    def _delete(self, message: _Message, update: Whole) -> list[Sent]:
        """Delete a message. Without the opt-in the client keeps what it was sent, and an undone deletion adds
        nothing."""
        meta, message.meta = dict(message.meta), without_deleted(message.meta)
        if not self._opt_ins.message_update or message.silent:
            self._ledger.lose(losses.MESSAGE_DELETED, update)
            return []
        message.shown = _Shown()
        if not message.known:  # a replay: nothing else shows the role of the message
            meta = with_ours(meta, role=str(message.role))
        message.meta_due, message.known = False, True
        return [optins.MessageUpdate(message_id=v1.MessageId(message.id), update_type="delete", meta=meta)]

    def _as_patch(self, message: _Message, update: Whole) -> optins.UserMessage:
        """Under the future flag user messages are patches in v1 too."""
        content, meta = update.content, update.meta
        if message.marks is not None and meta is not None:
            meta = mark(meta or None, message.marks)
            message.marks = None
        return optins.UserMessage(
            message_id=v1.MessageId(message.id),
            content=self._content.blocks(content) if isinstance(content, list) else content,
            meta=meta,
        )

    def _chunk(self, message: _Message, block: v2.ContentBlock, meta: dict[str, Any] | None = None) -> Sent:
        if message.meta_due:
            meta = {**message.meta, **(meta or {})}
            message.meta_due = False
        if message.marks is not None:
            meta = mark(meta, message.marks)
            message.marks = None
        message.known = True
        return _CHUNK_OF[message.role](
            content=self._content.block(block), message_id=v1.MessageId(message.id), meta=meta
        )

    def _message(self, role: MessageType, id: str) -> _Message:
        self._passing_type = None
        message = self._messages.get((role, id))
        if message is not self._last:
            if self._last is not None:
                self._last.shown.flush()
            self._last = message
        if message is None:
            shown_id = id
            if id in self._ids:  # MSG-07: v1 ids are unique in the session, whatever the type
                self._ledger.lose(losses.MESSAGE_ID, id)
                shown_id = self._free_id(f"{role}:{id}")
            self._ids.add(shown_id)
            message = self._messages[role, id] = _Message(role, shown_id)
            if shown_id != id:
                message.marks = {"messageId": id}
            self._last = message
        return message

    def _free_id(self, wanted: str) -> str:
        id, number = wanted, 1
        while id in self._ids:
            number += 1
            id = f"{wanted}~{number}"
        self._ids.add(id)
        return id

    def _patch_meta(self, message: _Message, patch: Any) -> bool:
        """Merge a `_meta` patch (MSG-18); return whether that changed anything."""
        merged = patch_meta(message.meta, patch)
        if merged == message.meta:
            return False
        message.meta, message.meta_due = merged, True
        return True
