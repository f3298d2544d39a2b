"""The judge decides every sentence of the proposal for `turn_complete` (seed 003).

The names of the tests are sentences of the proposal. Each runs the judge over the good agent, which keeps the
sentence, and over one that breaks it.
"""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.conformance.agent.suite import check_agent
from antiphon.conformance.options import Options
from antiphon.conformance.prompts import Prompts
from antiphon.conformance.verdicts import Outcome
from tests.conformance.broken import agents_v1 as broken
from tests.conformance.good.agent import GoodAgent
from tests.conformance.in_memory import agent_target


async def outcomes(peer: Any, *requirements: str) -> dict[str, Outcome]:
    """Judge an agent in v1 and return the outcomes of some requirements."""
    options = Options(timeout=5.0, only=("turn-complete", "turns"), prompts=Prompts(failure="Fail."))
    report = await check_agent(agent_target(peer), options, versions=(1,))
    assert not report.faults
    verdicts = report.by_requirement()
    return {requirement: verdicts[requirement, 1].outcome for requirement in requirements}


async def judge(peer: Any, requirement: str, broken_outcome: Outcome = Outcome.FAIL) -> None:
    """The good agent passes a requirement, and the broken one does not."""
    assert await outcomes(GoodAgent, requirement) == {requirement: Outcome.PASS}
    assert await outcomes(peer, requirement) == {requirement: broken_outcome}


# --- semantics ---


async def test_emitted_once_per_prompt_turn() -> None:
    await judge(broken.CompletesTwice, "TC-02")


async def test_emitted_after_all_other_updates_for_that_turn_have_been_sent() -> None:
    await judge(broken.CompletesTooEarly, "TC-03")


async def test_includes_a_field_so_clients_can_match_it_to_the_originating_prompt_request() -> None:
    await judge(broken.CountsItsTurns, "TC-04")


# --- capability advertisement ---


async def test_support_should_be_explicit_via_session_capabilities() -> None:
    await judge(broken.DoesNotAdvertiseItsCompletions, "TC-05")


async def test_clients_can_then_use_strict_synchronization_when_supported() -> None:
    """An agent that advertises `turn_complete` sends it for every turn, so that a client can wait for it."""
    await judge(broken.ForgetsToCompleteCancelledTurns, "TC-02")


async def test_and_fallback_behavior_otherwise() -> None:
    """Without the capability nothing is sent, and the response is the end of the updates."""
    fallback = ("TC-02", "TC-03", "TC-05")

    class WithoutCompletions(GoodAgent):
        def asks_for_turn_complete(self) -> bool:
            return False

    assert set((await outcomes(WithoutCompletions, *fallback)).values()) == {Outcome.NOT_APPLICABLE}
    assert await outcomes(WithoutCompletions, "PROMPT-V1-03", "TC-10") == {
        "PROMPT-V1-03": Outcome.PASS, "TC-10": Outcome.PASS,
    }  # fmt: skip
    assert await outcomes(broken.AnswersBeforeItsLastChunk, "PROMPT-V1-03") == {"PROMPT-V1-03": Outcome.FAIL}
    assert await outcomes(broken.CompletesForAll, "TC-10") == {"TC-10": Outcome.WARN}


# --- phase 1 ---


async def test_add_unstable_turn_complete_update_schema_and_type() -> None:
    await judge(broken.CompletesWithoutAReason, "TC-01")


async def test_add_turn_complete_marker_under_session_capabilities() -> None:
    await judge(broken.DoesNotAdvertiseItsCompletions, "TC-05")


async def test_for_a_given_prompt_turn_all_other_updates_must_be_emitted_before_turn_complete() -> None:
    await judge(broken.CompletesTooEarly, "TC-03")


# --- phase 2 ---


@pytest.mark.parametrize("peer", [broken.CountsItsTurns, broken.KeepsTheNumber])
async def test_await_turn_completion_by_prompt_request_id(peer: Any) -> None:
    await judge(peer, "TC-04")


async def test_conformance_tests_validating_event_ordering() -> None:
    await judge(broken.CompletesTooEarly, "TC-03")
    await judge(broken.CompletesAfterTheResponse, "TC-08", Outcome.WARN)


async def test_and_single_emission_behavior() -> None:
    await judge(broken.CompletesTwice, "TC-02")
    await judge(broken.ForgetsToCompleteCancelledTurns, "TC-02")


# --- the questions ---


async def test_response_completion_and_the_end_of_the_updates_agree() -> None:
    """The stop reason is the same in both; a failed turn has a response only."""
    await judge(broken.GivesTwoReasons, "TC-09", Outcome.WARN)
    await judge(broken.CompletesFailures, "TC-09", Outcome.WARN)
