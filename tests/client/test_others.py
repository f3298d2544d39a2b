"""The other clients of a session, as the agent tells of them: advisory, whatever it says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Permissions, connect
from antiphon.schema.antiphon.clients import Present, Who
from antiphon.schema.antiphon.messages import QuestionUpdate
from tests.client.driving import V2_WAYS, WAYS, by_hand, driven, opened
from tests.options import connect_options

ANN = {"clientId": "c1", "name": "ann"}


async def test_who_is_there_is_known_and_belongs_to_no_turn() -> None:
    async with by_hand() as (session, agent):
        events = session.events()
        clients = [
            {**ANN, "joinedAt": "2026-01-01T00:00:00Z", "version": "2"},
            {**ANN, "clientId": "c2", "you": True},
        ]
        agent.told("_antiphon_presence", clients=clients)
        event = await anext(events)
        expected = [
            Present(client_id="c1", name="ann", version="2", joined_at="2026-01-01T00:00:00Z"),
            Present(client_id="c2", name="ann", you=True),
        ]
        assert event.clients == tuple(expected)
        assert event.turn is None
        assert session.clients == expected
        agent.told("_antiphon_presence", clients=[])
        assert (await anext(events)).clients == ()
        assert session.clients == []


@pytest.mark.parametrize(
    "said",
    [
        {"clients": "many"},
        {"clients": [5, None, {}, {"clientId": 5}, {"name": "x"}]},
        {},
        {"clients": [{"clientId": "c" * 10_000, "name": ["x"], "version": {}, "you": 1, "joinedAt": 4}]},
    ],
)
async def test_what_cannot_be_read_is_passed_over(said: dict[str, Any]) -> None:
    async with by_hand() as (session, agent):
        agent.told("_antiphon_presence", **said)
        agent.told("_antiphon_question", questionId=5, state="answered", by="ann")
        agent.told("_antiphon_question", questionId="q", state=["answered"])
        agent.told("user_message", messageId="u", content=[], _meta={"antiphon": {"sender": said}})
        agent.told("user_message", messageId="v", content=[], _meta={"antiphon": "ann"})
        await agent.settled(session)
        assert all(len(one.client_id) <= 64 and one.name == "unknown" for one in session.clients)
        assert len(session.clients) <= 1
        assert [message.sender for message in session.messages] == [None, None]


async def test_names_that_an_agent_tells_are_cleaned() -> None:
    async with by_hand() as (session, agent):
        odd = {"clientId": "c", "name": "\x1b[2Jann\n" + "x" * 9000}
        agent.told("user_message", messageId="u", content=[], _meta={"antiphon": {"sender": odd}})
        agent.told("_antiphon_presence", clients=[odd])
        await agent.settled(session)
        [message], [client] = session.messages, session.clients
        assert message.sender is not None
        assert message.sender.name == client.name
        assert client.name.startswith("[2Jann x")
        assert len(client.name) == 64


async def test_who_answered_is_known_once_our_copy_is_taken_back() -> None:
    asked = asyncio.Event()

    async def never(_: Any) -> str:
        asked.set()
        return await asyncio.get_running_loop().create_future()

    async with by_hand(1, answers=Permissions(ask=never)) as (session, agent):
        turn = await session.prompt("go")
        prompt = await agent.prompted()
        options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
        params = {
            "sessionId": "s",
            "toolCall": {"toolCallId": "t", "title": "Act"},
            "options": options,
            "_meta": {"antiphon": {"questionId": "q1"}},
        }
        agent.send(id="ask", method="session/request_permission", params=params)
        await asked.wait()
        events = session.events()
        ended = {"state": "answered", "by": ANN, "outcome": "selected", "optionId": "y", "optionName": "Yes"}
        agent.told("_antiphon_question", questionId="q1", toolCallId="t", **ended)
        agent.send(method="$/cancel_request", params={"requestId": "ask"})
        event = await anext(events)
        who = Who(client_id="c1", name="ann")
        assert event.news == QuestionUpdate(
            question_id="q1",
            state="answered",
            tool_call_id="t",
            by=who,
            outcome="selected",
            option_id="y",
            option_name="Yes",
        )
        closed = (await anext(events)).question
        assert closed is not None
        assert (str(closed.state), closed.by) == ("answered", who)
        assert b'"optionId":"y"' in bytes(closed.result)
        agent.ends(prompt)
        await turn.drained()


def echo() -> Agent:
    agent = Agent("echo")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say(f"heard {turn.prompt.text}")

    return agent


@pytest.mark.parametrize("way", WAYS)
async def test_our_own_prompts_are_ours(way: str) -> None:
    async with driven(echo(), way, name="me", client_id="me-1") as session:
        turn = await session.prompt("hello")
        await turn.drained()
        me = Who(client_id="me-1", name="me")
        assert session.client.who == me
        assert turn.sender == me
        assert [message.sender for message in session.messages] == [me, None]


@pytest.mark.parametrize("way", V2_WAYS)
async def test_a_turn_that_another_client_opened_has_its_sender(way: str) -> None:
    agent = echo()
    async with (
        driven(agent, name="ann") as own,
        connect(agent, **connect_options(**WAYS[way], name="bob")) as bob,
    ):
        other = await bob.load_session(own.id, "/")
        events = other.events()
        await (await own.prompt("hello")).drained()
        async for event in events:
            if event.turn is not None and event.turn.sender is not None:
                assert event.turn.sender == own.client.who
                break


async def test_agents_are_those_that_a_hub_names() -> None:
    able = {"session": {}, "_meta": {"antiphon": {"agents": ["one", "two", 3]}}}
    async with opened(capabilities=able) as (client, _):
        assert client.agents == ["one", "two"]
    async with opened(capabilities={"session": {}, "_meta": {"antiphon": {"agents": "all"}}}) as (client, _):
        assert client.agents == []


async def test_a_client_says_who_it_is_and_that_it_wants_to_know() -> None:
    async with opened(name="ann") as (client, _):
        first = client.who.client_id
        assert first.startswith("client_")
    async with opened(name="ann") as (client, _):
        assert client.who.client_id != first
