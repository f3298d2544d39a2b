"""A cancel stops its own turn and no other, at whatever moment it comes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import ClientTurn, Permission, Permissions, connect
from antiphon.schema import v2
from tests.client.driving import WAYS, by_hand, driven

DYING = Path(__file__).parents[1] / "hub" / "dying_agent.py"
DEADLINE = 60.0


def waits() -> Agent:
    """It waits until it is cancelled, but for what is called `short`."""
    agent = Agent("waits")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.message() as message:
            await message.write(turn.prompt.text)
            if turn.prompt.text != "short":
                try:
                    await asyncio.Event().wait()
                finally:
                    await message.write(", late")

    return agent


async def first_words(turn: ClientTurn) -> None:
    async for update in turn.updates():
        if isinstance(update, v2.AgentMessageChunk):
            return


@pytest.mark.parametrize("way", WAYS)
async def test_a_running_turn_is_cancelled_after_its_late_updates(way: str) -> None:
    async with driven(waits(), way) as session:
        turn = await session.prompt("work")
        await first_words(turn)
        await turn.cancel()
        end = await turn.drained()
        assert (end.cancelled, end.cut) == (True, None)
        assert turn.text == "work, late"
        await turn.cancel()  # safe, and too late for anything


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancel_on_the_line_after_the_prompt_reaches_its_turn(way: str) -> None:
    async with driven(waits(), way) as session:
        turn = await session.prompt("work")
        await turn.cancel()
        assert (await turn.drained()).cancelled


@pytest.mark.parametrize("way", WAYS)
async def test_a_late_cancel_does_not_hit_the_next_turn(way: str) -> None:
    async with driven(waits(), way) as session:
        first = await session.prompt("short")
        await first.drained()
        second = await session.prompt("work")
        await first_words(second)
        await first.cancel()
        # Its answer shows that nothing happened.
        queued = await session.queue.add("short") if way != "v1" else None
        assert second.end is None
        await second.cancel()
        assert (await second.drained()).cancelled
        if queued is not None:
            await session.queue.resume()
            assert (await queued.turn.drained()).stop_reason == "end_turn"


async def test_the_cancel_of_a_turn_that_has_ended_sends_nothing() -> None:
    for version in (1, 2):
        async with by_hand(version) as (session, agent):
            prompt = asyncio.ensure_future(session.prompt("hi"))
            id = await agent.prompted()
            if version == 1:
                agent.ends(id)
            else:
                agent.takes(id, "u1")
                agent.shows("u1")
                agent.state("running")
                agent.state("idle", stopReason="end_turn")
            turn = await prompt
            await turn.drained()
            await turn.cancel()
            await agent.heard_nothing(session)


async def test_a_prompt_that_is_taken_and_not_begun_is_cancelled_when_it_begins() -> None:
    """Until then a `session/cancel` would hit what runs, or nothing."""
    async with by_hand() as (session, agent):
        prompt = asyncio.ensure_future(session.prompt("hi"))
        id = await agent.prompted()
        agent.takes(id, "u1")
        turn = await prompt
        await turn.cancel()
        await agent.heard_nothing(session)
        agent.shows("u1")
        agent.state("running")
        cancel = await agent.expect("session/cancel")
        assert cancel["params"] == {"sessionId": "s", "_meta": {"antiphon": {"messageId": "u1"}}}
        agent.state("idle", stopReason="cancelled")
        assert (await turn.drained()).cancelled


async def test_a_queued_prompt_that_is_cancelled_hits_nothing_that_runs_before_it() -> None:
    able = {"session": {}, "_meta": {"antiphon": {"inject": {}}}}
    async with by_hand(2, able) as (session, agent):
        agent.state("running")
        await agent.settled(session)
        running = session.turn
        assert running is not None
        queueing = asyncio.ensure_future(session.queue.add("later"))
        agent.send(id=(await agent.expect("_antiphon/inject"))["id"], result={"messageId": "u1"})
        queued = await queueing
        await queued.turn.cancel()
        agent.state("idle", stopReason="end_turn")
        assert (await running.drained()).stop_reason == "end_turn"
        await agent.heard_nothing(session)
        agent.shows("u1")
        agent.state("running")
        cancel = await agent.expect("session/cancel")
        assert cancel["params"]["_meta"]["antiphon"]["messageId"] == "u1"
        agent.state("idle", stopReason="cancelled")
        assert (await queued.turn.drained()).cancelled


async def test_a_waiting_v1_prompt_is_cancelled_when_the_one_before_it_has_ended() -> None:
    async with by_hand(1) as (session, agent):
        first, second = await session.prompt("one"), await session.prompt("two")
        one, two = await agent.prompted(), await agent.prompted()
        await second.cancel()
        await agent.settled(session)
        agent.ends(one)
        assert (await first.drained()).stop_reason == "end_turn"
        assert (await agent.expect("session/cancel"))["params"] == {"sessionId": "s"}
        agent.ends(two, "cancelled")
        assert (await second.drained()).cancelled


async def test_a_v1_agent_is_not_told_an_id_that_it_did_not_give() -> None:
    async with by_hand(1) as (session, agent):
        turn = await session.prompt("hi")
        id = await agent.prompted()
        await turn.cancel()
        assert (await agent.expect("session/cancel"))["params"] == {"sessionId": "s"}
        agent.ends(id, "cancelled")
        assert (await turn.drained()).cancelled


async def test_an_error_after_a_cancel_is_a_cancelled_turn() -> None:
    """PROMPT-V1-15: many agents let the abort of a library through."""
    async with by_hand(1) as (session, agent):
        first, second = await session.prompt("one"), await session.prompt("two")
        one, two = await agent.prompted(), await agent.prompted()
        await session.cancel()
        agent.send(id=one, error={"code": -32603, "message": "AbortError"})
        agent.send(id=two, error={"code": -32603, "message": "AbortError"})
        assert (await first.drained()).cancelled
        assert (await second.drained()).cancelled


async def never(permission: Permission) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancel_while_a_permission_is_open_ends_both(way: str) -> None:
    agent = Agent("asks")
    allowed: list[bool] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Act", kind="execute") as call:
            allowed.append(await call.request_permission())

    async with driven(agent, way, answers=Permissions(ask=never)) as session:
        turn = await session.prompt("go")
        async for event in turn.events():
            if event.question is not None:
                break
        await turn.cancel()
        assert (await turn.drained()).cancelled
        assert session.questions == []
        assert [str(call.status) for call in session.tool_calls] in (["failed"], ["cancelled"])
    assert allowed in ([], [False])


async def test_pending_v1_permissions_are_answered_cancelled_at_once() -> None:
    """PROMPT-V1-12, even if what decides does not heed its own cancellation."""

    async def stubborn(permission: Permission) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
        return "y"

    async with by_hand(1, answers=Permissions(ask=stubborn)) as (session, agent):
        turn = await session.prompt("hi")
        id = await agent.prompted()
        agent.asks("p1", "t1")
        agent.asks("p2", "t2")
        await agent.settled(session)
        assert session.state == "requires_action"
        await turn.cancel()
        assert (await agent.receive())["method"] == "session/cancel"
        for answered in ("p1", "p2"):
            answer = await agent.receive()
            assert (answer["id"], answer["result"]) == (answered, {"outcome": {"outcome": "cancelled"}})
        agent.asks("p3", "t3")  # it had not heard of the cancel yet
        assert (await agent.receive())["result"] == {"outcome": {"outcome": "cancelled"}}
        agent.ends(id, "cancelled")
        assert (await turn.drained()).cancelled
        assert session.questions == []


async def test_unfinished_calls_of_the_turn_count_as_cancelled_at_once_and_no_others() -> None:
    """PROMPT-V1-11, PROMPT-V2-39."""
    async with by_hand() as (session, agent):
        for call, status in (("old", "in_progress"), ("behind", "in_progress")):
            agent.told("tool_call_update", toolCallId=call, title=call, status=status)
        agent.state("running", background=[{"type": "tool_call", "toolCallId": "behind"}])
        agent.told("tool_call_update", toolCallId="done", status="completed")
        agent.told("tool_call_update", toolCallId="open", status="in_progress")
        agent.told("tool_call_update", toolCallId="behind", status="in_progress")
        await agent.settled(session)
        await session.cancel()
        assert {call.id: str(call.status) for call in session.tool_calls} == {
            "old": "in_progress",
            "behind": "in_progress",
            "done": "completed",
            "open": "cancelled",
        }
        agent.told("tool_call_update", toolCallId="open", status="completed")
        await agent.settled(session)
        assert str(session.tool_calls[-1].status) == "completed"  # the agent has the last word


async def test_a_cancel_after_the_link_is_lost_is_quiet() -> None:
    async with by_hand(1) as (session, agent):
        turn = await session.prompt("hi")
        await agent.prompted()
        await agent.transport.aclose()
        await turn.cancel()
        await session.cancel()
        assert (await turn.drained()).cut is not None


@pytest.mark.parametrize("whole", [False, True], ids=["turn", "session"])
@pytest.mark.parametrize("version", [1, 2])
async def test_a_turn_whose_agent_dies_of_its_cancel_ends_as_cancelled(version: int, whole: bool) -> None:
    async with asyncio.timeout(DEADLINE), connect([sys.executable, str(DYING), str(version)]) as client:
        session = await client.new_session("/")
        turn = await session.prompt("work")
        await first_words(turn)
        await (session.cancel() if whole else turn.cancel())
        end = await turn.drained()
        assert (end.cancelled, end.error) == (True, None)
        assert end.cut is not None, "the agent did not say it"
        [*_, last] = [update async for update in turn.updates()]
        assert isinstance(last, v2.SessionStateUpdate)
        assert (last.state, last.stop_reason) == (v2.State.IDLE, v2.StopReason.CANCELLED)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_turn_that_was_not_cancelled_and_loses_its_agent_is_cut_short(version: int) -> None:
    async with asyncio.timeout(DEADLINE), connect([sys.executable, str(DYING), str(version)]) as client:
        session = await client.new_session("/")
        turn = await session.prompt("work")
        await first_words(turn)
        another = v2.CancelSessionNotification(session_id=v2.SessionId("another"))
        await client.connection.notify("session/cancel", another)  # any cancel kills this agent
        end = await turn.drained()
        assert (end.cancelled, end.stop_reason, end.cut is None) == (False, v2.StopReason.ERROR, False)
