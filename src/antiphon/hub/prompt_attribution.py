"""PromptAttribution: the hub adds the sender of a prompt, and the agent's id of it, to its message.

The agent does not know the sender: it only sees the hub. It may have an id for the message that differs from
the id that clients know. Both are added under `_meta["antiphon"]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, structs

from antiphon.engine.prompts import Entry
from antiphon.engine.session import Session
from antiphon.engine.transcript import MessageType
from antiphon.engine.who import who_of
from antiphon.hub.promised_ids import AGENT_ID
from antiphon.schema import v2
from antiphon.schema.version import META_KEY, ours_in, with_ours


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
