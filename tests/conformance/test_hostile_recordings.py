"""Any JSON value may be in any place of a recorded frame: the recording is judged and reports are written."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.conformance import check_recording, to_html, to_json, to_junit, to_terminal
from antiphon.conformance.recordings import read_recording

EXPORTED = Path(__file__).parents[1] / "session_files" / "recorded"
FRAMES = [
    {"from": str(frame.sender), "line": json.loads(frame.raw)}
    for name in ("version_1.antiphon", "version_2.antiphon")
    for frame in read_recording(EXPORTED / name).frames
]
MISSING = object()
VALUES = [
    MISSING,
    None,
    True,
    -1,
    2**70,
    10**400,
    -0.0,
    "",
    "\ud800",
    "\x1b[2J",
    [],
    {},
    [[]],
    [1],
    {"type": 7},
]
NO_ID = {"jsonrpc": "2.0", "error": {"code": -32603, "message": "no"}}


class Change(NamedTuple):
    """A value to be put in a place of the frames."""

    path: tuple[Any, ...]
    value: Any


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


PLACES = [(at, *path) for at, frame in enumerate(FRAMES) for path in places(frame) if path[0] == "line"]


def changed(changes: list[Change]) -> list[Any]:
    frames = copy.deepcopy(FRAMES)
    for change in changes:
        holder: Any = frames
        *path, last = change.path
        try:
            for key in path:
                holder = holder[key]
            if change.value is MISSING:
                del holder[last]
            else:
                holder[last] = copy.deepcopy(change.value)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change replaced what was around it
    return frames


def judge(path: Path, frames: list[Any]) -> str:
    """Judge a recording with these frames and write every report. Return the one for a terminal."""
    path.write_text("".join(json.dumps(frame) + "\n" for frame in frames if "line" in frame))
    report = check_recording(path)
    for piece in (*to_html(report, {}), to_junit(report, {})):
        piece.encode()
    json.loads(to_json(report, {}))
    return "\n".join(to_terminal(report, expected={}, width=0))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings") / "talk.ndjson"


@given(
    st.lists(st.builds(Change, st.sampled_from(PLACES), st.sampled_from(VALUES)), min_size=1, max_size=4),
)
@example([Change((3, "line", "result", "sessionId"), [])])
@example([Change((2, "line", "params", "cwd"), "\ud800")])
def test_any_value_in_any_place_is_judged_and_shown(file: Path, changes: list[Change]) -> None:
    judge(file, changed(changes))


def test_an_error_without_an_id_is_shown_as_such(file: Path) -> None:
    assert "(no id)" in judge(file, [*FRAMES, {"from": "agent", "line": NO_ID}])
