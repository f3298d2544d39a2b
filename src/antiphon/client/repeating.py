"""A prompt that is sent again under its operation id, and was taken before: what is known of its turn."""

from __future__ import annotations

from antiphon.client.turn import ClientTurn, SessionEvent
from antiphon.engine.session import Session
from antiphon.engine.transcript import Message, MessageType

FACTS = "facts/"


def told_before(fold: Session, turn: ClientTurn, message_id: str | None, *, over: bool) -> list[SessionEvent]:
    """The turn as this client has it: the prompt's message and what came behind that; of one that is over, up
    to the next message of a user. Nothing where the message was not shown yet."""
    told: list[SessionEvent] = []
    for item in fold.items:
        user = item.id if isinstance(item, Message) and item.type is MessageType.USER else None
        if not told and (user is None or user != message_id):
            continue
        if told and over and user is not None:
            break
        if not item.key.startswith(FACTS):
            told.append(SessionEvent(seq=item.position, turn=turn, update=item.materialize()))
    return told
