"""Tool calls of v1 agents, and terminals that were run for them (24.4, TOOL, DIFF)."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.bridge import diffs
from antiphon.schema import v1
from tests.bridge.wire import Up, plain, shown, text, v1_update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"
TERMINAL = {"type": "terminal", "terminalId": "x"}


def update(**fields: Any) -> Any:
    return v1_update("tool_call_update", toolCallId="t", **fields)


def call(**fields: Any) -> Any:
    return v1_update("tool_call", toolCallId="t", **{"title": "T", **fields})


def lifted(**fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": "t", **fields}


def test_24_4_a_tool_call_tells_all_fields_so_that_it_resets_an_old_one() -> None:
    up = Up()
    assert up.feed(call()) == [
        lifted(
            title="T",
            name=None,
            kind="other",
            status="pending",
            content=[],
            locations=[],
            rawInput=None,
            rawOutput=None,
        )
    ]


@requirement("TOOL-V1-01")
def test_every_field_of_a_tool_call_crosses() -> None:
    up = Up()
    fields: dict[str, Any] = {
        "title": "Run",
        "name": "bash",
        "kind": "execute",
        "status": "in_progress",
        "content": [shown("a", _meta={"k": 1})],
        "locations": [{"path": "/f", "line": 3, "_meta": {"k": 2}}],
        "rawInput": {"command": "ls"},
        "rawOutput": [1],
    }
    assert up.feed(call(**fields, meta={"k": 3})) == [lifted(**fields, _meta={"k": 3})]
    assert up.feed(update(**fields, meta={"k": 3})) == [lifted(**fields, _meta={"k": 3})]
    assert up.lost == []


@requirement("TOOL-V1-02")
def test_null_means_unchanged_and_becomes_absent() -> None:
    nulls = dict.fromkeys(
        ("title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput", "_meta")
    )
    assert Up().feed(update(**nulls)) == [lifted()]


@requirement("TOOL-V1-02")
def test_collections_replace_and_empty_ones_clear() -> None:
    assert Up().feed(update(content=[], locations=[])) == [lifted(content=[], locations=[])]


@requirement("TOOL-V1-04")
def test_an_update_of_an_unseen_call_creates_it() -> None:
    up = Up()
    assert up.feed(update(status="completed")) == [lifted(status="completed")]
    assert "t" in up.machine.tools


@pytest.mark.parametrize("old", [None, "", "a\nb\n", "a"])
@pytest.mark.parametrize("new", ["", "a\nc", "é\n"])
def test_24_4_two_texts_become_a_diff_that_shows_all_of_both(old: str | None, new: str) -> None:
    item = {"type": "diff", "path": "/a b", "newText": new, "_meta": {"k": 1}}
    if old is not None:
        item["oldText"] = old
    (made,) = Up().machine.update(update(content=[item]))
    (diff,) = made.content  # type: ignore[union-attr,misc]
    assert diff.meta == {"k": 1}  # type: ignore[union-attr]
    assert [change["operation"] for change in plain(diff)["changes"]] == ["add" if old is None else "modify"]
    assert diffs.texts_of(diff) == [("/a b", old, new)]  # type: ignore[arg-type]


def test_24_4_a_terminal_of_the_client_is_never_mapped_by_its_shape() -> None:
    up = Up()
    assert up.feed(update(content=[TERMINAL])) == [
        lifted(content=[{"type": "content", "content": text("[terminal x]"), "_meta": {ORIGINAL: TERMINAL}}])
    ]
    assert up.lost == ["client_terminal"]


def test_24_4_a_terminal_that_was_run_here_is_the_agent_s_own() -> None:
    up = Up()
    tools = up.machine.tools
    params = v1.CreateTerminalRequest(session_id=v1.SessionId("s"), command="ls", args=["a b"])
    assert up.told([tools.terminal_created("x", params, cwd="/w")]) == [
        {"sessionUpdate": "terminal_update", "terminalId": "x", "command": "ls 'a b'", "cwd": "/w"}
    ]
    assert up.feed(update(content=[{**TERMINAL, "_meta": {"k": 1}}])) == [
        lifted(content=[{**TERMINAL, "_meta": {"k": 1}}])
    ]
    assert up.lost == []


def test_a_terminal_s_command_without_arguments_is_a_line_as_it_is() -> None:
    params = v1.CreateTerminalRequest(session_id=v1.SessionId("s"), command="ls | wc", cwd="/c")
    (made,) = Up().told([Up().machine.tools.terminal_created("x", params, cwd="/w")])
    assert (made["command"], made["cwd"]) == ("ls | wc", "/c")


@requirement("TOOL-V1-10")
def test_line_0_is_left_out() -> None:
    up = Up()
    assert up.feed(update(locations=[{"path": "/f", "line": 0, "_meta": {"k": 1}}])) == [
        lifted(locations=[{"path": "/f", "_meta": {"k": 1, ORIGINAL: {"line": 0}}}])
    ]
    assert up.lost == ["location_line"]
