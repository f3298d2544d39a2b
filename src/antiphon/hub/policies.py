"""Policies: whom an agent's questions are put to, and what becomes of them with nobody there."""

from __future__ import annotations

from enum import StrEnum

from antiphon.engine.questions import Question
from antiphon.engine.who import Who
from antiphon.server.access import PolicySession


class Policy(StrEnum):
    FIRST = "first"
    """Everybody who may answer is asked; the first one decides."""
    OWNER = "owner"
    """Only those who came with an owner's token."""
    DESIGNATED = "designated"
    """Only who sent the prompt that is worked on; everybody, if that client is not there."""


class Unattended(StrEnum):
    WAIT = "wait"
    REJECT = "reject"
    ALLOW_READ = "allow-read"
    """What only reads is approved, once; the rest waits."""


READS = frozenset({"read", "search", "think"})
"""The kinds of tool calls that only read. Not `fetch`: what is sent out with an address is gone."""


def designated(session: PolicySession, question: Question) -> frozenset[str]:
    """The clients that sent what is worked on, by their ids, of those who are there; perhaps none."""
    turn, prompts = session.fold.turn, session.fold.prompts
    if turn is None or question.turn_id != turn.turn_id:
        return frozenset()
    taken = [
        entry for entry in prompts.entries.values() if (entry.became or entry.message_id) in turn.prompts
    ]
    senders = {entry.sender.client_id for entry in (*taken, *prompts.sent) if isinstance(entry.sender, Who)}
    return frozenset(senders) & frozenset(session.askable_ids)
