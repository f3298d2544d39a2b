"""A hub on a shared store, and commands on it, with a real NATS server."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from antiphon.cli.exit_codes import Exit
from antiphon.hub import HubAbout
from antiphon.stores import JetStreamOptions, JetStreamStore, SessionRecord
from tests import warm
from tests.cli.command import environment
from tests.hub.running import AGENT, ANTIPHON, DEADLINE, served
from tests.stores.nats_servers import free_ports

NAMES = itertools.count()


def run(*arguments: str, code: int = Exit.DONE, text: str = "") -> str:
    """Run a command and return what it printed; what it said on stderr if it is to fail."""
    done = warm.run(arguments, timeout=DEADLINE, text=text, env=environment())
    assert done.returncode == code, done.stderr
    return done.stdout if code == Exit.DONE else done.stderr


@pytest.fixture
def store(nats: str) -> list[str]:
    """The options of a store that no other test uses."""
    return ["--store", nats, "--store-name", f"cli{next(NAMES)}"]


def opened(store: list[str]) -> JetStreamStore:
    return JetStreamStore(store[1], JetStreamOptions(name=store[3]))


async def until(happened: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that a lease brings about when it ends."""
    async with asyncio.timeout(DEADLINE):
        while True:
            if await happened():
                return
            await asyncio.sleep(0.1)


# --- serve --------------------------------------------------------------------------------------------


def test_the_options_of_a_shared_store_need_one() -> None:
    for options in (
        ["--replicas", "3"],
        ["--movable"],
        ["--label", "a"],
        ["--lease", "5"],
        ["--store-name", "x"],
    ):
        said = run("serve", *options, code=Exit.USAGE)
        assert f"{options[0]}: only with --store" in said
    assert "only with --store" in run("sessions", "list", "--store-name", "x", code=Exit.USAGE)


def test_an_address_without_a_scheme_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    data = tmp_path / "data"
    said = run("serve", "--store", "127.0.0.1:4222", "--data", str(data), code=Exit.USAGE)
    assert said.startswith("antiphon: cannot use --store: NATS addresses must be like nats://host")
    assert not data.exists()


