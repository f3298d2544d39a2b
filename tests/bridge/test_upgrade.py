"""The upgrade as a whole: what passes, what is unknown, and what v2 knows and v1 does not."""

from __future__ import annotations

from typing import get_args

import msgspec

from antiphon.bridge.upgrade.session import Upgrade
from antiphon.schema import v1
from antiphon.schema.wire import Unknown
from tests.bridge.wire import Up, plain, shown, text, v1_update
from tests.requirements.marks import requirement


def test_every_update_of_v1_has_its_place() -> None:
    assert set(Upgrade()._handlers) == {*get_args(v1.SessionUpdate), Unknown}


@requirement("EXT-09")
def test_an_unknown_update_passes_whole() -> None:
    up = Up()
    odd = {"sessionUpdate": "_odd", "x": {"y": [1, None]}, "_meta": {"k": 1}}
    (sent,) = up.machine.update(v1_update("_odd", **{key: odd[key] for key in ("x", "_meta")}))
    assert isinstance(sent, Unknown)
    assert sent == odd
    assert up.lost == []


@requirement("SD-01")
def test_a_state_as_first_proposed_is_told_as_published() -> None:
    running = v1_update("state_change", state="running")
    idle = v1_update("state_change", state="idle", stop_reason="refusal")
    assert Up().feed(running, idle) == [
        {"sessionUpdate": "state_update", "state": "running"},
        {"sessionUpdate": "state_update", "state": "idle", "stopReason": "refusal"},
    ]  # fmt: skip


@requirement("PROMPT-V2-48")
def test_a_state_that_nobody_knows_passes() -> None:
    (sent,) = Up().feed(v1_update("state_update", state="_odd", x=1))
    assert sent == {"sessionUpdate": "state_update", "state": "_odd", "x": 1}


def test_what_only_v2_has_is_read_as_v2_or_not_at_all() -> None:
    up = Up()
    chunk = v1_update("agent_message_chunk", content=text("a"))
    up.feed(chunk)
    given = [
        {"sessionUpdate": "agent_message", "messageId": "m", "content": [text("a")]},
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t", "content": shown("a")},
        {"sessionUpdate": "terminal_update", "terminalId": "x", "command": "ls"},
    ]
    sent = []
    for raw in given:
        sent += up.feed(
            v1_update(raw["sessionUpdate"], **{k: v for k, v in raw.items() if k != "sessionUpdate"})
        )
    assert sent == given
    assert up.lost == []
    assert up.feed(chunk)[0]["messageId"] == "b:agent:0.3"  # the others took their places
    assert up.feed(v1_update("agent_message", content=[])) == []  # EXT-08: no id
    assert up.lost == ["unreadable_update"]


def test_load_replay_gives_the_conversation_as_messages() -> None:
    up = Up()
    up.machine.reopening()
    sent = up.feed(
        v1_update("user_message_chunk", content=text("Fix ")),
        v1_update("user_message_chunk", content=text("it")),
        v1_update("agent_thought_chunk", content=text("Hm")),
        v1_update("tool_call", toolCallId="t", title="T", status="completed"),
        v1_update("agent_message_chunk", content=text("Done")),
        v1_update("user_message_chunk", content=text("Thanks")),
    )
    folded: dict[str, str] = {}
    for each in sent:
        if each["sessionUpdate"].endswith("message_chunk") or "thought_chunk" in each["sessionUpdate"]:
            folded[each["messageId"]] = folded.get(each["messageId"], "") + each["content"]["text"]
    assert folded == {
        "b:user:1": "Fix it", "b:thought:1.1": "Hm", "b:agent:1.1": "Done", "b:user:2": "Thanks",
    }  # fmt: skip
    result, before = up.machine.reopened(v1.LoadSessionResponse(meta={"k": 1}))
    assert plain(result) == {"_meta": {"k": 1}}
    assert [each["state"] for each in up.told(before)] == ["idle"]
    assert up.prompted(1)[0]["messageId"] == "b:user:3"


def test_the_same_stream_gives_the_same_updates() -> None:
    stream = [v1_update("agent_message_chunk", content=text(word)) for word in "ab"] + [
        v1_update("tool_call", toolCallId="t", title="T")
    ]
    first, second = (msgspec.json.encode([*map(Upgrade().update, stream)]) for _ in range(2))
    assert first == second
