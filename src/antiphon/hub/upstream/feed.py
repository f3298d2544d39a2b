"""UpstreamFeed: what one session at an agent sends, on its way to the worker of a hub session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from msgspec import structs

from antiphon.client import ClientSession, ClientTurn, Permission, SessionEvent
from antiphon.client.elicitation import Elicitation
from antiphon.client.protocol.dialect import text_chunk_v2
from antiphon.connection.fault_log import FaultLog
from antiphon.engine.transcript import TYPE_OF, MessageChunk, about_in
from antiphon.errors import LinkLost
from antiphon.schema import v2
from antiphon.schema.updates import TextChunk
from antiphon.schema.version import with_ours
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.hub")

LONGEST_WAIT = 10.0
"""Seconds that a request of an agent waits for the client that begins the session."""
EARLY = 50_000
"""How many events are kept until a hub session takes them; more are dropped."""
TRANSCRIPT = (*TYPE_OF, v2.SessionToolCallUpdate, v2.ToolCallContentChunk)


class UpstreamReader(Protocol):
    """The worker of a hub session, as what its agent sends reaches it: in the lane, at once."""

    session: ServedSession

    def agent_took(self, turn: ClientTurn) -> None: ...
    def agent_did(self, event: SessionEvent) -> None: ...
    def agent_streamed(self, chunk: MessageChunk) -> None: ...
    def agent_streamed_text(self, chunks: Sequence[TextChunk]) -> None: ...
    def agent_notified(self, method: str, params: Any) -> None: ...
    def agent_left(self, reason: str) -> None: ...
    def agent_paced(self) -> Awaitable[None] | None: ...
    async def begun(self) -> None: ...
    async def agent_asks(self, permission: Permission) -> str | None: ...
    async def agent_elicits(self, elicitation: Elicitation) -> Any: ...


class Notified(NamedTuple):
    """An extension notification, at its place among what happened."""

    method: str
    params: Any


class UpstreamFeed:
    """What one session at an agent sends. It is kept until a worker reads it.

    Agents number as they like, each session from its beginning. Where a hub session continues in a new
    session at the agent, the first message there must not replace the first one here (invariant 7): `mark` is
    appended to each message id of the feed.
    """

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self._early: list[SessionEvent | Notified] = []
        self._dropped = FaultLog(logger, "early event of an agent dropped")
        self._answered = 0
        """How many of the early ones were said by the answer that opened the session."""
        self._new = False
        """Whether the agent has answered that it is a new session."""
        self._reader: UpstreamReader | None = None
        self._mark = ""
        self._led = asyncio.Event()
        self.ended: str | None = None

    @property
    def inserts(self) -> bool:
        """Whether the agent takes prompts while it works; a v1 agent does not."""
        return not self.session._core.dialect.answers_at_end

    @property
    def names_prompts(self) -> bool:
        """Whether the agent has ids of its own for prompts; for a v1 agent they are made by the bridge."""
        return not self.session._core.dialect.answers_at_end

    def lead(
        self,
        reader: UpstreamReader,
        *,
        early: bool,
        mark: str = "",
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """Send to this worker from here on; with `early`, also what came until now. `begun` is called between
        what the answer that opened the session has said and what the agent sent beside it."""
        self._reader, self._mark = reader, mark
        kept, self._early = self._early, []
        for event in kept[: self._answered] if early else ():
            self._hand_over(event, reader)
        begun()
        for event in kept[self._answered :] if early else ():
            self._hand_over(event, reader)
        self._led.set()
        if self.ended is not None:
            reader.agent_left(self.ended)

    def drop_replay(self) -> None:
        """Drop the messages and tool calls that came until now, if the agent replays: then there is a user's
        message among them, although nobody has prompted. A fork begins with a copy of them."""
        kinds = [type(each.update) for each in self._early if isinstance(each, SessionEvent)]
        if v2.UserMessage in kinds or v2.UserMessageChunk in kinds:
            answered, came = self._early[: self._answered], self._early[self._answered :]
            self._early = [*answered, *(each for each in came if not _is_of_the_transcript(each))]

    def answer_with_options(self) -> None:
        """Take the options that the session has by now for what the answer that opened it said of them. They
        were set again since, and nobody is to see what they were in between."""
        answered, came = (
            [each for each in part if not _tells_options(each)]
            for part in (self._early[: self._answered], self._early[self._answered :])
        )
        if self.session.config_options:
            update = v2.ConfigOptionUpdate(config_options=self.session.config_options)
            answered.append(SessionEvent(seq=0, turn=None, update=update))
        self._early, self._answered = [*answered, *came], len(answered)

    def _hand_over(self, each: SessionEvent | Notified, reader: UpstreamReader) -> None:
        if isinstance(each, Notified):
            reader.agent_notified(*each)
        else:
            reader.agent_did(_marked(each, self._mark) if self._mark else each)

    def cut(self) -> None:
        """To nobody any more."""
        self._reader = None
        self.ended = self.ended or "the hub let it go"
        self._led.set()

    @property
    def reader(self) -> UpstreamReader | None:
        return self._reader

    async def read_by(self) -> UpstreamReader | None:
        """Return the worker, once it is there: an agent may ask before. `None` where there will be none."""
        await self._led.wait()
        return self._reader

    async def followed(self) -> None:
        """Wait for the hub session, and for the client that begins it."""
        reader = await self.read_by()
        if reader is not None:
            await reader.begun()

    async def begun(self) -> None:
        """The same for a session that the agent has opened, for as long as an agent can be kept waiting that
        does nothing else meanwhile."""
        if self._new:
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_WAIT):
                    await self.followed()

    def notified(self, method: str, params: Any) -> None:
        """The agent sent an extension notification."""
        if self._reader is not None:
            self._reader.agent_notified(method, params)
        elif self.ended is None:
            self._keep(Notified(method, params))

    # What the client tells

    def opened(self) -> None:
        self._answered, self._new = len(self._early), True

    def taken(self, turn: ClientTurn) -> None:
        if self._reader is not None:
            self._reader.agent_took(turn)

    def happened(self, event: SessionEvent) -> None:
        if self._reader is not None:
            self._hand_over(event, self._reader)
        elif self.ended is None:
            self._keep(event)

    def _keep(self, each: SessionEvent | Notified) -> None:
        """Keep what came until a hub session is there. What is no part of the transcript, such as the options
        of the session, is dropped last: a replay that is only skipped may be long."""
        most = EARLY if isinstance(each, Notified) or _is_of_the_transcript(each) else 2 * EARLY
        if len(self._early) < most:
            self._early.append(each)
        else:
            self._dropped.note(f"{len(self._early)} events wait for session {self.session.id[:100]!r}")

    def streamed(self, chunk: MessageChunk) -> None:
        if self._reader is not None:
            if self._mark:
                chunk = structs.replace(chunk, message_id=chunk.message_id + self._mark)
            self._reader.agent_streamed(chunk)
        else:
            self.happened(SessionEvent(seq=0, turn=None, update=chunk))

    def streamed_text(self, chunks: Sequence[TextChunk]) -> None:
        if self._reader is not None:
            if self._mark:
                for chunk in chunks:
                    chunk.message_id = f"{chunk.message_id}{self._mark}"
            self._reader.agent_streamed_text(chunks)
        else:
            for chunk in chunks:
                self.streamed(text_chunk_v2(chunk))

    def left(self, reason: LinkLost | str) -> None:
        if self.ended is None:
            self.ended = reason.reason if isinstance(reason, LinkLost) else reason
            self._led.set()
            if self._reader is not None:
                self._reader.agent_left(self.ended)

    def pace(self) -> Awaitable[None] | None:
        return None if self._reader is None else self._reader.agent_paced()


def _marked(event: SessionEvent, mark: str) -> SessionEvent:
    """Return an event with the mark behind the message ids in it."""
    update: Any = event.update  # any kind of update may have a message's id
    id = getattr(update, "message_id", None)
    about = about_in(getattr(update, "meta", None))
    if about is not None:
        meta = with_ours(update.meta, about={"messageId": about + mark})
        update = structs.replace(update, meta=meta)
        event = structs.replace(event, update=update, original=None)
    if id is not None:
        update = structs.replace(update, message_id=id + mark)
        named = event.original is not None and b'"messageId"' in event.original
        event = structs.replace(event, update=update, original=None if named else event.original)
    return event


def _is_of_the_transcript(each: SessionEvent | Notified) -> bool:
    return isinstance(each, SessionEvent) and isinstance(each.update, TRANSCRIPT)


def _tells_options(each: SessionEvent | Notified) -> bool:
    return isinstance(each, SessionEvent) and isinstance(each.update, v2.ConfigOptionUpdate)
