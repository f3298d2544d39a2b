"""The user messages of prompts, as an agent shows them and as clients see them.

* `PromptEcho`: an agent may show a prompt before it accepts it (PROMPT-V2-05), whole or in pieces. The
  message is held back until it is known to be the prompt: by its words, by the answer that names it, or by
  what comes next. Until then it could be another client's, and a v1 client must not be shown its own prompt.
* `PromptAttribution`: the hub adds the sender of a prompt, and the agent's id of it, to its message under
  `_meta["antiphon"]`. The agent does not know the sender: it only sees the hub.
* `PromisedIds`: clients know a message by the id under which its prompt waited; the agent has another id for
  it. Clients never see that one as a message id: updates of the agent about the message are renamed on their
  way to clients, and a request that names the message is renamed on its way to the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, structs

from antiphon.bridge.upgrade.echoes import MessageText, message_text
from antiphon.engine.prompts import Entry
from antiphon.engine.session import Session
from antiphon.engine.transcript import Message, MessageType, about_in
from antiphon.engine.who import who_of
from antiphon.schema import v2
from antiphon.schema.version import META_KEY, ours_in, with_ours

UserUpdate = v2.UserMessage | v2.UserMessageChunk
ReceivedMessage = tuple[UserUpdate, bytes | None, dict[str, Any] | None]
"""An update, its original if a v1 agent wrote it, and the `_meta` of its notification."""
AGENT_ID = "agentMessageId"
"""The key under which a user message has the agent's id for it, in `_meta["antiphon"]`."""
OF_THE_AGENT = (v2.AgentMessage, v2.AgentMessageChunk, v2.AgentThought, v2.AgentThoughtChunk)
"""Updates whose message id is not a user message's."""


class PromptEcho:
    def __init__(self) -> None:
        self.held: list[ReceivedMessage] = []
        """The updates of one user message."""

    @property
    def message_id(self) -> str | None:
        return self.held[0][0].message_id if self.held else None

    def repeats(self, written: Sequence[v2.ContentBlock]) -> bool:
        """Whether what is held says all of a prompt."""
        return self._said().repeats(message_text(written))

    def is_part_of(self, written: Sequence[v2.ContentBlock]) -> bool:
        """Whether what is held says a part of a prompt."""
        return self._said().is_part_of(message_text(written))

    def release(self) -> list[ReceivedMessage]:
        held, self.held = self.held, []
        return held

    def _said(self) -> MessageText:
        blocks: list[Any] = []
        for update, *_ in self.held:
            if isinstance(update, v2.UserMessageChunk):
                blocks.append(update.content)
            elif update.content is not UNSET and update.content is not None:
                blocks = list(update.content)
        return message_text(blocks)


class PromptAttribution:
    """An agent may send a prompt's message before or after it accepts the prompt, in chunks, or never."""

    def __init__(self) -> None:
        self._due: dict[str, dict[str, Any]] = {}
        """Additions to messages that the agent has not sent yet, by message id."""

    def accepted(
        self, entry: Entry, message_id: str, fold: Session, *, agent_id: str | None = None
    ) -> Sequence[v2.SessionUpdate]:
        """Return the updates that add to the message. There are none if the message is still to come."""
        added: dict[str, Any] = {} if agent_id is None else {AGENT_ID: agent_id}
        if entry.sender is not None:
            added["sender"] = who_of(entry.sender).to_meta()
        if not added:
            return ()
        message = fold.message(MessageType.USER, message_id)
        if message is None:
            self._due[message_id] = added
            return ()
        meta = with_ours(message.meta, **added)
        return (v2.UserMessage(message_id=v2.MessageId(message_id), meta=meta),)

    def complete(self, update: v2.UserMessage) -> v2.UserMessage:
        """Add to a message that the agent sends now."""
        added = self._due.pop(update.message_id, None)
        if added is None:
            return update
        meta = None if update.meta is UNSET else update.meta
        return structs.replace(update, meta=with_ours(meta, **added))

    def keep(self, update: v2.UserMessage, fold: Session) -> v2.UserMessage:
        """Keep the additions when the agent, which does not know them, patches a message. A patch replaces
        our key as a whole (MSG-18)."""
        known = fold.message(MessageType.USER, update.message_id)
        if known is None or not isinstance(update.meta, dict) or META_KEY not in update.meta:
            return update
        ours = ours_in(known.meta)
        added = {key: ours[key] for key in ("sender", AGENT_ID) if key in ours}
        return structs.replace(update, meta=with_ours(update.meta, **added)) if added else update

    def before_chunk(self, chunk: v2.UserMessageChunk) -> Sequence[v2.SessionUpdate]:
        """Return the updates to send before the first chunk of a message."""
        added = self._due.pop(chunk.message_id, None)
        if added is None:
            return ()
        return (v2.UserMessage(message_id=chunk.message_id, meta=with_ours(None, **added)),)


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


def rename_original(original: bytes, message_id: str) -> bytes:
    """Return what a v1 agent wrote of a message with another id."""
    written = msgspec.json.decode(original)
    if not isinstance(written, dict) or "messageId" not in written:
        return original
    return msgspec.json.encode({**written, "messageId": message_id})
