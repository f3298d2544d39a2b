"""A fork: what a new session is made of that goes on from a point of another one.

It is read from the fold and changes nothing there (SESS-52). The open turn of the source stays with it. Older
things that still go on there come as they are: nobody works on them in the fork, which is to be interrupted
once it is made.
"""

from __future__ import annotations

from typing import Any

from antiphon.engine.annotations import Annotation
from antiphon.engine.fold import SessionFold
from antiphon.engine.items import Item
from antiphon.engine.subagents import SubagentInfo
from antiphon.engine.transcript import Message, MessageType

FACTS = ("facts/info", "facts/config", "facts/commands")
"""What a session has of now, wherever in it that was first told."""
USAGE = "facts/usage"
"""True of the whole conversation only."""


def forked(session: SessionFold, *, at: str | None = None) -> list[Any] | None:
    """The updates that make the new session. `at` names the message after which it begins; `None` stands for
    the last time the session was idle. Gives `None` where there is no such message."""
    items = session.items
    taken = items[: _before_turn(session)] if at is None else _through(items, at)
    if taken is None:
        return None
    whole = len(taken) == len(items)
    made = [
        item.materialize()
        for item in taken
        if (whole or item.key != USAGE) and not isinstance(item, SubagentInfo)  # they work for the source
    ]
    messages = {(item.type, item.id) for item in taken if isinstance(item, Message)}
    return made + [
        item.materialize()
        for item in items[len(taken) :]
        if item.key in FACTS or (isinstance(item, Annotation) and (item.role, item.message_id) in messages)
    ]


def _before_turn(session: SessionFold) -> int:
    """How many items there were when the open turn began: its prompt comes before its state (SD-07)."""
    turn = session.turn
    if turn is None:
        return len(session.items)
    took = [session.message(MessageType.USER, id) for id in turn.prompts]
    began = min([int(turn.turn_id), *(message.position for message in took if message is not None)])
    return sum(item.position < began for item in session.items)


def _through(items: list[Item], message_id: str) -> list[Item] | None:
    """Everything up to a message; where types share the id, up to the last of them (MSG-08)."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, Message) and item.id == message_id:
            return items[: index + 1]
    return None
