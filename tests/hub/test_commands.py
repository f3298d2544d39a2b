"""The commands of the hub, as people and editors run them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

from antiphon.client import connect
from antiphon.hub import HubFolder
from tests import warm
from tests.cli.command import SHOWCASE, Terminal, ended
from tests.hub.running import AGENT, ANTIPHON, DEADLINE, REHEARSE, ROOT, served
from tests.hub.test_sharing import heard, settled, told


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return warm.run(arguments, text=text, timeout=DEADLINE)


def test_a_line_typed_is_a_prompt_and_sessions_are_listed_shown_renamed_and_deleted(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path)]
    with served(tmp_path, agent=AGENT):
        typed = run("attach", "new", *data, text="say hello\n")
        assert typed.returncode == 0, typed.stderr
        assert typed.stdout == "heard say hello\n"
        listed = run("sessions", "list", "--json", *data)
        [info] = [json.loads(line) for line in listed.stdout.splitlines()]
        session = info["sessionId"]
        renamed = run("sessions", "rename", session[:12], "Greetings", *data)
        assert (renamed.returncode, renamed.stdout) == (0, "Greetings\n"), renamed.stderr
        found = run("sessions", "search", "heard", "hel", "--json", *data)
        [match] = [json.loads(line) for line in found.stdout.splitlines()]
        assert (match["sessionId"], match["title"], match["role"]) == (session, "Greetings", "agent")
        assert (match["snippet"], match["ranges"]) == ("heard say hello", [[0, 5], [10, 15]])
    # The hub is down: what it has kept is there.
    shown = run("sessions", "show", session, *data)
    assert shown.stdout.split("\n\n")[:2] == ["> say hello", "heard say hello"], shown.stderr
    assert re.search(r"^\[end_turn\] turn of request \d+ by .+: say hello$", shown.stdout, re.MULTILINE)
    assert "Greetings" in run("sessions", "list", *data).stdout
    found = run("sessions", "search", "hello", *data)
    head, *rows = found.stdout.splitlines()
    assert re.sub(" +", " ", head) == "ID WHEN WHO SESSION"
    assert [row.strip() for row in rows[1::2]] == ["heard say hello", "say hello"]
    assert [row.split()[3:] for row in rows[::2]] == [["agent", "Greetings"], ["user", "Greetings"]]
    assert f"antiphon attach --data {tmp_path} {session}" in found.stderr
    nothing = run("sessions", "search", "xylophone", *data)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "Nothing found for xylophone.\n")
    assert run("sessions", "delete", session, *data).returncode == 2
    assert run("sessions", "delete", session, "--yes", *data).returncode == 0
    assert run("sessions", "list", *data).stdout == ""
    assert run("sessions", "search", "hello", *data).stdout == "", "a deleted session is found"


def test_a_deleted_message_leaves_a_mark_in_what_is_shown_of_a_session(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path)]
    editing = [sys.executable, str(ROOT / "tests" / "browser" / "editing_agent.py")]
    with served(tmp_path, agent=editing):
        assert run("attach", "new", *data, text="say hello\ndelete\n").returncode == 0
        [info] = map(json.loads, run("sessions", "list", "--json", *data).stdout.splitlines())
        attached = run("attach", info["sessionId"], *data, text="say more\n")
        assert "[Message deleted]\n" in attached.stdout, attached.stderr
        shown = run("sessions", "show", info["sessionId"], *data)
    assert shown.stdout.split("\n\n")[:2] == ["> say hello", "[Message deleted]"], shown.stderr


def test_errors_are_one_line(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path)]
    for arguments in (
        ("attach", "new", *data),
        ("sessions", "list", *data),
        ("serve", *data, "--", "no-such-agent-anywhere"),
        ("sessions", "list", "--hub", "ws://127.0.0.1:9/acp", "--token", "x"),
    ):
        result = run(*arguments)
        assert result.returncode in (1, 127), arguments
        assert result.stderr.startswith("antiphon: ")
        assert result.stderr.count("\n") == 1, result.stderr
    with served(tmp_path, agent=AGENT) as hub:
        assert "process" in run("serve", "--port", "0", *data).stderr  # one hub to a folder
        wrong = run("sessions", "list", "--hub", hub.acp, "--token", "wrong")
        assert "401" in wrong.stderr
        assert run("attach", "nothing", *data).stderr.startswith("antiphon: there is no session")
        assert stat.S_IMODE((tmp_path / "hub.json").stat().st_mode) == 0o600


def test_two_terminals_follow_the_same_turn(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path)]
    attach = [*ANTIPHON, "attach", *data]
    with served(tmp_path, agent=AGENT), Terminal([*attach, "--name", "ann", "new"]) as one:
        session = one.wait_for(r"sess_\w+")[0]
        with Terminal([*attach, "--name", "bob", session]) as two:
            two.wait_for("type to prompt")
            two.wait_for("ann is here")
            one.wait_for("bob is here")
            one.type("say hello\n")
            one.wait_for("heard say hello")
            two.wait_for("ann> say hello")
            two.wait_for("heard say hello")
            two.type("ask\n")
            one.wait_for("bob> ask")
            one.wait_for(r"1 y  Allow")
            one.type("1\n")
            two.wait_for("ann answered: Allow")
            two.wait_for("allowed: True")
            one.wait_for("allowed: True")
            header, row = run("sessions", "list", *data).stdout.splitlines()
            assert row[header.index("CLIENTS") :].split()[0] == "2"
        one.wait_for("bob has left")


def test_who_is_asked_sees_what_about_and_by_which_agent(tmp_path: Path) -> None:
    agents = {"ann": SHOWCASE, "bob": REHEARSE}
    named = [word for name, agent in agents.items() for word in ("--agent", f"{name}={shlex.join(agent)}")]
    attach = [*ANTIPHON, "attach", "new", "--data", str(tmp_path), "--agent"]
    with served(tmp_path, *named, agent=()):
        with Terminal([*attach, "ann"]) as terminal:
            terminal.wait_for("type to prompt")
            terminal.type("fix it\r")
            terminal.wait_for(
                r"\? Edit song\.py[^?]+\n  \| \+    return 1\n  1 y  Allow\n  2 n  Reject\n  > "
            )
            terminal.type("1\r")
            terminal.wait_for(r"1\n✓ Edit song\.py\n")
        with Terminal([*attach, "bob"]) as terminal:
            terminal.wait_for("type to prompt")
            terminal.type("/form\r")
            terminal.wait_for(r"\? bob asks:")


async def test_an_editor_is_an_attachment_over_stdio(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        command = [*ANTIPHON, "acp", "--data", str(tmp_path)]
        async with asyncio.timeout(DEADLINE), connect(command, version=1) as editor, hub.client() as other:
            own = await editor.new_session("/")
            beside = await other.load_session(own.id, "/")
            assert (await (await own.prompt("stream 500")).drained()).stop_reason == "end_turn"
            await settled(beside, "499")
            assert told(own) == told(beside)
            for version in (1, 2):
                same = [*command, "--session", own.id]
                async with connect(same, version=version) as third:
                    joined = await third.new_session("/")
                    assert joined.id == own.id
                    await heard(joined, "499")
                    await (await joined.prompt(f"say {version}")).drained()
                    await settled(own, f"heard say {version}")


async def test_acp_starts_a_hub_where_none_runs(tmp_path: Path) -> None:
    command = [*ANTIPHON, "acp", "--data", str(tmp_path), "--", *AGENT]
    pid = None
    try:
        async with asyncio.timeout(DEADLINE), connect(command) as editor:
            session = await editor.new_session("/")
            await (await session.prompt("say a")).drained()
        running = HubFolder(tmp_path).running()
        assert running is not None
        pid = running.pid
        async with asyncio.timeout(DEADLINE), connect(running.acp, token=running.token) as client:
            assert told(await client.load_session(session.id, "/"))[1] == ("agent", "heard say a")
        refused = await asyncio.to_thread(run, "acp", "--data", str(tmp_path), "--", "sh")
        assert "has no agent 'sh', but agent: " in refused.stderr
        assert f"agents add sh --data {tmp_path} -- sh` adds it" in refused.stderr
    finally:
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            assert ended(pid)
