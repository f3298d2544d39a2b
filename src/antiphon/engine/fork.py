"""A fork: the updates of a new session that continues another one from some point.

They are read from the fold of the source, which does not change (SESS-52). The open turn stays with the
source. Older work that is in progress there is copied as it is; the fork has no agent for it and is
interrupted once it is made.
"""

from __future__ import annotations

from typing import Any

from antiphon.engine.annotations import Annotation
from antiphon.engine.fold import SessionFold
from antiphon.engine.items import Item
from antiphon.engine.subagents import SubagentInfo
from antiphon.engine.transcript import Message, MessageType

FACTS = ("facts/info", "facts/config", "facts/commands")
"""Facts that are copied in their present state, wherever they first appeared."""
USAGE = "facts/usage"
"""True of the whole conversation only."""


def forked(session: SessionFold, *, at: str | None = None) -> list[Any] | None:
    """Return the updates of the new session, or `None` if there is no such message.

    at: the message after which the fork begins; `None` is the last time the session was idle
    """
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
    """Return how many items there were when the open turn began: its prompt comes before its state
    (SD-07)."""
    turn = session.turn
    if turn is None:
        return len(session.items)
    took = [session.message(MessageType.USER, id) for id in turn.prompts]
    began = min([int(turn.turn_id), *(message.position for message in took if message is not None)])
    return sum(item.position < began for item in session.items)


def _through(items: list[Item], message_id: str) -> list[Item] | None:
    """Return everything up to a message; if message types share the id, up to the last of them (MSG-08)."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, Message) and item.id == message_id:
            return items[: index + 1]
    return None
