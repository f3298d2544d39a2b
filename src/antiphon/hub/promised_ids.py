"""Promised ids: messages that clients know by the id under which their prompt waited.

The agent has another id for such a message. Clients never see that one as a message id: what the agent says
of the message is renamed on its way to clients, and a request that names the message is renamed on its way to
the agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import structs

from antiphon.engine.transcript import Message, MessageType, about_in
from antiphon.schema import v2
from antiphon.schema.version import ours_in, with_ours

AGENT_ID = "agentMessageId"
"""The key under which a user message has the agent's id for it, in `_meta["antiphon"]`."""
OF_THE_AGENT = (v2.AgentMessage, v2.AgentMessageChunk, v2.AgentThought, v2.AgentThoughtChunk)
"""Updates whose message id is not a user message's."""


class PromisedIds:
    def __init__(self) -> None:
        self._promised: dict[str, str] = {}
        self._agents: dict[str, str] = {}

    def learn(self, messages: Iterable[Message]) -> None:
        """Take the ids from the messages of a session that is brought to its agent again."""
        for message in messages:
            agent_id = ours_in(message.meta).get(AGENT_ID)
            if message.type is MessageType.USER and isinstance(agent_id, str):
                self.add(agent_id, message.id)

    def add(self, agent_id: str, promised: str) -> None:
        self._promised[agent_id] = promised
        self._agents[promised] = agent_id

    def promised(self, agent_id: str) -> str:
        """The id that clients know a message by."""
        return self._promised.get(agent_id, agent_id)

    def agents(self, message_id: str) -> str:
        """The id that the agent knows a message by."""
        return self._agents.get(message_id, message_id)

    def renamed(self, update: Any) -> Any:
        """An update of the agent with the id that clients know; the same object where nothing changes."""
        id = getattr(update, "message_id", None)
        if id is None or id not in self._promised or isinstance(update, OF_THE_AGENT):
            return update
        return structs.replace(update, message_id=v2.MessageId(self._promised[id]))

    def about(self, update: Any) -> Any:
        """An update that says which message it is about, with the id that clients know; the same object where
        nothing changes."""
        about = about_in(getattr(update, "meta", None)) if self._promised else None
        if about is None or about not in self._promised:
            return update
        meta = with_ours(update.meta, about={"messageId": self._promised[about]})
        return structs.replace(update, meta=meta)


def renamed_original(original: bytes, message_id: str) -> bytes:
    """An update as a v1 agent wrote it, with another message id."""
    written = msgspec.json.decode(original)
    if not isinstance(written, dict) or "messageId" not in written:
        return original
    return msgspec.json.encode({**written, "messageId": message_id})
