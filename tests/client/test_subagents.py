"""Subagents as a client sees them: followed with a view of their own, and left alone but for what is
offered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Elicitation, Permissions, connect
from antiphon.errors import LocalError
from antiphon.schema import v2
from tests.client.driving import DEADLINE, by_hand, driven
from tests.requirements.marks import requirement


async def seen(session, condition) -> None:  # type: ignore[no-untyped-def]
    """Until something holds of a session, looked at after each event of it."""
    events = session.events()
    while not condition():
        await anext(events)


@requirement("SUB-01")
@pytest.mark.parametrize("way", ["v1", "v2"])
async def test_a_child_has_a_view_of_its_own(way: str) -> None:
    agent = Agent("boss")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.subagent("Researcher", description="looks") as child:
            await child.instruct("Look!")
            async with child.message() as message:
                await message.write("I looked")
            async with child.tool_call("Search") as call:
                await call.request_permission()
        await turn.say("done")

    async with driven(agent, way, answers=Permissions(allow="all")) as session:
        turn = await session.prompt("go")
        await turn.drained()
        (child,) = session.subagents
        assert (child.title, child.description, child.can_cancel) == ("Researcher", "looks", False)
        assert child.state == v2.State.IDLE
        await seen(child.session, lambda: [call.status for call in child.session.tool_calls] == ["completed"])
        assert [message.text for message in child.session.messages] == ["I looked"]
        assert [message.text for message in session.messages][-1] == "done"
        assert "I looked" not in str([message.text for message in session.messages])
        (note,) = session.session_messages
        assert (note.text, note.sender_session_id, note.recipient_session_id) == (
            "Look!",
            session.id,
            child.id,
        )
        assert session.client.sessions == [session]


@requirement("SUB-02")
async def test_a_child_is_only_followed() -> None:
    agent, go_on = Agent("boss"), asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.subagent("Researcher"):
            await go_on.wait()

    async with driven(agent) as session:
        turn = await session.prompt("go")
        await seen(session, lambda: session.subagents)
        child = session.subagents[0]
        for act in (child.cancel(), child.session.prompt("x"), child.session.close(), child.session.cancel()):
            with pytest.raises(LocalError):
                await act
        go_on.set()
        await turn.drained()


@requirement("SUB-02")
@pytest.mark.parametrize("way", ["v1", "v2"])
async def test_a_child_that_offers_it_is_cancelled_alone(way: str) -> None:
    agent = Agent("boss")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.subagent("Researcher", cancellable=True) as child:
            await child.say("here")
            await asyncio.Event().wait()
        await turn.say("went on")

    async with driven(agent, way) as session:
        turn = await session.prompt("go")
        await seen(session, lambda: session.subagents)
        child = session.subagents[0]
        await seen(child.session, lambda: child.session.messages)
        await child.cancel()
        end = await turn.drained()
        assert end.stop_reason == "end_turn"
        assert session.messages[-1].text == "went on"
        assert child.state == v2.State.IDLE


@requirement("SUB-02")
async def test_fields_are_patched_and_a_null_state_is_not_confirmed() -> None:
    async with by_hand() as (session, agent):
        agent.told(
            "subagent_update",
            sessionId="c",
            title="One",
            capabilities={"cancel": {}},
            state={"state": "running"},
        )
        agent.told("subagent_update", sessionId="c", description="two", state=None)
        await agent.settled(session)
        (child,) = session.subagents
        assert (child.title, child.description, child.state, child.can_cancel) == ("One", "two", None, True)
        agent.told("subagent_update", sessionId="c", title=None, capabilities=None)
        await agent.settled(session)
        assert (child.title, child.can_cancel) == (None, False)
        agent.told("subagent_update", sessionId="c", state={"state": "_odd"}, capabilities={"cancel": 3})
        await agent.settled(session)
        assert (child.state, child.can_cancel) == (None, False)


@requirement("SUB-03")
async def test_messages_between_sessions_are_upserts_by_id() -> None:
    async with by_hand() as (session, agent):
        text = {"type": "text", "text": "a"}
        agent.told("session_message_chunk", messageId="m", content=text)
        agent.told("session_message", messageId="m", senderSessionId="x")
        agent.told("session_message_chunk", messageId="m", content={"type": "text", "text": "b"})
        agent.told("session_message", messageId="n", content=[text], recipientSessionId="s")
        agent.told("session_message", messageId="n", content=None, senderSessionId="x")
        await agent.settled(session)
        first, second = session.session_messages
        assert (first.text, first.sender_session_id, first.recipient_session_id) == ("ab", "x", None)
        assert (second.text, second.sender_session_id, second.recipient_session_id) == ("", "x", "s")


async def test_what_is_read_of_a_child_before_its_announcement_is_not_lost() -> None:
    async with by_hand() as (session, agent):
        chunk = {
            "sessionUpdate": "agent_message_chunk",
            "messageId": "m",
            "content": {"type": "text", "text": "x"},
        }
        agent.send(method="session/update", params={"sessionId": "c", "update": chunk})
        agent.told("subagent_update", sessionId="c", title="Late")
        await agent.settled(session)
        (child,) = session.subagents
        assert [message.text for message in child.session.messages] == ["x"]


async def test_a_question_of_a_session_that_nobody_announced_is_refused() -> None:
    async with by_hand() as (_, agent):
        options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
        agent.send(
            id="q",
            method="session/request_permission",
            params={"sessionId": "c", "title": "T", "options": options},
        )
        answer = await agent.receive()
        assert answer["error"]["code"] == -32602


async def test_children_are_left_with_their_parent() -> None:
    agent, go_on = Agent("boss"), asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.subagent("Researcher"):
            await go_on.wait()

    async with asyncio.timeout(DEADLINE), connect(agent) as client:
        session = await client.new_session("/")
        await session.prompt("go")
        await seen(session, lambda: session.subagents)
        child = session.subagents[0].session
        go_on.set()
        await session.close()
        assert [event async for event in child.events()] == []


@pytest.mark.parametrize("method", ["session/request_permission", "elicitation/create"])
async def test_a_question_of_a_child_finds_it_however_its_announcement_is_read(method: str) -> None:
    class Answers(Permissions):
        async def elicit(self, elicitation: Elicitation) -> Any:
            return elicitation.decline()

    async with by_hand(answers=Answers(allow="all")) as (session, agent):
        agent.told("subagent_update", sessionId="c", title="Asks")
        options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        fields = {"title": "T", "options": options} if "permission" in method else {}
        form = {"mode": "form", "message": "?", "requestedSchema": schema}
        params = {"sessionId": "c", **(fields or form)}
        agent.send(id="q", method=method, params=params)
        answer = await agent.receive()
        assert answer["id"] == "q"
        assert "result" in answer
        assert session.subagents[0].session.questions == []


async def test_subagents_in_a_circle_are_not_followed_in_one() -> None:
    async with by_hand() as (session, agent):

        def announced(parent: str, child: str) -> None:
            update = {"sessionUpdate": "subagent_update", "sessionId": child, "title": child}
            agent.send(method="session/update", params={"sessionId": parent, "update": update})

        announced(session.id, "b")
        announced("b", "c")
        await agent.settled(session)
        for parent, child in (("c", "b"), ("c", session.id), ("b", "b"), (session.id, session.id)):
            announced(parent, child)
        await agent.settled(session)
        (b,) = session.subagents
        assert b.session.parent is session
        assert session.parent is None
        for child in b.session.subagents:
            assert child.session.parent is b.session
