"""Correct agents that do it another way than the good agent are not failed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from antiphon.conformance.agent.suite import check_agent
from antiphon.conformance.options import Options
from antiphon.conformance.verdicts import Outcome
from tests.conformance.broken.agents_initialization import AUTH_REQUIRED, AgentWithLogin
from tests.conformance.broken.agents_unstable import UnstableAgent
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import INVALID_PARAMS, UNSUPPORTED_VERSION, Json, Refused, Request
from tests.conformance.good.session import Session, Store, Turn
from tests.conformance.in_memory import agent_target


class OffersALogin(AgentWithLogin):
    """It lists login methods, the terminal one for clients that can run it."""

    def login_methods(self) -> list[Json]:
        methods = super().login_methods()
        return [*methods, self.terminal_method()] if self.asks_for_terminals() else methods


class NeedsALogin(AgentWithLogin):
    """No session can be made before a login, which the judge does not do."""

    def new_session(self, request: Request) -> Json | None:
        raise Refused(AUTH_REQUIRED, "log in first")


class KnowsVersion1Only(GoodAgent):
    """Whatever a client asks for, it answers 1."""

    def choose_version(self, requested: int) -> int:
        return 1


class RefusesOpenSessions(GoodAgent):
    """A session that is open cannot be loaded or resumed on the same connection."""

    def saved_session(self, request: Request) -> Session:
        if request.params.get("sessionId") in self.opened:
            raise Refused(INVALID_PARAMS, "the session is open")
        return super().saved_session(request)


class CancelsOnLoad(GoodAgent):
    """A load during a turn ends the turn."""

    def load_session(self, request: Request) -> Json | None:
        session = self.saved_session(request)
        self.cancel_session(session)
        return super().load_session(request)


class ForgetsCancelledTurns(GoodAgent):
    """A turn that was cancelled is not part of the conversation."""

    def end_cancelled(self, turn: Turn) -> None:
        prompts = [entry for entry in turn.session.history if entry.get("message") == "user_message"]
        del turn.session.history[turn.session.history.index(prompts[-1]) :]
        super().end_cancelled(turn)


class AnswersAtOnce(GoodAgent):
    """Every prompt is answered with one sentence, in the same tick: nothing can be cancelled."""

    def work(self, turn: Turn) -> Any:
        return self.reply_at_once(turn)

    async def reply_at_once(self, turn: Turn) -> None:
        id = self.next_message_id(turn.session)
        block = {"type": "text", "text": "Yes."}
        turn.session.add_block("agent_message", id, block)
        self.send_chunk(turn.session, "agent_message", id, block)


class EndsBeforeItReadsACancel(GoodAgent):
    """A slow turn ends by itself just before the cancel is read: the same prompt always ends there."""

    def __init__(self, write: Callable[[Json], None], store: Store | None = None) -> None:
        super().__init__(write, store)
        self.length = 1000
        self.counts: dict[str, int] = {}
        """How far the turn of each session has counted."""

    def on_cancel(self, params: Json) -> None:
        counted = self.counts.get(str(params.get("sessionId")), 0)
        if counted:
            self.length = min(self.length, counted)
        else:
            super().on_cancel(params)

    async def count_slowly(self, turn: Turn) -> None:
        session = turn.session
        id = self.next_message_id(session)
        try:
            for number in itertools.count(1):
                if number > self.length:
                    break
                self.counts[session.id] = number
                block = {"type": "text", "text": f"{number}\n"}
                session.add_block("agent_message", id, block)
                self.send_chunk(session, "agent_message", id, block)
                await asyncio.sleep(self.pace)
        finally:
            self.counts.pop(session.id, None)


class HasNoOptions(GoodAgent):
    """Sessions have neither modes nor options."""

    def setup(self, session: Session) -> Json:
        return {}


class HasNothing(GoodAgent):
    """A v1 agent without any capability."""

    def choose_version(self, requested: int) -> int:
        return 1

    def introduce(self) -> Json:
        return {"protocolVersion": 1, "agentInfo": self.info()}

    def asks_for_turn_complete(self) -> bool:
        return False

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        return {"session/new": self.new_session, "session/prompt": self.prompt}


class FailsAllPrompts(GoodAgent):
    """The model cannot be reached, and every prompt says so."""

    def work(self, turn: Turn) -> Any:
        return self.fail(turn)


class KnowsVersion2Only(GoodAgent):
    """It refuses v1, as the newest draft says."""

    def choose_version(self, requested: int) -> int:
        if requested < 2:
            data = {"requested": requested, "supported": [2]}
            raise Refused(UNSUPPORTED_VERSION, "the protocol version is not supported", data)
        return 2


V1 = [
    OffersALogin, NeedsALogin, UnstableAgent, KnowsVersion1Only, RefusesOpenSessions, CancelsOnLoad,
    ForgetsCancelledTurns, EndsBeforeItReadsACancel, AnswersAtOnce, HasNoOptions, HasNothing, FailsAllPrompts,
    KnowsVersion2Only,
]  # fmt: skip
V2 = [
    OffersALogin,
    NeedsALogin,
    UnstableAgent,
    RefusesOpenSessions,
    AnswersAtOnce,
    HasNoOptions,
    KnowsVersion2Only,
]


@pytest.mark.parametrize(
    ("peer", "version"),
    [*((peer, 1) for peer in V1), *((peer, 2) for peer in V2)],
    ids=lambda value: value.__name__ if isinstance(value, type) else f"v{value}",
)
async def test_an_agent_that_does_it_another_way_is_not_failed(peer: Any, version: int) -> None:
    report = await check_agent(agent_target(peer), Options(timeout=2.0), versions=(version,))
    assert not report.faults
    assert [(each.requirement.id, each.scenario, each.evidence.expected) for each in report.failures] == []
    warned = {each.requirement.id for each in report.warnings}
    assert warned == ({"INIT-08"} if peer is KnowsVersion2Only and version == 2 else set())


async def test_what_an_agent_does_not_do_is_not_tested_and_names_the_option() -> None:
    report = await check_agent(agent_target(AnswersAtOnce), Options(timeout=2.0), versions=(1,))
    verdicts = report.by_requirement()
    assert verdicts["PROMPT-V1-14", 1].outcome is Outcome.NOT_TESTED
    assert "--prompt" in verdicts["PROMPT-V1-14", 1].evidence.expected
    assert "--prompt tool=" in verdicts["PROMPT-V1-09", 1].evidence.expected
