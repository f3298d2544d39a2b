"""Messages of v1 agents: where one ends, and what it is called (24.4, MSG)."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.engine.transcript import MessageType
from antiphon.errors import ErrorObject
from antiphon.schema import v1
from antiphon.schema.version import OptIns
from tests.bridge.wire import Up, shown, text, v1_update
from tests.requirements.marks import requirement

CHUNKS = {"user": "user_message_chunk", "agent": "agent_message_chunk", "thought": "agent_thought_chunk"}


def chunk(role: str, words: str = "a", id: Any = ..., **fields: Any) -> Any:
    named = {} if id is ... else {"messageId": id}
    return v1_update(CHUNKS[role], content=text(words), **named, **fields)


def ids(up: Up, *updates: Any) -> list[str]:
    """The ids of the message chunks among what comes out."""
    return [each["messageId"] for each in up.feed(*updates) if each["sessionUpdate"] in CHUNKS.values()]


TOOL = v1_update("tool_call", toolCallId="t", title="T")
TOOL_UPDATE = v1_update("tool_call_update", toolCallId="t", status="in_progress")
PLAN = v1_update("plan", entries=[])
COMPACTION = v1_update("compaction_update", compactionId="c", status="in_progress")


@requirement("MSG-02")
def test_every_chunk_gets_an_id_and_the_chunks_of_a_message_the_same() -> None:
    up = Up()
    sent = up.feed(chunk("agent", "a"), chunk("agent", "b", None))
    assert sent == [
        {"sessionUpdate": "agent_message_chunk", "messageId": "b:agent:0.1", "content": text("a")},
        {"sessionUpdate": "agent_message_chunk", "messageId": "b:agent:0.1", "content": text("b")},
    ]
    assert up.lost == []


def test_inv_7_an_id_of_the_agent_s_is_kept() -> None:
    assert ids(Up(), chunk("agent", id="m"), chunk("agent", id="m"), chunk("agent", id="n")) == [
        "m",
        "m",
        "n",
    ]


@requirement("MSG-05")
def test_another_type_of_message_is_a_boundary() -> None:
    up = Up()
    assert ids(up, chunk("thought"), chunk("agent"), chunk("thought"), chunk("agent"), chunk("agent")) == [
        "b:thought:0.1",
        "b:agent:0.1",
        "b:thought:0.2",
        "b:agent:0.2",
        "b:agent:0.2",
    ]


@pytest.mark.parametrize("between", [TOOL, TOOL_UPDATE, PLAN, COMPACTION])
def test_24_4_what_takes_its_place_in_between_is_a_boundary(between: Any) -> None:
    assert ids(Up(), chunk("agent"), between, chunk("agent")) == ["b:agent:0.1", "b:agent:0.2"]


@pytest.mark.parametrize(
    "between",
    [
        v1_update("usage_update", used=1, size=2),
        v1_update("available_commands_update", availableCommands=[]),
        v1_update("session_info_update", title="T"),
        v1_update("notice", severity="info", title="N"),
        v1_update("_odd"),
    ],
)
def test_24_4_what_has_no_place_in_the_conversation_is_none(between: Any) -> None:
    assert ids(Up(), chunk("agent"), between, chunk("agent")) == ["b:agent:0.1"] * 2


def test_24_4_progress_of_a_known_call_parts_no_message() -> None:
    up = Up()
    up.feed(TOOL)
    assert ids(up, chunk("agent"), TOOL_UPDATE, chunk("agent")) == ["b:agent:0.1"] * 2
    up.feed(COMPACTION)
    assert ids(up, chunk("agent"), COMPACTION, chunk("agent")) == ["b:agent:0.2"] * 2


def test_24_4_progress_of_a_known_call_parts_two_messages_of_the_user_s() -> None:
    up = Up()
    up.feed(TOOL)
    assert ids(up, chunk("user"), TOOL_UPDATE, chunk("user")) == ["b:user:1", "b:user:2"]


def test_an_empty_text_begins_no_message_behind_a_tool_call_and_parts_none() -> None:
    up = Up()
    told = chunk("agent", "", meta={"usage": 1})
    assert up.feed(chunk("agent"), TOOL, told)[-1] == {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "b:agent:0.1",
        "content": text(""),
        "_meta": {"usage": 1},
    }
    assert ids(up, chunk("thought"), told, chunk("thought"), chunk("agent")) == [
        "b:thought:0.1",
        "b:agent:0.1",
        "b:thought:0.1",
        "b:agent:0.2",
    ]
    up.prompted(1)
    assert ids(up, told, chunk("agent")) == ["b:agent:1.1"] * 2  # of an earlier turn it is not
    assert ids(up, chunk("user", ""), chunk("agent"), chunk("user", ""), chunk("agent")) == [
        "b:user:2",
        "b:agent:2.1",
        "b:user:3",
        "b:agent:3.1",
    ]


def test_24_4_a_boundary_does_not_end_a_message_with_an_id() -> None:
    assert ids(Up(), chunk("agent", id="m"), TOOL, chunk("agent", id="m")) == ["m", "m"]


@requirement("MSG-05")
def test_with_and_without_an_id_are_two_messages() -> None:
    up = Up()
    assert ids(up, chunk("agent"), chunk("agent", id="m"), chunk("agent"), chunk("agent", id="m")) == [
        "b:agent:0.1",
        "m",
        "b:agent:0.3",
        "m",
    ]


def test_24_4_the_end_of_a_turn_is_a_boundary_and_so_is_a_prompt() -> None:
    up = Up()
    assert ids(up, chunk("agent")) == ["b:agent:0.1"]
    up.prompted(1)
    assert ids(up, chunk("agent")) == ["b:agent:1.1"]
    up.prompted(2)
    assert ids(up, chunk("agent")) == ["b:agent:2.1"]
    up.responded(1)
    assert ids(up, chunk("agent")) == ["b:agent:2.2"]
    up.responded(2)
    assert ids(up, chunk("agent")) == ["b:agent:2.3"]


def ended_by(name: str, up: Up) -> None:
    match name:
        case "error":
            up.machine.failed(1, ErrorObject(-32603, "x"))
        case "death":
            up.machine.interrupted()
        case "completion":
            up.feed(v1_update("turn_complete", stopReason="end_turn", promptRequestId="1"))
        case "state":
            up.feed(v1_update("state_update", state="idle"))


@pytest.mark.parametrize("name", ["error", "death", "completion", "state"])
def test_24_4_every_end_of_a_turn_is_a_boundary(name: str) -> None:
    up = Up()
    up.prompted(1)
    assert ids(up, chunk("agent")) == ["b:agent:1.1"]
    ended_by(name, up)
    assert ids(up, chunk("agent")) == ["b:agent:1.2"]


def test_24_4_the_end_of_a_replay_is_a_boundary() -> None:
    up = Up()
    up.machine.reopening()
    assert ids(up, COMPACTION, chunk("agent")) == ["b:agent:0.1"]
    up.machine.reopened(v1.LoadSessionResponse())
    assert ids(up, chunk("agent")) == ["b:agent:0.2"]
    up.machine.reopening()
    assert ids(up, chunk("agent"), COMPACTION, chunk("agent")) == ["b:agent:0.1", "b:agent:0.2"]


def test_inv_7_a_replay_names_the_messages_as_they_were_named_live() -> None:
    live, again = Up(), Up()
    answers = [chunk("thought"), chunk("agent"), chunk("agent"), TOOL, chunk("agent")]
    seen = []
    for number in (1, 2):
        seen += [live.prompted(number)[0]["messageId"], *ids(live, *answers)]
        live.responded(number)
    again.machine.reopening()
    assert ids(again, chunk("user"), *answers, chunk("user"), *answers) == seen


def test_inv_7_a_turn_that_replays_otherwise_does_not_rename_the_next() -> None:
    up = Up()
    up.machine.reopening()
    assert ids(up, chunk("user"), chunk("user"), chunk("agent"), chunk("user"), chunk("agent")) == [
        "b:user:1",
        "b:user:1",
        "b:agent:1.1",
        "b:user:2",
        "b:agent:2.1",
    ]
    up.machine.reopening()
    assert ids(up, chunk("user"), chunk("thought"), chunk("user"), chunk("agent"))[2:] == [
        "b:user:2",
        "b:agent:2.1",
    ]


@requirement("SESS-23")
def test_a_replayed_message_begins_empty() -> None:
    up = Up()
    up.machine.reopening()
    assert up.feed(
        chunk("user", "a"), chunk("user", "b"), chunk("agent", id="m"), chunk("agent", id="m")
    ) == [
        {"sessionUpdate": "user_message", "messageId": "b:user:1", "content": []},
        {"sessionUpdate": "user_message_chunk", "messageId": "b:user:1", "content": text("a")},
        {"sessionUpdate": "user_message_chunk", "messageId": "b:user:1", "content": text("b")},
        {"sessionUpdate": "agent_message", "messageId": "m", "content": []},
        {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text("a")},
        {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text("a")},
    ]


@requirement("MSG-08")
def test_one_id_for_two_types_of_message_empties_neither_twice() -> None:
    up = Up()
    up.machine.reopening()
    sent = up.feed(*(chunk(role, id="m") for role in ("agent", "thought", "agent", "thought")))
    assert [each["sessionUpdate"] for each in sent] == [
        "agent_message", "agent_message_chunk", "agent_thought", "agent_thought_chunk",
        "agent_message_chunk", "agent_thought_chunk",
    ]  # fmt: skip


def test_inv_7_a_made_id_is_none_that_the_agent_gave() -> None:
    assert ids(Up(), chunk("agent", id="b:agent:0.2"), chunk("agent")) == ["b:agent:0.2", "b:agent:0.2~2"]


def test_inv_7_after_a_restart_ids_go_on_where_the_session_was() -> None:
    up = Up()
    held = [(MessageType.USER, "x"), (MessageType.AGENT, "b:agent:1.1"), (MessageType.USER, "y")]
    up.machine.holds([*held, (MessageType.AGENT, "b:agent:2.1")])
    assert ids(up, chunk("agent")) == ["b:agent:2.2"]
    assert up.prompted(1)[0]["messageId"] == "b:user:3"


@requirement("MSG-19")
def test_meta_of_a_chunk_stays_with_it() -> None:
    (sent,) = Up().feed(chunk("agent", meta={"k": 1}))
    assert sent["_meta"] == {"k": 1}


@requirement("CONT-03")
@pytest.mark.parametrize(
    "content",
    [
        text(""),
        {**text("a"), "_meta": {"k": 1}, "annotations": {"audience": ["user"], "priority": 1.0}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "x:y", "text": "t"}},
    ],
)
def test_content_is_what_it_was(content: dict[str, Any]) -> None:
    up = Up()
    (sent,) = up.feed(v1_update("agent_message_chunk", content=content))
    assert sent["content"] == content
    assert up.lost == []


@requirement("SD-27")
def test_a_message_update_replaces_the_message_of_that_id() -> None:
    up = Up(OptIns(message_update=True))
    up.feed(chunk("thought", id="t"), chunk("agent", id="a"))
    replace = {"updateType": "replace", "content": [text("new")]}
    assert up.feed(
        v1_update("message_update", messageId="t", meta={"k": 1}, **replace),
        v1_update("message_update", messageId="never seen", **replace),
    ) == [
        {"sessionUpdate": "agent_thought", "messageId": "t", "content": [text("new")], "_meta": {"k": 1}},
        {"sessionUpdate": "agent_message", "messageId": "never seen", "content": [text("new")]},
    ]


@requirement("MSG-13")
def test_under_the_future_flag_a_user_message_is_a_patch() -> None:
    up = Up(OptIns(prompt_lifecycle=True))
    assert up.feed(
        v1_update("user_message", messageId="u", content=[text("a")]),
        v1_update("user_message", messageId="u", content=None),
        v1_update("user_message", messageId="u", meta={"k": 1}),
    ) == [
        {"sessionUpdate": "user_message", "messageId": "u", "content": [text("a")]},
        {"sessionUpdate": "user_message", "messageId": "u", "content": None},
        {"sessionUpdate": "user_message", "messageId": "u", "_meta": {"k": 1}},
    ]
    assert ids(up, chunk("agent")) == ["b:agent:1.1"]


def test_a_tool_call_first_seen_in_a_permission_is_a_boundary_too() -> None:
    up = Up()
    up.feed(chunk("agent"))
    up.machine.subject(v1_update("tool_call_update", toolCallId="p", content=[shown("a")]))
    assert ids(up, chunk("agent")) == ["b:agent:0.2"]
