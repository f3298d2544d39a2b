"""Seed 003, as a raw client sees it: the agent library, directly and behind a hub."""

from __future__ import annotations

import pytest

from antiphon.agent import Agent, AgentTurn
from tests.requirements.seed_agent import SeedAgent
from tests.requirements.seed_places import served, staged

ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow"}}


@pytest.mark.parametrize("request_id", [2, "2", "seven"])
@served("v1+turn_complete")
async def test_turn_complete_has_its_shape_and_names_its_prompt(
    place: str, dialect: str, request_id: int | str
) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(request_id, session, "one")
        await wire.ended(request_id)
        told = [frame for frame in wire.seen if "turn_complete" in str(frame.get("params"))]
        assert told == [
            {
                "jsonrpc": "2.0",
                "method": "session/update",
                "params": {
                    "sessionId": session,
                    "update": {
                        "sessionUpdate": "turn_complete",
                        "promptRequestId": str(request_id),
                        "stopReason": "end_turn",
                    },
                },
            }
        ]


@served("v1", "v1+turn_complete")
async def test_the_capability_stands_where_the_signal_is_sent_and_nowhere_else(
    place: str, dialect: str
) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        able = wire.seen[0]["result"]["agentCapabilities"]["sessionCapabilities"]
        asked = dialect == "v1+turn_complete"
        assert able.get("turnComplete") == ({} if asked else None)
        await wire.play(session, "one")
        assert len(wire.updates_of("turn_complete")) == (1 if asked else 0)


@served("v1+turn_complete")
async def test_each_turn_completes_once_and_behind_everything_else(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "work")
        asked = await wire.request("session/request_permission")
        wire.send(id=asked["id"], result=ALLOW)
        await wire.ended(1)
        assert wire.story()[-2:] == ["turn_complete", "= 1"]
        for id, words in ((2, "two"), (3, "stop refusal"), (4, "whole")):
            wire.prompt(id, session, words)
            await wire.ended(id)
        told = wire.updates_of("turn_complete")
        assert [each["promptRequestId"] for each in told] == ["1", "2", "3", "4"]
        assert [each["stopReason"] for each in told] == ["end_turn", "end_turn", "refusal", "end_turn"]
        story = [line for line in wire.story() if line.startswith(("=", "turn_complete"))]
        assert story == [
            "= init",
            "= new",
            *[line for id in (1, 2, 3, 4) for line in ("turn_complete", f"= {id}")],
        ]


@served("v1+turn_complete")
async def test_a_cancelled_turn_completes_too_behind_its_late_updates(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "hold")
        await wire.update("agent_message_chunk")
        wire.send(method="session/cancel", params={"sessionId": session})
        assert await wire.ended(1) == "cancelled"
        assert wire.story()[-3:] == ["agent_message_chunk", "turn_complete", "= 1"]
        assert wire.updates_of("turn_complete") == [
            {"sessionUpdate": "turn_complete", "promptRequestId": "1", "stopReason": "cancelled"}
        ]


@served("v1+turn_complete")
async def test_a_failed_turn_completes_too_with_its_error(place: str, dialect: str) -> None:
    async with (
        staged(place, SeedAgent().agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as other,
    ):
        await other.join(session)
        wire.prompt(1, session, "fail")
        answer = await wire.answer_to(1)
        (told,) = wire.updates_of("turn_complete")
        assert (told["promptRequestId"], told["error"]) == ("1", answer["error"])
        assert "stopReason" not in told
        assert wire.story()[-2:] == ["turn_complete", "= 1"]
        seen = await other.update("turn_complete")
        assert seen["error"]["code"] == answer["error"]["code"], "who follows learns that it is over"
        assert await wire.play(session, "goes on") == ["end_turn"]


@served("v1+turn_complete")
async def test_prompts_of_several_sessions_are_told_apart(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.client(dialect) as wire:
        sessions = [
            (await wire.call(f"n{n}", "session/new", cwd="/", mcpServers=[]))["sessionId"] for n in range(3)
        ]
        for number, session in enumerate(sessions):
            wire.prompt(number, session, "hold")
        while wire.text() != "holding" * 3:
            await wire.update("agent_message_chunk")
        seed.go.set()
        for number, session in enumerate(sessions):
            await wire.ended(number)
            told = [
                frame["params"]["update"]["promptRequestId"]
                for frame in wire.seen
                if frame.get("params", {}).get("sessionId") == session
                and frame["params"].get("update", {}).get("sessionUpdate") == "turn_complete"
            ]
            assert told == [str(number)]


@served("v1+turn_complete")
async def test_every_client_that_asked_is_told_the_end_at_the_same_place(place: str, dialect: str) -> None:
    async with (
        staged(place, SeedAgent().agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as other,
        stage.client("v1") as plain,
    ):
        await other.join(session)
        await plain.join(session)
        await wire.play(session, "two", "usage")
        kinds = [
            [line for line in each.story() if "=" not in line and "user" not in line]
            for each in (wire, other)
        ]
        while kinds[0] != kinds[1]:
            await other.until(lambda _: True)
            kinds[1] = [line for line in other.story() if "=" not in line and "user" not in line]
        assert kinds[0] == [
            *["agent_message_chunk"] * 4,
            "turn_complete",
            "agent_message_chunk",
            "turn_complete",
        ]
        assert all("promptRequestId" not in each for each in other.updates_of("turn_complete"))
        await plain.until(lambda frame: "counted" in str(frame))
        await plain.everything()
        assert plain.updates_of("turn_complete") == []


@served("v2", "proposed", "v1+lifecycle2")
async def test_where_states_tell_the_end_there_is_no_turn_complete(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "one")
        await wire.everything()
        assert wire.updates_of("turn_complete") == []
        assert wire.states() == ["running", "idle"]


@served("v1+turn_complete")
async def test_title_and_usage_of_a_turn_come_before_its_completion(place: str, dialect: str) -> None:
    agent = Agent("tells", version="1")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.session.set_title("Named")
        await turn.session.report_usage(used=3, size=10)
        await turn.say("done")

    async with staged(place, agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "go")
        await wire.ended(1)
        kinds = wire.story()[wire.story().index("= new") + 1 :]
        assert set(kinds[:-2]) == {"session_info_update", "usage_update", "agent_message_chunk"}
        assert kinds[-2:] == ["turn_complete", "= 1"]
        listed = await wire.call("list", "session/list")
        assert [each["title"] for each in listed["sessions"]] == ["Named"]
