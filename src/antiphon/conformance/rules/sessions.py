"""Sessions in a recording: their updates, which are new here, and when one is replayed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import Struct

from antiphon.conformance.recording import RecordedFrame, Recording, Role
from antiphon.conformance.rules.exchanges import exchanges_of

REOPENING = ("session/load", "session/resume", "session/fork")


class Step(Struct, frozen=True):
    """One update of an agent, or the moment from which a session may be replayed (`update` is empty then)."""

    frame: RecordedFrame
    session: Any
    update: dict[str, Any]
    kind: str
    """The `sessionUpdate` of the update."""


def steps(recording: Recording) -> tuple[Step, ...]:
    """Return the updates of all sessions, and the requests that reopen one."""
    return _steps(recording, len(recording.frames))


@lru_cache(maxsize=2)
def _steps(recording: Recording, length: int) -> tuple[Step, ...]:
    found: list[Step] = []
    for frame in recording.frames:
        session = frame.session_id
        if isinstance(session, str):
            if frame.sender is Role.AGENT and (update := frame.update):
                found.append(Step(frame, session, update, str(update.get("sessionUpdate"))))
            elif frame.sender is Role.CLIENT and frame.method in REOPENING:
                found.append(Step(frame, session, {}, ""))
    return tuple(found)


def new_sessions(recording: Recording) -> set[str]:
    """Return the ids of sessions that were made on this connection and not reopened on it."""
    answered = exchanges_of(recording, Role.CLIENT).answered("session/new")
    made = (answer.get("result", "sessionId") for _, answer in answered)
    reopened = {step.session for step in steps(recording) if not step.update}
    return {id for id in made if isinstance(id, str)} - reopened
