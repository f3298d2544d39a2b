"""One tool call or one terminal is cancelled, where the agent offers that; and the agent and the client
together, with files and terminals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon import CallFailed, LocalError
from antiphon.agent import Agent, AgentTurn
from antiphon.client import Workspace, connect
from antiphon.engine.turn import TurnState
from tests.client.driving import DEADLINE, WAYS, by_hand, driven
from tests.requirements.marks import requirement

CANCEL = {"cancel": {}}


@requirement("TOOL-V2-12")
@pytest.mark.parametrize(
    "told",
    [
        None, {}, {"capabilities": None}, {"capabilities": {}}, {"capabilities": {"cancel": None}},
        {"capabilities": "malformed"}, {"capabilities": CANCEL, "status": "completed"},
        {"capabilities": CANCEL, "status": "cancelled"},
    ],
)  # fmt: skip
async def test_what_is_not_offered_is_not_asked_for(told: dict[str, Any] | None) -> None:
    async with by_hand() as (session, agent):
        if told is not None:
            agent.told("tool_call_update", toolCallId="t", title="T", **told)
            await agent.settled(session)
        with pytest.raises(LocalError, match="does not offer"):
            await session.cancel_tool_call("t")


@requirement("TERMV2-10")
@pytest.mark.parametrize(
    "told",
    [None, {}, {"capabilities": None}, {"capabilities": {}}, {"capabilities": CANCEL, "exitStatus": {}}],
)
async def test_what_is_not_offered_is_not_asked_for_either(told: dict[str, Any] | None) -> None:
    async with by_hand() as (session, agent):
        if told is not None:
            agent.told("terminal_update", terminalId="t", command="ls", **told)
            await agent.settled(session)
        with pytest.raises(LocalError, match="does not offer"):
            await session.cancel_terminal("t")


@requirement("TOOL-V2-12", "TERMV2-10")
async def test_an_offer_holds_until_it_is_withdrawn() -> None:
    async with by_hand() as (session, agent):
        agent.told("tool_call_update", toolCallId="c", title="C", capabilities=CANCEL, status="paused")
        agent.told("terminal_update", terminalId="t", command="ls", capabilities=CANCEL)
        await agent.settled(session)
        for method, cancelling, named in (
            ("tool_call/cancel", session.cancel_tool_call("c"), {"toolCallId": "c"}),
            ("terminal/cancel", session.cancel_terminal("t"), {"terminalId": "t"}),
        ):
            task = asyncio.ensure_future(cancelling)
            asked = await agent.expect(method)
            assert asked["params"] == {"sessionId": "s", **named}
            agent.send(id=asked["id"], result={})
            await task
        agent.told("tool_call_update", toolCallId="c", capabilities=None)
        agent.told("terminal_update", terminalId="t", capabilities=None)
        await agent.settled(session)
        for cancelling in (session.cancel_tool_call("c"), session.cancel_terminal("t")):
            with pytest.raises(LocalError):
                await cancelling


@requirement("TOOL-V2-14")
async def test_an_agent_that_refuses_after_all_is_told() -> None:
    async with by_hand() as (session, agent):
        agent.told("tool_call_update", toolCallId="c", title="C", capabilities=CANCEL)
        await agent.settled(session)
        task = asyncio.ensure_future(session.cancel_tool_call("c"))
        asked = await agent.expect("tool_call/cancel")
        agent.send(id=asked["id"], error={"code": -32602, "message": "It has ended"})
        with pytest.raises(CallFailed):
            await task


@requirement("TOOL-V2-15")
@pytest.mark.parametrize("way", WAYS)
async def test_the_call_ends_and_the_turn_goes_on(way: str) -> None:
    agent = Agent("cancels")
    go = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Sleep", cancellable=True) as call:
            await asyncio.get_running_loop().create_future() if way.startswith("v2") else None
        await go.wait()
        await turn.say(f"cancelled: {call.cancelled}")

    async with driven(agent, way) as session:
        turn = await session.prompt("go")
        updates = turn.updates()
        async for update in updates:
            if getattr(update, "tool_call_id", None) is not None:
                break
        [call] = session.tool_calls
        if not way.startswith("v2"):
            with pytest.raises(LocalError):
                await session.cancel_tool_call(call.id)
        else:
            await session.cancel_tool_call(call.id)
            async for update in updates:
                if getattr(update, "status", None) == "cancelled":
                    break
            assert (call.status, call.capabilities) == ("cancelled", None)
        assert session.state is TurnState.RUNNING
        go.set()
        end = await turn.drained()
        assert end.stop_reason == "end_turn"
        assert session.messages[-1].text == f"cancelled: {way.startswith('v2')}"


@requirement("TERMV2-11")
async def test_a_command_is_ended_by_its_terminal() -> None:
    agent = Agent("cancels")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Sleep") as call:
            await call.run(["/bin/sh", "-c", "echo on; sleep 1000"], size=(80, 24), cancellable=True)

    async with driven(agent) as session:
        turn = await session.prompt("go")
        async for _ in turn.updates():
            if session.terminals and session.terminals[0].text:
                break
        [terminal] = session.terminals
        assert terminal.size is not None
        assert (terminal.size.cols, terminal.size.rows) == (80, 24)
        await session.cancel_terminal(terminal.id)
        await turn.drained()
        assert terminal.exit_status is not None
        assert terminal.exit_status.signal == "SIGTERM"
        assert session.tool_calls[0].status == "completed"


# --- agent and client together ---------------------------------------------------------------------------


@requirement("FS-01", "FS-05", "TERMV1-01")
@pytest.mark.parametrize("version", [1, 2])
async def test_an_agent_works_with_what_its_client_offers(tmp_path: Path, version: int) -> None:
    (tmp_path / "in").write_text("1\n2\n3\n")
    agent = Agent("reaches")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        if not turn.client.can_read:
            await turn.say("nothing is offered")
            return
        text = await turn.client.read(f"{turn.session.cwd}/in", line=2, limit=1)
        await turn.client.write(f"{turn.session.cwd}/out", text)
        async with (
            turn.tool_call("Look", kind="execute") as call,
            turn.client.terminal(["cat", "out"], call=call) as terminal,
        ):
            status = await terminal.wait()
            output = await terminal.output()
        await turn.say(f"{status.exit_code} {output.text!r}")

    async with asyncio.timeout(DEADLINE), connect(agent, version=version, workspace=Workspace()) as client:
        session = await client.new_session(tmp_path)
        await (await session.prompt("go")).drained()
        if version == 2:
            assert session.messages[-1].text == "nothing is offered"
            return
        assert session.messages[-1].text == "0 '2\\n'"
        assert (tmp_path / "out").read_text() == "2\n"
        [terminal] = session.terminals
        assert (terminal.command, terminal.text, terminal.exited) == ("cat out", "2\n", True)
        [shown] = session.tool_calls[0].content
        assert shown.terminal_id == terminal.id


async def test_a_turn_that_is_cancelled_leaves_no_terminal(tmp_path: Path) -> None:
    agent = Agent("reaches")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.client.terminal(["/bin/sh", "-c", "echo on; sleep 1000"]) as terminal:
            await terminal.wait()

    async with asyncio.timeout(DEADLINE), connect(agent, version=1, workspace=Workspace()) as client:
        session = await client.new_session(tmp_path)
        events = session.events()
        turn = await session.prompt("go")
        async for _ in events:
            if session.terminals and session.terminals[0].text:
                break
        await turn.cancel()
        assert (await turn.drained()).stop_reason == "cancelled"
        async for _ in events:
            if session.terminals[0].exited:
                break
        assert session.terminals[0].exit_status is not None
        assert session.terminals[0].exit_status.signal == "SIGKILL"
