"""Files of recordings: the format that `antiphon tap` writes, and readers for it and its relatives.

A file is lines of JSON. The first line is a header, and each other line is one frame:

    {"antiphon":"recording","version":1}
    {"at":0.0124,"from":"client","line":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":0,…}"}
    {"at":0.0310,"from":"agent","base64":"//4="}

`at` is in seconds. `base64` has the bytes of a frame that is not UTF-8. A reader ignores other keys.
"""

from __future__ import annotations

import base64
import errno
import json
import math
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec
from msgspec import UNSET

from antiphon.conformance.exported import is_exported, read_exported
from antiphon.conformance.recording import Recording, RecordingRefused, Role, parse

VERSION = 1
HEADER = {"antiphon": "recording", "version": VERSION}
_encode = msgspec.json.Encoder().encode
_DIRECTIONS = ("from", "sender", "direction", "dir")
_PAYLOADS = ("line", "base64", "message", "frame", "payload", "data", "raw")
_TIMES = ("at", "time", "timestamp", "ts")
_LATEST = 1e12
"""Seconds. What is further from zero is no time."""


class RecordingWriter:
    """Writes a recording, one line per frame. Only the owner of the file can read it.

    Each frame is written at once, so that a process that is killed loses none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        self._file: BinaryIO = open(os.open(path, flags, 0o600), "wb", buffering=0)  # noqa: SIM115
        self._write(HEADER)

    def frame(self, sender: Role, line: bytes, at: float) -> None:
        """Write one frame, without the newline that ended it. `at` is in seconds."""
        entry: dict[str, Any] = {"at": round(at, 6), "from": str(sender)}
        try:
            entry["line"] = line.decode("utf-8")
        except UnicodeDecodeError:
            entry["base64"] = base64.b64encode(line).decode("ascii")
        self._write(entry)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, entry: dict[str, Any]) -> None:
        line = _encode(entry) + b"\n"
        written = self._file.write(line)
        if written != len(line):  # the disk is full, and half a line would make the file unreadable
            self._file.truncate(self._file.seek(-written, os.SEEK_CUR))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def write_recording(path: str | os.PathLike[str], recording: Recording) -> None:
    """Write all frames of a recording into a new file."""
    with RecordingWriter(path) as writer:
        for frame in recording.frames:
            writer.frame(frame.sender, frame.raw, frame.at)


def is_exported_session(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a session that `antiphon sessions export` wrote."""
    with open(path, "rb") as file:
        return is_exported(file.readline(64 * 1024))


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a tap recording, a session that `antiphon sessions export` wrote, or other lines of JSON that name
    the direction of each frame. Raises `RecordingRefused`, `OSError`.

    In other files the direction is `from`, `sender`, `direction` or `dir`. Its two values may be any words:
    the side that sends `initialize` is the client. The frame is text or an object under `line`, `message`,
    `frame`, `payload`, `data` or `raw`, or the line itself. A time in seconds or ISO 8601 may be under `at`,
    `time`, `timestamp` or `ts`.
    """
    data = Path(path).read_bytes()
    if is_exported(data):
        return read_exported(data)
    lines = data.split(b"\n")
    torn = lines.pop()  # a writer that was killed leaves half a line
    if torn and parse(torn) is not UNSET:
        lines.append(torn)
    return _recording(_entries(lines))


class _Entry(msgspec.Struct):
    number: int
    direction: str
    at: float
    raw: bytes


def _entries(lines: Iterable[bytes]) -> list[_Entry]:
    entries: list[_Entry] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        value = parse(line)
        if not isinstance(value, dict):
            raise RecordingRefused(f"line {number}: expected a JSON object, got {_glimpse(line)}")
        if value.get("antiphon") == HEADER["antiphon"]:
            if value.get("version") != VERSION:
                raise RecordingRefused(
                    f"the recording has version {value.get('version')!r}, and this Antiphon reads version "
                    f"{VERSION}"
                )
            continue
        direction = next((value[key] for key in _DIRECTIONS if isinstance(value.get(key), str)), None)
        if direction is None:
            raise RecordingRefused(f"line {number}: expected one of the keys {', '.join(_DIRECTIONS)}")
        entries.append(_Entry(number, direction, _time(value), _payload(value, number)))
    return entries


def _payload(value: dict[str, Any], number: int) -> bytes:
    key = next((key for key in _PAYLOADS if key in value), None)
    if key is None:
        if "jsonrpc" not in value:
            raise RecordingRefused(f"line {number}: expected one of the keys {', '.join(_PAYLOADS)}")
        ours = (*_DIRECTIONS, *_TIMES)
        return _frame({name: part for name, part in value.items() if name not in ours}, number)
    payload = value[key]
    if not isinstance(payload, str):
        return _frame(payload, number)
    if key != "base64":
        return payload.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(payload, validate=True)
    except ValueError:
        raise RecordingRefused(f"line {number}: `base64` is not base64") from None


def _frame(value: Any, number: int) -> bytes:
    """Write a frame that is not text in its file."""
    try:
        return json.dumps(value, separators=(",", ":")).encode()  # ASCII: a lone surrogate has no other form
    except RecursionError:
        raise RecordingRefused(f"line {number}: a frame that is nested too deep") from None


def _time(value: dict[str, Any]) -> float:
    time = next((value[key] for key in _TIMES if key in value), 0.0)
    try:
        seconds = datetime.fromisoformat(time).timestamp() if isinstance(time, str) else float(time)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return seconds if math.isfinite(seconds) and abs(seconds) < _LATEST else 0.0


def _recording(entries: list[_Entry]) -> Recording:
    roles = _roles(entries)
    began = entries[0].at if entries else 0.0
    recording = Recording(lambda: 0.0)
    for entry in entries:
        recording.add(roles[entry.direction], entry.raw, at=entry.at - began)
    return recording


def _roles(entries: list[_Entry]) -> dict[str, Role]:
    """Return which side each direction names."""
    directions = list(dict.fromkeys(entry.direction for entry in entries))
    if set(directions) <= {str(role) for role in Role}:
        return {direction: Role(direction) for direction in directions}
    for entry in entries:
        value = parse(entry.raw)
        if isinstance(value, dict) and value.get("method") == "initialize" and len(directions) <= 2:
            return {
                direction: Role.CLIENT if direction == entry.direction else Role.AGENT
                for direction in directions
            }
    raise RecordingRefused(
        f"the directions {', '.join(map(repr, directions[:4]))} do not name client and agent, and no "
        "`initialize` shows which is the client"
    )


def _glimpse(line: bytes) -> str:
    return repr(line[:40].decode("utf-8", "replace"))
