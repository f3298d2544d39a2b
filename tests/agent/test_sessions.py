"""Sessions of an agent: many clients, joining and leaving, the queue, and coming back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from examples import background_agent, first_words_agent

from antiphon.agent import Agent, AgentTurn
from antiphon.errors import StoreFull
from antiphon.schema import v2
from antiphon.stores import SQLiteStore
from antiphon.stores.memory import MemoryStore
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement


class Stepwise:
    """An agent whose turns say a word each time they are let go on, and take in what steers them."""

    def __init__(self, **options: Any) -> None:
        self.agent = Agent("stepwise", version="1", **options)
        self.step = asyncio.Semaphore(0)
        self.opened: list[str] = []
        self.agent.on_prompt(self.work)

    async def work(self, turn: AgentTurn) -> None:
        self.opened.append(turn.prompt.text)
        async with turn.message() as message:
            await message.write(f"{turn.prompt.text}:")
            while True:
                await self.step.acquire()
                for steering in turn.steered():
                    self.opened.append(f"+{steering.text}")
                    await message.write(f"[{steering.text}]")
                    break
                else:
                    break


async def idle(talk: Talk, **fields: Any) -> dict[str, Any]:
    return await talk.update("state_update", state="idle", **fields)


async def test_two_clients_of_two_versions_see_one_session_in_one_order() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (new, id), client(stepwise.agent, 1) as old:
        await old.call("load", "session/load", sessionId=id, cwd="/", mcpServers=[])
        new.prompt(1, id, "from v2")
        await new.update("agent_message_chunk")
        await old.update("user_message_chunk")
        await old.update("agent_message_chunk")
        stepwise.step.release()
        await idle(new)
        old.prompt(1, id, "from v1")
        await new.update("user_message")
        await new.update("agent_message_chunk")
        stepwise.step.release()
        assert (await old.answer_to(1))["result"] == {"stopReason": "end_turn"}
        await idle(new)
        assert new.text() == old.text() == "from v2:from v1:"
        assert old.text("user_message_chunk") == "from v2", "its own prompt is not echoed (PROMPT-V1-22)"


@requirement("SESS-13", "SESS-18", "SESS-21")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_joined_in_the_middle_of_a_turn_is_replayed_and_followed(
    version: int,
) -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (first, id):
        first.prompt(1, id, "one")
        stepwise.step.release()
        await idle(first)
        first.prompt(2, id, "two")
        await first.update("agent_message_chunk")
        async with client(stepwise.agent, version) as late:
            if version == 2:
                params = {"replayFrom": {"type": "start"}}
                await late.call("join", "session/resume", sessionId=id, cwd="/", **params)
                assert late.story()[1:] == [
                    "user_message", "agent_message", "user_message", "agent_message",
                    "state_update running", "= join",
                ]  # fmt: skip
            else:
                await late.call("join", "session/load", sessionId=id, cwd="/", mcpServers=[])
                assert late.story()[1:] == [
                    "user_message_chunk", "agent_message_chunk", "user_message_chunk", "agent_message_chunk",
                    "= join",
                ]  # fmt: skip
            late.send(method="session/cancel", params={"sessionId": id})
            await idle(first, stopReason="cancelled")
            if version == 2:
                await idle(late, stopReason="cancelled")


@requirement("SESS-15", "SESS-17")
async def test_a_resume_without_a_replay_sends_no_history_but_the_state() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (first, id):
        first.prompt(1, id, "one")
        stepwise.step.release()
        await idle(first)
        async with client(stepwise.agent) as late:
            await late.call("join", "session/resume", sessionId=id, cwd="/")
            assert late.story()[1:] == ["state_update idle", "= join"]
        async with client(stepwise.agent, 1) as late:
            await late.call("join", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            assert late.story()[1:] == ["= join"]


@requirement("SESS-19")
async def test_an_unknown_cursor_is_refused() -> None:
    async with session(Stepwise().agent) as (talk, id):
        params = {"sessionId": id, "cwd": "/", "replayFrom": {"type": "_mine"}}
        talk.send(id=1, method="session/resume", params=params)
        assert (await talk.answer_to(1))["error"]["code"] == -32602


async def test_a_question_waits_for_whoever_comes_and_its_first_answer_counts() -> None:
    agent = Agent("asking")
    allowed: list[bool] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Act") as call:
            allowed.append(await call.request_permission())

    async with client(agent) as gone:
        id = (await gone.call("new", "session/new", cwd="/"))["sessionId"]
        gone.prompt(1, id, "x")
        await gone.request("session/request_permission")
    async with client(agent) as one, client(agent, 1) as two:
        await one.call("join", "session/resume", sessionId=id, cwd="/")
        await two.call("join", "session/load", sessionId=id, cwd="/", mcpServers=[])
        asked = [await talk.request("session/request_permission") for talk in (one, two)]
        answer = {"outcome": {"outcome": "selected", "optionId": "allow"}}
        one.send(id=asked[0]["id"], result=answer)
        taken_back = await two.request("$/cancel_request")
        assert taken_back["params"] == {"requestId": asked[1]["id"]}
        await idle(one)
        assert allowed == [True]


@requirement("QUEUE-05")
@pytest.mark.parametrize("version", [1, 2])
async def test_an_agent_greets_whoever_opens_a_session_before_any_prompt(version: int) -> None:
    agent = Agent("first")
    agent.on_session(first_words_agent.greet)
    agent.on_prompt(first_words_agent.answer)
    async with session(agent, version) as (talk, id):
        await talk.update("agent_message" if version == 2 else "agent_message_chunk")
        assert "Good morning" in str(talk.seen)
        talk.prompt(1, id, "x")
        await talk.answer_to(1)
        if version == 2:
            await talk.update("user_message")


@requirement("PROMPT-V2-27", "QUEUE-05")
async def test_an_agent_may_speak_first() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        found = stepwise.agent.find(id)
        assert found is not None
        async with found.turn() as turn:
            await turn.say("Good morning.")
        await idle(talk, stopReason="end_turn")
        assert talk.story()[2:] == ["state_update running", "agent_message", "state_update idle"]


@requirement("SESS-31", "SESS-33", "SESS-38", "SESS-42")
async def test_list_close_and_delete() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        await talk.call("other", "session/new", cwd="/tmp")
        listed = await talk.call("list", "session/list", cwd="/")
        assert [info["sessionId"] for info in listed["sessions"]] == [id]
        assert await talk.call("none", "session/list", cwd="/nowhere") == {"sessions": []}
        talk.prompt(1, id, "one")
        await talk.update("agent_message_chunk")
        assert await talk.call("close", "session/close", sessionId=id) == {}
        assert talk.story()[-2:] == ["state_update idle", "= close"]  # SESS-40
        talk.prompt(2, id, "late")
        assert (await talk.answer_to(2))["error"]["code"] == -32002
        assert await talk.call("again", "session/close", sessionId=id) == {}  # C-18
        assert await talk.call("delete", "session/delete", sessionId=id) == {}
        assert await talk.call("gone", "session/list", cwd="/") == {"sessions": []}


async def test_a_session_comes_back_after_a_restart_with_its_ids_and_a_cut_turn_as_interrupted(
    tmp_path: Path,
) -> None:
    before = Stepwise(store=SQLiteStore(tmp_path / "s.db"))
    async with before.agent.serving(), client(before.agent) as talk:
        id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
        talk.prompt(1, id, "one")
        message = (await talk.answer_to(1))["result"]["messageId"]
        await talk.update("agent_message_chunk")
    after = Stepwise(store=SQLiteStore(tmp_path / "s.db"))
    async with after.agent.serving(), client(after.agent) as talk:
        await talk.call("join", "session/resume", sessionId=id, cwd="/", replayFrom={"type": "start"})
        state = next(
            f["params"]["update"] for f in talk.seen if "state" in f.get("params", {}).get("update", {})
        )
        user = next(f["params"]["update"] for f in talk.seen if "update" in f.get("params", {}))
        assert user["messageId"] == message  # SESS-22
        assert (state["state"], state["stopReason"]) == ("idle", "error")
        assert state["error"]["data"] == {"reason": "interrupted"}


@requirement("PROMPT-V2-40", "PROMPT-V2-45", "PROMPT-V2-46")
async def test_background_work_outlives_turn_and_cancel() -> None:
    agent = Agent("behind")
    release = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async def timer(call: Any) -> None:
            await release.wait()
            await call.write("rang")

        await turn.session.background("Timer", timer)
        await asyncio.Event().wait()

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        started = await talk.update("tool_call_update", status="in_progress")
        listed = [{"type": "tool_call", "toolCallId": started["toolCallId"]}]
        assert (await talk.update("state_update", state="running"))["background"] == listed
        talk.send(method="session/cancel", params={"sessionId": id})
        assert (await idle(talk, stopReason="cancelled"))["background"] == listed
        release.set()
        await talk.update("tool_call_content_chunk")
        await talk.update("tool_call_update", status="completed")
        assert (await talk.update("state_update"))["background"] == []
        ended = [line for line in talk.story() if line == "state_update idle"]
        assert len(ended) == 2, "the second idle is a snapshot, not another end"


@requirement("SESS-39")
async def test_closing_a_session_ends_its_background_work() -> None:
    agent = Agent("behind")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.session.background("Forever", lambda call: asyncio.Event().wait())  # type: ignore[arg-type]

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        await idle(talk)
        await talk.call("close", "session/close", sessionId=id)
        updates = [frame["params"]["update"] for frame in talk.seen if "update" in frame.get("params", {})]
        assert [u["status"] for u in updates if "status" in u] == ["in_progress", "cancelled"]


async def test_a_command_runs_and_its_output_is_a_terminal_in_v2_and_text_in_v1() -> None:
    agent = Agent("running")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("echo", kind="execute") as call:
            await call.run(["sh", "-c", "printf 'h\\303\\251llo'; exit 3"])

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        await talk.update("terminal_output_chunk")
        assert (await talk.update("terminal_update"))["exitStatus"] == {"exitCode": 3}
        await talk.update("tool_call_update", status="failed")
    async with session(agent, 1) as (talk, id):
        talk.prompt(1, id, "x")
        await talk.answer_to(1)
        shown = [frame for frame in talk.seen if "h\u00e9llo" in str(frame)]
        assert shown


async def test_a_cancel_kills_the_command_that_runs() -> None:
    agent = Agent("running")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("sleep", kind="execute") as call:
            await call.run(["sh", "-c", "echo $$; sleep 600"])

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        await talk.update("terminal_output_chunk")
        talk.send(method="session/cancel", params={"sessionId": id})
        assert (await talk.update("terminal_update"))["exitStatus"] == {"signal": "SIGKILL"}
        await idle(talk, stopReason="cancelled")


async def test_an_agent_serves_several_clients_over_websocket() -> None:
    from antiphon.remote.websocket_server import websocket_server
    from antiphon.transports.base import Inbox
    from antiphon.transports.websocket import connect_websocket

    stepwise = Stepwise()
    async with stepwise.agent.serving(), websocket_server(stepwise.agent.serve) as server:
        for version in (1, 2):
            transport = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp")
            inbox = Inbox(transport)
            info = {"info": {"name": "x", "version": "1"}}
            frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
            transport.send(json.dumps({**frame, "params": {"protocolVersion": version, **info}}).encode())
            [answer] = await inbox.take()
            assert isinstance(answer, bytes)
            assert json.loads(answer)["result"]["protocolVersion"] == version
            await transport.aclose()


async def test_a_session_that_another_process_has_open_is_refused_with_a_reason(tmp_path: Path) -> None:
    one = Stepwise(store=SQLiteStore(tmp_path / "s.db"))
    other = Stepwise(store=SQLiteStore(tmp_path / "s.db"))
    async with (
        one.agent.serving(),
        other.agent.serving(),
        session(one.agent) as (_, id),
        client(other.agent) as talk,
    ):
        talk.send(id=1, method="session/resume", params={"sessionId": id, "cwd": "/"})
        error = (await talk.answer_to(1))["error"]
        assert error["message"] == "The session is open in another process"


@pytest.mark.parametrize("version", [1, 2])
async def test_the_background_example_reports_after_its_turn(version: int) -> None:
    agent = Agent("background")
    agent.on_prompt(background_agent.start)
    async with session(agent, version) as (talk, id):
        talk.prompt(1, id, "x")
        await talk.answer_to(1)
        await talk.update("tool_call_update", status="completed")
        assert "build step 3 of 3" in str(talk.seen)


class Full(MemoryStore):
    """A store that runs out of room."""

    full = False

    async def append(self, *arguments: Any, **options: Any) -> None:
        if self.full:
            raise StoreFull("no room")
        await super().append(*arguments, **options)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_store_that_fails_ends_the_turn_and_the_session_can_be_opened_again(version: int) -> None:
    store = Full()
    agent = Agent("full", version="1.0", store=store)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        store.full = turn.prompt.text == "fill"
        async with turn.message() as message:
            await message.write("hello")

    async with session(agent, version) as (talk, id):
        talk.prompt(1, id, "fill")
        if version == 1:
            error = (await talk.answer_to(1))["error"]
        else:
            error = (await talk.update("state_update", state="idle"))["error"]
        assert error["data"] == {"reason": "store"}
        assert talk.text() == "", "what was not kept is not shown"
        talk.prompt(2, id, "again")
        assert (await talk.answer_to(2))["error"]["code"] == -32002
        store.full = False
        start = {} if version == 1 else {"replayFrom": {"type": "start"}}
        method = "session/load" if version == 1 else "session/resume"
        await talk.call("again", method, sessionId=id, cwd="/", mcpServers=[], **start)
        talk.prompt(3, id, "go on")
        await talk.update("agent_message_chunk")


async def test_a_tool_call_of_a_turn_that_was_cut_does_not_run_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    agent = Agent("cut", version="1.0", store=SQLiteStore(path))
    called = asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        call = v2.SessionToolCallUpdate(
            tool_call_id=v2.ToolCallId("call"), title="Long", status=v2.ToolCallStatus.IN_PROGRESS
        )
        await turn.session.update(call)
        called.set()
        await asyncio.Event().wait()

    async with agent.serving(), session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await called.wait()
    again = Agent("cut", version="1.0", store=SQLiteStore(path))
    async with again.serving(), client(again) as talk:
        start = {"type": "start"}
        await talk.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[], replayFrom=start)
        shown = [f["params"]["update"] for f in talk.seen if "params" in f]
        calls = [update["status"] for update in shown if update["sessionUpdate"] == "tool_call_update"]
        assert calls[-1] == "failed"
        assert shown[-1]["state"] == "idle"


async def test_a_resume_that_is_overtaken_by_another_is_answered_too() -> None:
    agent = Agent("long", version="1.0")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        for _ in range(200):
            await turn.say("x" * 10_000)

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("state_update", state="idle")
        start = {"sessionId": id, "cwd": "/", "mcpServers": [], "replayFrom": {"type": "start"}}
        for n in range(5):
            talk.send(id=f"r{n}", method="session/resume", params=start)
        for n in range(5):
            answered = await talk.answer_to(f"r{n}")
            assert "result" in answered or answered["error"]["code"] == -32603
        assert "result" in await talk.answer_to("r4")


async def test_a_session_that_is_open_in_another_process_is_not_deleted(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    one, other = (Stepwise(store=SQLiteStore(path)) for _ in range(2))
    async with one.agent.serving(), other.agent.serving(), session(one.agent) as (talk, id):
        async with client(other.agent) as intruder:
            intruder.send(id="d", method="session/delete", params={"sessionId": id})
            assert (await intruder.answer_to("d"))["error"]["code"] == -32603
        talk.prompt(1, id, "go")
        await talk.update("state_update", state="running")
