"""What the built-in agent can do, each skill in both versions, in a process of its own."""

from __future__ import annotations

import asyncio
import datetime
import os
import struct
import zlib
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from antiphon.client import Client, ClientSession, ProcessOptions, connect
from antiphon.schema import v2
from tests.rehearsal.driving import (
    AT_ONCE,
    COMMAND,
    DEADLINE,
    Answers,
    a_folder,
    met,
    prompted,
    said,
    shown,
    value,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[1, 2])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """One process of it for each version, held open by a task of its own."""
    over = asyncio.Event()
    ready: asyncio.Queue[Client] = asyncio.Queue()
    told: list[str] = []

    async def hold() -> None:
        async with connect(
            COMMAND,
            version=request.param,
            answers=Answers(),
            process=ProcessOptions(env=AT_ONCE, on_stderr=told.append),
        ) as connected:
            ready.put_nowait(connected)
            await over.wait()

    async with asyncio.timeout(DEADLINE):
        holding = asyncio.get_running_loop().create_task(hold())
        connected = await ready.get()
    yield connected
    over.set()
    await asyncio.wait_for(holding, DEADLINE)
    assert told == []


@asynccontextmanager
async def session_of(client: Client, cwd: Path, *, answers: Any = None) -> AsyncIterator[ClientSession]:
    client.answers = answers or Answers()
    async with asyncio.timeout(DEADLINE):
        yield await client.new_session(cwd)


