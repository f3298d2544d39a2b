"""Standing: where the work of a session is done: at one agent at a time, or at none until it is needed."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from antiphon.agent.declaring import options_of
from antiphon.client import ClientSession
from antiphon.engine.events import Updated
from antiphon.errors import AntiphonError, CallFailed, InvalidResult, LocalError, RequestError
from antiphon.hub import bringing
from antiphon.hub.course import Course
from antiphon.hub.faults import to_request_error
from antiphon.hub.kept_options import refusal, restore_options, warning
from antiphon.hub.renaming import Renamed
from antiphon.hub.upstream import Upstream
from antiphon.schema.version import without_ours

if TYPE_CHECKING:
    from antiphon.hub.session import HubSession
    from antiphon.hub.sessions import HubSessions

logger = logging.getLogger("antiphon.hub")

BACKOFF = 0.5
LONGEST_BACKOFF = 30.0


class Standing:
    def __init__(self, session: HubSession, hub: HubSessions) -> None:
        self._session = session
        self._hub = hub
        self.agent = hub.default
        """The name of the agent that works for the session."""
        self.chain: list[str] = []
        """The sessions at agents that this one stood on, the last one last."""
        self.course: Course | None = None
        self.upstream: Upstream | None = None
        self.untold = False
        """Whether the agent has to be told, with the next prompt, what happened so far."""
        self.mark = ""
        """What the ids of the agent's messages have here behind them; nothing, for its first session."""
        self._bringing = asyncio.Lock()
        self._failures = 0
        self._lost_at = 0.0

    def to_keep(self) -> dict[str, Any]:
        """What the session's record has of it."""
        return {"agent": self.agent, "sessions": self.chain, "untold": self.untold, "mark": self.mark}

    def restore(self, kept: dict[str, Any]) -> None:
        """Take over what a record has of it, as far as it fits: an imported one may hold anything."""
        agent, chain, mark = kept.get("agent"), kept.get("sessions"), kept.get("mark")
        self.agent = agent if isinstance(agent, str) else self.agent
        self.chain = [id for id in chain if isinstance(id, str)] if isinstance(chain, list) else []
        self.untold = bool(kept.get("untold"))
        self.mark = mark if isinstance(mark, str) else ""

    @property
    def busy(self) -> bool:
        """Whether it is about to be at an agent."""
        return self._bringing.locked()

    async def bring(self, *, may_lose_options: bool = False) -> Course:
        """The session at its agent, which is started if it is not there. Raises `RequestError`; also for a
        fork that cannot keep the options of its source, unless it `may_lose_options`."""
        async with self._bringing:
            if self.course is not None:
                return self.course
            if self._failures:
                delay = min(BACKOFF * 2 ** (self._failures - 1), LONGEST_BACKOFF)
                await asyncio.sleep(max(0.0, self._lost_at + delay - time.monotonic()))
            upstream, again = None, None
            try:
                upstream = await self._hub.upstreams.take(self.agent)
                if self.chain:
                    again = await self._open_again(upstream)
                session = again or await self._hub.open_new(upstream, self._session.place)
                lost = await restore_options(
                    session, options_of(self._session.fold), reopened=again is not None
                )
            except (AntiphonError, OSError, asyncio.CancelledError) as error:
                if upstream is None or not upstream.wants_login:
                    self.fail()
                if upstream is not None:
                    self._hub.upstreams.let_go(upstream)
                if isinstance(error, asyncio.CancelledError):
                    raise
                raise to_request_error(error) from error
            lossy = again is None and bool(self._session.fold.messages)
            forked = self._session.forked_from is not None and not self.chain
            if lost and forked and not may_lose_options:
                upstream.leave(upstream.course(session))
                self._hub.upstreams.let_go(upstream)
                raise refusal(lost)
            notice = bringing.RETOLD if forked else bringing.LOST  # an imported copy has no chain either
            if lossy:
                self.untold, self.mark = True, f"~{secrets.token_hex(3)}"
            course = upstream.course(session)
            course.answer_with_options()
            await self.on(upstream, course, again=again is not None)
            notices = [notice] if lossy else []
            notices += [warning(lost)] if lost else []
            if notices:
                self._session.emit([Updated.of(each) for each in notices])
            if self.course is None:
                reason = {"reason": "interrupted"}
                raise RequestError(AntiphonError.code, "The agent ended as it began", data=reason)
            return self.course

    async def _open_again(self, upstream: Upstream) -> ClientSession | None:
        """`None` where the agent cannot: from then on it is not let go of without need."""
        able = upstream.client.abilities
        if not (able.resume or able.load):
            return None
        try:
            opening = partial(bringing.open_again, upstream, self.chain[-1], self._session.place)
            return await self._hub.logins.admitted(upstream, opening)
        except (CallFailed, InvalidResult, LocalError) as error:
            logger.warning("the agent cannot bring session %s back: %s", self._session.id, error)
            self._hub.upstreams.forgetful.add(upstream.name)
            return None

    async def on(
        self,
        upstream: Upstream,
        course: Course,
        *,
        again: bool,
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """From here on this is where the session's work is done. `again`: the agent had the session before,
        so what it sent until now is a replay. `begun` is called between what the agent's answer says and
        what the agent sent beside it."""
        session = course.session
        if not self.chain or self.chain[-1] != session.id:
            self.chain.append(session.id)
        if again:
            bringing.go_on(session, self._session.fold)
        self._session.opened_meta = without_ours(session._core.opened_meta) or {}  # OBS-02
        self.upstream, self.course = upstream, course
        self._session.sending.promised.learn(self._session.fold.messages)
        self._session.forget_questions()
        self._session.children.stand(upstream, course)
        hears = Renamed(self._session, self.mark) if self.mark else self._session
        course.lead(hears, early=not again, begun=begun)
        if again:
            upstream.cut_children(session)
            for update in bringing.news(session, self._session.fold):
                self._session.tell(update)
        await self._hub.note(self._session)
        await self._session.live.durable()

    def agents_message_id(self, message_id: str) -> str | None:
        """The id that the agent has for a message; `None` for one of an earlier session at the agent."""
        id = self._session.sending.promised.agents(message_id)
        return id.removesuffix(self.mark) if id.endswith(self.mark) else None

    def follow(self, course: Course) -> None:
        """It works for another session, whose agent it is."""
        self.course = course

    def told(self) -> None:
        """The agent has been told what happened so far."""
        self.untold = False
        self._session.soon(self._hub.note(self._session))

    def fail(self) -> None:
        """The agent was lost, or did not come: it is not tried again at once."""
        self._failures += 1
        self._lost_at = time.monotonic()

    def recover(self) -> None:
        """It works."""
        self._failures = 0

    def part(self) -> None:
        """The agent is not there any more."""
        course, upstream = self.course, self.upstream
        self.course = self.upstream = None
        self._session.children.end()
        if course is not None:
            course.cut()
        if upstream is not None and course is not None:
            upstream.leave(course)
            self._hub.upstreams.let_go(upstream)
