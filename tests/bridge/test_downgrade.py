"""The remaining updates towards v1 clients: state, facts, and what a client has to ask for."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.schema.v2.proposed import StateChange
from antiphon.schema.version import OptIns
from tests.bridge.wire import Down, capabilities, text, update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"
LIFECYCLE = OptIns(prompt_lifecycle=True)
ODD_BLOCK = {"type": "_odd", "x": 1}
ODD_TEXT = {"type": "text", "text": "[_odd]", "_meta": {ORIGINAL: ODD_BLOCK}}

STATES: list[dict[str, Any]] = [
    {"state": "running", "background": [{"type": "terminal", "terminalId": "x"}, {"type": "_odd", "id": 1}]},
    {"state": "requires_action", "_meta": {"k": 1}},
    {
        "state": "idle",
        "stopReason": "error",
        "error": {"code": -32603, "message": "no", "data": {"reason": "interrupted"}},
        "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2},
    },
    {"state": "idle", "stopReason": "_odd"},
    {"state": "unknown"},
]


@pytest.mark.parametrize("fields", STATES)
def test_24_4_state_is_consumed_not_forwarded(fields: dict[str, Any]) -> None:
    down = Down()
    assert down.feed(update("state_update", **fields)) == []
    assert down.lost == ["state"]


@requirement("SD-19")
@pytest.mark.parametrize("fields", STATES)
def test_under_the_future_flag_state_is_forwarded_whole(fields: dict[str, Any]) -> None:
    down = Down(None, LIFECYCLE)
    assert down.feed(update("state_update", **fields)) == [{"sessionUpdate": "state_update", **fields}]
    assert down.lost == []


@requirement("SD-01")
def test_the_proposed_spelling_is_understood() -> None:
    down = Down(None, LIFECYCLE)
    change = update("state_change", state="idle", stop_reason="end_turn")
    assert isinstance(change, StateChange)
    assert down.feed(change) == [{"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}]


def test_24_4_session_info_materializes_meta() -> None:
    down = Down()
    sent = down.feed(
        update("session_info_update", title="T", meta={"a": 1, "b": 2}),
        update("session_info_update", updatedAt="2026-01-01T00:00:00Z"),
        update("session_info_update", title=None, meta={"a": None, "c": 3}),
        update("session_info_update", meta=None),
    )
    tag = {"sessionUpdate": "session_info_update"}
    assert sent == [
        {**tag, "title": "T", "_meta": {"a": 1, "b": 2}},
        {**tag, "updatedAt": "2026-01-01T00:00:00Z"},
        {**tag, "title": None, "_meta": {"b": 2, "c": 3}},
        {**tag, "_meta": {}},
    ]


@requirement("USAGE-04")
def test_an_omitted_cost_is_filled_and_null_is_omitted() -> None:
    down = Down()
    cost = {"amount": 1.5, "currency": "EUR"}
    sent = down.feed(
        update("usage_update", used=1, size=9, cost=cost),
        update("usage_update", used=2, size=9),
        update("usage_update", used=3, size=9, cost=None),
        update("usage_update", used=4, size=9),
    )
    assert [one.get("cost") for one in sent] == [cost, cost, None, None]
    assert [one["used"] for one in sent] == [1, 2, 3, 4]


@requirement("NOTE-01")
def test_a_notice_goes_to_a_client_that_takes_notices() -> None:
    down = Down(capabilities(session={"notices": {}}))
    fields = {"severity": "_loud", "title": "Hi", "description": "You", "_meta": {"k": 1}}
    assert down.feed(update("notice", **fields)) == [{"sessionUpdate": "notice", **fields}]
    assert down.lost == []


@requirement("NOTE-01")
def test_otherwise_it_is_an_agent_message_of_its_own() -> None:
    down = Down()
    first = {"severity": "warning", "title": "Hi", "description": "You"}
    sent = down.feed(update("notice", **first), update("notice", severity="info", title="Again"))
    assert sent[0] == {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "b:notice:1",
        "content": text("Hi\n\nYou"),
        "_meta": {ORIGINAL: {"sessionUpdate": "notice", **first}},
    }
    assert [one["messageId"] for one in sent] == ["b:notice:1", "b:notice:2"]
    assert down.lost == ["notice", "notice"]


COMPACTION = [
    update("compaction_update", compactionId="c", status="in_progress"),
    update("compaction_summary_chunk", compactionId="c", content=text("a")),
    update("compaction_update", compactionId="c", status="_odd", summary=[text("a"), ODD_BLOCK], error=None),
]


@requirement("COMP-01")
def test_compaction_goes_to_a_client_that_takes_it() -> None:
    down = Down(capabilities(session={"compaction": {}}))
    assert down.feed(*COMPACTION) == [
        {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"},
        {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": text("a")},
        {
            "sessionUpdate": "compaction_update",
            "compactionId": "c",
            "status": "_odd",
            "summary": [text("a"), ODD_TEXT],
            "error": None,
        },
    ]


@requirement("COMP-01")
def test_otherwise_it_is_dropped() -> None:
    down = Down()
    assert down.feed(*COMPACTION) == []
    assert down.lost == ["compaction"] * 3


STATE = {"state": "running", "background": []}
SUBAGENT = [
    update(
        "subagent_update", sessionId="sub", title="S", capabilities={"cancel": {}}, state={"state": "idle"}
    ),
    update("subagent_update", sessionId="sub", state=STATE),
    update("subagent_update", sessionId="sub", state={"state": "_odd"}, meta={"k": 1}),
    update("session_message", messageId="m", senderSessionId="sub", content=[text("a"), ODD_BLOCK]),
    update("session_message_chunk", messageId="m", content=text("b")),
]


def test_24_4_subagents_go_to_a_client_that_takes_them() -> None:
    down = Down(capabilities(subagents={}))
    tag = {"sessionUpdate": "subagent_update", "sessionId": "sub"}
    assert down.feed(*SUBAGENT) == [
        {**tag, "title": "S", "capabilities": {"cancel": {}}, "state": {"state": "idle"}},
        {**tag, "state": {"state": "running"}, "_meta": {ORIGINAL: {"state": STATE}}},
        {**tag, "_meta": {"k": 1, ORIGINAL: {"state": {"state": "_odd"}}}},
        {
            "sessionUpdate": "session_message",
            "messageId": "m",
            "senderSessionId": "sub",
            "content": [text("a"), ODD_TEXT],
        },
        {"sessionUpdate": "session_message_chunk", "messageId": "m", "content": text("b")},
    ]
    assert down.lost == ["subagent_state", "subagent_state", "content_type"]


def test_24_4_and_to_nobody_else() -> None:
    down = Down()
    assert down.feed(*SUBAGENT) == []
    assert down.lost == ["subagent"] * len(SUBAGENT)


@requirement("EXT-10")
def test_an_unknown_update_goes_only_to_a_client_that_asked_for_it() -> None:
    odd = update("_antiphon_queue", entries=[])
    down = Down()
    assert down.feed(odd) == []
    assert down.lost == ["unknown_update"]
    assert list(Down(extensions=["_antiphon_queue"]).machine.apply(odd)) == [odd]
    assert Down(extensions=["_other"]).feed(odd) == []


@requirement("CONT-03")
@pytest.mark.parametrize("field", ["image", "audio", "resource_link", "resource", "blob"])
def test_known_blocks_are_the_same_in_both(field: str) -> None:
    annotations = {
        "audience": ["user"],
        "lastModified": "2026-01-01T00:00:00Z",
        "priority": 0.5,
        "_meta": {"k": 1},
    }
    blocks: dict[str, dict[str, Any]] = {
        "image": {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///x"},
        "audio": {"type": "audio", "data": "aGk=", "mimeType": "audio/ogg"},
        "resource_link": {"type": "resource_link", "uri": "file:///x", "name": "x", "size": 3, "title": "X"},
        "resource": {"type": "resource", "resource": {"uri": "file:///x", "text": "x"}},
        "blob": {"type": "resource", "resource": {"uri": "file:///x", "blob": "aGk=", "mimeType": "a/b"}},
    }
    block = {**blocks[field], "annotations": annotations, "_meta": {"k": 2}}
    down = Down()
    sent = down.feed(update("agent_message_chunk", messageId="m", content=block))
    assert sent[0]["content"] == block
    assert down.lost == []


def test_24_4_what_v1_blocks_lack_travels_in_meta() -> None:
    link = {"type": "resource_link", "uri": "file:///x", "name": "x", "icons": [{"src": "https://x/i"}]}
    seen = {"type": "text", "text": "a", "annotations": {"audience": ["user", "_odd"]}}
    down = Down()
    sent = down.feed(update("agent_message", messageId="m", content=[link, seen, ODD_BLOCK]))
    assert [one["content"] for one in sent] == [
        {
            "type": "resource_link",
            "uri": "file:///x",
            "name": "x",
            "_meta": {ORIGINAL: {"icons": [{"src": "https://x/i"}]}},
        },
        {
            "type": "text",
            "text": "a",
            "annotations": {"audience": ["user"], "_meta": {ORIGINAL: {"audience": ["user", "_odd"]}}},
        },
        ODD_TEXT,
    ]
    assert down.lost == ["content_icons", "content_audience", "content_type"]
