"""What goes wrong is said in one line, which says what to do next."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.cli.exit_codes import Exit
from tests import warm
from tests.cli.command import ANTIPHON, Terminal, environment, prompt, raw_agent
from tests.hub.running import Served, served
from tests.transports.certificates import certificates

DIES = [sys.executable, "-c", "import sys; sys.exit('no key')"]


def told(*arguments: str, code: int = Exit.ERROR, **env: str) -> str:
    """What a command says that goes wrong."""
    done = warm.run(arguments, timeout=20, env=environment(**env))
    assert done.stdout == ""
    assert done.returncode == code, done.stderr
    line = re.fullmatch(r"antiphon: (.+)\n", done.stderr)
    assert line is not None, done.stderr
    return line[1]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A hub over TLS, with an agent that dies at once."""
    made = tmp_path_factory.mktemp("advice")
    certificates(made)
    folder = made / "hub"
    folder.mkdir(mode=0o700)
    keys = ["--tls-cert", str(made / "cert.pem"), "--tls-key", str(made / "key.pem")]
    with served(folder, *keys, agent=DIES) as running:
        yield running


def test_no_hub_runs(tmp_path: Path) -> None:
    for command in (["attach"], ["link"]):
        line = told(*command, "--data", str(tmp_path))
        assert f"serve --data {tmp_path}`" in line
    assert "starts a hub that stores them there" in told("sessions", "list", "--data", str(tmp_path))


def test_nobody_listens_at_the_address(tmp_path: Path) -> None:
    line = told("sessions", "list", "--hub", "127.0.0.1:9", ANTIPHON_TOKEN="x")
    assert line.startswith("cannot reach the hub at ws://127.0.0.1:9/acp: the connection was refused")
    assert " serve` starts a hub" in line
    line = told("prompt", "hello", "--", "ws://127.0.0.1:9/acp")
    assert "the connection was refused" in line
    line = told("attach", "--hub", "no-such-host.invalid", ANTIPHON_TOKEN="x")
    assert line.endswith("the host name is unknown")


def test_a_token_is_missing_or_wrong(hub: Served, tmp_path: Path) -> None:
    elsewhere = ["--hub", hub.acp, "--data", str(tmp_path)]
    line = told("sessions", "list", *elsewhere, code=Exit.USAGE)
    assert "ANTIPHON_TOKEN" in line
    assert "antiphon token create NAME" in line
    ca = str(hub.folder.parent / "cert.pem")
    line = told("sessions", "list", *elsewhere, ANTIPHON_TOKEN="wrong", ANTIPHON_CA=ca)
    assert "rejected the token (401)" in line
    assert "antiphon token create NAME" in line


def test_a_certificate_is_not_trusted_or_there_is_none(hub: Served, tmp_path: Path) -> None:
    line = told("sessions", "list", "--hub", hub.acp, "--data", str(tmp_path), ANTIPHON_TOKEN=hub.token)
    assert "its certificate is not trusted" in line
    assert "--ca FILE" in line
    plain = hub.acp.replace("wss:", "ws:")
    line = told("sessions", "list", "--hub", plain, "--data", str(tmp_path), ANTIPHON_TOKEN=hub.token)
    assert "cannot reach" in line
    assert "wss://" in line


def test_an_address_leads_to_something_else(hub: Served, tmp_path: Path) -> None:
    there = hub.acp.replace("/acp", "/nothing")
    ca = str(hub.folder.parent / "cert.pem")
    line = told("sessions", "list", "--hub", there, ANTIPHON_TOKEN=hub.token, ANTIPHON_CA=ca)
    assert "there is no hub at this address (404)" in line


def test_a_session_is_not_there(hub: Served) -> None:
    data = ["--data", str(hub.folder)]
    for command in (["attach", "nothing"], ["sessions", "show", "nothing"], ["sessions", "fork", "nothing"]):
        line = told(*command, *data)
        assert line.startswith("there is no session 'nothing': `")
        assert line.endswith(" sessions list` lists them")


def test_an_agent_behind_a_hub_dies_at_once(hub: Served) -> None:
    line = told("attach", "new", "--data", str(hub.folder))
    assert "(no key)" in line
    assert "run the agent's command by hand" in line


def test_an_agent_dies_or_is_none(tmp_path: Path) -> None:
    assert "(last line on stderr: no key); does it speak ACP?" in prompt("hello", agent=DIES).stderr
    assert "such as --acp" in prompt("hello", agent=["cat"]).stderr
    assert "ACP?" not in prompt("hello", agent=raw_agent("dies-in-turn")).stderr


def test_the_port_or_the_folder_is_taken(hub: Served, tmp_path: Path) -> None:
    line = told("serve", "--port", hub.port, "--data", str(tmp_path))
    assert line == (
        f"cannot listen at 127.0.0.1:{hub.port}: the port is in use; --port 0 picks a free one, "
        "and so does the hub without --port"
    )
    line = told("serve", "--port", "0", "--data", str(hub.folder))
    assert f"process {hub.process.pid}" in line
    assert line.endswith("attach to that one, or give this hub a folder of its own with --data DIR")


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["sessions", "list"]])
def test_the_folder_is_of_a_later_version_or_damaged(command: list[str], tmp_path: Path) -> None:
    database = tmp_path / "sessions.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE future (x)")
        connection.execute(f"PRAGMA application_id = {0x414E5450}")
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    database.chmod(0o600)
    line = told(*command, "--data", str(tmp_path))
    assert "was written by a later Antiphon" in line
    assert line.endswith("update Antiphon, or give another folder with --data DIR")
    for left in tmp_path.glob("sessions.db*"):
        left.unlink()
    database.write_bytes(b"this is no database, but long enough to be taken for one" * 99)
    database.chmod(0o600)
    line = told(*command, "--data", str(tmp_path))
    assert "is damaged: file is not a database" in line
    assert "move the file away" in line


def test_a_token_that_is_not_there(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert "nor a folder" in told("token", "revoke", "ann", "--data", str(nowhere))
    assert not nowhere.exists()
    subprocess.run([*ANTIPHON, "token", "create", "ann", "--data", tmp_path], check=True, capture_output=True)
    assert told("token", "revoke", "bob", "--data", str(tmp_path)) == "there is no token 'bob', but ann"
    assert told("token", "create", "owner", "--data", str(tmp_path)).endswith("the hub's own token has it")


def test_nobody_can_be_asked(tmp_path: Path) -> None:
    done = subprocess.run(
        [*ANTIPHON, "sessions", "delete", "x"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert "not a terminal: give --yes" in done.stderr


@pytest.mark.parametrize(
    ("command", "instead"),
    [(["acp", "--hub", "127.0.0.1:9", "--token", "x"], "attach"), (["rehearse"], "prompt")],
)
def test_what_speaks_acp_says_so_to_people(command: list[str], instead: str) -> None:
    with Terminal([*ANTIPHON, *command], columns=120) as terminal:
        terminal.wait_for("this command speaks ACP on stdin and stdout; try ")
        terminal.wait_for(rf"{instead}\b.* instead")
