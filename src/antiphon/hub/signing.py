"""Signing: what the hub adds to the message of a prompt, under our own key. Who sent it: the agent only knows
the hub, and does not write it. The agent's id for the message, where clients know it by another."""

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


class Signing:
    """An agent may show a prompt as a message before it takes it, behind that, in pieces, or not at all."""

    def __init__(self) -> None:
        self._due: dict[str, dict[str, Any]] = {}
        """What is added to messages that are not shown yet, by their ids."""

    def taken(
        self, entry: Entry, message_id: str, fold: Session, *, agent_id: str | None = None
    ) -> Sequence[v2.SessionUpdate]:
        """What to tell: nothing, where the message is still to come."""
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

    def signed(self, update: v2.UserMessage) -> v2.UserMessage:
        added = self._due.pop(update.message_id, None)
        if added is None:
            return update
        meta = None if update.meta is UNSET else update.meta
        return structs.replace(update, meta=with_ours(meta, **added))

    def kept(self, update: v2.UserMessage, fold: Session) -> v2.UserMessage:
        """An agent that changes a prompt's message does not know what the hub added: that stays as it is. A
        patch replaces our key as a whole (MSG-18)."""
        known = fold.message(MessageType.USER, update.message_id)
        if known is None or not isinstance(update.meta, dict) or META_KEY not in update.meta:
            return update
        ours = ours_in(known.meta)
        added = {key: ours[key] for key in ("sender", AGENT_ID) if key in ours}
        return structs.replace(update, meta=with_ours(update.meta, **added)) if added else update

    def begun(self, chunk: v2.UserMessageChunk) -> Sequence[v2.SessionUpdate]:
        """A message that comes in pieces: what to tell before this one."""
        added = self._due.pop(chunk.message_id, None)
        if added is None:
            return ()
        return (v2.UserMessage(message_id=chunk.message_id, meta=with_ours(None, **added)),)
