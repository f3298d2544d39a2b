"""A hub whose store is damaged: sessions are marked in lists, opening one says what is wrong, and the others
are served."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Client, connect
from antiphon.engine.events import SessionCreated, encode_event
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import CallFailed
from antiphon.hub import Hub, HubFolder
from antiphon.hub.store_check import StoreCheck
from antiphon.live.stored_session import read_session
from antiphon.schema.antiphon.hub import Damage
from antiphon.schema.version import ours_in
from antiphon.stores import Batch, MemoryStore, SessionRecord, SQLiteStore
from antiphon.stores.base import CheckReport
from tests.engine.journals import chunk, number
from tests.hub.doors import DEADLINE, doors, refused
from tests.hub.test_commands import run

YEAR_10000 = 253_402_300_800_000


async def keep(store: Any, session_id: str, **fields: Any) -> None:
    """A session of nine events in three batches."""
    created = SessionCreated(session_id=session_id, cwd="/w")
    bodies = [created, *(chunk("m", f"word {number} ") for number in range(2, 10))]
    lines = [encode_event(event) for event in number(bodies, after=0, at=1)]
    record = {"session_id": session_id, "cwd": "/w", "created_at": 1, "updated_at": 1, **fields}
    await store.create(SessionRecord(**record), batch=Batch(1, tuple(lines[:3])))
    for first in (3, 6):
        await store.append(session_id, Batch(first + 1, tuple(lines[first : first + 3])))


async def damaged_file(folder: Path) -> Path:
    """Sessions that are whole, without a beginning, without a middle, with garbage, and newer."""
    path = folder / "sessions.db"
    async with SQLiteStore(path) as store:
        for name in ("whole", "first", "middle", "garbage", "newer", "row"):
            await keep(store, name)

    def edit(statement: str, name: str) -> None:
        key = "(SELECT key FROM sessions WHERE id = ?)"
        connection.execute(f"{statement} AND session = {key}", (name,))

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        edit("DELETE FROM batches WHERE first = 1", "first")
        edit("DELETE FROM batches WHERE first = 4", "middle")
        edit("UPDATE batches SET events = x'000a000a00' WHERE first = 4", "garbage")
        kind = 'CAST(replace(CAST(events AS TEXT), \'"type":"update"\', \'"type":"mended"\') AS BLOB)'
        edit(f"UPDATE batches SET events = {kind} WHERE first = 4", "newer")
        connection.execute("UPDATE sessions SET meta = '{', updated_at = ? WHERE id = 'row'", (YEAR_10000,))
    return path


@asynccontextmanager
async def served(path: Path) -> AsyncIterator[Client]:
    async with connect(Hub({}, store=SQLiteStore(path)), version=2) as client:
        yield client


async def faults(client: Client) -> dict[str, str | None]:
    found = {}
    async for info in client.list_sessions():
        fault = ours_in(info.meta).get("fault")
        found[info.session_id] = None if fault is None else fault["kind"]
    return found


async def test_damaged_sessions_are_marked_refused_and_kept_and_others_are_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = await damaged_file(tmp_path)
    caplog.set_level(logging.WARNING)
    async with served(path) as client:
        marks = dict.fromkeys(("first", "middle", "garbage", "row"), "damaged")
        assert await faults(client) == {**marks, "whole": None, "newer": None}
        for name, reason in {**marks, "newer": "newer"}.items():
            with pytest.raises(CallFailed) as refused:
                async with client.attach(name, cwd="/w"):
                    pass
            error = refused.value.error
            assert error.data["reason"] == reason
            assert error.data["sessionId"] == name
            assert str(tmp_path) not in error.message
            assert ("antiphon sessions export" in error.message) is (reason == "damaged")
        assert (await faults(client))["newer"] == "newer", "opening it has shown that"
        async with client.attach("whole", cwd="/w") as session:
            assert session.messages[0].text.startswith("word 2 word 3")
            timeline = await session.call_antiphon("timeline")
            assert timeline.items
        told = await client.connection.call("_antiphon/transcript", {"sessionId": "middle"})
        assert "word 3" in told.content
        assert "word 7" in told.content
        assert told.missing == ["events 4 to 6 cannot be read (events 4 to 6 are missing)"]
        assert await client.connection.call("_antiphon/timeline", {"sessionId": "first"})
        page = await client.connection.call("_antiphon/journal", {"sessionId": "first", "after": 0})
        assert page.damage == Damage(found="events 1 to 3 are missing", resume=3)
        await client.delete_session("first")
        assert "first" not in await faults(client)
    log = caplog.text
    assert "store check: session first is damaged: events 1 to 3 are missing" in log
    assert "store check: 4 damaged sessions found; the others are served" in log
    assert "Traceback" not in log


async def test_a_small_store_is_checked_before_clients_come_and_a_large_one_beside_them() -> None:
    class Slow(MemoryStore):
        """A store whose check does not end."""

        ended = False

        async def check(self, *, seconds: float) -> CheckReport:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.ended = True
            raise AssertionError

    store = Slow()
    check = StoreCheck(store, lambda _: None, wait=0.01)
    await check.begin()
    assert not store.ended
    await check.aclose()
    assert store.ended


async def test_a_time_that_no_list_can_write_fails_none(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        for name, at in (("a", YEAR_10000), ("b", (1 << 63) - 1), ("c", -5), ("d", 1)):
            await keep(store, name, created_at=at, updated_at=at)
    async with served(path) as client:
        assert (await faults(client)).keys() == {"a", "b", "c", "d"}


async def test_parents_in_a_circle_hang_no_request(tmp_path: Path) -> None:
    store = MemoryStore()
    for one, other in (("a", "b"), ("b", "a"), ("self", "self")):
        await keep(store, one, meta={SUBAGENT_OF: other})
    async with asyncio.timeout(DEADLINE), doors(tmp_path, store=store) as door:
        async with door.talk(door.token("guest", "controller", sessions=["z"])) as guest:
            for name in ("a", "b", "self"):
                error = await refused(guest, name, "session/resume", sessionId=name, cwd="/", mcpServers=[])
                assert error is not None
                assert error["data"] == {"reason": "forbidden"}
        async with connect(door.hub, version=2) as client:
            await client.delete_session("a")
            assert await store.get("a") is None


def sessions(*arguments: str, data: Path) -> tuple[int, str, str]:
    result = run("sessions", *arguments, "--data", str(data))
    assert "Traceback" not in result.stderr
    return result.returncode, result.stdout, result.stderr


async def test_the_command_line_lists_exports_and_imports_damaged_sessions(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    HubFolder(data).make()
    await damaged_file(data)
    _, out, _ = sessions("list", data=data)
    assert {line.split()[0]: "damaged" in line.split() for line in out.splitlines()[1:]} == {
        "whole": False,
        "newer": False,
        **dict.fromkeys(("first", "middle", "garbage", "row"), True),
    }
    code, _, err = sessions("show", "middle", data=data)
    assert code == 1
    assert "session middle is damaged: events 4 to 6 are missing" in err
    file = tmp_path / "middle.antiphon"
    code, _, err = sessions("export", "middle", "-o", str(file), data=data)
    assert code == 0
    assert "antiphon: session middle: events 4 to 6 cannot be read (events 4 to 6 are missing)" in err
    assert file.stat().st_mode & 0o777 == 0o600
    code, out, err = sessions("import", str(file), "--partial", data=other)
    assert (code, out) == (0, "middle\n"), err
    async with SQLiteStore(other / "sessions.db") as store:
        assert (await read_session(store, "middle")).messages[0].text == "word 2 word 3 "


async def test_a_file_that_cannot_be_opened_is_told_in_one_line_and_still_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    HubFolder(data).make()
    path = data / "sessions.db"
    async with SQLiteStore(path) as store:
        await keep(store, "early")
        for number_ in range(40):
            await keep(store, f"later{number_}", title="t" * 4000)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)
    before = path.read_bytes()
    served = run("serve", "--port", "0", "--data", str(data))
    assert served.returncode == 1
    assert "database disk image is malformed" in served.stderr
    assert "sessions export" in served.stderr
    assert len(served.stderr.splitlines()) == 1
    code, out, err = sessions("list", "--json", data=data)
    assert code == 0, err
    assert "early" in [json.loads(line)["sessionId"] for line in out.splitlines()]
    code, _, err = sessions("export", "early", "-o", str(tmp_path / "early.antiphon"), data=data)
    assert code == 0, err
    assert path.read_bytes() == before
