"""Completion: what a shell is offered, that the scripts work in a real one, and that failures are silent."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.hub.access.tokens import create_token
from antiphon.server.method import Role
from antiphon.stores import SQLiteStore
from antiphon.stores.base import SessionRecord
from tests.cli.command import ANTIPHON, Terminal, environment
from tests.hub.running import AGENT, served

SCRIPT = Path(sys.executable).with_name("antiphon")
NAMES = ("sess_aaa1", "sess_aaa2", "sess_bbb1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a hub, with sessions and tokens."""
    data = tmp_path_factory.mktemp("kept") / "antiphon"
    data.mkdir()

    async def keep() -> None:
        async with SQLiteStore(data / "sessions.db") as store:
            titles = ("The red build", None, "A \x1b[31msong\x1b[0m, \u202ereversed")
            for number, (id, title) in enumerate(zip(NAMES, titles, strict=True)):
                await store.create(record(id, title, number))
            await store.create(record("sess_child", "work", 8, {"subagentOf": NAMES[0]}))
            await store.create(record("sess_old", "put away", 9, {"archived": True}))

    asyncio.run(keep())
    create_token(data / "tokens.json", "ann", Role.OBSERVER)
    create_token(data / "tokens.json", "bob", Role.OWNER)
    return data


def record(id: str, title: str | None, at: int, meta: dict[str, object] | None = None) -> SessionRecord:
    return SessionRecord(
        session_id=id, cwd="/site", title=title, created_at=at, updated_at=at, meta=meta or {}
    )


