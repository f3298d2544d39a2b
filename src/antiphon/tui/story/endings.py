"""How turns ended: in words, and for turns that ended before the session was opened here.

A replay does not report the ends of earlier turns. A hub's timeline does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from antiphon.client import ClientSession
from antiphon.errors import AntiphonError
from antiphon.schema import v2
from antiphon.transcripts import end_text, ending_text
from antiphon.tui.text.plain import plain_line
from antiphon.tui.trouble import trouble_in


class PastTurn(NamedTuple):
    prompt: str | None
    """The message id of its prompt."""
    reason: str | None
    """Why it ended; `None` for an open turn."""
    error: str = ""
    """The message of the error that it ended with."""
    cause: str | None = None
    """What cut it short."""


class Ending(NamedTuple):
    words: str
    tone: str


async def past_turns(session: ClientSession) -> list[PastTurn]:
    """Return the turns of a session that the hub remembers, the oldest first; none if it is not a hub."""
    if not session.abilities.replay_after:
        return []
    try:
        timeline = await session.call_antiphon("timeline")
    except AntiphonError:  # not offered, or the link was lost: the transcript then lacks these notes
        return []
    return [
        PastTurn(item.message_id, None if item.end is None else item.status, item.error or "", item.cause)
        for item in timeline.items
        if item.kind == "turn"
    ]


def ending_of(state: v2.StateUpdate) -> Ending | None:
    """Describe the end of a turn that a state update reports, `None` for an ordinary one."""
    reason = None if state.stop_reason is None else str(state.stop_reason)
    if reason in (None, "end_turn"):
        return None
    words = plain_line(end_text(state), limit=600)
    if state.error is not None:
        words = replace(trouble_in(state.error.message, state.error.data), message=words).text()
    return Ending(words, _tone(reason))


def past_ending(turn: PastTurn) -> Ending | None:
    """Describe the end of an earlier turn, `None` for an ordinary one."""
    if turn.reason in (None, "end_turn", "ended"):
        return None
    words, error = plain_line(ending_text(turn.reason, cause=turn.cause)), plain_line(turn.error)
    return Ending(f"{words}: {error}" if error and not turn.cause else words, _tone(turn.reason))


def _tone(reason: str | None) -> str:
    return "bad" if reason == "error" else "wait"


def places(
    keys: Sequence[str], turns: Sequence[PastTurn], *, before: int, open: bool, closed: bool
) -> list[tuple[int, Ending]]:
    """Return where the ends of past turns belong in a story: before which of its keys, in order.

    before: the keys that were replayed; what follows them has its ends already.
    open: the last turn was open when the session was opened.
    closed: the end of the last turn is shown already.
    """
    index = {key: at for at, key in enumerate(keys[:before])}
    known = [(turn, index.get(f"message/user/{turn.prompt}")) for turn in turns]
    replayed = [(turn, at) for turn, at in known if turn.prompt is None or at is not None]
    if replayed and (open or closed):
        replayed.pop()
    starts = [at for _, at in known if at is not None]
    found = []
    for turn, at in replayed:
        ending = past_ending(turn)
        if at is not None and ending is not None:
            found.append((min((start for start in starts if start > at), default=before), ending))
    return found
