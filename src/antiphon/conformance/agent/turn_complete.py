"""Scenarios about `turn_complete`: the judge asks for it, and its rules decide about what comes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from antiphon.conformance.agent.cancel import long_turn
from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation, text
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.conformance.rules.rule import facts_of
from antiphon.conformance.rules.turn_complete import TURN_COMPLETE, advertised, rules
from antiphon.conformance.scenario import Collection

scenarios = Collection("turn-complete")

PROMISES = ("TC-01", "TC-02", "TC-03", "TC-04", "TC-05", "TC-08", "TC-09")
OPT_IN: dict[str, Any] = {"_meta": {"antiphon": {"turnComplete": True}}}


def completions(agent: Conversation) -> list[RecordedFrame]:
    return [frame for frame in agent.link.recording.of(Role.AGENT) if frame.update_kind == TURN_COMPLETE]


def apply_rules(case: AgentCase, agent: Conversation, *requirements: str) -> None:
    """Decide requirements by the rules for `turn_complete`, over what was sent so far."""
    facts = facts_of(agent.link.recording, Role.AGENT)
    assert facts is not None
    for rule in rules.all:
        for finding in rule.find(agent.link.recording, facts):
            if finding.requirement in requirements:
                case.decide.check(finding.requirement, finding.ok, finding.expected, *finding.frames)


async def run_turns(case: AgentCase, agent: Conversation) -> None:
    """Run turns with different ends: completed, with a string as the id of the prompt, failed, cancelled."""
    session = await agent.new_session()
    await agent.run_turn(session, case.prompts.plain)
    await agent.link.barrier()
    params = {"sessionId": session, "prompt": [text(case.prompts.plain)]}
    prompt = agent.link.send({"id": "antiphon-judge-7", "method": "session/prompt", "params": params})
    await agent.link.response(prompt)
    await agent.link.barrier()
    if case.prompts.failure:
        await agent.run_turn(session, case.prompts.failure)
        await agent.link.barrier()
    with suppress(NotSeen):  # a prompt that cannot be cancelled is no fault here
        prompt = await long_turn(case, agent, session)
        agent.cancel(session)
        await agent.link.response(prompt)
        await agent.link.barrier()


@scenarios.add(*PROMISES, versions=(1,))
async def sent_on_demand(case: AgentCase) -> None:
    """A client that asks for `turn_complete` gets it once per turn, last, and with the id of its prompt."""
    agent = await case.open(**OPT_IN)
    await run_turns(case, agent)
    facts = facts_of(agent.link.recording, Role.AGENT)
    assert facts is not None
    offered = bool(completions(agent)) or advertised(facts)
    case.decide.applies(offered, "the agent does not offer `turn_complete`")
    apply_rules(case, agent, *PROMISES)


@scenarios.add("TC-10", versions=(1,), shares=True)
async def not_sent_unasked(case: AgentCase) -> None:
    """A client that does not ask for `turn_complete` does not get it."""
    agent, session = await case.open_session()
    await agent.run_turn(session, case.prompts.plain)
    await agent.link.barrier()
    frames = completions(agent)
    case.decide.check(
        "TC-10", not frames, "expected no `turn_complete` for a client that did not ask for it",
        *agent.introduction, *frames,
    )  # fmt: skip
