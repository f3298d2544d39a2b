"""Facts about the session, compactions and subagents: alike in both versions (24.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.wire import Up, text, v1_update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"


@pytest.mark.parametrize(
    ("tag", "fields"),
    [
        ("session_info_update", {"title": "T", "updatedAt": "2026-01-02T03:04:05.6Z", "_meta": {"k": 1}}),
        ("session_info_update", {"title": None, "_meta": None}),
        ("usage_update", {"used": 1, "size": 2, "cost": {"amount": 0.5, "currency": "USD"}}),
        ("usage_update", {"used": 1, "size": 2}),
        ("notice", {"severity": "_odd", "title": "T", "description": "D"}),
        ("compaction_update", {"compactionId": "c", "status": "completed", "summary": [text("s")]}),
        ("compaction_update", {"compactionId": "c", "status": "_odd", "summary": None, "error": "E"}),
        ("compaction_summary_chunk", {"compactionId": "c", "content": text("s")}),
        ("subagent_update", {"sessionId": "x", "title": None, "capabilities": {"cancel": {}}}),
        ("subagent_update", {"sessionId": "x", "state": {"state": "idle", "stopReason": "_odd"}}),
        ("subagent_update", {"sessionId": "x", "state": {"state": "_odd", "more": 1}}),
        ("session_message", {"messageId": "m", "senderSessionId": "x", "content": [text("a")]}),
        ("session_message", {"messageId": "m", "content": None}),
        ("session_message_chunk", {"messageId": "m", "content": text("a")}),
    ],
)
def test_24_4_these_say_the_same_in_both_versions(tag: str, fields: dict[str, Any]) -> None:
    up = Up()
    if "more" in fields.get("state", {}):  # of unknown state: it reads only with repair
        (lifted,) = up.machine.update(v1_update(tag, **fields))
        assert lifted.state == fields["state"]  # type: ignore[union-attr]
    else:
        assert up.feed(v1_update(tag, **fields)) == [{"sessionUpdate": tag, **fields}]
    assert up.lost == []


@requirement("CMD-V2-01")
def test_commands_get_their_types() -> None:
    commands = [
        {"name": "a", "description": "A", "input": {"hint": "h"}},
        {"name": "b", "description": "B", "_meta": {"k": 1}},
    ]
    assert Up().feed(v1_update("available_commands_update", availableCommands=commands)) == [
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [
                {"type": "command", **commands[0], "input": {"type": "text", "hint": "h"}},
                {"type": "command", **commands[1]},
            ],
        }
    ]


@requirement("SESS-32")
@pytest.mark.parametrize("time", ["2026-01-02T03:04:05", "2026-01-02", "20260102T030405Z", "soon"])
def test_a_time_that_is_no_rfc_3339_is_left_out(time: str) -> None:
    up = Up()
    assert up.feed(v1_update("session_info_update", title="T", updatedAt=time)) == [
        {"sessionUpdate": "session_info_update", "title": "T", "_meta": {ORIGINAL: {"updatedAt": time}}}
    ]
    assert up.lost == ["updated_at"]
