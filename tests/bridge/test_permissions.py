"""Permission questions to v1 clients, and what their answers mean in v2 (24.5)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.bridge.questions import CANCELLED, Asked, ask_v1
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.wire import choose
from tests.bridge.wire import Down, check_v1, permission, plain, shown, update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"
ALLOW = {"optionId": "y", "name": "Yes", "kind": "allow_once"}
REJECT = {"optionId": "n", "name": "No", "kind": "reject_once"}
ODD = {"optionId": "o", "name": "Odd", "kind": "_odd"}


def request(
    title: str = "May I?", options: Any = (ALLOW, REJECT), **fields: Any
) -> v2.RequestPermissionRequest:
    return permission(title=title, options=list(options), **fields)


def asked(down: Down, given: v2.RequestPermissionRequest) -> tuple[list[Any], dict[str, Any]]:
    made = ask_v1(given, down.machine, question="7")
    assert made is not None
    raw = msgspec.json.encode(made.params)
    msgspec.json.decode(raw, type=v1.RequestPermissionRequest, dec_hook=choose)
    return [check_v1(sent) for sent in made.updates], plain(raw)


def about(**call: Any) -> dict[str, Any]:
    return {"type": "tool_call", "toolCall": {"toolCallId": "t", **call}}


@requirement("PERM-V2-03")
def test_the_subject_is_told_as_an_update_before_the_question() -> None:
    down = Down()
    updates, params = asked(down, request(subject=about(title="rm -r x", kind="delete")))
    assert updates == [
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "rm -r x", "kind": "delete"}
    ]
    assert params == {
        "sessionId": "s",
        "toolCall": {
            "toolCallId": "t",
            "title": "rm -r x",
            "kind": "delete",
            "status": "pending",
            "content": [shown("May I?")],
        },
        "options": [ALLOW, REJECT],
    }
    assert down.lost == []


@requirement("PERM-V2-03")
def test_nothing_is_told_twice_of_a_known_call() -> None:
    down = Down()
    down.feed(update("tool_call_update", toolCallId="t", title="T", status="in_progress"))
    updates, params = asked(down, request(subject=about()))
    assert updates == []
    assert (params["toolCall"]["title"], params["toolCall"]["status"]) == ("T", "in_progress")


def test_24_5_a_call_without_a_title_takes_the_request_s() -> None:
    down = Down()
    updates, params = asked(down, request(description="Really", subject=about()))
    assert updates[0]["title"] == params["toolCall"]["title"] == "May I?"
    assert params["toolCall"]["content"] == [shown("Really")]


@requirement("PERM-V2-02")
def test_words_of_the_request_are_content_of_this_request_only() -> None:
    down = Down()
    down.feed(update("tool_call_update", toolCallId="t", title="T", content=[shown("a")]))
    _, params = asked(down, request(description="Really", subject=about()))
    assert params["toolCall"]["title"] == "T"
    assert params["toolCall"]["content"] == [shown("a"), shown("May I?\n\nReally")]
    # The question waits; then, with the next news, the call's own content is told again.
    assert down.feed(update("state_update", state="requires_action")) == []
    sent = down.feed(update("tool_call_update", toolCallId="t", status="completed"))
    assert sent == [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "t",
            "status": "completed",
            "content": [shown("a")],
        }
    ]


@pytest.mark.parametrize(("given", "id"), [({}, "perm:7"), ({"toolCallId": "c"}, "c")])
def test_24_5_a_command_is_an_execute_call(given: dict[str, str], id: str) -> None:
    subject = {"type": "command", "command": "make", "cwd": "/w", **given}
    updates, params = asked(Down(), request(subject=subject))
    assert updates == []
    assert params["toolCall"] == {
        "toolCallId": id,
        "title": "make",
        "kind": "execute",
        "rawInput": {"command": "make", "cwd": "/w"},
        "content": [shown("May I?")],
    }


def test_24_5_a_command_of_a_known_call_keeps_that_call_s_title() -> None:
    down = Down()
    down.feed(update("tool_call_update", toolCallId="c", title="Build"))
    subject = {"type": "command", "command": "make", "cwd": "/w", "toolCallId": "c"}
    _, params = asked(down, request(subject=subject))
    assert params["toolCall"]["title"] == "Build"


def test_24_5_without_a_subject_a_call_is_made_up() -> None:
    _, params = asked(Down(), request(description="Really"))
    assert params["toolCall"] == {"toolCallId": "perm:7", "title": "May I?", "content": [shown("Really")]}


def test_24_5_an_unknown_subject_travels_in_meta() -> None:
    down = Down()
    subject = {"type": "_odd", "x": 1}
    _, params = asked(down, request(subject=subject))
    assert params["toolCall"] == {
        "toolCallId": "perm:7", "title": "May I?", "_meta": {ORIGINAL: {"subject": subject}},
    }  # fmt: skip
    assert down.lost == ["permission_subject"]


def test_24_5_options_of_unknown_kind_are_left_out() -> None:
    down = Down()
    _, params = asked(down, request(options=[ALLOW, ODD], _meta={"k": 1}))
    assert params["options"] == [ALLOW]
    assert params["_meta"] == {"k": 1, ORIGINAL: {"options": [ODD]}}
    assert down.lost == ["permission_option"]


def test_24_5_with_no_option_left_it_is_not_asked() -> None:
    down = Down()
    assert ask_v1(request(options=[ODD]), down.machine, question="7") is None
    assert down.lost == ["permission_option"]


def selected(id: str) -> Any:
    return v1.SelectedPermissionOutcome(option_id=v1.PermissionOptionId(id), meta={"k": 1})


@requirement("PERM-V1-02")
@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (selected("y"), {"outcome": "selected", "optionId": "y", "_meta": {"k": 1}}),
        (selected("o"), {"outcome": "cancelled"}),  # PERM-V2-06
        (selected("never"), {"outcome": "cancelled"}),
        (v1.CancelledPermissionOutcome(), {"outcome": "cancelled"}),
        (None, {"outcome": "cancelled"}),  # an error, as -32800
    ],
)
def test_outcomes_back_in_v2(outcome: Any, expected: Any) -> None:
    made = ask_v1(request(options=[ALLOW, ODD]), Down().machine, question="7")
    assert made is not None
    answer = None if outcome is None else v1.RequestPermissionResponse(outcome=outcome)
    assert plain(made.outcome(answer)) == expected


@requirement("PERM-V2-07")
@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ({"outcome": "selected", "optionId": "o"}, {"outcome": "selected", "optionId": "o"}),
        ({"outcome": "selected", "optionId": "x"}, {"outcome": "cancelled"}),
        ({"outcome": "cancelled", "_meta": {"k": 1}}, {"outcome": "cancelled", "_meta": {"k": 1}}),
        ({"outcome": "_allowed", "optionId": "y"}, {"outcome": "cancelled"}),  # PERM-V2-07
    ],
)
def test_what_is_not_known_is_never_approval(outcome: Any, expected: Any) -> None:
    made = Asked(updates=(), params=request(options=[ALLOW, ODD]))
    raw = msgspec.json.encode({"outcome": outcome})
    answer = codec(2).result("session/request_permission", raw)
    assert plain(made.outcome(answer)) == expected
    assert plain(CANCELLED) == {"outcome": "cancelled"}
