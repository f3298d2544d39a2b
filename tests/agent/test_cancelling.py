"""A client cancels one tool call or one terminal, and the turn goes on; pauses, and sizes of terminals."""

from __future__ import annotations

import asyncio
import os
import signal
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from antiphon import LocalError, MemoryStore
from antiphon.agent import Agent, AgentTurn, ToolCallWriter
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

CANCEL = {"cancel": {}}


def asleep() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def refused(talk: Talk, method: str, session_id: str, id: str) -> None:
    talk.send(
        id=f"no {id}", method=method, params={"sessionId": session_id, "toolCallId": id, "terminalId": id}
    )
    assert (await talk.answer_to(f"no {id}"))["error"]["code"] == -32602


def tool_updates(talk: Talk) -> list[dict[str, Any]]:
    updates = [frame["params"]["update"] for frame in talk.seen if frame.get("method") == "session/update"]
    return [update for update in updates if update["sessionUpdate"] == "tool_call_update"]


@requirement("TOOL-V2-10", "TOOL-V2-11", "TOOL-V2-13")
async def test_one_call_is_cancelled_and_the_turn_goes_on() -> None:
    agent = Agent("cancels")
    inside: list[str] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Sleep", cancellable=True) as call:
            try:
                await asleep()
            except asyncio.CancelledError:
                inside.append("told")
                raise
        inside.append(f"cancelled={call.cancelled}")
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
        async with turn.tool_call("Next") as call:
            pass
        await turn.say(f"on, {call.cancelled}")

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        made = await talk.update("tool_call_update", title="Sleep", status="in_progress", capabilities=CANCEL)
        assert await talk.call(2, "tool_call/cancel", sessionId=id, toolCallId=made["toolCallId"]) == {}
        ended = await talk.update("tool_call_update", toolCallId=made["toolCallId"])
        assert (ended["status"], ended["capabilities"]) == ("cancelled", None)
        other = await talk.update("tool_call_update", title="Next")
        assert "capabilities" not in other
        await talk.update("state_update", state="idle", stopReason="end_turn")
        assert inside == ["told", "cancelled=True"]
        await refused(talk, "tool_call/cancel", id, made["toolCallId"])


@requirement("TOOL-V2-14")
async def test_what_is_unknown_ended_or_not_offered_is_the_clients_mistake() -> None:
    agent = Agent("cancels")
    go = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Failed", cancellable=True) as call:
            await call.fail()
            async with turn.tool_call("Plain"):
                await go.wait()

    async with session(agent) as (talk, id), client(agent) as stranger:
        talk.prompt(1, id, "go")
        failed = await talk.update("tool_call_update", status="failed")
        plain = await talk.update("tool_call_update", title="Plain")
        for call in ("unknown", failed["toolCallId"], plain["toolCallId"], ""):
            await refused(talk, "tool_call/cancel", id, call)
        stranger.send(id=1, method="tool_call/cancel", params={"sessionId": id, "toolCallId": "c"})
        assert (await stranger.answer_to(1))["error"]["code"] == -32002, "it is not attached"
        talk.send(id="bad", method="tool_call/cancel", params={"sessionId": id})
        assert (await talk.answer_to("bad"))["error"]["code"] == -32602
        go.set()
        await talk.update("state_update", state="idle", stopReason="end_turn")


async def test_in_v1_there_is_no_such_method_and_no_such_capability() -> None:
    agent = Agent("cancels")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Call", cancellable=True):
            pass

    async with session(agent, 1) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.answer_to(1)
        assert "capabilities" not in str(tool_updates(talk))
        for method in ("tool_call/cancel", "terminal/cancel"):
            talk.send(
                id=method, method=method, params={"sessionId": id, "toolCallId": "c", "terminalId": "c"}
            )
            assert (await talk.answer_to(method))["error"]["code"] == -32601


@requirement("TOOL-V2-13")
@pytest.mark.parametrize("won", ["completed", "failed"])
async def test_a_call_that_wins_the_race_tells_how_it_ended(won: str) -> None:
    agent = Agent("cancels")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        try:
            async with turn.tool_call("Call", cancellable=True):
                try:
                    await asleep()
                except asyncio.CancelledError:
                    if won == "failed":
                        raise ValueError from None
        except ValueError:
            pass
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
        await asyncio.sleep(0)

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        made = await talk.update("tool_call_update", status="in_progress")
        for number in (2, 3):
            talk.send(
                id=number,
                method="tool_call/cancel",
                params={"sessionId": id, "toolCallId": made["toolCallId"]},
            )
        assert (await talk.answer_to(2))["result"] == (await talk.answer_to(3))["result"] == {}
        await talk.update("tool_call_update", status=won)
        await talk.update("state_update", state="idle", stopReason="end_turn")