async def test_look_lists_and_reads_and_names_the_place(client: Client, tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    async with session_of(client, folder) as session:
        assert "3 folders and 4 files" in await said(session, "/look")
        assert "src/" in shown(session)
        assert "`song.txt` has 2 lines" in await said(session, "look at song.txt")
        [_, read] = session.tool_calls
        assert (read.kind, read.status) == ("read", "completed")
        assert [(place.path, place.line) for place in read.locations] == [(str(folder / "song.txt"), 1)]
        assert "la la\nTODO" in shown(session)
        assert "1 folder and 1 file" in await said(session, "list files in src")
        # As the page and the terminal UI complete a mention.
        assert "`song.txt` has 2 lines" in await said(session, "look at @song.txt ")
        assert "`song.txt` has 2 lines" in await said(session, "/look @song.txt ")
        assert session.title == "Look"


async def test_nothing_outside_of_the_folder_is_read_or_written(client: Client, tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    async with session_of(client, folder) as session:
        for name in ("../secret.txt", "link.txt", "none.txt", "/etc/passwd", "a\0b", "x" * 5000):
            assert "There is no" in await said(session, f"/look {name}")
            await said(session, f"/edit {name} secret => open")
        assert "secret" not in shown(session)
        assert (tmp_path / "secret.txt").read_text() == "TODO secret\n"
        assert not (folder / "none.txt").exists()


async def test_find_searches_what_people_wrote(client: Client, tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    async with session_of(client, folder) as session:
        text = await said(session, "/find TODO")
        assert text.startswith("2 matches in 2 files;")
        assert shown(session) == "song.txt:2: TODO: a second verse\nsrc/choir.py:1: # todo: sing\n"
        [call] = session.tool_calls
        assert call.kind == "search"
        assert [(Path(place.path).name, place.line) for place in call.locations] == [
            ("song.txt", 2),
            ("choir.py", 1),
        ]
        assert call.raw_output["matches"] == 2
        assert (await said(session, "find todo in src")).startswith("1 match in 1 file;")
        assert (await said(session, "find nowhere in nowhere")).startswith("0 matches in 0 files;")
        assert "Say what to search for" in await said(session, "/find")


async def test_a_search_that_finds_much_stops(client: Client, tmp_path: Path) -> None:
    for number in range(70):
        (tmp_path / f"{number:02}.txt").write_text("la\n")
    async with session_of(client, tmp_path) as session:
        assert "I stopped at 50 matches in 50 files" in await said(session, "/find la")


async def test_an_edit_is_shown_asked_for_written_and_taken_back(client: Client, tmp_path: Path) -> None:
    answers = Answers()
    song = tmp_path / "antiphon-tour" / "song.txt"
    async with session_of(client, tmp_path, answers=answers) as session:
        assert "is written" in await said(session, "/edit")
        [call] = session.tool_calls
        assert (call.kind, call.status) == ("edit", "completed")
        assert isinstance(call.content[0], v2.Diff)
        first = song.read_text()
        await said(session, "/edit")
        assert song.read_text().startswith(first)
        assert song.read_text().count("\n") == 2
        assert "as it was before" in await said(session, "/undo")
        assert song.read_text() == first
        assert "deleted again" in await said(session, "undo")
        assert not song.parent.exists()
        assert "no edit in this session" in await said(session, "/undo")
        assert [asked.option("allow_always") is not None for asked in answers.asked] == [True] * 4


async def test_words_are_replaced_and_lines_added(client: Client, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_bytes(b"one\r\ntwo\r\n")
    notes.chmod(0o640)
    async with session_of(client, tmp_path) as session:
        await said(session, "/edit notes.txt two => 2")
        assert notes.read_bytes() == b"one\r\n2\r\n", "line endings stay"
        assert notes.stat().st_mode & 0o777 == 0o640
        [place] = session.tool_calls[0].locations
        assert place.line == 2
        assert "does not contain `three`" in await said(session, "/edit notes.txt three => 3")
        await said(session, "/edit new.txt => first line")
        assert (tmp_path / "new.txt").read_text() == "first line\n"
        assert "replaces text" in await said(session, "/edit notes.txt")
        assert sorted(os.listdir(tmp_path)) == ["new.txt", "notes.txt"], "no drafts"
        notes.write_text("somebody else was here\n")
        (tmp_path / "new.txt").write_text("and here\n")
        assert "has changed since" in await said(session, "/undo")


async def test_what_changed_while_it_was_asked_is_not_touched(client: Client, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("one\n")

    def change(permission: Any) -> str:
        notes.write_text("one, and more\n")
        return "allow"

    async with session_of(client, tmp_path, answers=Answers(change)) as session:
        assert "in the meantime" in await said(session, "/edit notes.txt one => 1")
        assert notes.read_text() == "one, and more\n"
        assert session.tool_calls[0].status == "failed"


@pytest.mark.parametrize("choice", ["reject", None])
async def test_nothing_is_written_or_run_that_was_not_allowed(
    choice: str | None, client: Client, tmp_path: Path
) -> None:
    async with session_of(client, tmp_path, answers=Answers(choice)) as session:
        assert "nothing was changed" in await said(session, "/edit")
        assert "not run" in await said(session, "/run touch made")
        assert [call.status for call in session.tool_calls] == ["failed", "failed"]
    assert os.listdir(tmp_path) == []


async def test_the_mode_decides_whether_it_asks(client: Client, tmp_path: Path) -> None:
    answers = Answers("reject")
    async with session_of(client, tmp_path, answers=answers) as session:
        assert "as it is now" in await said(session, "/mode")
        await session.set_config("mode", "auto")
        assert "is written" in await said(session, "/edit")
        assert "code 0" in await said(session, "run true")
        assert "read-only" not in await said(session, "/mode read-only")
        assert value(session, "mode") == "read_only"
        assert "read-only" in await said(session, "/edit")
        assert "not run" in await said(session, "run touch made")
        assert answers.asked == []
        await said(session, "/mode ask")
        await said(session, "/edit")
        assert len(answers.asked) == 1
    assert not (tmp_path / "made").exists()


async def test_always_is_remembered_by_kind(client: Client, tmp_path: Path) -> None:
    answers = Answers("always")
    async with session_of(client, tmp_path, answers=answers) as session:
        for text in ("/edit", "/edit", "/undo", "/run true"):
            await said(session, text)
        assert [asked.kind for asked in answers.asked] == ["edit", "execute"]


async def test_a_command_runs_in_a_terminal_with_its_colours_and_its_code(
    client: Client, tmp_path: Path
) -> None:
    async with session_of(client, tmp_path) as session:
        assert "code 0" in await said(session, "/run")
        scale = shown(session)
        assert "do" in scale
        assert "si" in scale
        assert "code 3" in await said(session, "/run echo out; exit 3")
        assert [call.status for call in session.tool_calls] == ["completed", "failed"]
        assert "I found no tests" in await said(session, "run tests")
        (tmp_path / "Makefile").write_text("test:\n\t@echo all is well\n")
        await said(session, "run the tests.")
        assert "all is well" in shown(session)


async def test_a_plan_moves_and_its_steps_are_done(client: Client, tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    states: list[str] = []
    async with session_of(client, folder) as session:
        turn = await session.prompt("/plan")
        async for update in turn.updates():
            if isinstance(update, v2.PlanUpdate) and isinstance(update.plan, v2.PlanItems):
                states.append("".join(str(entry.status)[0] for entry in update.plan.entries))
        assert (await turn.drained()).stop_reason == "end_turn"
        assert states == ["pppp", "ippp", "cipp", "ccip", "ccci", "cccc"]
        assert "2 lines mention TODO" in turn.text
        assert "5 files" in turn.text


FILLED = {
    "title": "Vespers",
    "day": "2026-11-16",
    "singers": 12,
    "key": "C major",
    "begins": "bass",
    "instruments": ["organ", "viol"],
    "encore": False,
}


async def test_a_form_has_every_kind_of_field_and_its_answers_are_told(
    client: Client, tmp_path: Path
) -> None:
    answers = Answers(**FILLED)
    async with session_of(client, tmp_path, answers=answers) as session:
        text = await said(session, "/form")
        for cell in ("Vespers", "2026-11-16", "12", "96", "C major", "bass", "organ, viol", "no"):
            assert f" {cell} |" in text
        assert datetime.date.fromisoformat(FILLED["day"])
        kinds = {type(field).__name__ for field in answers.elicited[0].fields}
        assert kinds == {
            "TextField",
            "IntegerField",
            "NumberField",
            "BooleanField",
            "ChoiceField",
            "ChoicesField",
        }
        answers.values = {}
        assert "You declined" in await said(session, "/form")


async def test_an_address_is_agreed_to_or_not(client: Client, tmp_path: Path) -> None:
    async with session_of(client, tmp_path, answers=Answers()) as session:
        assert "You did not agree" in await said(session, "/visit")


async def test_words_thoughts_tables_and_pictures(client: Client, tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    async with session_of(client, folder) as session:
        assert "391 is not a prime: 17 × 23." in await said(session, "/think")
        assert "97 is a prime." in await said(session, "/think 97")
        assert [message.type for message in session.messages].count("thought") == 2
        markdown = await said(session, "/markdown")
        for mark in ("## ", "| Voice |", "```python\n", "> One session", "](https://", "1. "):
            assert mark in markdown
        assert "| `song.txt` | 27 | 2 |" in await said(session, "/table")
        assert (await said(session, "/stream 3 la")).startswith("la la la ")
        assert (await said(session, "/stream 2")).startswith("Chunk 1 of 2. Chunk 2 of 2. ")
        await said(session, "/image")
        [picture] = [
            block
            for message in session.messages
            for block in message.content
            if isinstance(block, v2.ImageContent)
        ]
        assert_is_png(b64decode(picture.data))


def assert_is_png(data: bytes) -> None:
    """Every chunk has its sum, and there are as many points as it says."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(name + body)
        chunks[name], at = body, at + 12 + length
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    assert len(zlib.decompress(chunks[b"IDAT"])) == height * (3 * width + 1)


async def test_background_work_outlives_the_turn_and_then_it_speaks_up(
    client: Client, tmp_path: Path
) -> None:
    async with session_of(client, tmp_path) as session:
        await said(session, "/background 2")
        await met(session, lambda: "The practice is over: 2 bars." in session.messages[-1].text)
        [call] = session.tool_calls
        await met(session, lambda: call.status == "completed")
        assert shown(session) == "Bar 1 of 2\nBar 2 of 2\n"


async def test_a_nudge_is_a_turn_that_nobody_prompted_for(client: Client, tmp_path: Path) -> None:
    async with session_of(client, tmp_path) as session:
        await said(session, "/nudge 0")
        await met(session, lambda: "the nudge that you asked for" in session.messages[-1].text)
        await met(session, lambda: session.state == "idle")
        assert [message.type for message in session.messages].count("user") == 1


async def test_a_subagent_reports(client: Client, tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    async with session_of(client, folder) as session:
        assert "src/choir.py, with 4 lines" in await said(session, "/subagent")
        [child] = session.subagents
        assert child.title == "Librarian"


async def test_the_context_is_counted_and_compacted_and_costs_nothing(client: Client, tmp_path: Path) -> None:
    async with session_of(client, tmp_path) as session:
        await said(session, "/stream 200")
        assert session.usage is not None
        before = session.usage.used
        told = sum(len(message.text) for message in session.messages)
        assert before == -(-told // 4)
        assert session.usage.size == 32_000
        assert session.usage.cost is None
        assert "cost nothing" in await said(session, "/usage")
        await said(session, "/compact")
        assert session.compactions[0].status == "completed"
        assert session.usage.used < before


async def test_it_misbehaves_on_request(client: Client, tmp_path: Path) -> None:
    async with session_of(client, tmp_path) as session:
        for text, reason in (("/refuse", "refusal"), ("/maxtokens", "max_tokens"), ("/slow 1", "end_turn")):
            _, end = await prompted(session, text)
            assert end.stop_reason == reason
            assert "language model" in await said(session, "and now?")


async def test_it_explains_once_and_not_where_that_is_turned_off(client: Client, tmp_path: Path) -> None:
    async with session_of(client, tmp_path) as session:
        assert "In the protocol this is" not in await said(session, "/look nowhere"), "nothing was seen"
        assert "In the protocol this is" in await said(session, "/look")
        assert "In the protocol this is" not in await said(session, "/look")
        await session.set_config("explain", False)
        assert "In the protocol this is" not in await said(session, "/table")


async def test_help_names_every_command_and_a_greeting_the_way_there(client: Client, tmp_path: Path) -> None:
    async with session_of(client, tmp_path) as session:
        assert "`/tour`" in await said(session, "Good evening")
        assert "`/help`" in await said(session, "What is the meaning of life?")
        text = await said(session, "/help")
        assert len(session.commands) > 25
        for command in session.commands:
            assert f"`/{command.name}`" in text
            assert command.description
        assert "kind `read`" in await said(session, "/help look")
        assert "I got `image/png` of 3 bytes." in (
            await attached(session, v2.ImageContent(data="AAAA", mime_type="image/png"))
        )


async def attached(session: Any, block: Any) -> str:
    turn = await session.prompt("see", block)
    await turn.drained()
    return str(turn.text)
