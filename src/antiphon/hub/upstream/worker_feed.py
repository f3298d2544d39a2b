"""WorkerFeed: hands what an agent sends of one session to the worker of a hub session, and keeps it until
there is a worker.

Agents number as they like, each session from its beginning. Where a hub session continues in a new session at
the agent, the first message there must not replace the first one here (invariant 7): `mark` is appended to
each message id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from msgspec import structs

from antiphon.connection.fault_log import FaultLog
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.transcript import TYPE_OF, MessageChunk, about_in
from antiphon.schema import v2
from antiphon.schema.updates import TextChunk
from antiphon.schema.version import with_ours
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.hub")

LONGEST_WAIT = 10.0
"""Seconds that a request of an agent waits for the client that begins the session."""
MOST_KEPT = 50_000
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
    """An extension notification, at its place among the other events."""

    method: str
    params: Any


AgentEvent = AgentUpdate | Question | Notified


class SentPrompt:
    """A prompt that was sent to the agent."""

    __slots__ = ("__weakref__", "ended", "message_id")

    def __init__(self) -> None:
        self.message_id: str | None = None
        """The agent's id of its message, once known."""
        self.ended = False


class AskingSession(Protocol):
    """The session at the agent that asks a question."""

    @property
    def fold(self) -> Session: ...
    @property
    def parent(self) -> object | None:
        """The session that it works for, if it is a subagent's."""


class UpstreamListener(Protocol):
    """The worker of a hub session, as its agent sees it. It is called in the agent's lane, at once."""

    session: ServedSession

    def agent_accepted(self, prompt: SentPrompt) -> None: ...
    def agent_sent(
        self, update: v2.SessionUpdate, original: bytes | None, meta: dict[str, Any] | None
    ) -> None: ...
    def agent_streamed(self, chunk: MessageChunk) -> None: ...
    def agent_streamed_text(self, chunks: Sequence[TextChunk]) -> None: ...
    def agent_asked(self, question: Question) -> None:
        """The agent has opened or closed a question."""

    def agent_notified(self, method: str, params: Any) -> None: ...
    def agent_left(self, reason: str) -> None: ...
    def agent_paced(self) -> Awaitable[None] | None:
        """What to wait for before more of the agent is read."""

    async def begun(self) -> None:
        """Wait for the client that begins the session."""

    async def decide_permission(
        self, question_id: str, request: v2.RequestPermissionRequest, asking: AskingSession
    ) -> v2.RequestPermissionResponse | None: ...
    async def decide_elicitation(self, elicitation: Any, asking: AskingSession) -> Any: ...


