"""Sessions are named by id or title, lists align, and the options of `serve` are in groups."""

from __future__ import annotations

from typing import NamedTuple

import click
import pytest

from antiphon.cli import main
from antiphon.cli.commands.hub import SERVE_GROUPS
from antiphon.cli.exit_codes import Failure
from antiphon.cli.hub_client import by_use, find_named
from antiphon.cli.output.table import table_lines
from antiphon.schema import v2
from tests.cli.command import ANTIPHON, Terminal, unstyled


class Named(NamedTuple):
    session_id: str
    title: str | None


SESSIONS = [
    Named("sess_4f2a11", "The red build"),
    Named("sess_4f2a22", "The red  Car"),
    Named("sess_9999aa", "red"),
    Named("sess_8888bb", None),
    Named("red build", "x"),
]


@pytest.mark.parametrize(
    ("named", "id"),
    [
        ("sess_4f2a11", "sess_4f2a11"),
        ("4f2a1", "sess_4f2a11"),
        ("the red build", "sess_4f2a11"),
        ("THE RED CAR", "sess_4f2a22"),
        ("the red b", "sess_4f2a11"),
        ("red", "sess_9999aa"),  # the whole title of one, and the beginning of an id that is too short
        ("red build", "red build"),
    ],
)
def test_a_session_is_found_by_its_id_or_title_or_the_beginning_of_one(named: str, id: str) -> None:
    assert find_named(SESSIONS, named).session_id == id


@pytest.mark.parametrize(
    ("named", "said", "listed"),
    [
        ("the red", "is the beginning of 2 sessions", ["sess_4f2a11", "sess_4f2a22"]),
        ("4f2a", "is the beginning of 2 sessions", ["sess_4f2a11", "sess_4f2a22"]),
        ("4f2", "give at least four characters", []),
        ("untitled", "there is no session 'untitled'", []),
        (" ", "there is no session ' '", []),
    ],
)
def test_a_name_that_means_no_session_or_several_says_so(named: str, said: str, listed: list[str]) -> None:
    with pytest.raises(Failure, match=said) as failed:
        find_named(SESSIONS, named)
    assert [line.partition(" ")[0] for line in failed.value.more] == listed


def test_sessions_are_sorted_by_use() -> None:
    sessions = [
        v2.SessionInfo(session_id=v2.SessionId(id), cwd="/", updated_at=at)
        for id, at in (("old", "2026-01-01T00:00:00Z"), ("never", None), ("new", "2026-01-02T00:00:00Z"))
    ]
    assert [info.session_id for info in by_use(sessions)] == ["new", "old", "never"]


def test_a_table_aligns_also_wide_letters_and_is_cut_at_the_end_of_the_line() -> None:
    rows = [("日本", "a long title that is cut"), ("abcdef", "b")]
    assert table_lines(("ID", "TITLE"), rows) == [
        "ID      TITLE",
        "日本    a long title that is cut",
        "abcdef  b",
    ]
    assert table_lines(("ID", "TITLE"), rows, width=16) == ["ID      TITLE", "日本    a long t", "abcdef  b"]


def test_the_groups_of_serve_have_every_option_once() -> None:
    serve = main.commands["serve"]
    grouped = [name for names in SERVE_GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    options = {param.name for param in serve.params if isinstance(param, click.Option)}
    assert set(grouped) <= options


def test_a_long_error_is_broken_at_words_on_a_terminal() -> None:
    with Terminal([*ANTIPHON, "prompt", "x", "--", "no-such-agent-anywhere"], columns=50) as terminal:
        assert terminal.wait() == 127
        lines = unstyled(terminal.raw).strip().split("\n")
    assert all(len(line) < 50 for line in lines)
    assert len(lines) > 2
    assert " ".join(line.strip() for line in lines).startswith(
        "antiphon: there is no command 'no-such-agent-anywhere' on PATH, and no known agent of that name"
    )
