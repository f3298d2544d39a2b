"""Seed 000: what an agent tells at the beginning of a session, before the first prompt."""

from __future__ import annotations

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.schema import v2
from tests.requirements.seed_places import DIALECTS, WITH_STATES, served, staged


@served(*DIALECTS)
async def test_an_agent_speaks_before_the_first_prompt(place: str, dialect: str) -> None:
    agent = Agent("first", version="1")

    @agent.on_session
    async def greet(session: AgentSession) -> None:
        async with session.turn() as turn:
            await turn.say("Good morning.")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say("Yes.")

    async with staged(place, agent) as stage, stage.session(dialect) as (wire, session):
        await wire.until(lambda frame: "Good morning." in str(frame))
        assert wire.story().index("= new") < next(
            at for at, frame in enumerate(wire.seen) if "Good morning." in str(frame)
        ), "behind the answer that names the session"
        if dialect in WITH_STATES and place != "hub-v1":
            await wire.state("idle")
            assert wire.states() == ["running", "idle"]
        assert await wire.play(session, "again") == ["end_turn"]
        assert [words for role, words in wire.words() if role == "agent"] == ["Good morning.", "Yes."]


@served(*DIALECTS)
async def test_an_agent_tells_its_status_before_the_first_prompt(place: str, dialect: str) -> None:
    agent = Agent("status", version="1")

    @agent.on_session
    async def status(session: AgentSession) -> None:
        await session.set_title("Morning")
        await session.report_usage(used=1, size=10)
        await session.set_commands([v2.AvailableCommand(name="go", description="Go on")])

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say("Yes.")

    async with staged(place, agent) as stage, stage.session(dialect) as (wire, session):
        for kind in ("session_info_update", "usage_update", "available_commands_update"):
            if not wire.updates_of(kind):
                await wire.update(kind)
        assert await wire.play(session, "again") == ["end_turn"]
