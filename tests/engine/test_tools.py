"""Tool calls are patched by id."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.engine.tools import ToolCall
from antiphon.schema.v2.content import TextContent
from antiphon.schema.v2.identifiers import AbsolutePath, TerminalId, ToolCallId
from antiphon.schema.v2.tool_calls import (
    Content,
    SessionToolCallUpdate,
    Terminal,
    ToolCallCapabilities,
    ToolCallLocation,
    ToolCallStatus,
    ToolKind,
)
from antiphon.schema.wire import Unknown
from tests.requirements.marks import requirement

from .journals import folded, text, update


def patched(*patches: dict[str, Any]) -> ToolCall:
    (call,) = folded(*(update("tool_call_update", toolCallId="t", **patch) for patch in patches)).tool_calls
    return call


FULL = {
    "name": "bash", "title": "Run", "kind": "execute", "status": "in_progress",
    "content": [{"type": "terminal", "terminalId": "x"}], "locations": [{"path": "/f", "line": 1}],
    "rawInput": {"a": 1}, "rawOutput": [2], "capabilities": {}, "_meta": {"k": 1},
}  # fmt: skip
EMPTY = SessionToolCallUpdate(
    tool_call_id=ToolCallId("t"),
    name=None,
    title=None,
    kind=ToolKind.OTHER,
    status=ToolCallStatus.PENDING,
    content=[],
    locations=[],
    raw_input=None,
    raw_output=None,
    capabilities=None,
    meta=None,
)
WHOLE = SessionToolCallUpdate(
    tool_call_id=ToolCallId("t"),
    name="bash",
    title="Run",
    kind=ToolKind.EXECUTE,
    status=ToolCallStatus.IN_PROGRESS,
    content=[Terminal(terminal_id=TerminalId("x"))],
    locations=[ToolCallLocation(path=AbsolutePath("/f"), line=1)],
    raw_input={"a": 1},
    raw_output=[2],
    capabilities=ToolCallCapabilities(),
    meta={"k": 1},
)


@requirement("TOOL-V2-01", "TOOL-V2-03")
def test_the_first_update_creates_a_call_with_defaults() -> None:
    assert patched({}).materialize() == EMPTY


@requirement("TOOL-V2-02")
def test_values_replace_and_what_is_absent_stays() -> None:
    assert patched(FULL, {}).materialize() == WHOLE


@requirement("TOOL-V2-02", "TOOL-V2-10")
@pytest.mark.parametrize("field", FULL)
def test_null_clears_or_resets_one_field_and_no_other(field: str) -> None:
    others = {key: value for key, value in FULL.items() if key != field}
    assert patched(FULL, {field: None}).materialize() == patched(others).materialize()


@requirement("TOOL-V2-05", "TOOL-V2-06")
def test_a_content_chunk_appends_one_item_and_an_update_replaces_all() -> None:
    def piece(value: str) -> Any:
        item = {"type": "content", "content": text(value)}
        return update("tool_call_content_chunk", toolCallId="t", content=item)

    one, two = (Content(content=TextContent(text=value)) for value in "12")
    assert folded(piece("1"), piece("2")).tool_calls[0].content == [one, two]
    replaced = folded(piece("1"), update("tool_call_update", toolCallId="t", content=[]), piece("2"))
    assert replaced.tool_calls[0].content == [two]


@requirement("TOOL-V2-07", "TOOL-V2-16")
def test_unknown_kinds_statuses_and_items_are_kept_and_still_in_progress() -> None:
    call = patched({"kind": "_odd", "status": "_odd", "content": [{"type": "_odd", "x": 1}]})
    assert (call.kind, call.status, call.content) == ("_odd", "_odd", [Unknown(type="_odd", x=1)])
    assert not call.final


@requirement("TOOL-V2-08")
@pytest.mark.parametrize(
    ("status", "final"),
    [("pending", False), ("paused", False), ("completed", True), ("failed", True), ("cancelled", True)],
)
def test_a_call_has_ended_in_three_statuses(status: str, *, final: bool) -> None:
    assert patched({"status": status}).final is final


def test_calls_are_found_and_listed_in_their_order() -> None:
    session = folded(*(update("tool_call_update", toolCallId=id) for id in "bac"), update("notice"))
    assert [call.id for call in session.tools] == ["b", "a", "c"]
    assert session.tools.get("a") is session.tool_calls[1]
