"""An agent uses the files and terminals of its clients, where they are offered, and leaves none open."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon import CallFailed, LinkLost, LocalError
from antiphon.agent import Agent, AgentTurn, turn_client
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

ALL = {"clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}}
Work = Callable[[AgentTurn], Awaitable[Any]]


def working(work: Work) -> tuple[Agent, list[Any]]:
    """An agent whose turns do this, and what came of each."""
    agent, outcomes = Agent("reaches"), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        try:
            outcomes.append(await work(turn))
        except Exception as error:
            outcomes.append(error)

    return agent, outcomes


def fs_frames(talk: Talk) -> list[str]:
    return [
        frame["method"] for frame in talk.seen if frame.get("method", "").startswith(("fs/", "terminal/"))
    ]


# --- files -----------------------------------------------------------------------------------------------


@requirement("FS-01")
async def test_files_are_read_and_written_where_that_is_offered() -> None:
    async def work(turn: AgentTurn) -> Any:
        assert (turn.client.can_read, turn.client.can_write, turn.client.can_run) == (True, True, True)
        await turn.client.write("/f", "new")
        return await turn.client.read("/f"), await turn.client.read("/f", line=2, limit=3)

    agent, outcomes = working(work)
    async with session(agent, 1, **ALL) as (talk, id):
        talk.prompt(1, id, "go")
        asked = await talk.request("fs/write_text_file")
        assert asked["params"] == {"sessionId": id, "path": "/f", "content": "new"}
        talk.send(id=asked["id"], result=None)  # C-20
        for content in ("all", "part"):
            asked = await talk.request("fs/read_text_file")
            talk.send(id=asked["id"], result={"content": content})
        assert asked["params"] == {"sessionId": id, "path": "/f", "line": 2, "limit": 3}
        await talk.answer_to(1)
    assert outcomes == [("all", "part")]


@requirement("FS-01", "FS-05", "TERMV1-01")
@pytest.mark.parametrize(
    ("version", "initialize"),
    [
        (1, {}),
        (
            1,
            {
                "clientCapabilities": {
                    "fs": {"readTextFile": False, "writeTextFile": False},
                    "terminal": False,
                }
            },
        ),
        (1, {"clientCapabilities": {"fs": None, "terminal": None}}),
        (2, {}),
        (2, {**ALL, "capabilities": {"fs": {"readTextFile": True}, "terminal": True}}),
    ],
)
async def test_what_is_not_offered_is_not_asked_for(version: int, initialize: dict[str, Any]) -> None:
    async def work(turn: AgentTurn) -> Any:
        able = turn.client
        assert (able.can_read, able.can_write, able.can_run) == (False, False, False)
        for act in (able.read("/f"), able.write("/f", ""), able.terminal(["ls"]).__aenter__()):
            with pytest.raises(LocalError, match="lets its agent"):
                await act
        return "nothing"

    agent, outcomes = working(work)
    async with session(agent, version, **initialize) as (talk, id):
        talk.prompt(1, id, "go")
        await (talk.answer_to(1) if version == 1 else talk.update("state_update", state="idle"))
        assert fs_frames(talk) == []
    assert outcomes == ["nothing"]


@requirement("FS-01")
async def test_each_of_them_is_offered_by_itself() -> None:
    async def work(turn: AgentTurn) -> Any:
        with pytest.raises(LocalError):
            await turn.client.write("/f", "")
        return turn.client.can_read, turn.client.can_write, turn.client.can_run

    agent, outcomes = working(work)
    async with session(agent, 1, clientCapabilities={"fs": {"readTextFile": True}}) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.answer_to(1)
    assert outcomes == [(True, False, False)]


@requirement("RPC-43")
@pytest.mark.parametrize("path", ["f", "./f", "~/f", ""])
async def test_a_path_that_is_not_absolute_is_the_agents_mistake(path: str) -> None:
    async def work(turn: AgentTurn) -> Any:
        able = turn.client
        for act in (
            able.read(path), able.write(path, ""), able.terminal(["ls"], cwd=path).__aenter__(),
        ):  # fmt: skip
            with pytest.raises(LocalError, match="absolute"):
                await act
        for command in ([], "ls"):
            with pytest.raises(LocalError, match="command"):
                await able.terminal(command).__aenter__()

    agent, outcomes = working(work)
    async with session(agent, 1, **ALL) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.answer_to(1)
        assert fs_frames(talk) == []
    assert outcomes == [None]


async def test_what_a_client_refuses_or_answers_badly_is_raised() -> None:
    async def work(turn: AgentTurn) -> Any:
        codes = []
        for _ in range(2):
            try:
                await turn.client.read("/f")
            except CallFailed as error:
                codes.append(error.error.code)
            except Exception as error:
                codes.append(type(error).__name__)
        return codes

    agent, outcomes = working(work)
    async with session(agent, 1, **ALL) as (talk, id):
        talk.prompt(1, id, "go")
        asked = await talk.request("fs/read_text_file")
        talk.send(id=asked["id"], error={"code": -32002, "message": "Resource not found"})
        asked = await talk.request("fs/read_text_file")
        talk.send(id=asked["id"], result={"text": "no content"})
        await talk.answer_to(1)
    assert outcomes == [[-32002, "InvalidResult"]]


async def test_a_turn_that_is_cancelled_takes_its_question_back() -> None:
    async def work(turn: AgentTurn) -> Any:
        return await turn.client.read("/f")

    agent, _ = working(work)
    async with session(agent, 1, **ALL) as (talk, id):
        talk.prompt(1, id, "go")
        asked = await talk.request("fs/read_text_file")
        talk.send(method="session/cancel", params={"sessionId": id})
        assert (await talk.request("$/cancel_request"))["params"] == {"requestId": asked["id"]}
        assert (await talk.answer_to(1))["result"]["stopReason"] == "cancelled"


# --- which client ----------------------------------------------------------------------------------------


async def test_the_client_that_prompted_is_asked_and_otherwise_the_first_that_can() -> None:
    async def work(turn: AgentTurn) -> Any:
        return await turn.client.read("/f")

    agent, outcomes = working(work)
    async with (
        client(agent, 2) as watching,
        client(agent, 1, **ALL) as first,
        client(agent, 1, **ALL) as second,
        session(agent, 1) as (unable, id),
    ):
        for talk, version in ((second, 1), (first, 1), (watching, 2)):
            method, more = ("session/load", {"mcpServers": []}) if version == 1 else ("session/resume", {})
            await talk.call("join", method, sessionId=id, cwd="/", **more)
        for number, (prompter, asked) in enumerate(
            [(first, first), (second, second), (unable, first), (watching, first)]
        ):
            prompter.prompt(f"p{number}", id, "go")
            question = await asked.request("fs/read_text_file")
            asked.send(id=question["id"], result={"content": str(number)})
            await prompter.answer_to(f"p{number}")
            await watching.update("state_update", state="idle")
        second.prompt("last", id, "go")
        question = await second.request("fs/read_text_file")
        await second.transport.aclose()
        await watching.update("state_update", state="idle")
        assert isinstance(outcomes.pop(), LinkLost)
        assert outcomes == ["0", "1", "2", "3"]


async def test_a_prompt_that_waited_is_still_the_prompters() -> None:
    gate = asyncio.Event()

    async def work(turn: AgentTurn) -> Any:
        if turn.prompt.text == "wait":
            await gate.wait()
            return "waited"
        return await turn.client.read("/f")

    agent, outcomes = working(work)
    async with client(agent, 1, **ALL) as second, session(agent, 1, **ALL) as (first, id):
        await second.call("join", "session/load", sessionId=id, cwd="/", mcpServers=[])
        first.prompt(1, id, "wait")
        second.prompt(2, id, "read")
        await second.call("list", "session/list")  # it has been heard
        gate.set()
        question = await second.request("fs/read_text_file")
        second.send(id=question["id"], result={"content": "mine"})
        await second.answer_to(2)
    assert outcomes == ["waited", "mine"]


async def test_a_turn_that_the_agent_opens_asks_the_first_that_can() -> None:
    agent = Agent("reaches")
    async with session(agent, 1, **ALL) as (talk, id):
        found = agent.find(id)
        assert found is not None

        async def work() -> str:
            async with found.turn() as turn:
                return await turn.client.read("/f")

        reading = asyncio.ensure_future(work())
        question = await talk.request("fs/read_text_file")
        talk.send(id=question["id"], result={"content": "x"})
        assert await reading == "x"
    async with agent.serving():
        pass


# --- terminals -------------------------------------------------------------------------------------------


async def answer(talk: Talk, method: str, **result: Any) -> dict[str, Any]:
    asked = await talk.request(method)
    talk.send(id=asked["id"], result=result)
    return asked["params"]


@requirement("TERMV1-01", "TERMV1-07")
async def test_a_terminal_is_used_and_released() -> None:
    async def work(turn: AgentTurn) -> Any:
        opened = turn.client.terminal(["make", "-k"], cwd="/w", env={"A": "1"}, output_limit=100)
        async with opened as terminal:
            early = await terminal.output()
            await terminal.kill()
            status = await terminal.wait()
            late = await terminal.output()
        with pytest.raises(LocalError, match="released"):
            await terminal.output()
        await terminal.release()
        return early.text, early.exit_status, status.signal, late.truncated, late.exit_status.signal

    agent, outcomes = working(work)
    async with session(agent, 1, **ALL) as (talk, id):
        talk.prompt(1, id, "go")
        assert await answer(talk, "terminal/create", terminalId="T") == {
            "sessionId": id, "command": "make", "args": ["-k"], "env": [{"name": "A", "value": "1"}],
            "cwd": "/w", "outputByteLimit": 100,
        }  # fmt: skip
        named = {"sessionId": id, "terminalId": "T"}
        assert await answer(talk, "terminal/output", output="a", truncated=False) == named
        assert await answer(talk, "terminal/kill") == named
        assert await answer(talk, "terminal/wait_for_exit", exitCode=None, signal="SIGTERM") == named
        await answer(talk, "terminal/output", output="b", truncated=True, exitStatus={"signal": "SIGTERM"})
        assert await answer(talk, "terminal/release") == named
        await talk.answer_to(1)
        assert fs_frames(talk).count("terminal/release") == 1
    assert outcomes == [("a", None, "SIGTERM", True, "SIGTERM")]


@requirement("TERMV1-07")
@pytest.mark.parametrize("how", ["error", "cancel", "refused", "cancel while creating"])
async def test_however_it_ends_it_is_released(how: str) -> None:
    async def work(turn: AgentTurn) -> Any:
        async with turn.client.terminal(["ls"]) as terminal:
            if how == "error":
                raise ValueError
            await terminal.wait()

    agent, _ = working(work)
    async with session(agent, 1, **ALL) as (talk, id):
        talk.prompt(1, id, "go")
        create = await talk.request("terminal/create")
        if how == "cancel while creating":
            talk.send(method="session/cancel", params={"sessionId": id})
            assert (await talk.answer_to(1))["result"]["stopReason"] == "cancelled"
        talk.send(id=create["id"], result={"terminalId": "T"})
        if how in ("cancel", "refused"):
            waiting = await talk.request("terminal/wait_for_exit")
            if how == "cancel":
                talk.send(method="session/cancel", params={"sessionId": id})
            else:
                talk.send(id=waiting["id"], error={"code": -32603, "message": "No"})
        release = await talk.request("terminal/release")
        assert release["params"] == {"sessionId": id, "terminalId": "T"}
        talk.send(id=release["id"], error={"code": -32603, "message": "No"})
        if how != "cancel while creating":
            await talk.answer_to(1)


async def test_a_terminal_that_cannot_be_made_is_not_released() -> None:
    async def work(turn: AgentTurn) -> Any:
        async with turn.client.terminal(["ls"]):
            raise AssertionError

    agent, outcomes = working(work)
    async with session(agent, 1, **ALL) as (talk, id):
        talk.prompt(1, id, "go")
        create = await talk.request("terminal/create")
        talk.send(id=create["id"], error={"code": -32603, "message": "No"})
        await talk.answer_to(1)
        assert fs_frames(talk) == ["terminal/create"]
    assert isinstance(outcomes[0], CallFailed)


@requirement("TOOL-V1-05")
async def test_the_client_shows_its_own_terminal_and_others_what_was_read_of_it() -> None:
    async def work(turn: AgentTurn) -> Any:
        async with (
            turn.tool_call("Make", kind="execute") as call,
            turn.client.terminal(["make", "all"], call=call) as terminal,
        ):
            await terminal.output()
            await terminal.output()
            await terminal.output()
            await terminal.wait()

    agent, outcomes = working(work)
    async with client(agent, 2) as watching, client(agent, 1) as old, session(agent, 1, **ALL) as (talk, id):
        await watching.call("join", "session/resume", sessionId=id, cwd="/")
        await old.call("join", "session/load", sessionId=id, cwd="/", mcpServers=[])
        talk.prompt(1, id, "go")
        await answer(talk, "terminal/create", terminalId="T")
        for output, truncated in (("one\n", False), ("one\ntwo\n", False), ("wo\nthree é\n", True)):
            await answer(talk, "terminal/output", output=output, truncated=truncated)
        await answer(talk, "terminal/wait_for_exit", exitCode=2)
        await answer(
            talk, "terminal/output", output="wo\nthree é\n", truncated=True, exitStatus={"exitCode": 2}
        )
        released = await talk.request("terminal/release")
        talk.send(id=released["id"], result={})
        await talk.answer_to(1)

        before = talk.seen[: talk.seen.index(released)]
        updates = [frame["params"]["update"] for frame in before if frame.get("method") == "session/update"]
        shown = [update["content"] for update in updates if update.get("content")]
        assert shown == [[{"type": "terminal", "terminalId": "T"}]], "before its release"
        everything = str([frame for frame in talk.seen if frame.get("method") == "session/update"])
        assert "two" not in everything

        made = await watching.update("terminal_update", command="make all", cwd="/")
        terminal_id = made["terminalId"]
        assert terminal_id != "T", "another client may have a T, too"
        item = await watching.update("tool_call_content_chunk")
        assert item["content"] == {"type": "terminal", "terminalId": terminal_id}
        chunks = [
            b64decode((await watching.update("terminal_output_chunk", terminalId=terminal_id))["data"])
            for _ in range(2)
        ]
        assert chunks == [b"one\n", b"two\n"]
        whole = await watching.update("terminal_update", terminalId=terminal_id)
        assert b64decode(whole["output"]["data"]).decode() == "wo\nthree é\n"
        await watching.update("terminal_update", terminalId=terminal_id, exitStatus={"exitCode": 2})

        await old.update("tool_call_update", status="completed")
        texts = [
            frame["params"]["update"].get("content")
            for frame in old.seen
            if "params" in frame and "update" in frame["params"]
        ]
        last = [content for content in texts if content][-1]
        assert last[0]["content"]["text"] == "$ make all\nwo\nthree é\n[exit code 2]"

        async with client(agent, 2) as late:
            await late.call("join", "session/resume", sessionId=id, cwd="/", replayFrom={"type": "start"})
            replayed = [
                frame["params"]["update"] for frame in late.seen if frame.get("method") == "session/update"
            ]
            [terminal] = [update for update in replayed if update["sessionUpdate"] == "terminal_update"]
            assert b64decode(terminal["output"]["data"]).decode() == "wo\nthree é\n"
            assert terminal["exitStatus"] == {"exitCode": 2}
    assert outcomes == [None]


@pytest.mark.parametrize("read", [True, False])
async def test_what_was_not_read_is_read_before_the_release(read: bool) -> None:
    async def work(turn: AgentTurn) -> Any:
        async with turn.tool_call("Make") as call, turn.client.terminal(["make"], call=call):
            pass

    agent, outcomes = working(work)
    async with client(agent, 2) as watching, session(agent, 1, **ALL) as (talk, id):
        await watching.call("join", "session/resume", sessionId=id, cwd="/")
        talk.prompt(1, id, "go")
        await answer(talk, "terminal/create", terminalId="T")
        asked = await talk.request("terminal/output")
        if read:
            talk.send(id=asked["id"], result={"output": "so far", "truncated": False})
            chunk = await watching.update("terminal_output_chunk")
            assert b64decode(chunk["data"]) == b"so far"
        else:
            talk.send(id=asked["id"], error={"code": -32603, "message": "No"})
        ended = await watching.update("terminal_update", exitStatus={})
        assert ended["terminalId"]
        await answer(talk, "terminal/release")
        await talk.answer_to(1)
    assert outcomes == [None]


async def test_a_client_that_does_not_answer_a_release_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(turn: AgentTurn) -> Any:
        async with turn.client.terminal(["make"]):
            pass

    monkeypatch.setattr(turn_client, "LAST_UPDATES", 0.05)
    agent, outcomes = working(work)
    async with session(agent, 1, **ALL) as (talk, id):
        talk.prompt(1, id, "go")
        await answer(talk, "terminal/create", terminalId="T")
        await talk.answer_to(1)
        assert fs_frames(talk) == ["terminal/create", "terminal/release"]
    assert outcomes == [None]


async def test_a_client_that_goes_away_with_its_terminal_ends_it() -> None:
    async def work(turn: AgentTurn) -> Any:
        async with turn.tool_call("Make") as call, turn.client.terminal(["make"], call=call) as terminal:
            await terminal.wait()

    agent, outcomes = working(work)
    async with client(agent, 2) as watching:
        async with session(agent, 1, **ALL) as (talk, id):
            await watching.call("join", "session/resume", sessionId=id, cwd="/")
            talk.prompt(1, id, "go")
            await answer(talk, "terminal/create", terminalId="T")
            await talk.request("terminal/wait_for_exit")
        await watching.update("terminal_update", exitStatus={})
        await watching.update("tool_call_update", status="failed")
        await watching.update("state_update", state="idle", stopReason="end_turn")
    assert isinstance(outcomes[0], LinkLost)
