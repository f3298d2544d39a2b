"""Files of recordings are read as they were written, and other files are refused with a reason."""

from __future__ import annotations

import io
import json
import stat
import zlib
from pathlib import Path
from typing import Any

import pytest

from antiphon.conformance import recordings
from antiphon.conformance.judge import check_recording
from antiphon.conformance.recording import Recording, RecordingRefused, Role
from antiphon.conformance.recordings import RecordingWriter, read_recording, write_recording
from antiphon.conformance.verdicts import Outcome

EXPORTED = Path(__file__).parents[1] / "session_files" / "recorded"
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
ANSWER = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}}


def seen(recording: Recording) -> list[tuple[str, bytes, float]]:
    return [(str(frame.sender), frame.raw, frame.at) for frame in recording.frames]


def lines(path: Path, *entries: object) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def test_frames_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "tap.ndjson"
    frames = [
        (Role.CLIENT, json.dumps(INITIALIZE).encode(), 0.0),
        (Role.AGENT, "not JSON: \u2028 \N{SNOWMAN}".encode(), 0.25),
        (Role.AGENT, b'\xff\xfe{"broken', 0.5),
        (Role.CLIENT, b"", 0.5),
    ]
    with RecordingWriter(path) as writer:
        for sender, line, at in frames:
            writer.frame(sender, line, at)
    assert seen(read_recording(path)) == [(str(sender), line, at) for sender, line, at in frames]
    again = tmp_path / "again.ndjson"
    write_recording(again, read_recording(path))
    assert again.read_bytes() == path.read_bytes()


def test_only_the_owner_can_read_a_recording(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "tap") as writer:
        writer.frame(Role.CLIENT, b"{}", 0.0)
    assert stat.S_IMODE((tmp_path / "tap").stat().st_mode) == 0o600


def test_a_writer_that_was_killed_leaves_all_whole_frames(tmp_path: Path) -> None:
    path = tmp_path / "tap"
    with RecordingWriter(path) as writer:
        writer.frame(Role.CLIENT, b'{"id":1}', 0.0)
        writer.frame(Role.AGENT, b'{"id":2}', 1.0)
    path.write_bytes(path.read_bytes()[:-9])
    assert [frame.raw for frame in read_recording(path).frames] == [b'{"id":1}']


