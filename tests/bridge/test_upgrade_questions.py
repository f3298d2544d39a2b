"""Questions of v1 agents in v2, and the answers back (24.2, 24.5)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.bridge.upgrade.questions import Permission, elicitation, elicitation_answer, permission
from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.wire import choose
from tests.bridge.wire import Up, plain, shown, v1_update
from tests.requirements.marks import requirement

ALLOW = {"optionId": "y", "name": "Yes", "kind": "allow_once", "_meta": {"k": 1}}
REJECT = {"optionId": "n", "name": "No", "kind": "reject_once"}


def asked(up: Up, options: Any = (ALLOW, REJECT), **call: Any) -> Permission:
    raw = {"sessionId": "s", "toolCall": {"toolCallId": "t", **call}, "options": options, "_meta": {"k": 2}}
    params = codec(1).params(Kind.REQUEST, "session/request_permission", msgspec.json.encode(raw))
    return permission(params, up.machine)


def strict(made: Permission) -> Any:
    raw = msgspec.json.encode(made.params)
    assert msgspec.json.decode(raw, type=v2.RequestPermissionRequest, dec_hook=choose) == made.params
    return plain(raw)


def test_24_5_a_permission_is_about_its_tool_call_and_has_its_title() -> None:
    up = Up()
    assert strict(asked(up, title="rm x", kind="delete", content=[shown("a")], status=None)) == {
        "sessionId": "s",
        "title": "rm x",
        "subject": {
            "type": "tool_call",
            "toolCall": {"toolCallId": "t", "title": "rm x", "kind": "delete", "content": [shown("a")]},
        },
        "options": [ALLOW, REJECT],
        "_meta": {"k": 2},
    }
    assert up.lost == []


@pytest.mark.parametrize(
    ("told", "title"),
    [([v1_update("tool_call", toolCallId="t", title="T")], "T"), ([], "Permission required")],
)
def test_24_5_without_a_title_it_is_the_one_that_was_told(told: list[Any], title: str) -> None:
    up = Up()
    up.feed(*told)
    made = strict(asked(up))
    assert made["title"] == title
    assert made["subject"] == {"type": "tool_call", "toolCall": {"toolCallId": "t"}}


def test_a_call_that_was_first_seen_in_a_permission_is_known_from_there() -> None:
    up = Up()
    asked(up, title="T", status="pending")
    assert up.machine.tools.title("t") == "T"
    assert up.feed(v1_update("tool_call_update", toolCallId="t", status="completed")) == [
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}
    ]


def test_24_5_without_options_it_is_cancelled_and_its_call_told() -> None:
    up = Up()
    made = asked(up, options=[], title="T")
    assert made.params is None
    assert up.told(made.updates) == [{"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "T"}]
    assert plain(made.answer(None)) == {"outcome": {"outcome": "cancelled"}}


@requirement("PERM-V2-06")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {"outcome": {"outcome": "selected", "optionId": "n", "_meta": {"k": 1}}, "_meta": {"k": 2}},
            {"outcome": {"outcome": "selected", "optionId": "n", "_meta": {"k": 1}}, "_meta": {"k": 2}},
        ),
        ({"outcome": {"outcome": "selected", "optionId": "x"}}, {"outcome": {"outcome": "cancelled"}}),
        ({"outcome": {"outcome": "_allowed", "optionId": "y"}}, {"outcome": {"outcome": "cancelled"}}),
        (
            {"outcome": {"outcome": "cancelled", "_meta": {"k": 1}}, "_meta": {"l": 2}},
            {"outcome": {"outcome": "cancelled"}, "_meta": {"k": 1, "l": 2}},
        ),
        (None, {"outcome": {"outcome": "cancelled"}}),
    ],
)
def test_only_what_was_offered_and_is_known_is_approval(answer: Any, expected: Any) -> None:
    given = None
    if answer is not None:
        given = codec(2).result("session/request_permission", msgspec.json.encode(answer))
    raw = msgspec.json.encode(asked(Up()).answer(given))
    msgspec.json.decode(raw, type=v1.RequestPermissionResponse, dec_hook=choose)
    assert plain(raw) == expected


def form(**fields: Any) -> Any:
    raw = {"mode": "form", "message": "M", "requestedSchema": {}, **fields}
    return codec(1).params(Kind.REQUEST, "elicitation/create", msgspec.json.encode(raw))


@requirement("ELIC-05")
def test_a_form_says_that_it_is_an_object() -> None:
    assert plain(elicitation(form(sessionId="s"))) == {
        "mode": "form", "message": "M", "sessionId": "s",
        "requestedSchema": {"type": "object", "properties": {}},
    }  # fmt: skip
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "title": "T"}
    assert plain(elicitation(form(requestId=3, requestedSchema=schema)))["requestedSchema"] == schema


@requirement("ELIC-06")
def test_a_url_crosses_as_it_is() -> None:
    raw = {"mode": "url", "message": "M", "elicitationId": "e", "url": "https://x", "sessionId": "s"}
    params = codec(1).params(Kind.REQUEST, "elicitation/create", msgspec.json.encode(raw))
    assert plain(elicitation(params)) == raw


@requirement("ELIC-04")
def test_two_scopes_are_refused() -> None:
    with pytest.raises(InvalidParams):
        elicitation(form(sessionId="s", requestId=3))


@requirement("ELIC-07")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"action": "accept", "content": {"a": 1}}, {"action": "accept", "content": {"a": 1}}),
        ({"action": "decline", "_meta": {"k": 1}}, {"action": "decline", "_meta": {"k": 1}}),
        ({"action": "cancel"}, {"action": "cancel"}),
        ({"action": "_odd", "content": {"a": 1}}, {"action": "cancel"}),  # ELIC-08
        (None, {"action": "cancel"}),
    ],
)
def test_answers_go_back(answer: Any, expected: Any) -> None:
    given = None if answer is None else codec(2).result("elicitation/create", msgspec.json.encode(answer))
    assert plain(elicitation_answer(given)) == expected
