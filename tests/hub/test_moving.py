"""Sessions that move: out of one hub's folder, into another's, and on from there."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from antiphon.engine.events import Event, SessionCreated, encode_event
from antiphon.live.stored_session import read_session
from antiphon.schema import v2
from antiphon.session_files import export_session
from antiphon.stores import Batch, SessionRecord, SQLiteStore
from antiphon.testing.store_samples import events as some_events
from antiphon.testing.store_samples import read_all
from antiphon.testing.store_samples import session as a_session
from tests.hub.running import AGENT, ANTIPHON, DEADLINE, Served, served
from tests.hub.test_commands import run
from tests.hub.test_logins import RICH
from tests.hub.test_sharing import heard, told
from tests.requirements.marks import requirement


def sessions(
    command: str, *arguments: str | Path, data: Path, **given: Any
) -> subprocess.CompletedProcess[str]:
    return run("sessions", command, *map(str, arguments), "--data", str(data), **given)


def done(command: str, *arguments: str | Path, data: Path) -> str:
    result = sessions(command, *arguments, data=data)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def listed(data: Path) -> list[str]:
    lines = sessions("list", "--json", data=data).stdout.splitlines()
    return [json.loads(line)["sessionId"] for line in lines]


async def prompted(hub: Served, *texts: str) -> str:
    """A session in which this was said."""
    async with hub.client() as client:
        session = await client.new_session("/")
        for text in texts:
            await (await session.prompt(text)).drained()
        return session.id


async def compared(one: Path, other: Path, session_id: str) -> None:
    """The journals and the folds are equal."""
    async with SQLiteStore(one / "sessions.db") as here, SQLiteStore(other / "sessions.db") as there:
        assert await read_all(here, session_id) == await read_all(there, session_id)
        assert await read_session(here, session_id) == await read_session(there, session_id)


async def test_a_session_moves_to_another_folder_and_is_told_to_an_agent_that_does_not_know_it(
    tmp_path: Path,
) -> None:
    one, other, file = tmp_path / "one", tmp_path / "other", tmp_path / "moved.antiphon"
    with served(one, agent=AGENT) as hub:
        session_id = await prompted(hub, "say hello", "stream 50")
        done("export", session_id[:12], "-o", file, data=one)  # while it runs
        assert file.stat().st_mode & 0o077 == 0
    assert done("import", file, data=other) == session_id
    await compared(one, other, session_id)
    before = done("show", session_id, data=other)
    assert before == done("show", session_id, data=one)
    with served(other, agent=AGENT) as hub:
        async with hub.client() as client:
            back = await client.load_session(session_id, "/")
            was = told(back)
            assert was[:2] == [("user", "say hello"), ("agent", "heard say hello")]
            turn = await back.prompt("story")
            await turn.drained()
            assert "User: say hello\n\nYou: heard say hello" in turn.text
            assert told(back)[: len(was)] == was


@requirement("SUB-01")
async def test_the_sessions_of_subagents_move_with_it(tmp_path: Path) -> None:
    one, other, file = tmp_path / "one", tmp_path / "other", tmp_path / "moved.antiphon"
    with served(one, agent=RICH) as hub:
        async with hub.client() as client:
            session = await client.new_session("/")
            await (await session.prompt("child work")).drained()
            [child] = [told.id for told in session.subagents]
            await heard(await client.load_session(child, "/"), "on it")  # its lane is another one
    done("export", session.id, "-o", file, data=one)
    assert done("import", file, data=other) == session.id
    for id in (session.id, child):
        await compared(one, other, id)
    assert listed(other) == [session.id]
    with served(other, agent=RICH) as hub:
        async with hub.client() as client:
            back = await client.load_session(session.id, "/")
            assert [told.id for told in back.subagents] == [child]
            alone = await client.load_session(child, "/")
            assert [message.text for message in alone.messages] == ["on it"]
            await client.delete_session(session.id)
    assert rows(other, "sessions") == 0  # and its subagent's with it


async def test_an_agent_that_knows_the_session_brings_it_back(tmp_path: Path) -> None:
    one, other, file = tmp_path / "one", tmp_path / "other", tmp_path / "moved.antiphon"
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(one, agent=agent) as hub:
        session_id = await prompted(hub, "say hello")
    done("export", session_id, "-o", file, data=one)  # nor does it matter that it does not run
    done("import", file, data=other)
    with served(other, agent=agent) as hub:
        async with hub.client() as client:
            back = await client.load_session(session_id, "/")
            await (await back.prompt("say more")).drained()
            assert told(back)[-2:] == [("user", "say more"), ("agent", "heard say more")]
    assert (tmp_path / "agent.log").read_text() == "say hello\nsay more\n"


async def test_a_session_at_work_is_exported_as_far_as_it_is(tmp_path: Path) -> None:
    one, other, file = tmp_path / "one", tmp_path / "other", tmp_path / "cut.antiphon"
    with served(one, agent=AGENT) as hub:
        async with hub.client() as client:
            session = await client.new_session("/")
            turn = await session.prompt("wait")
            await heard(session, "waiting")
            await asyncio.to_thread(done, "export", session.id, "-o", file, data=one)
            assert session.fold.turn is not None  # nothing has happened to it
            await asyncio.to_thread(done, "import", file, data=other)
            await compared(one, other, session.id)
            await session.cancel()
            await turn.drained()
    with served(other, agent=AGENT) as hub:
        async with hub.client() as client:
            back = await client.load_session(session.id, "/")
            assert told(back) == [("user", "wait"), ("agent", "waiting")]
            assert back.fold.turn is None  # its agent is gone: the turn was cut
            await (await back.prompt("say again")).drained()


async def test_what_is_imported_into_the_folder_of_a_hub_that_runs_is_there_at_once(tmp_path: Path) -> None:
    file = tmp_path / "f.antiphon"
    with served(tmp_path / "a", agent=AGENT) as hub:
        session_id = await prompted(hub, "say hello")
        data = tmp_path / "a"
        done("export", session_id, "-o", file, data=data)
        again = sessions("import", file, data=data)
        assert (again.returncode, again.stdout) == (1, "")
        assert (
            again.stderr
            == f"antiphon: session {session_id} is already there: give it another id with --as ID\n"
        )
        assert done("import", file, "--as", "a-copy", data=data) == "a-copy"
        assert sorted(listed(data)) == sorted(["a-copy", session_id])
        async with hub.client() as client:
            copy = await client.load_session("a-copy", "/")
            events = copy.events()
            assert told(copy) == [("user", "say hello"), ("agent", "heard say hello")]
            turn = await copy.prompt("story")
            await turn.drained()
            assert "You: heard say hello" in turn.text  # not in its original's session at the agent
            notice = await anext(
                event.update async for event in events if isinstance(event.update, v2.Notice)
            )
            assert notice.title == "The agent could not bring this session back"
            own = await client.load_session(session_id, "/")
            assert len(told(own)) == 2


def test_what_cannot_be_done_is_one_line(tmp_path: Path) -> None:
    data, file = tmp_path / "d", tmp_path / "f"
    file.write_bytes(b"nothing of ours")
    for code, words, arguments in (
        (1, ": it is not a session file", ("import", file)),
        (1, "No such file", ("import", tmp_path / "none")),
        (2, "the data folder of a hub", ("import", file, "--hub", "127.0.0.1:9")),
        (1, "there is no session", ("export", "none")),
        (1, "the connection was refused", ("export", "none", "--hub", "127.0.0.1:9", "--token", "x")),
        (1, "there is no session", ("fork", "none")),
    ):
        result = sessions(*arguments, data=data)  # type: ignore[arg-type]
        assert result.returncode == code, (arguments, result.stderr)
        assert words in result.stderr
        assert result.stderr.startswith("antiphon: ")
        assert result.stderr.count("\n") == 1, result.stderr
    assert listed(data) == []


async def test_a_hub_elsewhere_gives_an_owner_the_same_file(tmp_path: Path) -> None:
    data, near, far = tmp_path / "d", tmp_path / "near.antiphon", tmp_path / "far.antiphon"
    with served(data, agent=RICH) as hub:
        session_id = await prompted(hub, "child work", "say " + "more " * 200_000)
        done("export", session_id, "-o", near, data=data)
        done("export", session_id, "-o", far, "--hub", hub.acp, "--token", hub.token, data=tmp_path)
        assert near.read_bytes() == far.read_bytes()
        assert near.stat().st_size > 1000
        secret = run("token", "create", "ann", "--role", "controller", "--data", str(data)).stdout.strip()
        refused = sessions(
            "export", session_id, "-o", tmp_path / "no", "--hub", hub.acp, "--token", secret, data=tmp_path
        )
        assert (refused.returncode, "this token does not permit that" in refused.stderr) == (1, True)
        assert not (tmp_path / "no").exists()
    assert done("import", far, data=tmp_path / "other") == session_id
    await compared(data, tmp_path / "other", session_id)


async def test_transcripts_are_written_by_name_or_format(tmp_path: Path) -> None:
    data = tmp_path / "d"
    with served(data, agent=AGENT) as hub:
        session_id = await prompted(hub, "say <b>hello</b>")
        page, text = tmp_path / "t.html", tmp_path / "t.md"
        done("export", session_id, "-o", page, data=data)
        done("export", session_id, "-o", text, data=data)
        assert "heard say &lt;b&gt;hello&lt;/b&gt;" in page.read_text()
        assert "heard say &lt;b>hello&lt;/b>" in text.read_text()
        assert (
            done("export", session_id, "-o", "-", "--format", "markdown", data=data)
            == text.read_text().strip()
        )
        far = ("--hub", hub.acp, "--token", hub.token)
        assert "heard say &lt;b>" in done(
            "export", session_id, "-o", "-", "--format", "markdown", *far, data=tmp_path
        )
    check_default_name(tmp_path, data, session_id)


def check_default_name(folder: Path, data: Path, session_id: str) -> None:
    here = [*ANTIPHON, "sessions", "export", session_id, "--data", str(data)]
    for code in (0, 2):  # the second time it is there
        result = subprocess.run(here, cwd=folder, capture_output=True, timeout=DEADLINE, check=False)
        assert result.returncode == code, result.stderr
    assert (folder / f"{session_id}.antiphon").exists()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


async def test_a_fork_goes_on_from_a_message_and_nobody_answers_for_those_who_sit_there(
    tmp_path: Path,
) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with hub.client() as client:
            session = await client.new_session("/")
            await (await session.prompt("say one")).drained()
            await (await session.prompt("say two")).drained()
        forked = done("fork", session.id, data=tmp_path)
        first = session.messages[1].message_id
        early = done("fork", session.id, "--at", str(first), data=tmp_path)
        wrong = sessions("fork", session.id, "--at", "nothing", data=tmp_path)
        assert wrong.returncode == 1
        assert f"{first} 'heard say one'" in wrong.stderr
        async with hub.client() as client:
            assert len(told(await client.load_session(forked, "/"))) == 4
            early_one = await client.load_session(early, "/")
            assert told(early_one) == [("user", "say one"), ("agent", "heard say one")]
            turn = await early_one.prompt("say three")
            await turn.drained()
            assert turn.text.endswith("say three")
        async with hub.client(answers=Never()) as client:
            session = await client.new_session("/")
            await session.prompt("ask")
            async with asyncio.timeout(DEADLINE):
                while not session.fold.questions.open:
                    async for _ in session.events():
                        break
        for _ in range(3):
            done("fork", session.id, data=tmp_path)
            done("show", session.id, data=tmp_path)
        async with SQLiteStore(tmp_path / "sessions.db") as store:
            assert (await read_session(store, session.id)).questions.open
    assert done("fork", early, data=tmp_path)  # the hub does not run, and need not


async def test_a_fork_of_a_hub_that_does_not_run_has_the_agent_of_its_source(tmp_path: Path) -> None:
    agents = [option for name in ("one", "two") for option in ("--agent", f"{name}={shlex.join(AGENT)}")]
    with served(tmp_path, *agents, agent=[]) as hub:
        async with hub.client() as client:
            session = await client.new_session("/", meta={"antiphon": {"agent": "two"}})
            await (await session.prompt("say hello")).drained()
    forked = done("fork", session.id, data=tmp_path)
    with served(tmp_path, *agents, agent=[]) as hub:
        assert f"{forked}" in (lines := done("list", data=tmp_path))
        assert [line.split()[3] for line in lines.splitlines()[1:]] == ["two", "two"]


class Never:
    """Decides nothing."""

    async def decide(self, permission: Any) -> None:
        await asyncio.get_running_loop().create_future()


async def large_file(path: Path, events: int) -> None:
    chunk = (
        '{"seq":%d,"at":1,"body":{"type":"update","update":{"sessionUpdate":"agent_message_chunk",'
        '"messageId":"m","content":{"type":"text","text":"%d "}}}}'
    )
    async with SQLiteStore(path.with_suffix(".db")) as store:
        await store.create(SessionRecord(session_id="large", cwd="/", created_at=1, updated_at=1))
        created = encode_event(Event(1, 1, SessionCreated(session_id="large", cwd="/")))
        await store.append("large", Batch(1, (created,)))
        for first in range(2, events + 1, 5000):
            numbers = range(first, min(first + 5000, events + 1))
            await store.append("large", Batch(first, tuple((chunk % (n, n)).encode() for n in numbers)))
        with path.open("wb") as file:
            await export_session(store, "large", file.write)


async def test_a_killed_import_leaves_nothing(tmp_path: Path) -> None:
    data, file = tmp_path / "d", tmp_path / "large"
    await large_file(file, 200_000)
    data.mkdir()
    command = [*ANTIPHON, "sessions", "import", str(file), "--data", str(data)]
    for _ in range(3):
        kill_midway(command, data)
        assert listed(data) == []  # and what was left of it is cleared away with that
        assert [rows(data, table) for table in ("batches", "deletions", "claims", "sessions")] == [0, 0, 0, 0]
    assert done("import", file, data=data) == "large"
    async with SQLiteStore(data / "sessions.db") as store, SQLiteStore(file.with_suffix(".db")) as before:
        assert await store.get("large") == await before.get("large")
        assert await read_session(store, "large") == await read_session(before, "large")


def kill_midway(command: list[str], data: Path) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + DEADLINE
        while rows(data, "batches") < 2:
            assert process.poll() is None, "it is over already"
            assert time.monotonic() < until
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait(DEADLINE) == -signal.SIGKILL


def rows(data: Path, table: str) -> int:
    path = data / "sessions.db"
    if not path.exists():
        return 0
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=DEADLINE)
    except sqlite3.OperationalError:
        return 0
    try:
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    except sqlite3.OperationalError:  # not made yet
        return 0
    finally:
        connection.close()
    return int(count)


async def test_who_opens_the_store_leaves_an_import_alone_that_is_under_way(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    async with SQLiteStore(path) as store, store.arrival(a_session("new")) as arriving:
        await arriving.append(some_events(1, 3))
        async with SQLiteStore(path) as other:
            assert await other.get("new") is None
        await arriving.append(some_events(4, 6))
        await arriving.finish()
        assert len(await read_all(store, "new")) == 6


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user who may not write")
def test_a_folder_that_cannot_be_written_in_is_told(tmp_path: Path) -> None:
    result = sessions("import", tmp_path / "none", data=Path("/proc/nothing"))
    assert result.returncode == 1
    assert "cannot be made" in result.stderr
