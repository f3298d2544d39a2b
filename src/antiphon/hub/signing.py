"""Signing: who sent a prompt stands in its message. The agent only knows the hub, and does not write it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, structs

from antiphon.engine.prompts import Entry
from antiphon.engine.session import Session
from antiphon.engine.transcript import MessageType
from antiphon.engine.who import Who, who_of
from antiphon.schema import v2
from antiphon.schema.version import META_KEY, with_ours


class Signing:
    """An agent may show a prompt as a message before it takes it, behind that, in pieces, or not at all."""

    def __init__(self) -> None:
        self._due: dict[str, Who] = {}
        """Who sent what was taken and is not shown yet, by the ids of the messages."""

    def taken(self, entry: Entry, message_id: str, fold: Session) -> Sequence[v2.SessionUpdate]:
        """What to tell: nothing, where the message is still to come."""
        if entry.sender is None:
            return ()
        sender = who_of(entry.sender)
        message = fold.message(MessageType.USER, message_id)
        if message is None:
            self._due[message_id] = sender
            return ()
        meta = with_ours(message.meta, sender=sender.to_meta())
        return (v2.UserMessage(message_id=v2.MessageId(message_id), meta=meta),)

    def signed(self, update: v2.UserMessage) -> v2.UserMessage:
        sender = self._due.pop(update.message_id, None)
        if sender is None:
            return update
        meta = None if update.meta is UNSET else update.meta
        return structs.replace(update, meta=with_ours(meta, sender=sender.to_meta()))

    def kept(self, update: v2.UserMessage, fold: Session) -> v2.UserMessage:
        """An agent that changes a prompt's message does not know who sent it: that stays as it is known here.
        A patch replaces our key as a whole (MSG-18)."""
        known = fold.message(MessageType.USER, update.message_id)
        sender = None if known is None else known.sender
        if sender is None or not isinstance(update.meta, dict) or META_KEY not in update.meta:
            return update
        return structs.replace(update, meta=with_ours(update.meta, sender=sender.to_meta()))

    def begun(self, chunk: v2.UserMessageChunk) -> Sequence[v2.SessionUpdate]:
        """A message that comes in pieces: what to tell before this one."""
        sender = self._due.pop(chunk.message_id, None)
        if sender is None:
            return ()
        return (v2.UserMessage(message_id=chunk.message_id, meta=with_ours(None, sender=sender.to_meta())),)