class WorkerFeed:
    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self.worker: UpstreamListener | None = None
        """The worker that gets the events; None before `lead` and after the end."""
        self.mark = ""
        self.ended: str | None = None
        """Why no worker gets events of the session any more."""
        self._led = asyncio.Event()
        self._kept: list[AgentEvent] = []
        self._answered = 0
        """How many of the kept events were part of the answer that opened the session."""
        self._is_new = False
        """Whether the agent has answered that it is a new session."""
        self._dropped = FaultLog(logger, "early event of an agent dropped")

    # --- the worker --------------------------------------------------------------------------------

    def lead(
        self,
        worker: UpstreamListener,
        *,
        early: bool,
        mark: str = "",
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """Hand everything to this worker from here on; with `early`, also the kept events. `begun` is called
        between the events of the answer that opened the session and the events after it."""
        self.worker, self.mark = worker, mark
        kept, self._kept = self._kept if early else [], []
        for event in kept[: self._answered]:
            self._hand_over(event, worker)
        begun()
        for event in kept[self._answered :]:
            self._hand_over(event, worker)
        self._led.set()
        if self.ended is not None:
            worker.agent_left(self.ended)

    def add(self, event: AgentEvent) -> None:
        """Hand an event over, or keep it. The events of the transcript are dropped first: a replay that is
        only skipped may be long, and the others, such as the options of the session, are needed."""
        if self.worker is not None:
            self._hand_over(event, self.worker)
        elif self.ended is None:
            most = MOST_KEPT if isinstance(event, Notified) or _is_of_transcript(event) else 2 * MOST_KEPT
            if len(self._kept) < most:
                self._kept.append(event)
            else:
                self._dropped.note(f"{len(self._kept)} events wait for session {self._session_id[:100]!r}")

    def _hand_over(self, event: AgentEvent, worker: UpstreamListener) -> None:
        if isinstance(event, Notified):
            worker.agent_notified(*event)
        elif isinstance(event, Question):
            worker.agent_asked(event)
        else:
            worker.agent_sent(*(_marked(event, self.mark) if self.mark else event))

    def pace(self) -> Awaitable[None] | None:
        """What to wait for before more of the agent is read."""
        return None if self.worker is None else self.worker.agent_paced()

    async def led(self) -> UpstreamListener | None:
        """Wait for the worker: an agent may ask before there is one. None if there will be none."""
        await self._led.wait()
        return self.worker

    async def followed(self) -> None:
        """Wait for the worker, and for the client that begins its session."""
        worker = await self.led()
        if worker is not None:
            await worker.begun()

    async def wait_for_client(self) -> None:
        """Wait for the client that begins a new session. The wait is bounded, because the agent may do
        nothing else meanwhile."""
        if self._is_new:
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_WAIT):
                    await self.followed()

    # --- the end -----------------------------------------------------------------------------------

    def cut(self) -> None:
        """Hand nothing on any more, without informing the worker."""
        self.worker = None
        self.ended = self.ended or "the hub let it go"
        self._led.set()

    def end(self, reason: str) -> None:
        """Inform the worker, once, that the agent sends nothing more of the session."""
        if self.ended is None:
            self.ended = reason
            self._led.set()
            if self.worker is not None:
                self.worker.agent_left(reason)

    # --- events that are kept ----------------------------------------------------------------------

    def opened(self) -> None:
        """Note that the events until now are part of the answer that opened the session."""
        self._answered, self._is_new = len(self._kept), True

    def drop_replay(self) -> None:
        """Drop the messages and tool calls, if the agent replays: then there is a user's message among them,
        although nobody has prompted. A fork begins with a copy of them."""
        kinds = [type(each.update) for each in self._kept if isinstance(each, AgentUpdate)]
        if v2.UserMessage in kinds or v2.UserMessageChunk in kinds:
            later = self._kept[self._answered :]
            self._kept[self._answered :] = [each for each in later if not _is_of_transcript(each)]

    def answer_with_options(self, options: list[v2.SessionConfigOption]) -> None:
        """Replace all kept updates of config options by these, as part of the answer. They were set again
        since, and clients are not to see the values in between."""
        answered, later = (
            [each for each in part if not _is_about_options(each)]
            for part in (self._kept[: self._answered], self._kept[self._answered :])
        )
        if options:
            answered.append(AgentUpdate(v2.ConfigOptionUpdate(config_options=options)))
        self._kept, self._answered = [*answered, *later], len(answered)


def _is_of_transcript(event: AgentEvent) -> bool:
    return isinstance(event, AgentUpdate) and isinstance(event.update, TRANSCRIPT)


def _is_about_options(event: AgentEvent) -> bool:
    return isinstance(event, AgentUpdate) and isinstance(event.update, v2.ConfigOptionUpdate)


def _marked(event: AgentUpdate, mark: str) -> AgentUpdate:
    """Return an update with the mark behind the message ids in it."""
    update: Any = event.update  # any kind of update may have a message's id
    original = event.original
    id = getattr(update, "message_id", None)
    about = about_in(getattr(update, "meta", None))
    if about is not None:
        update = structs.replace(update, meta=with_ours(update.meta, about={"messageId": about + mark}))
        original = None
    if id is not None:
        update = structs.replace(update, message_id=id + mark)
        original = None if original is not None and b'"messageId"' in original else original
    return AgentUpdate(update, original, event.meta)
