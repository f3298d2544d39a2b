"""EarlyEvents: keeps what an agent sends of a session until a hub session works with it."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from antiphon.connection.fault_log import FaultLog
from antiphon.engine.questions import Question
from antiphon.engine.transcript import TYPE_OF
from antiphon.schema import v2

logger = logging.getLogger("antiphon.hub")

EARLY = 50_000
"""How many events are kept; more are dropped."""
TRANSCRIPT = (*TYPE_OF, v2.SessionToolCallUpdate, v2.ToolCallContentChunk)


class AgentUpdate(NamedTuple):
    """An update of an agent, in v2 terms."""

    update: v2.SessionUpdate
    original: bytes | None = None
    """What a v1 agent wrote, if v1 clients could not be given that from the update."""
    meta: dict[str, Any] | None = None
    """The `_meta` of the notification."""


class Notified(NamedTuple):
    """An extension notification, at its place among what happened."""

    method: str
    params: Any


EarlyEvent = AgentUpdate | Question | Notified


class EarlyEvents:
    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._events: list[EarlyEvent] = []
        self._answered = 0
        """How many of the events the answer said that opened the session."""
        self.is_new = False
        """Whether the agent has answered that it is a new session."""
        self._dropped = FaultLog(logger, "early event of an agent dropped")

    def add(self, event: EarlyEvent) -> None:
        """Keep an event. What is no part of the transcript, such as the options of the session, is dropped
        last: a replay that is only skipped may be long."""
        most = EARLY if isinstance(event, Notified) or _is_of_transcript(event) else 2 * EARLY
        if len(self._events) < most:
            self._events.append(event)
        else:
            self._dropped.note(f"{len(self._events)} events wait for session {self._session_id[:100]!r}")

    def answered(self) -> None:
        """The events until now are what the answer said that opened the session."""
        self._answered, self.is_new = len(self._events), True

    def take(self) -> tuple[list[EarlyEvent], list[EarlyEvent]]:
        """Remove and return the events: those of the answer, and those that came beside it."""
        events, self._events = self._events, []
        return events[: self._answered], events[self._answered :]

    def drop_replay(self) -> None:
        """Drop the messages and tool calls, if the agent replays: then there is a user's message among them,
        although nobody has prompted. A fork begins with a copy of them."""
        kinds = [type(each.update) for each in self._events if isinstance(each, AgentUpdate)]
        if v2.UserMessage in kinds or v2.UserMessageChunk in kinds:
            came = self._events[self._answered :]
            self._events[self._answered :] = [each for each in came if not _is_of_transcript(each)]

    def answer_with_options(self, options: list[v2.SessionConfigOption]) -> None:
        """Replace all that was said about config options by these, as part of the answer. They were set again
        since, and clients are not to see the values in between."""
        answered, came = (
            [each for each in part if not _is_about_options(each)]
            for part in (self._events[: self._answered], self._events[self._answered :])
        )
        if options:
            answered.append(AgentUpdate(v2.ConfigOptionUpdate(config_options=options)))
        self._events, self._answered = [*answered, *came], len(answered)


def _is_of_transcript(event: EarlyEvent) -> bool:
    return isinstance(event, AgentUpdate) and isinstance(event.update, TRANSCRIPT)


def _is_about_options(event: EarlyEvent) -> bool:
    return isinstance(event, AgentUpdate) and isinstance(event.update, v2.ConfigOptionUpdate)
