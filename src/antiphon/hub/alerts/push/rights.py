"""Rights to answer from a notification: one use, one question, one option, one subscription, an hour."""

from __future__ import annotations

from msgspec import Struct

from antiphon.hub.access.tickets import Tickets

SECONDS = 3600.0
MOST = 10_000


class AnswerRight(Struct, frozen=True, kw_only=True):
    session_id: str
    question_id: str
    option_id: str
    subscription: str
    """The id of the subscription whose notification has the button."""


def new_rights() -> Tickets[AnswerRight]:
    """Return what issues rights, each with a code, and redeems them."""
    return Tickets(SECONDS, most=MOST)
