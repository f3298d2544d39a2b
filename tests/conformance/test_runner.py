"""How scenarios are run: with a deadline, and on connections that they share."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon.conformance.agent import suite
from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.suite import check_agent
from antiphon.conformance.options import Options
from antiphon.conformance.recording import Role
from antiphon.conformance.runner import Findings, run_scenarios
from antiphon.conformance.scenario import Collection, Decisions
from antiphon.conformance.verdicts import Outcome
from tests.conformance.good.agent import GoodAgent
from tests.conformance.in_memory import agent_target

IDS = ("RPC-05", "RPC-08")


class Case:
    """A case without connections."""

    def __init__(self, decide: Decisions) -> None:
        self.decide = decide
        self.links: list[Any] = []
        self.closed = False

    async def aclose(self) -> None:
        self.closed = True


async def test_a_scenario_that_does_not_end_leaves_what_it_has_not_decided_untested() -> None:
    scenarios, cases = Collection("endless"), []

    @scenarios.add(*IDS, versions=(1,))
    async def waits_for_ever(case: Any) -> None:
        """It decides one requirement and never ends."""
        case.decide.check("RPC-05", True, "expected something")
        await asyncio.Event().wait()

    def make_case(decisions: Decisions) -> Case:
        cases.append(Case(decisions))
        return cases[-1]

    findings = Findings((), judged=Role.AGENT, revision="")
    outcomes = await run_scenarios(
        scenarios.all, make_case, findings, version=1, options=Options(deadline=0.01)
    )
    assert [(each.requirement.id, each.outcome, each.evidence.expected) for each in outcomes.verdicts] == [
        ("RPC-05", Outcome.PASS, "expected something"),
        ("RPC-08", Outcome.NOT_TESTED, "the scenario took longer than 0.01 s"),
    ]
    assert outcomes.faults == []
    assert cases[0].closed


class Counted(GoodAgent):
    """An agent that counts its connections."""

    made = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        type(self).made += 1


async def judge(scenarios: Collection, peer: type[GoodAgent], monkeypatch: Any) -> Any:
    monkeypatch.setattr(suite, "SCENARIOS", scenarios.all)
    options = Options(timeout=10, jobs=1)
    return await check_agent(agent_target(peer), options, versions=(2,))


async def test_scenarios_that_share_use_one_connection(monkeypatch: Any) -> None:
    scenarios = Collection("sharing", shares=True)

    @scenarios.add("RPC-05")
    async def first(case: AgentCase) -> None:
        """It makes a session and runs a turn."""
        agent = await case.open()
        await agent.run_turn(await agent.new_session(), case.prompts.plain)

    @scenarios.add("RPC-08")
    async def second(case: AgentCase) -> None:
        """It gets the connection of the first."""
        agent = await case.open()
        case.decide.check("RPC-08", agent.link.first > 0, "expected a connection that was used before")

    @scenarios.add("RPC-10")
    async def other_capabilities(case: AgentCase) -> None:
        """It says that it can do more, so it needs a connection of its own."""
        await case.open(elicitation={"form": {}})

    monkeypatch.setattr(Counted, "made", 0)
    report = await judge(scenarios, Counted, monkeypatch)
    assert Counted.made == 2
    assert not report.faults
    passed = [each for each in report.verdicts if each.scenario == "sharing/second"]
    assert [each.outcome for each in passed] == [Outcome.PASS]


async def test_a_connection_with_open_work_is_not_passed_on(monkeypatch: Any) -> None:
    scenarios = Collection("sharing", shares=True)

    @scenarios.add("RPC-05")
    async def leaves_a_question_open(case: AgentCase) -> None:
        """It ends while the agent waits for permission."""
        agent = await case.open()
        agent.link.on_request("session/request_permission", None)
        agent.prompt(await agent.new_session(), case.prompts.permission)
        await agent.link.wait(lambda frame: frame.method == "session/request_permission", "a question")

    @scenarios.add("RPC-08")
    async def second(case: AgentCase) -> None:
        """It needs another connection."""
        await case.open()

    monkeypatch.setattr(Counted, "made", 0)
    await judge(scenarios, Counted, monkeypatch)
    assert Counted.made == 2


class SendsAWrongTime(GoodAgent):
    """The second session of a connection breaks a rule."""

    def new_session(self, request: Any) -> Any:
        answer = super().new_session(request)
        if len(self.opened) == 2:
            session = [*self.opened.values()][-1]
            self.send_update(session, {"sessionUpdate": "session_info_update", "updatedAt": 7})
        return answer


async def test_a_rule_that_is_broken_on_a_shared_connection_names_the_scenario(monkeypatch: Any) -> None:
    scenarios = Collection("sharing", shares=True)

    async def run(case: AgentCase) -> None:
        """It makes a session."""
        agent = await case.open()
        await agent.new_session()
        await agent.link.barrier()

    for name, id in (("first", "RPC-05"), ("second", "RPC-08")):
        run.__name__ = name
        scenarios.add(id)(run)
    report = await judge(scenarios, SendsAWrongTime, monkeypatch)
    broken = (*report.failures, *report.warnings)
    assert {each.scenario for each in broken} == {"sharing/second"}