@requirement("TOOL-V2-15")
async def test_with_a_question_open_the_call_ends_and_the_state_follows_the_turn() -> None:
    agent = Agent("cancels")
    go = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Ask", cancellable=True) as call:
            await call.request_permission()
        await go.wait()

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        made = await talk.update("tool_call_update", status="in_progress")
        asked = await talk.request("session/request_permission")
        await talk.call(2, "tool_call/cancel", sessionId=id, toolCallId=made["toolCallId"])
        await talk.update("tool_call_update", status="cancelled")
        assert "state_update idle" not in talk.story()
        go.set()
        await talk.update("state_update", state="idle", stopReason="end_turn")
        [taken_back] = [frame["params"] for frame in talk.seen if frame.get("method") == "$/cancel_request"]
        assert taken_back == {"requestId": asked["id"]}


async def test_one_of_two_calls_at_once_is_cancelled_and_the_other_is_not() -> None:
    agent = Agent("cancels")
    go = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async def one(title: str) -> None:
            async with turn.tool_call(title, cancellable=True):
                await go.wait()

        async with asyncio.TaskGroup() as group:
            group.create_task(one("a"))
            group.create_task(one("b"))

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        first = await talk.update("tool_call_update", title="a")
        second = await talk.update("tool_call_update", title="b")
        await talk.call(2, "tool_call/cancel", sessionId=id, toolCallId=first["toolCallId"])
        await talk.update("tool_call_update", toolCallId=first["toolCallId"], status="cancelled")
        go.set()
        await talk.update("tool_call_update", toolCallId=second["toolCallId"], status="completed")
        await talk.update("state_update", state="idle", stopReason="end_turn")


@pytest.mark.parametrize("which", ["outer", "inner", "both"])
async def test_of_two_calls_inside_each_other_the_right_one_ends(which: str) -> None:
    agent = Agent("cancels")
    after: list[str] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("outer", cancellable=True):
            async with turn.tool_call("inner", cancellable=True):
                await asleep()
            after.append("inner")
        after.append("outer")
        await asyncio.sleep(0)

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        calls = {
            name: (await talk.update("tool_call_update", title=name))["toolCallId"]
            for name in ("outer", "inner")
        }
        for name in ("outer", "inner") if which == "both" else (which,):
            talk.send(id=name, method="tool_call/cancel", params={"sessionId": id, "toolCallId": calls[name]})
        await talk.update("state_update", state="idle", stopReason="end_turn")
        ends = {update["toolCallId"]: update["status"] for update in tool_updates(talk)}
        assert ends == {
            calls["outer"]: "completed" if which == "inner" else "cancelled",
            calls["inner"]: "failed" if which == "outer" else "cancelled",
        }
        assert after == (["inner", "outer"] if which == "inner" else ["outer"])


async def test_a_cancel_of_the_turn_is_not_mistaken_for_one_of_the_call() -> None:
    agent = Agent("cancels")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Call", cancellable=True):
            await asleep()
        raise AssertionError("the turn went on")

    async with session(agent) as (talk, id):
        for both in (False, True):
            talk.prompt(f"p{both}", id, "go")
            made = await talk.update("tool_call_update", status="in_progress")
            if both:
                params = {"sessionId": id, "toolCallId": made["toolCallId"]}
                talk.send(id="cancel", method="tool_call/cancel", params=params)
            talk.send(method="session/cancel", params={"sessionId": id})
            await talk.update("tool_call_update", status="cancelled" if both else "failed")
            await talk.update("state_update", state="idle", stopReason="cancelled")


async def test_background_work_is_cancelled_alone() -> None:
    agent = Agent("cancels")
    started = asyncio.Event()

    async def long(call: ToolCallWriter) -> None:
        started.set()
        await asleep()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.session.background("Index", long, cancellable=True)
        await turn.session.background("Other", long)

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        made = await talk.update("tool_call_update", title="Index", capabilities=CANCEL)
        other = await talk.update("tool_call_update", title="Other")
        await talk.update("state_update", state="idle", stopReason="end_turn")
        await started.wait()
        await refused(talk, "tool_call/cancel", id, other["toolCallId"])
        await talk.call(2, "tool_call/cancel", sessionId=id, toolCallId=made["toolCallId"])
        await talk.update("tool_call_update", toolCallId=made["toolCallId"], status="cancelled")
        left = await talk.update("state_update", state="idle")
        assert [work["toolCallId"] for work in left["background"]] == [other["toolCallId"]]


async def test_background_work_that_is_cancelled_before_it_begins_ends_too() -> None:
    agent = Agent("cancels")
    ran: list[str] = []

    async def long(call: ToolCallWriter) -> None:
        ran.append("no")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        id = await turn.session.background("Index", long, cancellable=True)
        turn.session._worker.cancel_calls[id]()

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("tool_call_update", status="cancelled")
        assert ran == []


@requirement("TOOL-V2-11")
async def test_after_a_crash_nothing_is_offered_any_more() -> None:
    store = MemoryStore()

    def made(work: Any) -> Agent:
        agent = Agent("cancels", store=store)
        agent.on_prompt(work)
        return agent

    async def call(turn: AgentTurn) -> None:
        async with turn.tool_call("Call", cancellable=True):
            await asleep()

    agent = made(call)
    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("tool_call_update", status="in_progress")
        found = agent.find(id)
        assert found is not None
        [cut] = [body.update for body in found.fold.interrupt() if hasattr(body.update, "tool_call_id")]
        assert (cut.status, cut.capabilities) == ("failed", None)
        talk.send(method="session/cancel", params={"sessionId": id})
        await talk.update("state_update", state="idle")


