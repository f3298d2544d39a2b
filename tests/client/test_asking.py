"""A question is answered exactly once, by whoever decides or because it is moot."""

from __future__ import annotations

import asyncio
import logging

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import ClientSession, Permission, Permissions
from antiphon.schema import v2
from tests.client.driving import WAYS, ByHand, by_hand, driven

CANCELLED = {"outcome": {"outcome": "cancelled"}}


async def answer_to(agent: ByHand, id: str) -> object:
    while True:
        frame = await agent.receive()
        if frame.get("id") == id and "method" not in frame:
            return frame["result"]


@pytest.mark.parametrize("way", WAYS)
async def test_the_agent_gets_the_option_that_was_chosen(way: str) -> None:
    agent = Agent("asks")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Act", kind="execute") as call:
            await turn.say(str(await call.request_permission()))

    seen: list[tuple[str, str, str]] = []

    async def ask(permission: Permission) -> v2.PermissionOption | None:
        assert permission.session.questions
        seen.append((permission.title, permission.kind, str(permission.session.state)))
        return permission.allow()

    async with driven(agent, way, answers=Permissions(ask=ask)) as session:
        turn = await session.prompt("go")
        events = [event async for event in turn.events()]
        assert turn.text == "True"
        assert [str(event.question.state) for event in events if event.question is not None] == [
            "open",
            "answered",
        ]
        assert all(event.turn is turn for event in events)
    assert [(title, kind) for title, kind, _ in seen] == [("Act", "execute")]


@pytest.mark.parametrize("mistake", ["raises", "unknown option", "cancels itself"])
async def test_a_decision_that_fails_is_no_approval(mistake: str, caplog: pytest.LogCaptureFixture) -> None:
    async def ask(permission: Permission) -> str:
        if mistake == "raises":
            raise RuntimeError("boom")
        if mistake == "cancels itself":
            raise asyncio.CancelledError
        return "never offered"

    async with by_hand(1, answers=Permissions(ask=ask)) as (session, agent):
        await session.prompt("hi")
        await agent.prompted()
        with caplog.at_level(logging.CRITICAL, "antiphon.client"):
            agent.asks("p")
            assert await answer_to(agent, "p") == CANCELLED
        assert session.questions == []


async def test_a_question_that_the_agent_takes_back_is_answered_cancelled() -> None:
    """PERM-V2-09."""
    async with by_hand(1, answers=Permissions(ask=_never)) as (session, agent):
        await session.prompt("hi")
        await agent.prompted()
        agent.asks("p")
        await agent.settled(session)
        assert len(session.questions) == 1
        agent.send(method="$/cancel_request", params={"requestId": "p"})
        assert await answer_to(agent, "p") == CANCELLED
        assert session.questions == []


async def test_a_question_is_moot_when_its_turn_is_over() -> None:
    async with by_hand(1, answers=Permissions(ask=_never)) as (session, agent):
        turn = await session.prompt("hi")
        id = await agent.prompted()
        agent.asks("p")
        await agent.settled(session)
        agent.ends(id)
        assert await answer_to(agent, "p") == CANCELLED
        await turn.drained()
        assert [str(e.question.state) async for e in turn.events() if e.question] == ["open", "cancelled"]


async def test_the_question_of_background_work_belongs_to_no_turn_and_outlives_it() -> None:
    """PERM-V2-10."""
    decided: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def ask(permission: Permission) -> str:
        return await decided

    async with by_hand(answers=Permissions(ask=ask)) as (session, agent):
        agent.state("running", background=[{"type": "terminal", "terminalId": "term"}])
        subject = {"type": "command", "command": "rm", "cwd": "/", "terminalId": "term"}
        options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
        params = {"sessionId": "s", "title": "Remove?", "subject": subject, "options": options}
        agent.send(id="p", method="session/request_permission", params=params)
        await agent.settled(session)
        turn = session.turn
        assert turn is not None
        await turn.cancel()
        agent.state("idle", stopReason="cancelled", background=[{"type": "terminal", "terminalId": "term"}])
        await turn.drained()
        assert len(session.questions) == 1
        assert [event async for event in turn.events() if event.question is not None] == []
        decided.set_result("y")
        assert await answer_to(agent, "p") == {"outcome": {"outcome": "selected", "optionId": "y"}}


async def test_a_v1_request_without_options_is_answered_cancelled() -> None:
    async with by_hand(1) as (session, agent):
        await session.prompt("hi")
        await agent.prompted()
        params = {"sessionId": "s", "toolCall": {"toolCallId": "t", "title": "Act"}, "options": []}
        agent.send(id="p", method="session/request_permission", params=params)
        assert await answer_to(agent, "p") == CANCELLED
        assert [call.title for call in session.tool_calls] == ["Act"]


async def test_a_question_expires_with_the_link() -> None:
    deciding: asyncio.Future[asyncio.Task[None] | None] = asyncio.get_running_loop().create_future()

    async def ask(permission: Permission) -> None:
        deciding.set_result(asyncio.current_task())
        await asyncio.Event().wait()

    async with by_hand(1, answers=Permissions(ask=ask)) as (session, agent):
        turn = await session.prompt("hi")
        await agent.prompted()
        agent.asks("p")
        task = await deciding
        assert task is not None
        await agent.transport.aclose()
        await turn.drained()
        assert session.questions == []
        assert [str(e.question.state) async for e in turn.events() if e.question] == ["open", "expired"]
        await asyncio.wait([task])
        assert task.cancelled()  # nobody is asked for an answer that reaches nobody


async def test_a_session_that_was_left_decides_nothing_for_the_others() -> None:
    able = {"loadSession": True}
    async with by_hand(1, able) as (session, agent):
        client: ClientSession | None = None
        attached = session.client.attach("a")
        opening = asyncio.ensure_future(attached.__aenter__())
        load = await agent.expect("session/load")
        agent.send(id=load["id"], result={})
        client = await opening
        await attached.__aexit__(None, None, None)
        params = {"sessionId": "a", "toolCall": {"toolCallId": "t"}, "options": []}
        agent.send(id="p", method="session/request_permission", params=params)
        agent.send(id="q", method="_ping", params={})
        assert (await agent.receive())["id"] == "q"
        assert client.questions == []


async def _never(permission: Permission) -> None:
    await asyncio.Event().wait()
