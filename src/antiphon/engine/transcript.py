"""Messages: user, agent and thought, by type and id (MSG-08)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import UNSET

from antiphon.engine.content import Content, patch_meta
from antiphon.schema.v2.content import ContentBlock
from antiphon.schema.v2.identifiers import MessageId
from antiphon.schema.v2.messages import (
    AgentMessage,
    AgentMessageChunk,
    AgentThought,
    AgentThoughtChunk,
    UserMessage,
    UserMessageChunk,
)

MessageUpdate: TypeAlias = UserMessage | AgentMessage | AgentThought
MessageChunk: TypeAlias = UserMessageChunk | AgentMessageChunk | AgentThoughtChunk


class MessageType(StrEnum):
    USER = "user"
    AGENT = "agent"
    THOUGHT = "thought"


WHOLE: dict[MessageType, type[UserMessage] | type[AgentMessage] | type[AgentThought]] = {
    MessageType.USER: UserMessage,
    MessageType.AGENT: AgentMessage,
    MessageType.THOUGHT: AgentThought,
}
"""The whole-message update of each type."""
TYPE_OF: dict[type, MessageType] = {
    UserMessage: MessageType.USER,
    UserMessageChunk: MessageType.USER,
    AgentMessage: MessageType.AGENT,
    AgentMessageChunk: MessageType.AGENT,
    AgentThought: MessageType.THOUGHT,
    AgentThoughtChunk: MessageType.THOUGHT,
}


class Message:
    """One message. It stays where it first appeared (MSG-22)."""

    __slots__ = ("_content", "id", "key", "meta", "position", "type")

    def __init__(self, type: MessageType, id: MessageId, *, position: int) -> None:
        self.type = type
        self.id = id
        self.key = f"message/{type}/{id}"
        self.position = position
        self.meta: dict[str, Any] = {}
        self._content = Content()

    @property
    def content(self) -> list[ContentBlock]:
        return self._content.blocks

    @property
    def text(self) -> str:
        return self._content.text

    def append(self, block: ContentBlock) -> None:
        self._content.append(block)

    def patch(self, update: MessageUpdate) -> None:
        if update.content is not UNSET:
            self._content.replace(update.content or ())  # MSG-13
        self.meta = patch_meta(self.meta, update.meta)

    def materialize(self) -> MessageUpdate:
        """The whole message as one upsert; it replaces what a client holds (SESS-23)."""
        return WHOLE[self.type](message_id=self.id, content=self.content, meta=self.meta or None)


class Transcript:
    """All messages, by type and then by id."""

    __slots__ = ("_by_type",)

    def __init__(self) -> None:
        self._by_type: dict[MessageType, dict[str, Message]] = {type: {} for type in MessageType}

    def get(self, type: MessageType, id: str) -> Message | None:
        return self._by_type[type].get(id)

    def chunk(self, update: MessageChunk, *, position: int) -> Message:
        """Appends to the message of a chunk; the first one creates it (MSG-15)."""
        type_ = TYPE_OF[type(update)]
        messages = self._by_type[type_]
        message = messages.get(update.message_id)
        if message is None:
            message = messages[update.message_id] = Message(type_, update.message_id, position=position)
        message._content.append(update.content)
        return message

    def patch(self, update: MessageUpdate, *, position: int) -> Message:
        type_ = TYPE_OF[type(update)]
        messages = self._by_type[type_]
        message = messages.get(update.message_id)
        if message is None:
            message = messages[update.message_id] = Message(type_, update.message_id, position=position)
        message.patch(update)
        return message
