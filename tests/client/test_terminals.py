"""Terminals that a v1 client offers: what runs in them, what the agent is shown, and that all of them end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Workspace, connect
from antiphon.client.workspace import workspace as settings
from antiphon.client.workspace.terminals import Output
from antiphon.schema import v1
from tests.client.asks import DIRECTORIES, TERMINAL, gone, offered, until
from tests.client.driving import DEADLINE, ByHand, opened
from tests.connection.scripted import V1_ANSWER
from tests.requirements.marks import requirement

# --- terminals -------------------------------------------------------------------------------------------


@requirement("TERMV1-02", "TERMV1-04", "TERMV1-05")
async def test_a_command_runs_and_is_shown(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    async with offered(tmp_path) as asks:
        terminal = await asks.run(
            "pwd; echo $A; echo oops >&2; cat; exit 3",
            cwd=str(tmp_path / "sub"),
            env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        )
        assert await asks("terminal/wait_for_exit", terminalId=terminal) == {"exitCode": 3}
        assert await asks("terminal/output", terminalId=terminal) == {
            "output": f"{tmp_path}/sub\n2\noops\n",
            "truncated": False,
            "exitStatus": {"exitCode": 3},
        }
        assert await asks("terminal/wait_for_exit", terminalId=terminal) == {"exitCode": 3}


@requirement("TERMV1-02", "TERMV1-04")
async def test_it_is_answered_before_the_command_ends(tmp_path: Path) -> None:
    async with offered(tmp_path) as asks:
        terminal = await asks.run("echo on; sleep 1000")
        shown = await asks.until(terminal, "on\n")
        assert shown == {"output": "on\n", "truncated": False}
        waiting = asks.begin("terminal/wait_for_exit", terminalId=terminal)
        assert await asks("terminal/kill", terminalId=terminal) == {}
        assert (await waiting)["result"] == {"signal": "SIGTERM"}


async def test_a_command_without_arguments_may_be_a_line_for_the_shell(tmp_path: Path) -> None:
    async with offered(tmp_path) as asks:
        for command, output in (("pwd", f"{tmp_path}\n"), ("echo a | tr a b; echo c", "b\nc\n")):
            terminal = (await asks("terminal/create", command=command))["terminalId"]
            assert (await asks("terminal/wait_for_exit", terminalId=terminal)) == {"exitCode": 0}
            assert (await asks("terminal/output", terminalId=terminal))["output"] == output


@requirement("TERMV1-03")
async def test_over_the_limit_the_start_is_dropped(tmp_path: Path) -> None:
    async with offered(tmp_path) as asks:
        terminal = await asks.run("printf 'aé€𝄞z'", outputByteLimit=7)
        await asks("terminal/wait_for_exit", terminalId=terminal)
        shown = await asks("terminal/output", terminalId=terminal)
        assert shown == {"output": "𝄞z", "truncated": True, "exitStatus": {"exitCode": 0}}
        terminal = await asks.run("printf x", outputByteLimit=0)
        await asks("terminal/wait_for_exit", terminalId=terminal)
        shown = await asks("terminal/output", terminalId=terminal)
        assert (shown["output"], shown["truncated"]) == ("", True)


@requirement("TERMV1-03")
@pytest.mark.parametrize("limit", range(12))
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_what_is_kept_is_whole_characters_within_the_limit(limit: int, size: int) -> None:
    text = "aé€𝄞" * 3 + "z"
    data = text.encode()
    output = Output(limit)
    for at in range(0, len(data), size):
        output.add(data[at : at + size])
    output.add(b"", last=True)
    assert output.truncated
    assert text.endswith(output.text)
    assert limit - 3 <= len(output.kept) <= limit
    assert len(text[-len(output.text) - 1 :].encode()) > limit, "no more would have fitted"


@requirement("TERMV1-03")
def test_bytes_that_are_no_text_count_as_what_stands_for_them() -> None:
    output = Output(10)
    output.add(b"\xff" * 5)
    output.add(b"\xf0\x9f", last=True)
    assert (output.text, output.truncated) == ("\ufffd" * 3, True)
    assert len(output.kept) <= 10


async def test_the_agent_s_limit_has_a_limit_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MOST_OUTPUT", 1000)
    async with offered(tmp_path) as asks:
        terminal = await asks.run("yes | head -c 100000", outputByteLimit=10**9)
        await asks("terminal/wait_for_exit", terminalId=terminal)
        shown = await asks("terminal/output", terminalId=terminal)
        assert (len(shown["output"]), shown["truncated"]) == (1000, True)


@requirement("TERMV1-06")
async def test_a_killed_command_is_still_there_and_a_released_one_is_not(tmp_path: Path) -> None:
    async with offered(tmp_path) as asks:
        terminal = await asks.run("sleep 1000 & echo $! $$; wait")
        shown = await asks.until(terminal, "\n")
        pids = [int(pid) for pid in shown["output"].split()]
        assert await asks("terminal/kill", terminalId=terminal) == {}
        assert all(map(gone, pids)), "the whole group"
        shown = await asks("terminal/output", terminalId=terminal)
        assert shown["exitStatus"] == {"signal": "SIGTERM"}
        assert await asks("terminal/kill", terminalId=terminal) == {}
        assert await asks("terminal/release", terminalId=terminal) == {}
        for name in TERMINAL[1:]:
            assert await asks(f"terminal/{name}", terminalId=terminal) == -32002


@requirement("TERMV1-06")
async def test_to_release_kills_and_whoever_waits_is_answered(tmp_path: Path) -> None:
    async with offered(tmp_path) as asks:
        terminal = await asks.run("trap '' TERM; echo $$; while :; do sleep 0.1; done")
        pid = int((await asks.until(terminal, "\n"))["output"])
        waiting = asks.begin("terminal/wait_for_exit", terminalId=terminal)
        assert await asks("terminal/release", terminalId=terminal) == {}
        assert (await waiting)["result"] == {"signal": "SIGKILL"}
        assert gone(pid)


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"command": "/nowhere/at/all", "args": ["x"]}, -32603),
        ({"command": "ls\0", "args": ["x"]}, -32603),
        ({"command": "ls", "args": ["x"], "env": [{"name": "A=B\0", "value": "x"}]}, -32603),
        ({"command": "ls", "cwd": "/"}, -32602),
        ({"command": "ls", "cwd": "sub"}, -32602),
        ({"command": "ls", "cwd": "{cwd}/none"}, -32002),
        ({"command": "ls", "cwd": "{cwd}/.."}, -32602),
        ({}, -32602),
        ({"command": ["ls"]}, -32602),
    ],
)
async def test_what_cannot_be_run_is_refused(tmp_path: Path, params: dict[str, Any], code: int) -> None:
    if "cwd" in params:
        params["cwd"] = params["cwd"].format(cwd=tmp_path)
    async with offered(tmp_path) as asks:
        assert await asks("terminal/create", **params) == code
        for name in TERMINAL[1:]:
            assert await asks(f"terminal/{name}", terminalId="none") == -32002


async def test_there_is_an_end_to_how_many_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MOST_TERMINALS", 2)
    async with offered(tmp_path) as asks:
        first = await asks.run("true")
        await asks.run("true")
        assert await asks("terminal/create", command="ls") == -32603
        await asks("terminal/release", terminalId=first)
        await asks.run("true")


@requirement("TERMV1-08")
async def test_what_was_run_is_shown_in_the_session_also_after_release(tmp_path: Path) -> None:
    async with offered(tmp_path) as asks:
        terminal = await asks.run("printf 'a\\377b'")
        content = [{"type": "terminal", "terminalId": terminal}]
        asks.agent.told("tool_call", toolCallId="t", title="Run", content=content)
        await asks("terminal/wait_for_exit", terminalId=terminal)
        await asks("terminal/release", terminalId=terminal)
        [shown] = asks.session.terminals
        assert (shown.id, shown.command, shown.cwd) == (
            terminal, "/bin/sh -c 'printf '\"'\"'a\\377b'\"'\"''", str(tmp_path)
        )  # fmt: skip
        assert (shown.output, shown.exit_status and shown.exit_status.exit_code) == (b"a\xffb", 0)
        [call] = asks.session.tool_calls
        assert [getattr(item, "terminal_id", None) for item in call.content] == [terminal]


async def test_however_much_is_written_only_so_much_is_told() -> None:
    class Watching:
        def __init__(self) -> None:
            self.bytes = 0
            self.last = b""
            self.ended = False

        def created(self, terminal_id: str, params: v1.CreateTerminalRequest) -> None: ...

        def wrote(self, terminal_id: str, data: bytes) -> None:
            self.bytes += len(data)

        def shows(self, terminal_id: str, output: bytes) -> None:
            self.bytes += len(output)
            self.last = output

        def exited(self, terminal_id: str, *, exit_code: int | None, signal: str | None) -> None:
            self.ended = True

    watching = Watching()
    session = Workspace().open("/", observer=watching)
    line = "yes | head -c 20000000; printf end"
    async with asyncio.timeout(DEADLINE):
        made = await session.serve(
            "terminal/create",
            v1.CreateTerminalRequest(session_id=v1.SessionId("s"), command=line, output_byte_limit=50_000),
        )
        await session.serve(
            "terminal/wait_for_exit",
            v1.WaitForTerminalExitRequest(session_id=v1.SessionId("s"), terminal_id=made.terminal_id),
        )
        await session.aclose()
    assert watching.ended
    assert len(watching.last) == 50_000
    assert watching.last.endswith(b"y\nend")
    assert watching.bytes < 20 * 50_000


# --- the end ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["session", "client", "link"])
async def test_nothing_runs_on_when_the_session_or_the_client_ends(tmp_path: Path, end: str) -> None:
    async with opened(1, DIRECTORIES, workspace=Workspace()) as (client, agent):
        new = asyncio.ensure_future(client.new_session(tmp_path))
        agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": "s"})
        session = await new
        line = "trap '' TERM HUP; sleep 1000 & echo $! $$ > pids; wait"
        await agent.request(1, "terminal/create", {"sessionId": "s", "command": line})
        await until(
            lambda: (
                len((tmp_path / "pids").read_text().split()) == 2 if (tmp_path / "pids").exists() else False
            )
        )
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert not any(map(gone, pids))
        if end == "session":
            closing = asyncio.ensure_future(session.close())
            agent.send(id=(await agent.expect("session/close"))["id"], result={})
            await closing
            answer = await agent.request(2, "terminal/create", {"sessionId": "s", "command": "ls"})
            assert answer["error"]["code"] == -32002
        elif end == "link":
            await agent.transport.aclose()
        if end != "client":
            await until(lambda: all(map(gone, pids)))
    await until(lambda: all(map(gone, pids)))


async def test_what_a_client_in_a_block_ran_is_gone_when_the_block_is(tmp_path: Path) -> None:
    class Agent:
        @asynccontextmanager
        async def serving(self) -> AsyncIterator[None]:
            yield

        async def serve(self, transport: Any) -> None:
            agent = ByHand(transport)
            agent.send(id=(await agent.expect("initialize"))["id"], result=V1_ANSWER)
            agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": "s"})
            line = "echo $$ > pid.new; mv pid.new pid; sleep 1000"
            await agent.request(1, "terminal/create", {"sessionId": "s", "command": line})
            await agent.inbox.take()

    async with asyncio.timeout(DEADLINE), connect(Agent(), version=1, workspace=Workspace()) as client:
        await client.new_session(tmp_path)
        await until((tmp_path / "pid").exists)
    assert gone(int((tmp_path / "pid").read_text()))


async def test_a_client_that_is_killed_leaves_nothing_running(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, signal, sys\n"
        "from antiphon.client import Workspace\n"
        "from antiphon.schema import v1\n"
        "async def main():\n"
        "    session = Workspace().open(sys.argv[1])\n"
        "    args = ['-c', 'echo $$; exec sleep 1000']\n"
        "    request = v1.CreateTerminalRequest(session_id='s', command='sh', args=args)\n"
        "    made = await session.serve('terminal/create', request)\n"
        "    look = v1.TerminalOutputRequest(session_id='s', terminal_id=made.terminal_id)\n"
        "    while not (shown := (await session.serve('terminal/output', look)).output.strip()):\n"
        "        await asyncio.sleep(0.01)\n"
        "    print(shown, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, os.fspath(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
    await until(lambda: gone(int(output)))


async def test_a_session_has_the_very_bytes_of_a_terminal(tmp_path: Path) -> None:
    async with offered(tmp_path) as asks:
        terminal = await asks.run("printf '" + r"\377\n" * 100 + "'")
        await asks("terminal/wait_for_exit", terminalId=terminal)
        [shown] = asks.session.terminals
        assert shown.output == b"\xff\n" * 100
