"""Seed 000: what the agent decides itself, also behind a hub, and what a client that joins learns of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.requirements.agent_by_hand import text
from tests.requirements.seed_agent import SeedAgent
from tests.requirements.seed_places import ANSWERED_AT_END, DIALECTS, WITH_STATES, served, staged

ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow"}}


def handing_over(place: str) -> dict[str, Any]:
    """A hub that leaves it to the agent what a prompt does while it works."""
    return {} if place == "agent" else {"busy": "agent"}


@pytest.mark.parametrize("decision", ["queue", "steer", "interrupt"])
@served(*DIALECTS, places=("agent", "hub-v2"))
async def test_the_agent_decides_what_a_plain_prompt_does_during_its_turn(
    place: str, dialect: str, decision: str
) -> None:
    """v1 has no word for it: a v1 agent behind a hub gets one prompt at a time."""
    seed = SeedAgent(busy=decision)
    async with (
        staged(place, seed.agent, **handing_over(place)) as stage,
        stage.session(dialect) as (wire, session),
    ):
        wire.prompt(1, session, "hold")
        await wire.update("agent_message_chunk")
        wire.prompt(2, session, "this one")
        if decision == "interrupt":
            assert await wire.ended(1) == "cancelled"
        else:
            await wire.everything()
            seed.go.set()
            assert await wire.ended(1) == "end_turn"
        assert await wire.ended(2) == "end_turn"
        assert seed.prompts == ["hold", "this one"]
        told = wire.text()
        expected = {
            "queue": "holdingYou said: one",
            "steer": "holding, and this one",
            "interrupt": "holding, and late wordsYou said: one",
        }
        assert told == expected[decision]
        if dialect in WITH_STATES:
            shown = [words for role, words in wire.words() if role == "user"]
            assert shown == ["hold", "this one"]


@served(*DIALECTS)
async def test_a_turn_that_the_agent_opened_is_cancelled_and_what_opened_it_goes_on(
    place: str, dialect: str
) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "rouse")
        seed.go.set()
        await wire.until(lambda frame: "at work by myself" in str(frame))
        wire.send(method="session/cancel", params={"sessionId": session})
        await wire.until(lambda frame: "what opened it goes on" in str(frame))
        assert await wire.play(session, "again") == ["end_turn"]


@served(*DIALECTS)
async def test_the_id_that_a_queued_prompt_waits_under_is_that_of_its_message(
    place: str, dialect: str
) -> None:
    seed = SeedAgent()
    async with (
        staged(place, seed.agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as late,
    ):
        wire.prompt(1, session, "hold")
        await wire.update("agent_message_chunk")
        params = {"sessionId": session, "content": [text("waits")], "mode": "queue"}
        promised = (await wire.call("inject", "_antiphon/inject", **params))["messageId"]
        seed.go.set()
        assert await wire.ended(1) == "end_turn"
        assert await wire.play(session, "last") == ["end_turn"]
        await late.join(session)
        assert ("user", promised, "waits") in late.messages()
        if dialect in WITH_STATES:
            assert ("user", promised, "waits") in wire.messages()


@served(*DIALECTS)
async def test_a_session_that_waits_for_an_answer_is_loaded_with_its_question(
    place: str, dialect: str
) -> None:
    async with (
        staged(place, SeedAgent().agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as late,
    ):
        wire.prompt(1, session, "ask")
        await wire.request("session/request_permission")
        if dialect in WITH_STATES:
            await wire.state("requires_action")
        await late.join(session)
        again = await late.request("session/request_permission")
        if dialect in WITH_STATES:
            assert late.states() == ["requires_action"]
        late.send(id=again["id"], result=ALLOW)
        assert await wire.ended(1) == "end_turn"
        assert ("agent", "allowed") in wire.words()
        if dialect not in ANSWERED_AT_END:
            await late.state("idle")
