"""Messages: user, agent and thought, by type and id (MSG-08)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import UNSET, structs

from antiphon.engine.content import Content, patch_meta
from antiphon.engine.who import sender_in
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.messages import MessageMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.version import META_KEY, ours_in, without_ours

if TYPE_CHECKING:
    from antiphon.engine.annotations import Annotation

MessageUpdate: TypeAlias = v2.UserMessage | v2.AgentMessage | v2.AgentThought
MessageChunk: TypeAlias = v2.UserMessageChunk | v2.AgentMessageChunk | v2.AgentThoughtChunk


class MessageType(StrEnum):
    USER = "user"
    AGENT = "agent"
    THOUGHT = "thought"


WHOLE: dict[MessageType, type[v2.UserMessage] | type[v2.AgentMessage] | type[v2.AgentThought]] = {
    MessageType.USER: v2.UserMessage,
    MessageType.AGENT: v2.AgentMessage,
    MessageType.THOUGHT: v2.AgentThought,
}
"""The whole-message update of each type."""
CHUNK: dict[
    MessageType, type[v2.UserMessageChunk] | type[v2.AgentMessageChunk] | type[v2.AgentThoughtChunk]
] = {
    MessageType.USER: v2.UserMessageChunk,
    MessageType.AGENT: v2.AgentMessageChunk,
    MessageType.THOUGHT: v2.AgentThoughtChunk,
}
"""The chunk of each type."""
TYPE_OF: dict[type, MessageType] = {
    v2.UserMessage: MessageType.USER,
    v2.UserMessageChunk: MessageType.USER,
    v2.AgentMessage: MessageType.AGENT,
    v2.AgentMessageChunk: MessageType.AGENT,
    v2.AgentThought: MessageType.THOUGHT,
    v2.AgentThoughtChunk: MessageType.THOUGHT,
}


MESSAGE_CHUNKS = frozenset([v2.UserMessageChunk, v2.AgentMessageChunk, v2.AgentThoughtChunk])


class Message:
    """One message, at the place where it first appeared (MSG-22)."""

    __slots__ = ("_content", "annotated", "append", "append_text", "id", "key", "meta", "position", "type")

    def __init__(self, type: MessageType, id: v2.MessageId, *, position: int) -> None:
        self.type = type
        self.id = id
        self.key = f"message/{type}/{id}"
        self.position = position
        self.meta: dict[str, Any] = {}
        self.annotated: dict[str, Annotation] = {}
        self._content = Content()
        self.append: Final = self._content.append
        self.append_text: Final = self._content.append_text

    @property
    def role(self) -> MessageType:
        """`user`, `agent`, or `thought`."""
        return self.type

    @property
    def message_id(self) -> v2.MessageId:
        return self.id

    @property
    def content(self) -> list[v2.ContentBlock]:
        return self._content.blocks

    @property
    def text(self) -> str:
        return self._content.text

    @property
    def sender(self) -> Who | None:
        """The client that sent the prompt, if it is named."""
        return sender_in(self.meta)

    @property
    def deleted(self) -> bool:
        """Whether the agent has deleted it. A later update of the same id restores it."""
        return marks_deleted(self.meta) and self._content.empty

    @property
    def edited(self) -> bool:
        """Whether it shows another version than its first one."""
        revision = read_meta(MessageMeta, self.meta).revision
        return revision is not None and revision.at != 0

    @property
    def about(self) -> str | None:
        """The id of the message that it answers or was triggered by, if the agent names one."""
        return about_in(self.meta)

    @property
    def annotations(self) -> list[Annotation]:
        """The reactions and notes of clients, the oldest first."""
        return list(self.annotated.values())

    def patch(self, update: MessageUpdate) -> None:
        if update.content is not UNSET:
            self._content.replace(update.content or ())  # MSG-13
            self.meta = without_deleted(self.meta)  # unless this update deletes it, too
        self.meta = patch_meta(self.meta, update.meta)

    def materialize(self) -> MessageUpdate:
        """Return the whole message as one upsert; it replaces what a client holds (SESS-23)."""
        return structs.replace(self.bare(empty=self._content.empty), content=self.content)

    def bare(self, *, empty: bool) -> MessageUpdate:
        """Return the message without its content, which is `empty` or not."""
        meta = self.meta if empty else without_deleted(self.meta)
        return WHOLE[self.type](message_id=self.id, content=[], meta=meta or None)

    def parts(self) -> tuple[list[v2.ContentBlock], list[str]]:
        """Return the content without copying it: blocks, and the strings of the plain text after them."""
        return self._content.parts


def marks_deleted(meta: Any) -> bool:
    """Whether a `_meta` marks its message as deleted."""
    return read_meta(MessageMeta, meta).deleted


def without_deleted(meta: dict[str, Any]) -> dict[str, Any]:
    """Return a `_meta` without the mark of a deleted message."""
    if not marks_deleted(meta):
        return meta
    ours = {key: value for key, value in ours_in(meta).items() if key != "deleted"}
    return {**(without_ours(meta) or {}), **({META_KEY: ours} if ours else {})}


def is_deletion(update: MessageUpdate) -> bool:
    """Whether an upsert deletes its message: it empties the message and marks it."""
    return not update.content and update.content is not UNSET and marks_deleted(update.meta)


def about_in(meta: Any) -> str | None:
    """Return the id of the message that a message or tool call is about, if its `_meta` names one."""
    about = read_meta(MessageMeta, meta).about
    return None if about is None else about.message_id


class Transcript:
    """All messages, by type and then by id."""

    __slots__ = ("_by_update",)

    def __init__(self) -> None:
        by_type: dict[str, dict[str, Message]] = {type: {} for type in MessageType}
        # By the class of the update: an enum member is slow to hash, and this is asked for every chunk.
        self._by_update = {update: by_type[type] for update, type in TYPE_OF.items()}

    def get(self, type: MessageType, id: str) -> Message | None:
        return self._by_update[WHOLE[type]].get(id)

    def find(self, id: str) -> Message | None:
        """Return the message of this id, of any type; if types share the id, the agent's comes first
        (MSG-08)."""
        order = (MessageType.AGENT, MessageType.USER, MessageType.THOUGHT)
        return next((found for type in order if (found := self.get(type, id)) is not None), None)

    def of(self, update: MessageChunk) -> Message:
        """Return the message of an appended chunk."""
        return self._by_update[type(update)][update.message_id]

    def chunk(self, update: MessageChunk, position: int) -> Message:
        """Appends to the message of a chunk; the first one creates it (MSG-15)."""
        message = self._by_update[type(update)].get(update.message_id)
        if message is None:
            message = self._create(update, position)
        message.append(update.content)
        return message

    def patch(self, update: MessageUpdate, position: int) -> Message:
        message = self._by_update[type(update)].get(update.message_id) or self._create(update, position)
        message.patch(update)
        return message

    def _create(self, update: MessageUpdate | MessageChunk, position: int) -> Message:
        message = Message(TYPE_OF[type(update)], update.message_id, position=position)
        self._by_update[type(update)][message.id] = message
        return message