def test_servers_that_cannot_be_reached_are_named_without_the_password(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    options = ["--store", f"nats://me:secret@{address}", "--data", str(tmp_path)]
    for command in (["serve", "--port", "0"], ["sessions", "list"]):
        said = run(*command, *options, code=Exit.ERROR)
        assert said.startswith(f"antiphon: cannot connect to NATS at nats://{address}: ")
        assert said.count("\n") == 1
        assert "secret" not in said


def test_a_file_of_credentials_that_is_none_is_named(nats: str, tmp_path: Path) -> None:
    file = tmp_path / "hub.creds"
    options = ["--store", nats, "--nats-creds", str(file), "--data", str(tmp_path / "data")]
    assert f"File '{file}' does not exist" in run("serve", *options, code=Exit.USAGE)
    file.write_text("no credentials")
    said = run("serve", "--port", "0", *options, code=Exit.ERROR)
    assert str(file) in said
    assert "is not a NATS credentials file" in said


PRINTS_MODULES = (
    "import sys, atexit; from antiphon.cli import main;atexit.register(lambda: print(*sys.modules)); main()"
)


def test_nothing_of_nats_is_imported_without_a_shared_store(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    command = ["serve", "--port", "0", "--data", str(tmp_path / "data"), "--ready-file", str(ready)]
    hub = subprocess.Popen(
        [sys.executable, "-c", PRINTS_MODULES, *command, "--", *AGENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    until = time.monotonic() + DEADLINE
    while not ready.exists():
        assert time.monotonic() < until
        assert hub.poll() is None
        time.sleep(0.02)
    hub.send_signal(signal.SIGTERM)
    printed, _ = hub.communicate(timeout=DEADLINE)
    modules = printed.split()
    assert "antiphon.hub.core" in modules
    ours = [name for name in modules if "jetstream" in name or name.startswith("antiphon.hub.cluster")]
    assert not [name for name in modules if name.split(".")[0] == "nats"] + ours


def test_without_the_extra_the_command_says_what_to_install(nats: str, tmp_path: Path) -> None:
    code = "import sys; sys.modules['nats'] = None; from antiphon.cli import main; main()"
    for command in (["serve"], ["sessions", "list"], ["cluster", "status"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *command, "--store", nats],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == Exit.ERROR
        assert "pip install 'antiphon[nats]'" in done.stderr
        assert done.stderr.count("\n") == 1


async def test_a_session_outlives_a_hub_that_is_killed(store: list[str], tmp_path: Path) -> None:
    with served(tmp_path, *store, "--lease", "1", agent=AGENT) as hub:
        async with hub.client() as client:
            session = await client.new_session(cwd=str(tmp_path))
            await (await session.prompt("say one")).drained()
        hub.kill()
        hub.restart()
        async with hub.client() as client, opened(store) as looking:
            assert [info.session_id async for info in client.list_sessions()] == [session.id]

            async def is_free() -> bool:
                return await looking.owner(session.id) is None

            await until(is_free)
            async with client.attach(session.id, cwd=str(tmp_path)) as again:
                await (await again.prompt("say two")).drained()
                said = [message.text for message in again.messages]
    assert said == ["say one", "heard say one", "say two", "heard say two"]
    assert not (tmp_path / "sessions.db").exists()


def test_the_banner_says_where_the_sessions_are(store: list[str], tmp_path: Path) -> None:
    with served(tmp_path, *store, agent=AGENT) as hub:
        code, said = hub.end()
    assert code == 0
    assert f"  sessions   NATS at {store[1]} (1 replica)\n  data       {tmp_path}\n" in said


def test_a_second_hub_on_the_store_needs_a_folder_of_its_own(store: list[str], tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    with served(one, *store, agent=AGENT):
        said = run("serve", *store, "--data", str(one), code=Exit.ERROR)
        assert "give this hub a folder of its own with --data DIR" in said
        with served(two, *store, agent=AGENT):
            made = run("attach", "new", "--data", str(two), text="say hello\n")
            assert made == "heard say hello\n"
            listed = [run("sessions", "list", "--json", "--data", str(data)) for data in (one, two)]
            sessions = [[json.loads(line)["sessionId"] for line in lines.splitlines()] for lines in listed]
            assert sessions[0] == sessions[1]
            assert len(sessions[0]) == 1


# --- sessions -----------------------------------------------------------------------------------------


def completed(line: str) -> list[str]:
    """Return what the shell offers for the last word."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    env = environment(_ANTIPHON_COMPLETE="bash_complete", **words)
    done = subprocess.run(ANTIPHON, env=env, capture_output=True, text=True, timeout=DEADLINE, check=True)
    return [row.partition(",")[2] for row in done.stdout.splitlines()]


def test_sessions_are_managed_on_the_store_while_a_hub_runs_on_it(store: list[str], tmp_path: Path) -> None:
    data, file, copied = tmp_path / "data", tmp_path / "one.antiphon", tmp_path / "two.antiphon"
    data.mkdir()
    with served(data, *store, agent=AGENT):
        run("attach", "new", "--data", str(data), text="say hello\n")
        [line] = run("sessions", "list", "--json", *store).splitlines()
        session = json.loads(line)["sessionId"]
        assert completed(f"antiphon sessions show --data {data} ") == [session]
        run("sessions", "export", session, "-o", str(file), *store)
        run("sessions", "export", session, "-o", str(copied), "--data", str(data))  # through the hub
        assert file.read_bytes() == copied.read_bytes()
        said = run("sessions", "import", str(file), "--as", "copy", "--data", str(data), code=Exit.USAGE)
        assert "keeps its sessions in NATS at" in said
        assert "--store" in said
        assert run("sessions", "import", str(file), "--as", "copy", *store) == "copy\n"
        assert "copy" in run("sessions", "list", "--data", str(data))
        assert run("sessions", "rename", "copy", "Another", *store) == "Another\n"
        assert "heard say hello" in run("sessions", "show", "copy", *store)
        fork = run("sessions", "fork", "copy", *store).strip()
        run("sessions", "delete", "copy", "--yes", *store)
        listed = run("sessions", "list", "--data", str(data))
        assert fork in listed
        assert session in listed
        assert "copy " not in listed


def test_a_wrong_name_makes_no_streams(store: list[str]) -> None:
    for command in (["sessions", "list"], ["cluster", "status"]):
        for _ in range(2):
            said = run(*command, *store, code=Exit.ERROR)
            assert f"there are no sessions under the name {store[3]!r}" in said


def test_a_hub_and_a_store_are_not_named_together(store: list[str]) -> None:
    said = run("sessions", "list", "--hub", "127.0.0.1:1", *store, code=Exit.USAGE)
    assert "give either --hub or --store" in said


# --- cluster status -----------------------------------------------------------------------------------

DIES_WITH_A_CLAIM = """
import asyncio, os, sys
from antiphon.stores import JetStreamOptions, JetStreamStore

async def main():
    store = JetStreamStore(sys.argv[1], JetStreamOptions(name=sys.argv[2], lease=1))
    await store.claim("lost", "a hub")
    os._exit(0)

asyncio.run(main())
"""


async def test_the_status_shows_hubs_their_sessions_and_those_without_one(store: list[str]) -> None:
    about = HubAbout(
        label="site\x1b[31m", address="ws://a:1/acp", version="1.2", clients=3, started_at=time.time() - 7300
    )
    async with opened(store) as hub:
        hub.describe(msgspec.to_builtins(about))
        for name in ("kept", "lost"):
            await hub.create(SessionRecord(session_id=name, cwd="/", created_at=0, updated_at=0))
        await hub.claim("kept", "me")
        dead = await asyncio.create_subprocess_exec(
            sys.executable, "-c", DIES_WITH_A_CLAIM, store[1], store[3]
        )
        assert await dead.wait() == 0

        async def is_alone() -> bool:
            return len(await hub.peers()) == 1

        await until(is_alone)
        shown = await asyncio.to_thread(run, "cluster", "status", *store)
        found = json.loads(await asyncio.to_thread(run, "cluster", "status", "--json", *store))
    lines = [line.split() for line in shown.splitlines()]
    assert ["HUB", "ADDRESS", "VERSION", "SESSIONS", "CLIENTS", "UP"] in lines
    [row] = [line for line in lines if "ws://a:1/acp" in line]
    assert row[-6:] == ["ws://a:1/acp", "1.2", "1", "3", "2h", "1m"]
    assert "\x1b" not in shown
    assert f"  lost  (process {dead.pid} on " in shown
    [described] = found["hubs"]
    assert {**described, "uptime": 0} == {
        "id": hub.store_id,
        "label": about.label,
        "address": "ws://a:1/acp",
        "version": "1.2",
        "sessions": 1,
        "clients": 3,
        "uptime": 0,
    }
    assert [orphan["session"] for orphan in found["orphans"]] == ["lost"]
    streams = {stream["name"]: stream for stream in found["streams"]}
    assert streams[f"{store[3]}-index"]["messages"] == 2


async def test_a_description_of_another_version_is_no_error(store: list[str]) -> None:
    async with opened(store) as hub:
        hub.describe({"label": 7, "more": [1]})
        await hub.begin_lease()
        assert "\n?    ?        ?" in await asyncio.to_thread(run, "cluster", "status", *store)


def test_the_status_needs_a_store() -> None:
    assert "name the NATS servers with --store" in run("cluster", "status", code=Exit.USAGE)
