"""A prompt ends as its own turn ended, also if its answer, message and states come far apart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.client.session import tracker
from tests.client.driving import by_hand
from tests.requirements.marks import requirement

ANTIPHON = {"session": {}, "_meta": {"antiphon": {"replayAfter": True}}}


@pytest.fixture(autouse=True)
def concluded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess, if one is made, is made before anything else comes."""
    monkeypatch.setattr(tracker, "CONCLUDE_AFTER", 0.0)


async def timers_have_run(agent: Any, session: Any) -> None:
    await agent.settled(session)
    ran = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, ran.set)  # after every timer that is due by then
    await ran.wait()


@requirement("PROMPT-V2-19")
async def test_an_answer_after_the_end_of_another_turn_waits_for_its_own() -> None:
    async with by_hand(2, ANTIPHON) as (session, agent):
        agent.state("running")
        sending = asyncio.ensure_future(session.prompt("mine"))
        id = await agent.prompted()
        agent.state("idle", stopReason="end_turn")  # of the turn of another client
        agent.takes(id, "mine")
        turn = await sending
        await timers_have_run(agent, session)
        assert not turn.ended
        agent.shows("mine")
        await timers_have_run(agent, session)
        agent.state("running")
        agent.state("idle", stopReason="cancelled")
        assert (await turn.drained()).stop_reason == "cancelled"


@requirement("PROMPT-V2-20")
@pytest.mark.parametrize("shown", [False, True], ids=["not shown yet", "shown already"])
async def test_a_repeated_idle_before_the_turn_of_a_prompt_does_not_end_it(shown: bool) -> None:
    """It closes every resume, and names the end of the last turn."""
    async with by_hand(2, ANTIPHON) as (session, agent):
        sending = asyncio.ensure_future(session.prompt("mine"))
        agent.takes(await agent.prompted(), "mine")
        turn = await sending
        if shown:
            agent.shows("mine")
        agent.state("idle", stopReason="end_turn")
        await timers_have_run(agent, session)
        assert not turn.ended
        if not shown:
            agent.shows("mine")
        agent.state("running")
        agent.state("idle", stopReason="cancelled")
        assert (await turn.drained()).stop_reason == "cancelled"


@requirement("PROMPT-V2-19")
async def test_a_first_prompt_that_is_accepted_within_another_turn_does_not_end_with_it() -> None:
    async with by_hand(2, ANTIPHON) as (session, agent):
        agent.state("running")
        sending = asyncio.ensure_future(session.prompt("mine"))
        agent.takes(await agent.prompted(), "mine")
        turn = await sending
        agent.say("for another")
        agent.state("idle", stopReason="end_turn")
        await timers_have_run(agent, session)
        assert not turn.ended
        agent.shows("mine")
        agent.state("running")
        agent.say("for you", "m2")
        agent.state("idle", stopReason="cancelled")
        assert (await turn.drained()).stop_reason == "cancelled"
        assert turn.text == "for you"


async def test_an_agent_that_has_shown_a_prompt_is_not_guessed_about_later() -> None:
    async with by_hand(2) as (session, agent):
        for number in ("1", "2"):
            sending = asyncio.ensure_future(session.prompt("mine"))
            id = await agent.prompted()
            if number == "2":
                agent.state("running")
                agent.state("idle", stopReason="end_turn")
            agent.takes(id, number)
            turn = await sending
            await timers_have_run(agent, session)
            assert not turn.ended
            agent.shows(number)
            agent.state("running")
            agent.state("idle", stopReason="cancelled")
            assert (await turn.drained()).stop_reason == "cancelled"