# --- terminals -------------------------------------------------------------------------------------------


@requirement("TERMV2-11", "TERMV2-12")
async def test_a_terminal_is_cancelled_and_its_call_is_not() -> None:
    agent = Agent("cancels")
    codes: list[int] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Run") as call:
            codes.append(await call.run(["/bin/sh", "-c", "echo on; sleep 1000"], cancellable=True))
            await call.write("after")

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        shown = await talk.update("terminal_update", capabilities=CANCEL)
        terminal = shown["terminalId"]
        chunk = await talk.update("terminal_output_chunk", terminalId=terminal)
        assert b64decode(chunk["data"]) == b"on\n"
        assert await talk.call(2, "terminal/cancel", sessionId=id, terminalId=terminal) == {}
        ended = await talk.update("terminal_update", terminalId=terminal)
        assert (ended["exitStatus"], ended["capabilities"]) == ({"signal": "SIGTERM"}, None)
        await talk.update("tool_call_content_chunk")
        await talk.update("tool_call_update", status="completed")
        await talk.update("state_update", state="idle", stopReason="end_turn")
        await refused(talk, "terminal/cancel", id, terminal)
    assert codes == [-signal.SIGTERM]


@requirement("TERMV2-11")
async def test_what_is_unknown_exited_or_not_offered_is_the_clients_mistake() -> None:
    agent = Agent("cancels")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Run") as call:
            await call.run(["true"], cancellable=True)
            await call.run(["sleep", "1000"])

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        done = await talk.update("terminal_update", exitStatus={"exitCode": 0})
        plain = await talk.update("terminal_update", command="sleep 1000")
        assert "capabilities" not in plain
        for terminal in ("unknown", done["terminalId"], plain["terminalId"]):
            await refused(talk, "terminal/cancel", id, terminal)
        talk.send(method="session/cancel", params={"sessionId": id})
        ended = await talk.update("terminal_update", exitStatus={"signal": "SIGKILL"})
        assert "capabilities" not in ended
        await talk.update("state_update", state="idle", stopReason="cancelled")


async def test_a_command_that_does_not_start_offers_nothing_that_stays() -> None:
    agent = Agent("cancels")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Run") as call:
            await call.run(["/nowhere/at/all"], cancellable=True)

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        ended = await talk.update("terminal_update", exitStatus={"exitCode": 127})
        assert ended["capabilities"] is None
        await talk.update("tool_call_update", status="failed")
        await refused(talk, "terminal/cancel", id, ended["terminalId"])


@requirement("TERMV2-07")
async def test_a_command_may_have_a_terminal_of_a_size(tmp_path: Path) -> None:
    agent = Agent("sizes")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Run") as call:
            for size in ((0, 1), (1, 70000)):
                with pytest.raises(LocalError, match="65535"):
                    await call.run(["touch", os.fspath(tmp_path / "ran")], size=size)
            await call.run(["stty", "-F", "/dev/stdout", "size"], size=(100, 30))

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("terminal_update", size={"cols": 100, "rows": 30})
        chunk = await talk.update("terminal_output_chunk")
        assert b64decode(chunk["data"]) == b"30 100\r\n"
        await talk.update("state_update", state="idle", stopReason="end_turn")
    assert not (tmp_path / "ran").exists()


# --- pauses ----------------------------------------------------------------------------------------------


@requirement("TOOL-V2-07", "TOOL-V2-08")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_call_pauses_and_goes_on(version: int) -> None:
    agent = Agent("pauses")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Call") as call:
            await call.pause()
            await call.resume()
            await call.pause()
        for act in (call.pause, call.resume):
            with pytest.raises(LocalError, match="ended"):
                await act()

    async with session(agent, version) as (talk, id):
        talk.prompt(1, id, "go")
        if version == 1:
            await talk.answer_to(1)
        else:
            await talk.update("state_update", state="idle", stopReason="end_turn")
        updates = [
            frame["params"]["update"]
            for frame in talk.seen
            if "tool_call" in frame.get("params", {}).get("update", {}).get("sessionUpdate", "")
        ]
        statuses = [update["status"] for update in updates]
        paused = "in_progress" if version == 1 else "paused"
        assert statuses == ["in_progress", paused, "in_progress", paused, "completed"]


@requirement("PROMPT-V2-25")
async def test_a_call_that_pauses_does_not_run_while_another_waits_for_an_answer() -> None:
    agent = Agent("pauses")
    go = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Paused") as paused, turn.tool_call("Asks") as asks:
            await paused.pause()
            asking = asyncio.ensure_future(asks.request_permission())
            await go.wait()
            await paused.resume()
            await asking

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("state_update", state="requires_action")
        [asked] = [frame for frame in talk.seen if frame.get("method") == "session/request_permission"]
        go.set()
        await talk.update("tool_call_update", status="in_progress")
        await talk.update("state_update", state="running")
        talk.send(id=asked["id"], result={"outcome": {"outcome": "cancelled"}})
        await talk.update("state_update", state="idle", stopReason="end_turn")
