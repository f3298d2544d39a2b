"""Binding: where the work of a hub session is done: at one agent at a time, or at none until it is needed."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from functools import partial
from typing import Any

from antiphon.client import ClientSession
from antiphon.engine.events import Updated
from antiphon.errors import AntiphonError, CallFailed, InvalidResult, LocalError, RequestError
from antiphon.hub import bringing
from antiphon.hub.context import HubContext
from antiphon.hub.faults import to_request_error
from antiphon.hub.feed import UpstreamFeed
from antiphon.hub.kept_options import refusal, restore_options, warning
from antiphon.hub.upstream import Upstream
from antiphon.hub.work import UpstreamWork
from antiphon.server.session_facts import options_of

logger = logging.getLogger("antiphon.hub")

BACKOFF = 0.5
LONGEST_BACKOFF = 30.0


class Binding:
    def __init__(self, work: UpstreamWork, hub: HubContext) -> None:
        self._work = work
        self._hub = hub
        self.agent = hub.default
        """The name of the agent that works for the session."""
        self.chain: list[str] = []
        """The sessions at agents that this one stood on, the last one last."""
        self.feed: UpstreamFeed | None = None
        self.upstream: Upstream | None = None
        self.is_untold = False
        """Whether the agent has to be told, with the next prompt, what was said so far."""
        self.mark = ""
        """What the ids of the agent's messages have here behind them; nothing, for its first session."""
        self._bringing = asyncio.Lock()
        self._failures = 0
        self._lost_at = 0.0

    def to_keep(self) -> dict[str, Any]:
        """What the session's record has of it."""
        return {"agent": self.agent, "sessions": self.chain, "untold": self.is_untold, "mark": self.mark}

    def restore(self, kept: dict[str, Any]) -> None:
        """Take over what a record has of it, as far as it fits: an imported one may hold anything."""
        agent, chain, mark = kept.get("agent"), kept.get("sessions"), kept.get("mark")
        self.agent = agent if isinstance(agent, str) else self.agent
        self.chain = [id for id in chain if isinstance(id, str)] if isinstance(chain, list) else []
        self.is_untold = bool(kept.get("untold"))
        self.mark = mark if isinstance(mark, str) else ""

    @property
    def busy(self) -> bool:
        """Whether it is about to be at an agent."""
        return self._bringing.locked()

    async def bring(self, *, may_lose_options: bool = False) -> UpstreamFeed:
        """The session at its agent, which is started if it is not there. Raises `RequestError`; also for a
        fork that cannot keep the options of its source, unless it `may_lose_options`."""
        async with self._bringing:
            if self.feed is not None:
                return self.feed
            if self._failures:
                delay = min(BACKOFF * 2 ** (self._failures - 1), LONGEST_BACKOFF)
                await asyncio.sleep(max(0.0, self._lost_at + delay - time.monotonic()))
            upstream, again = None, None
            try:
                upstream = await self._hub.upstreams.take(self.agent)
                if self.chain:
                    again = await self._open_again(upstream)
                session = again or await self._hub.open_new(upstream, self._work.place)
                lost = await restore_options(session, options_of(self._work.fold), reopened=again is not None)
            except (AntiphonError, OSError, asyncio.CancelledError) as error:
                if upstream is None or not upstream.wants_login:
                    self.fail()
                if upstream is not None:
                    self._hub.upstreams.let_go(upstream)
                if isinstance(error, asyncio.CancelledError):
                    raise
                raise to_request_error(error) from error
            lossy = again is None and bool(self._work.fold.messages)
            forked = self._work.session.forked_from is not None and not self.chain
            if lost and forked and not may_lose_options:
                upstream.leave(upstream.feed(session))
                self._hub.upstreams.let_go(upstream)
                raise refusal(lost)
            notice = bringing.RETOLD if forked else bringing.LOST  # an imported copy has no chain either
            if lossy:
                self.is_untold, self.mark = True, f"~{secrets.token_hex(3)}"
            feed = upstream.feed(session)
            feed.answer_with_options()
            await self._work.bind(upstream, feed, again=again is not None)
            notices = [notice] if lossy else []
            notices += [warning(lost)] if lost else []
            if notices:
                self._work.emit([Updated.of(each) for each in notices])
            if self.feed is None:
                reason = {"reason": "interrupted"}
                raise RequestError(AntiphonError.code, "The agent ended as it began", data=reason)
            return self.feed

    async def _open_again(self, upstream: Upstream) -> ClientSession | None:
        """`None` where the agent cannot: from then on it is not let go of without need."""
        able = upstream.client.abilities
        if not (able.resume or able.load):
            return None
        try:
            opening = partial(bringing.open_again, upstream, self.chain[-1], self._work.place)
            return await self._hub.logins.admitted(upstream, opening)
        except (CallFailed, InvalidResult, LocalError) as error:
            logger.warning("the agent cannot bring session %s back: %s", self._work.id, error)
            self._hub.upstreams.forgetful.add(upstream.name)
            return None

    def note_told(self) -> None:
        """Note that the agent has been told what was said so far."""
        self.is_untold = False
        self._work.session.tasks.start_soon(self.keep())

    async def keep(self) -> None:
        """Keep which agent the session has, and which sessions there."""
        await self._hub.keep(self._work.id, self.to_keep())

    def fail(self) -> None:
        """The agent was lost, or did not come: it is not tried again at once."""
        self._failures += 1
        self._lost_at = time.monotonic()

    def recover(self) -> None:
        """It works."""
        self._failures = 0

    def release(self) -> None:
        """Leave the agent: it is not there any more, or not needed."""
        feed, upstream = self.feed, self.upstream
        self.feed = self.upstream = None
        if feed is not None:
            feed.cut()
        if upstream is not None and feed is not None:
            upstream.leave(feed)
            self._hub.upstreams.let_go(upstream)
