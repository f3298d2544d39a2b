"""`antiphon log`: recordings and journals as timelines, and nothing in them obeyed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from antiphon.cli.timeline.entries import Entry, Timeline
from antiphon.cli.timeline.lines import to_json_lines, to_lines
from antiphon.cli.timeline.page import to_html
from antiphon.cli.timeline.recorded import timeline_of
from antiphon.conformance.recording import Recording, Role
from antiphon.conformance.recordings import read_recording, write_recording
from antiphon.text_safety import is_safe
from tests import warm
from tests.cli.command import DEADLINE, environment, prompt
from tests.conformance.sample_report import HOSTILE
from tests.cpu_growth import assert_grows_in_proportion

C, A = Role.CLIENT, Role.AGENT


def recording(*frames: tuple[Role, Any]) -> Recording:
    """Frames one millisecond apart; bytes as they are, anything else as JSON."""
    made = Recording(lambda: 0.0)
    for at, (sender, value) in enumerate(frames):
        made.add(sender, value if isinstance(value, bytes) else json.dumps(value).encode(), at=at / 1000)
    return made


def update(**fields: Any) -> tuple[Role, Any]:
    return A, {"method": "session/update", "params": {"sessionId": "s", "update": fields}}


def chunk(text: str, id: str | None = None, kind: str = "agent_message_chunk") -> tuple[Role, Any]:
    ids = {} if id is None else {"messageId": id}
    return update(sessionUpdate=kind, content={"type": "text", "text": text}, **ids)


def entries(*frames: tuple[Role, Any]) -> list[Entry]:
    return timeline_of(recording(*frames), "talk").entries


# --- recordings ----------------------------------------------------------------------------------------


def test_a_request_and_its_answer_are_one_entry_with_the_time_between() -> None:
    (entry,) = entries(
        (C, {"id": 0, "method": "initialize", "params": {"protocolVersion": 2}}),
        (A, {"id": 0, "result": {"protocolVersion": 2, "info": {"name": "echo", "version": "1"}}}),
    )
    assert entry == Entry(
        at=0.0, who="client", kind="request", title="initialize", detail='{"protocolVersion": 2}',
        status="ACP 2, echo 1", took=0.001, frames=2,
    )  # fmt: skip


def test_requests_of_both_sides_with_the_same_id_are_kept_apart() -> None:
    first, second = entries(
        (C, {"id": 1, "method": "a"}),
        (A, {"id": 1, "method": "b"}),
        (C, {"id": 1, "error": {"code": -32601, "message": "no"}}),
        (A, {"id": "1", "result": {}}),
    )[:2]
    assert (first.title, first.status) == ("a", "no answer")
    assert (second.title, second.status) == ("b", "error -32601: no")


def test_a_response_to_nothing_is_named() -> None:
    assert [entry.kind for entry in entries((A, {"id": 9, "result": {}}))] == ["stray response"]


def test_the_chunks_of_a_message_are_one_entry() -> None:
    one, thought, two = entries(
        chunk("Let me "), chunk("see."), chunk("Hm.", kind="agent_thought_chunk"), chunk("Done.")
    )
    assert (one.text, one.frames) == ("Let me see.", 2)
    assert (thought.kind, thought.text) == ("thought", "Hm.")
    assert two.text == "Done.", "without an id, a message ends where another begins"


def test_interleaved_messages_are_told_apart_by_their_ids() -> None:
    one, two = entries(chunk("a", "1"), chunk("x", "2"), chunk("b", "1"), chunk("y", "2"))
    assert (one.text, two.text) == ("ab", "xy")


def test_a_whole_message_replaces_what_was_streamed() -> None:
    (entry,) = entries(
        chunk("helo", "1"),
        update(sessionUpdate="agent_message", messageId="1", content=[{"type": "text", "text": "hello"}]),
    )
    assert entry.text == "hello"


def test_a_tool_call_is_one_entry_with_its_last_state() -> None:
    (entry,) = entries(
        update(sessionUpdate="tool_call", toolCallId="c", title="Read", status="pending"),
        update(sessionUpdate="tool_call_update", toolCallId="c", status="in_progress"),
        update(
            sessionUpdate="tool_call_update", toolCallId="c", status="completed",
            content=[{"type": "content", "content": {"type": "text", "text": "12 lines"}},
                     {"type": "diff", "path": "/a"}],
        ),
    )  # fmt: skip
    assert (entry.title, entry.status, entry.took, entry.frames) == ("Read", "completed", 0.002, 3)
    assert entry.text == "12 lines[diff /a]"


def test_a_permission_names_the_chosen_option() -> None:
    options = [{"optionId": "y", "name": "Allow", "kind": "allow_once"}]
    (entry,) = entries(
        (A, {"id": 5, "method": "session/request_permission",
             "params": {"sessionId": "s", "toolCall": {"title": "Run ls"}, "options": options}}),
        (C, {"id": 5, "result": {"outcome": {"outcome": "selected", "optionId": "y"}}}),
    )  # fmt: skip
    assert (entry.who, entry.kind, entry.title, entry.status) == ("agent", "permission", "Run ls", "Allow")


def test_prompts_plans_states_and_other_updates_have_their_words() -> None:
    found = entries(
        (C, {"id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": [
            {"type": "text", "text": "Hi"}, {"type": "image", "mimeType": "image/png"}]}}),
        update(sessionUpdate="plan", entries=[{"content": "Look", "status": "completed"}]),
        update(sessionUpdate="state_update", state="idle", stopReason="end_turn"),
        update(sessionUpdate="usage_update", used=5),
        (C, {"method": "session/cancel", "params": {"sessionId": "s"}}),
        (A, {"id": 1, "result": {"stopReason": "end_turn"}}),
    )  # fmt: skip
    assert [(each.kind, each.title, each.text, each.detail, each.status) for each in found] == [
        ("prompt", "", "Hi[image image/png]", "", "end_turn"),
        ("plan", "", "[completed] Look", "", ""),
        ("state", "idle", "", "", "end_turn"),
        ("update", "usage_update", "", '{"used": 5}', ""),
        ("notification", "session/cancel", "", '{"sessionId": "s"}', ""),
    ]


HOSTILE_RECORDING = recording(
    (C, {"id": HOSTILE, "method": HOSTILE, "params": {HOSTILE: HOSTILE}}),
    (A, {"id": HOSTILE, "error": {"code": HOSTILE, "message": HOSTILE}}),
    chunk(HOSTILE, HOSTILE),
    update(sessionUpdate=HOSTILE, x="\ud83d"),
    update(sessionUpdate="tool_call", toolCallId={"a": 1}, title=HOSTILE, status=HOSTILE, content=[1, None]),
    update(sessionUpdate="plan", entries=7),
    (A, {"id": [1], "method": "session/request_permission", "params": {"options": [3], "toolCall": 4}}),
    (C, {"id": [1], "result": {"outcome": "x"}}),
    (A, b"\xff\xfe"), (A, b"[" * 5000), (A, b"7"), (A, b'{"id":1,"result":"\\ud83d"}'),
)  # fmt: skip


def test_nothing_in_a_recording_is_obeyed() -> None:
    timeline = timeline_of(HOSTILE_RECORDING, HOSTILE)
    for line in to_lines(timeline, width=80):
        assert is_safe(re.sub(r"\x1b\[\d+m", "", line))
    page = "".join(to_html(timeline))
    assert is_safe(page)
    assert "<script" not in page
    assert "<img" not in page
    for line in to_json_lines(timeline):
        assert line.isascii()
        json.loads(line)


def test_long_text_is_cut_on_a_terminal_only() -> None:
    timeline = Timeline(name="x", entries=[Entry(at=0, who="agent", kind="message", text="line\n" * 100)])
    assert "60 more lines" in "\n".join(to_lines(timeline, width=80))
    assert json.loads(next(to_json_lines(timeline)))["text"] == "line\n" * 100


def test_ids_that_are_no_ids_and_nested_values_are_shown_like_others() -> None:
    nested: Any = "x"
    for _ in range(300):
        nested = {"content": nested}
    made = entries(
        update(sessionUpdate="agent_message_chunk", messageId={"a": 1}, content=nested),
        (A, {"method": "session/update", "params": {"sessionId": [], "update": {"sessionUpdate": "odd"}}}),
        (A, {"method": "session/update", "params": {"sessionId": {}, "update": {
            "sessionUpdate": "tool_call", "toolCallId": [1], "title": "t"}}}),
        (A, {"id": {"no": "id"}, "method": "x"}),
        (A, {"result": {}}),
        update(sessionUpdate="state_update", state=nested),
    )  # fmt: skip
    assert [entry.kind for entry in made] == [
        "message", "update", "tool call", "request", "stray response", "state",
    ]  # fmt: skip
    assert [made[0].text, made[-1].title] == ["[content]", "…"]


def test_a_message_of_many_chunks_takes_no_longer_than_its_length() -> None:
    def read(count: int) -> None:
        made = recording(*[chunk("a" * 2000, "m")] * count)
        timeline_of(made, "talk")

    assert_grows_in_proportion(read, 500, times=16)


@pytest.mark.parametrize(
    "at", ["1e400", "-1e400", "1" + "0" * 400, '"0001-01-01T00:00:00"', "null", "[1]", "1e300"]
)
def test_a_time_that_is_none_is_zero(tmp_path: Path, at: str) -> None:
    file = tmp_path / "odd.ndjson"
    request, answer = ('{"id": 1, "method": "x"}', '{"id": 1, "result": {}}')
    lines = [
        f'{{"at": 0, "from": "client", "message": {request}}}',
        f'{{"at": {at}, "from": "agent", "message": {answer}}}',
    ]
    file.write_text("\n".join(lines))
    timeline = timeline_of(read_recording(file), "odd")
    assert [(entry.at, entry.took) for entry in timeline.entries] == [(0.0, 0.0)]
    assert [*to_lines(timeline, width=80)]


def test_a_frame_with_half_a_character_is_read(tmp_path: Path) -> None:
    file = tmp_path / "odd.ndjson"
    file.write_text('{"from": "agent", "message": {"method": "\\ud800"}}')
    (entry,) = timeline_of(read_recording(file), "odd").entries
    assert entry.title == "\ud800"


# --- the command ---------------------------------------------------------------------------------------


def log(*arguments: str, **env: str) -> CompletedProcess[str]:
    return warm.run(["log", *arguments], timeout=DEADLINE, env=environment(COLUMNS="100", **env))


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.ndjson"
    write_recording(path, recording((C, {"id": 0, "method": "initialize", "params": {}}), chunk("Hello")))
    return path


def test_a_recording_is_shown_as_lines(talk: Path) -> None:
    result = log(str(talk))
    assert result.returncode == 0, result.stderr
    assert re.search(
        r"0\.000  client +request +initialize  no answer\n +0\.001  agent +message", result.stdout
    )


def test_a_recording_is_printed_as_json_and_written_as_a_page(talk: Path) -> None:
    lines = [json.loads(line) for line in log(str(talk), "--json").stdout.splitlines()]
    assert [line["kind"] for line in lines] == ["request", "message"]
    page = talk.with_suffix(".html")
    assert log(str(talk), "--html", str(page)).returncode == 0
    assert "Hello" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"hello\n", "expected a JSON object"), (b'{"antiphon":"recording","version":9}\n', "version 9")],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "other.txt"
    path.write_bytes(content)
    result = log(str(path))
    assert result.returncode == 1
    assert told in result.stderr


def test_a_missing_file_is_told_from_a_session(tmp_path: Path) -> None:
    assert "there is no such file" in log("missing.ndjson").stderr
    assert "there are no sessions" in log("4f2a", "--data", str(tmp_path / "none")).stderr


def test_what_a_tap_recorded_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "talk.ndjson"
    tap = [sys.executable, "-m", "antiphon", "tap", "--log", str(path), "--"]
    agent = [sys.executable, "-m", "antiphon", "rehearse"]
    assert prompt("plan", agent=[*tap, *agent]).returncode == 0
    shown = log(str(path)).stdout
    assert re.search(r"client +request +initialize .* ACP 2, ", shown)
    assert re.search(r"client +prompt +answered", shown)
    assert re.search(r"agent +state +idle  end_turn", shown)


async def test_a_session_of_a_hub_is_shown_from_its_folder_and_from_a_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    session = await make_session(data)
    shown = log(session, "--data", str(data))
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"\d\d:\d\d:\d\d  \w+ +message\n +Good evening", shown.stdout)
    assert re.search(r"turn +done · ", shown.stdout)
    file = tmp_path / "talk.antiphon"
    exported = warm.run(
        ["sessions", "export", session, "--data", str(data), "-o", str(file)],
        timeout=DEADLINE, env=environment(),
    )  # fmt: skip
    assert exported.returncode == 0, exported.stderr
    assert log(str(file)).stdout == shown.stdout
    page = tmp_path / "talk.html"
    assert log(session, "--data", str(data), "--html", str(page)).returncode == 0
    assert "Good evening" in page.read_text()


async def make_session(data: Path) -> str:
    """A session in the data folder of a hub that has ended."""
    from antiphon import Hub, SQLiteStore, connect

    hub = Hub([sys.executable, "-m", "antiphon", "rehearse"], store=SQLiteStore(data / "sessions.db"))
    async with connect(hub) as client:
        session = await client.new_session(cwd=str(data))
        await (await session.prompt("Good evening.")).drained()
        return session.id