def offered(line: str, *, home: Path, shell: str = "bash", **env: str) -> list[str]:
    """What is offered for the last word of a command line, as `value` or, in fish, `value: what it is`."""
    words = line.split(" ")
    done = subprocess.run(
        ANTIPHON,
        env=environment(
            _ANTIPHON_COMPLETE=f"{shell}_complete",
            COMP_WORDS=line,
            COMP_CWORD=str(len(words) - 1) if shell == "bash" else words[-1],
            XDG_DATA_HOME=str(home),
            **env,
        ),
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    assert done.stderr == ""
    return [row.partition(",")[2].replace("\t", ": ") for row in done.stdout.splitlines() if row]


def test_commands_and_options_are_completed(tmp_path: Path) -> None:
    assert offered("antiphon se", home=tmp_path) == ["serve", "sessions"]
    assert offered("antiphon sessions ex", home=tmp_path) == ["export"]
    assert offered("antiphon serve --ins", home=tmp_path) == ["--insecure-bind"]
    assert offered("antiphon serve --questions ", home=tmp_path) == ["first", "owner", "designated"]
    assert offered("antiphon completion ", home=tmp_path) == ["bash", "zsh", "fish"]


def test_agents_are_completed_behind_the_dashes_and_the_installed_ones_come_first(tmp_path: Path) -> None:
    program = tmp_path / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for command in ("prompt hello", "serve", "acp"):
        found = offered(f"antiphon {command} -- ", home=tmp_path, PATH=str(tmp_path))
        assert found[0] == "gemini"
        assert "claude" in found
    assert offered("antiphon serve --port 0 -- cod", home=tmp_path) == ["codex"]
    assert offered("antiphon serve -- ./my", home=tmp_path) == ["./my"]


def test_sessions_are_completed_by_id_and_by_title(folder: Path) -> None:
    home = folder.parent
    everything = offered("antiphon sessions show ", home=home)
    assert everything == list(reversed(NAMES))  # neither a subagent's nor one that was put away
    assert offered("antiphon attach sess_a", home=home) == ["sess_aaa2", "sess_aaa1"]
    assert offered("antiphon attach bbb", home=home) == ["sess_bbb1"]
    assert offered("antiphon sessions export red", home=home) == ["sess_aaa1"]
    assert offered("antiphon acp --session sess_b", home=home) == ["sess_bbb1"]
    assert offered("antiphon sessions fork ", home=home, shell="fish") == [
        "sess_bbb1: A ⟨U+001B⟩[31msong⟨U+001B⟩[0m, ⟨U+202E⟩reversed",
        "sess_aaa2: /site",
        "sess_aaa1: The red build",
    ]


async def test_an_id_that_a_shell_would_not_read_as_one_word_is_not_offered(tmp_path: Path) -> None:
    data = tmp_path / "antiphon"
    data.mkdir()
    async with SQLiteStore(data / "sessions.db") as store:
        ids = ("x;reboot", "$(reboot)", "`reboot`", "a\nb", "--data=/x", "*", "b c", "plain-1")
        for at, id in enumerate(ids):
            await store.create(record(id, "The red build", at))
    for shell in ("bash", "fish"):
        found = offered("antiphon sessions show ", home=tmp_path, shell=shell)
        assert [each.partition(":")[0] for each in found] == ["plain-1"]


def test_the_data_folder_that_was_named_is_looked_into(folder: Path, tmp_path: Path) -> None:
    assert offered("antiphon sessions show sess_b", home=tmp_path) == []
    assert offered(f"antiphon sessions show --data {folder} sess_b", home=tmp_path) == ["sess_bbb1"]


def test_tokens_are_completed(folder: Path) -> None:
    assert offered("antiphon token revoke ", home=folder.parent) == ["ann", "bob"]
    assert offered("antiphon token revoke b", home=folder.parent) == ["bob"]


def test_what_goes_wrong_is_silent(tmp_path: Path) -> None:
    data = tmp_path / "antiphon"
    data.mkdir()
    (data / "sessions.db").write_text("this is no database")
    (data / "tokens.json").write_text("nor is this a list of tokens")
    (data / "hub.json").write_text("{")
    before = sorted(path.name for path in data.iterdir())
    assert offered("antiphon attach ", home=tmp_path) == []
    assert offered("antiphon token revoke ", home=tmp_path) == []
    assert offered("antiphon attach --agent ", home=tmp_path) == []
    gone = {"ANTIPHON_HUB": "127.0.0.1:9", "ANTIPHON_TOKEN": "x"}
    assert offered("antiphon attach ", home=tmp_path, **gone) == []
    assert sorted(path.name for path in data.iterdir()) == before


def test_a_running_hub_is_asked_for_its_sessions_and_agents(tmp_path: Path) -> None:
    data = tmp_path / "antiphon"
    data.mkdir()
    with served(data, "--agent", f"second={sys.executable}", agent=AGENT) as hub:
        made = subprocess.run(
            [*ANTIPHON, "attach", "new", "--data", data],
            input="say hello\n",
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        assert made.stdout == "heard say hello\n"
        [session] = offered("antiphon attach ", home=tmp_path)
        reached = {"ANTIPHON_HUB": hub.acp, "ANTIPHON_TOKEN": hub.token}
        assert offered("antiphon attach ", home=tmp_path / "other", **reached) == [session]
        assert offered("antiphon attach --agent ", home=tmp_path) == ["agent", "second"]


@pytest.fixture
def bash() -> str:
    found = shutil.which("bash")
    if found is None or not SCRIPT.exists():
        pytest.skip("bash or the installed script is not here")
    return found


def test_the_script_works_in_a_real_shell(bash: str, folder: Path) -> None:
    path = f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    shell = [bash, "--norc", "--noprofile", "-i"]
    with Terminal(shell, PATH=path, XDG_DATA_HOME=str(folder.parent), PS1="$ ") as terminal:
        terminal.wait_for(r"\$ ")
        terminal.type('eval "$(antiphon completion bash)"; echo rea""dy\n')
        terminal.wait_for("ready")
        terminal.type("antiphon sessions sho\t")
        terminal.wait_for("show ")
        terminal.type("sess_b\t")
        terminal.wait_for("sess_bbb1 ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell_and_for_the_one_in_use(shell: str) -> None:
    def script(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*ANTIPHON, "completion", *words],
            capture_output=True,
            text=True,
            timeout=20,
            env=environment(**env),
        )

    done = script(shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_ANTIPHON_COMPLETE={shell}_complete" in done.stdout
    assert script(SHELL=f"/usr/bin/{shell}").stdout == done.stdout
    assert "name one of bash, zsh, fish" in script(SHELL="/bin/sh").stderr