def test_a_full_disk_leaves_no_half_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tap.ndjson"
    full = False

    class Disk(io.FileIO):
        """Takes the beginning of what is written when it is full, as a disk does that has a little room."""

        def write(self, data: Any) -> int:
            return super().write(data[: len(data) // 2] if full else data)

    monkeypatch.setattr(recordings, "open", lambda fd, mode, buffering: Disk(fd, mode), raising=False)
    with RecordingWriter(path) as writer:
        writer.frame(Role.AGENT, b"one", 0.0)
        full = True
        with pytest.raises(OSError, match="No space left"):
            writer.frame(Role.AGENT, b"two", 0.0)
        full = False
        writer.frame(Role.AGENT, b"three", 0.0)
    assert [raw for _, raw, _ in seen(read_recording(path))] == [b"one", b"three"]


@pytest.mark.parametrize(
    "entries",
    [
        ({"from": "client", "message": INITIALIZE}, {"from": "agent", "message": ANSWER}),
        ({"direction": "out", **INITIALIZE}, {"direction": "in", **ANSWER}),
        (
            {"dir": ">", "raw": json.dumps(INITIALIZE), "ts": "2026-01-01T00:00:00Z"},
            {"dir": "<", "raw": json.dumps(ANSWER), "ts": "2026-01-01T00:00:01Z"},
        ),
    ],
    ids=["objects", "frames themselves", "text with times"],
)
def test_other_lines_with_directions_are_read(tmp_path: Path, entries: tuple[object, ...]) -> None:
    recording = read_recording(lines(tmp_path / "log", *entries))
    assert [(frame.sender, frame.value) for frame in recording.frames] == [
        (Role.CLIENT, INITIALIZE),
        (Role.AGENT, ANSWER),
    ]
    assert recording.frames[0].at == 0.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello\n", "line 1: expected a JSON object"),
        ("[]\n", "line 1: expected a JSON object"),
        ('{"antiphon":"recording","version":2}\n', "has version 2"),
        ('{"antiphon":"recording","version":1}\n{"line":"x"}\n', "line 2: expected one of the keys from"),
        ('{"from":"client"}\n', "line 1: expected one of the keys line"),
        ('{"from":"client","base64":"%"}\n', "line 1: `base64` is not base64"),
        ('{"dir":"a","line":"{}"}\n{"dir":"b","line":"{}"}\n', "do not name client and agent"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_the_line(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "file").write_text(text, encoding="utf-8")
    with pytest.raises(RecordingRefused, match=reason):
        read_recording(tmp_path / "file")


def test_an_exported_session_is_read_as_the_frames_of_a_client() -> None:
    recording = read_recording(EXPORTED / "version_2.antiphon")
    methods = [frame.method for frame in recording.frames]
    assert methods[:6] == ["initialize", None, "session/new", None, "session/prompt", None]
    assert recording.response_to(recording.frames[4]) is recording.frames[5]
    assert any(frame.update_kind == "state_update" for frame in recording.frames)


def test_a_question_of_an_exported_session_is_a_request_with_its_answer() -> None:
    recording = read_recording(EXPORTED / "version_1.antiphon")
    question = next(frame for frame in recording.of(Role.AGENT) if frame.is_request)
    answer = recording.response_to(question)
    assert question.method == "session/request_permission"
    assert answer is not None
    assert answer.get("result", "outcome", "outcome") == "selected"


def test_a_damaged_export_is_refused(tmp_path: Path) -> None:
    data = (EXPORTED / "version_1.antiphon").read_bytes()
    (tmp_path / "cut").write_bytes(data[: data.find(b"\n") + 40].replace(b'"size"', b'"sizd"'))
    with pytest.raises(RecordingRefused, match="byte 0"):
        read_recording(tmp_path / "cut")


BEGIN = b'{"part":"session","format":"antiphon session","size":0} \n\n'
"""The first part of an exported session, as far as it is read."""


def test_a_part_of_a_negative_size_in_an_export_is_refused(tmp_path: Path) -> None:
    back = b'{"part":"x","size":-26} \n'
    assert len(back) == 25, "its end is its beginning, so such a part would be read again and again"
    (tmp_path / "file").write_bytes(BEGIN + back)
    with pytest.raises(RecordingRefused, match=f"byte {len(BEGIN)}"):
        read_recording(tmp_path / "file")


@pytest.mark.parametrize("at", [b"1" + b"0" * 400, b"-1" + b"0" * 400, b"NaN", b"Infinity", b"1e300"])
def test_a_time_of_an_export_that_is_none_is_the_beginning(at: bytes, tmp_path: Path) -> None:
    event = b'{"at":%b,"body":{"type":"session_created","session_id":"s","cwd":"/"}}' % at
    body = zlib.compress(event)
    (tmp_path / "file").write_bytes(BEGIN + b'{"part":"events","size":%d} \n%b\n' % (len(body), body))
    frames = read_recording(tmp_path / "file").frames
    assert {frame.at for frame in frames} == {0.0}


# --- judging ---


def test_both_sides_of_a_recording_are_judged(tmp_path: Path) -> None:
    path = tmp_path / "tap"
    with RecordingWriter(path) as writer:
        for number, (sender, frame) in enumerate([
            (Role.CLIENT, INITIALIZE),
            (Role.AGENT, ANSWER),
            (Role.CLIENT, {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}),
            (Role.AGENT, {"jsonrpc": "2.0", "id": "1", "result": {"sessions": []}}),
        ]):  # fmt: skip
            writer.frame(sender, json.dumps(frame).encode(), number / 10)
    report = check_recording(path)
    failed = {(verdict.requirement.id, verdict.scenario) for verdict in report.failures}
    assert failed == {("RPC-05", "agent"), ("SESS-29", "client")}
    assert report.party == "recording"
    assert [frame.at for frame in report.failures[0].evidence.frames] == [0.2, 0.3]


def test_a_recording_without_initialize_cannot_be_judged(tmp_path: Path) -> None:
    with pytest.raises(RecordingRefused, match="no successful `initialize`"):
        check_recording(lines(tmp_path / "log", {"from": "client", "message": INITIALIZE}))


@pytest.mark.parametrize(
    ("name", "broken"), [("version_1", ["DIFF-05"]), ("version_2", [])], ids=["relative patch", "good"]
)
def test_an_exported_session_is_judged_by_its_updates(name: str, broken: list[str]) -> None:
    report = check_recording(EXPORTED / f"{name}.antiphon")
    assert [each.requirement.id for each in report.failures] == broken
    assert {each.scenario for each in report.verdicts} == {"agent"}
    passed = {each.requirement.id for each in report.of(Outcome.PASS)}
    assert {"MSG-02", "PROMPT-V2-15", "EXT-03"} <= passed
    assert not [id for id in passed if id.startswith(("INIT", "TRANS", "AUTH", "SESS"))]
