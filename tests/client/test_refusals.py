"""A refused turn: which messages the agent will not remember, as a client can ask."""

from __future__ import annotations

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import ClientSession, ClientTurn
from tests.client.driving import WAYS, driven
from tests.requirements.marks import requirement


def refusing() -> Agent:
    """Refuses what begins with `no`, after it has thought and spoken."""
    agent = Agent("strict")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.thought() as thought:
            await thought.write("May I?")
        await turn.say(f"I heard: {turn.prompt.text}")
        if turn.prompt.text.startswith("no"):
            turn.stop("refusal")

    return agent


async def said(session: ClientSession, text: str) -> ClientTurn:
    turn = await session.prompt(text)
    await turn.drained()
    return turn


def texts(session: ClientSession) -> list[str]:
    return [message.text for message in session.forgotten]


@requirement("PROMPT-V1-08")
@pytest.mark.parametrize("way", WAYS)
async def test_a_refused_prompt_and_all_after_it_is_known_to_be_forgotten(way: str) -> None:
    async with driven(refusing(), way) as session:
        fine = await said(session, "one")
        assert fine.end is not None
        assert not fine.end.refused
        assert session.forgotten == []
        refused = await said(session, "no two")
        assert refused.end is not None
        assert refused.end.refused
        assert texts(session) == ["no two", "May I?", "I heard: no two"]
        await said(session, "three")
        assert texts(session) == ["no two", "May I?", "I heard: no two"]
        await said(session, "no four")
        assert texts(session) == [
            *("no two", "May I?", "I heard: no two"),
            *("no four", "May I?", "I heard: no four"),
        ]
        assert len(session.messages) == 12


@requirement("PROMPT-V1-08")
@pytest.mark.parametrize("way", WAYS)
async def test_what_the_agent_says_behind_a_refused_turn_is_forgotten_too(way: str) -> None:
    agent = refusing()
    async with driven(agent, way) as session:
        await said(session, "no one")
        live = agent.find(session.id)
        assert live is not None
        heard = session.events()
        async with live.turn() as turn:
            await turn.say("By the way.")
        async for event in heard:
            if "By the way." in [message.text for message in session.messages]:
                break
            assert event is not None
        assert texts(session)[-1] == "By the way."
        await said(session, "two")
        assert "I heard: two" not in texts(session)
