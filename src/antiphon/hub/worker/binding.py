"""Binding: the agent that works for a hub session, and the session there. None until it is needed."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from antiphon.client.failures import last_lines
from antiphon.engine.events import Updated
from antiphon.errors import (
    AntiphonError,
    CallFailed,
    ErrorObject,
    InvalidResult,
    LinkLost,
    LocalError,
    RequestError,
)
from antiphon.hub.context import HubContext
from antiphon.hub.records import HUB
from antiphon.hub.upstream.mcp import Provision
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.upstream.upstream import Upstream
from antiphon.hub.worker.options import refusal, restore_options, warning
from antiphon.hub.worker.place import Place, go_on, open_again
from antiphon.hub.worker.story import LOST, RETOLD
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.version import with_ours
from antiphon.server.session import ServedSession
from antiphon.server.session_facts import options_of
from antiphon.stores.base import RecordPatch

logger = logging.getLogger("antiphon.hub")

BACKOFF = 0.5
LONGEST_BACKOFF = 30.0


class Bind(Protocol):
    async def __call__(self, upstream: Upstream, at_agent: UpstreamSession, *, again: bool) -> None:
        """Work at this session of an agent from here on. `again`: the agent had the session before, so its
        events until now are a replay."""


class Binding:
    def __init__(
        self, session: ServedSession, hub: HubContext, *, place: Callable[[], Place], bind: Bind
    ) -> None:
        """`place` returns how the session is to be opened at its agent."""
        self._session = session
        self._hub = hub
        self._place = place
        self._bind = bind
        self.agent = hub.default
        """The name of the agent that works for the session."""
        self.chain: list[str] = []
        """The ids of the sessions at the agent that this session used, the latest last."""
        self.at_agent: UpstreamSession | None = None
        self.upstream: Upstream | None = None
        self.is_untold = False
        """Whether the next prompt has to begin with the conversation so far."""
        self.mark = ""
        """Is appended to the agent's message ids here; empty for its first session."""
        self._bringing = asyncio.Lock()
        self._failures = 0
        self._lost_at = 0.0

    def restore(self, kept: dict[str, Any]) -> None:
        """Take over what a record keeps, as far as it is valid: an imported one may hold anything."""
        agent, chain, mark = kept.get("agent"), kept.get("sessions"), kept.get("mark")
        self.agent = agent if isinstance(agent, str) else self.agent
        self.chain = [id for id in chain if isinstance(id, str)] if isinstance(chain, list) else []
        self.is_untold = bool(kept.get("untold"))
        self.mark = mark if isinstance(mark, str) else ""

    @property
    def busy(self) -> bool:
        """Whether the session is being opened at an agent."""
        return self._bringing.locked()

    @property
    def inserts(self) -> bool:
        """Whether the agent is given prompts while it works."""
        return self._hub.offer.busy is Delivery.AGENT and (self.at_agent is None or self.at_agent.inserts)

    async def bring(self, *, may_lose_options: bool = False) -> UpstreamSession:
        """The session at its agent, which is started if it is not there. Raises `RequestError`; also for a
        fork that cannot keep the options of its source, unless it `may_lose_options`."""
        async with self._bringing:
            if self.at_agent is not None:
                return self.at_agent
            if self._failures:
                delay = min(BACKOFF * 2 ** (self._failures - 1), LONGEST_BACKOFF)
                await asyncio.sleep(max(0.0, self._lost_at + delay - time.monotonic()))
            upstream = None
            try:
                upstream = await self._hub.upstreams.take(self.agent)
                reopened = await self._open_again(upstream) if self.chain else None
                session = reopened or await self._hub.open_new(upstream, self._place())
                again, options = reopened is not None, options_of(self._session.fold)
                lost = await restore_options(session, options, reopened=again)
            except (AntiphonError, OSError, asyncio.CancelledError) as error:
                if upstream is None or not upstream.wants_login:
                    self.fail()
                if upstream is not None:
                    self._hub.upstreams.let_go(upstream)
                if isinstance(error, asyncio.CancelledError):
                    raise
                raise self._hub.failure(self.agent, error, upstream) from error
            forgotten = not again and bool(self._session.fold.messages)
            forked = self._session.forked_from is not None and not self.chain
            if lost and forked and not may_lose_options:
                self._hub.upstreams.let_go(upstream, session)
                raise refusal(lost)
            notices = [warning(lost)] if lost else []
            if forgotten:
                self.is_untold, self.mark = True, f"~{secrets.token_hex(3)}"
                notices.insert(0, RETOLD if forked else LOST)  # an imported copy has no chain either
            session.feed.answer_with_options(session.config_options)
            await self._bind(upstream, session, again=again)
            if notices:
                self._session.emit([*map(Updated.of, notices)])
            if self.at_agent is None:
                reason = {"reason": "interrupted"}
                raise RequestError(AntiphonError.code, "The agent ended as it began", data=reason)
            return self.at_agent

    async def _open_again(self, upstream: Upstream) -> UpstreamSession | None:
        """Open the session again. `None` if the agent cannot; it is then not stopped when idle."""
        able = upstream.agent.abilities
        if not (able.resume or able.load):
            return None
        try:
            opening = partial(open_again, upstream, self.chain[-1], self._place())
            return await self._hub.logins.admitted(upstream, opening)
        except (CallFailed, InvalidResult, LocalError) as error:
            logger.warning("session %s not reopened by its agent: %s", self._session.id, error)
            self._hub.upstreams.forgetful.add(upstream.name)
            return None

    async def fork(
        self,
        wanted: v2.ForkSessionRequest,
        provision: Provision,
        *,
        at: str | None,
        agents_id: Callable[[str], str | None],
    ) -> tuple[Upstream, UpstreamSession] | None:
        """Fork the session at its agent, in the same process. `None` if the agent cannot do that, or not at
        that message. `agents_id` returns the id that the agent has for a message."""
        try:
            at_agent = await self.bring()
            upstream, able = self.upstream, at_agent.abilities
            if upstream is None or not able.fork or (at is not None and not able.fork_at):
                return None
            able.check_setup(wanted.mcp_servers, wanted.additional_directories)
            there_at = None if at is None else agents_id(at)
            if at is not None and there_at is None:
                return None
            there = v2.ForkSessionRequest(
                session_id=v2.SessionId(at_agent.id),
                cwd=wanted.cwd,
                mcp_servers=upstream.mcp.offer(wanted.mcp_servers, provision),
                additional_directories=wanted.additional_directories,
                meta=None if there_at is None else with_ours(None, messageId=there_at),
            )
            fork = await upstream.agent.create(there, prepare=lambda made: go_on(made, self._session.fold))
        except (CallFailed, InvalidResult, LinkLost, LocalError, RequestError) as error:
            logger.warning("session %s not forked by its agent: %s", self._session.id, error)
            return None
        return upstream, fork

    def note_told(self) -> None:
        """Note that the agent has got the conversation so far."""
        self.is_untold = False
        self._session.tasks.start_soon(self.keep())

    async def keep(self) -> None:
        """Store which agent the session has, and which sessions there."""
        kept: dict[str, Any] = {
            "agent": self.agent,
            "sessions": self.chain,
            "untold": self.is_untold,
            "mark": self.mark,
        }
        if self._hub.home is not None:
            kept["home"] = self._hub.home
        store, record = self._hub.store, await self._hub.store.get(self._session.id)
        if record is not None:
            await store.update(self._session.id, RecordPatch(meta={**record.meta, HUB: kept}))

    def fail(self) -> None:
        """Note that the agent was lost or did not start: the next attempt is delayed."""
        self._failures += 1
        self._lost_at = time.monotonic()

    def recover(self) -> None:
        """Note that the agent works: the next attempt is not delayed."""
        self._failures = 0

    def worked(self) -> None:
        """Note that the agent has ended a turn without an error."""
        self._hub.states.worked(self.agent)

    def failure(self, error: ErrorObject) -> ErrorObject:
        """Return what the agent answered to a prompt, with its words and advice."""
        return self._hub.prompt_failure(self.agent, error, self.upstream)

    def last_words(self) -> dict[str, str]:
        """Return why the agent's process ended and what it wrote last to stderr, if it ended by itself."""
        upstream = self.upstream
        lost = upstream.agent.lost if upstream is not None and upstream.ready else None
        if upstream is None or lost is None or not upstream.failed_agent.stderr:
            return {}
        return {"details": lost.reason, "stderr": last_lines(upstream.failed_agent.stderr)}

    def release(self) -> None:
        """Leave the agent, which is lost or not needed."""
        at_agent, upstream = self.at_agent, self.upstream
        self.at_agent = self.upstream = None
        if at_agent is not None:
            at_agent.feed.cut()
        if upstream is not None and at_agent is not None:
            self._hub.upstreams.let_go(upstream, at_agent)
