"""A hub is started as a newcomer starts it, and what it prints is done to the letter; and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from antiphon.client import ProcessOptions, connect
from antiphon.hub import HubFolder
from tests import warm
from tests.cli.command import Terminal, ended
from tests.hub.running import AGENT, ANTIPHON, DEADLINE, ROOT, left_by, served

SCRIPT = Path(sys.executable).with_name("antiphon")


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return warm.run(arguments, timeout=DEADLINE, env={**os.environ, **env})


def recipe(target: str) -> str:
    """What the Makefile runs for a target."""
    found = re.search(rf"^{target}:.*\n\t@(.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    return re.sub(r"\$\(if .*?\)(?=$| )", "", found[1]).strip()


@contextmanager
def in_front(command: list[str], data: Path) -> Iterator[Terminal]:
    """A hub in a terminal, ended with Ctrl-C."""
    with Terminal(command, columns=120, XDG_DATA_HOME=str(data)) as terminal:
        terminal.wait_for("Antiphon hub")
        yield terminal
        terminal.type("\x03")
        assert terminal.wait() == 0
    assert left_by(data / "antiphon") == []


@pytest.mark.skipif(not SCRIPT.exists(), reason="antiphon is not installed beside this Python")
async def test_make_run_says_what_to_do_next_and_that_works(tmp_path: Path) -> None:
    """Two terminals with the printed command: the same turn, live in both. Then the editor's."""
    program, *rest = shlex.split(recipe("run"))
    assert program == "$(BIN)/antiphon"
    with in_front([str(SCRIPT), *rest], tmp_path) as hub:
        hub.wait_for("In another terminal:")
        attach = shlex.split(hub.wait_for(r"\n +(\S*antiphon attach) +…")[1])
        with (
            Terminal(attach, XDG_DATA_HOME=str(tmp_path)) as one,
            Terminal([*attach, "--name", "bob"], XDG_DATA_HOME=str(tmp_path), columns=100) as two,
        ):
            session = one.wait_for(r"sess_\w+")[0]
            if two.wait_for(r"sess_\w+")[0] != session:
                pytest.fail("the second terminal did not find the session of the first")
            one.wait_for("bob is here")
            one.type("plan\n")
            two.wait_for("> plan")
            for terminal in (one, two):
                terminal.wait_for("All three steps are done")
            two.type("run date\n")
            one.wait_for("bob> run date")
            one.wait_for("1 y  Allow")
            one.type("1\n")
            for terminal in (one, two):
                terminal.wait_for("It ended with code 0")
            two.type("\x04")
            assert two.wait() == 0
            one.wait_for("bob has left")
            one.type("\x03")
            assert one.wait() == 0
        editor = json.loads(hub.wait_for(r"\n +(\{.*\})\n")[1])["agent_servers"]["Antiphon"]
        assert editor["type"] == "custom"
        prompt = shlex.split(hub.wait_for(r"\n +(\S*antiphon prompt .*?)   ")[1])
        with Terminal(prompt, XDG_DATA_HOME=str(tmp_path)) as once:
            once.wait_for("All three steps are done")
            assert once.wait() == 0
        env = {"XDG_DATA_HOME": str(tmp_path)}
        async with connect([editor["command"], *editor["args"]], process=ProcessOptions(env=env)) as client:
            listed = [info.session_id async for info in client.list_sessions()]
            assert session in listed
            assert len(listed) == 2


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """The usual one gives way to another; one that was asked for does not."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8642))
            taken.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        with in_front([*ANTIPHON, "serve"], tmp_path) as hub:
            assert hub.wait_for(r"ws://127.0.0.1:(\d+)/acp")[1] != "8642"
        result = run("serve", "--port", "8642", "--data", str(tmp_path / "other"))
        assert result.returncode == 1
        assert result.stderr.startswith("antiphon: cannot listen at 127.0.0.1:8642: ")
        assert result.stderr.count("\n") == 1


def test_hubs_that_start_at_once_take_different_ports(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hubs = []
        for name in ("one", "two", "three"):
            command = [*ANTIPHON, "serve", "--data", str(tmp_path / name), "--", *AGENT]
            hubs.append(stack.enter_context(Terminal(command, columns=120)))
        ports = {hub.wait_for(r"ws://127.0.0.1:(\d+)/acp")[1] for hub in hubs}
        assert len(ports) == len(hubs)
        for hub in hubs:
            hub.type("\x03")
            assert hub.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (
            ["--agent", "nothing"],
            127,
            "there is no command 'nothing' on PATH, and no known agent of that name",
        ),
        (["--agent", "=sh"], 2, "'' is not a name for an agent"),
        (["--agent", "a/b=sh"], 2, "'a/b' is not a name for an agent"),
        (["--agent", "a=sh", "--agent", "a=sh"], 2, "two agents have the name 'a'"),
        (["--agent", "a=sh 'x"], 2, "cannot parse the command of 'a'"),
        (["--agent", "a= "], 2, "the command of 'a' is empty"),
        (["--agent", "a=no-such-agent"], 127, "there is no command 'no-such-agent'"),
        (["--", "no-such-agent"], 127, "there is no command 'no-such-agent'"),
        (["--acp-version", "3"], 2, "'3' is not 1, 2"),
        (["--acp-version", "b=1"], 2, "names b, but the agents are"),
        (["--port", "70000"], 2, "70000 is not in the range"),
        (["--ready-file", "/no/such/folder/f"], 2, "/no/such/folder of the ready file does not exist"),
        (["--data", __file__], 2, "is a file"),
        (["--data", "/proc/nothing"], 1, "cannot be made"),
        (["--"], 2, "there is no AGENT after --"),
    ],
)
def test_what_cannot_be_served_is_said(tmp_path: Path, arguments: list[str], code: int, told: str) -> None:
    before = [] if "--data" in arguments else ["--data", str(tmp_path)]
    result = run("serve", "--port", "0", *before, *arguments)
    assert (result.returncode, told in result.stderr) == (code, True), result.stderr
    assert "Traceback" not in result.stderr


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "hub.lock").mkdir()  # nobody can open that, not even root
    assert run("serve", "--port", "0", "--data", str(tmp_path)).stderr.startswith(
        f"antiphon: {tmp_path}/hub.lock is not a regular file"
    )
    (tmp_path / "hub.lock").rmdir()
    (tmp_path / "sessions.db").write_bytes(b"this is no database, but long enough to be read as one" * 99)
    (tmp_path / "sessions.db").chmod(0o600)
    result = run("serve", "--port", "0", "--data", str(tmp_path))
    assert result.returncode == 1
    assert result.stderr.startswith("antiphon: ")
    assert "Traceback" not in result.stderr


def test_without_a_hub_it_is_said_what_to_do(tmp_path: Path) -> None:
    result = run("attach", "--data", str(tmp_path))
    assert result.returncode == 1
    command = re.search(r"start one with `(.+)`", result.stderr)
    assert command is not None
    with Terminal(shlex.split(command[1])) as hub:
        hub.wait_for("Antiphon hub")
        assert run("sessions", "list", "--data", str(tmp_path)).returncode == 0
        hub.type("\x03")
        assert hub.wait() == 0


def test_the_ready_file_is_there_while_the_hub_is(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    with served(tmp_path, agent=AGENT) as hub:
        told = json.loads(ready.read_text())
        assert {"url", "acp", "token"} <= set(told)
        assert told["acp"].replace("ws:", "http:").replace("/acp", "/") == told["url"]
        for address in (told["acp"], told["url"], told["url"][7:-1]):
            assert run("sessions", "list", "--hub", address, ANTIPHON_TOKEN=hub.token).returncode == 0
        unknown = run("attach", "sess_nothing", ANTIPHON_HUB=told["url"], ANTIPHON_TOKEN=hub.token)
        assert (unknown.returncode, "there is no session" in unknown.stderr) == (1, True)
        wrong = run("acp", "--hub", told["acp"], ANTIPHON_TOKEN="wrong")
        assert (wrong.returncode, wrong.stdout) == (1, "")
        assert wrong.stderr.startswith("antiphon: the hub rejected the token (401): ")
        strange = run("sessions", "list", "--hub", "gopher://hub", ANTIPHON_TOKEN=hub.token)
        assert (strange.returncode, "is not the address of a hub" in strange.stderr) == (2, True)
        again = run("serve", "--port", "0", "--data", str(tmp_path))
        assert (again.returncode, f"process {hub.process.pid}" in again.stderr) == (1, True)
    assert not ready.exists()


async def test_no_token_is_seen_in_arguments_or_logs(tmp_path: Path) -> None:
    """`antiphon acp` starts a hub where none runs: nothing of that tells the token."""
    command = [*ANTIPHON, "acp", "--data", str(tmp_path), "--", *AGENT]
    async with connect(command) as editor:
        session = await editor.new_session("/")
        await (await session.prompt("say a")).drained()
        running = HubFolder(tmp_path).running()
        assert running is not None
        shown = await asyncio.to_thread(
            subprocess.check_output, ["ps", "axww", "-o", "args"], text=True, timeout=DEADLINE
        )
        assert "antiphon serve" in shown
        assert running.token not in shown
        assert running.token not in (tmp_path / "hub.log").read_text()
    os.kill(running.pid, signal.SIGTERM)
    assert ended(running.pid)
    assert left_by(tmp_path) == []
    assert (tmp_path / "hub.log").stat().st_mode & 0o077 == 0
