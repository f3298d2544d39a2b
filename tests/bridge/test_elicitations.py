"""Elicitations to v1 clients, and what their answers mean in v2 (24.2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.bridge.dialects import V1Writer, Writer
from antiphon.bridge.losses import Ledger
from antiphon.bridge.questions import answered, elicit_v1, modes
from antiphon.bridge.upgrade.questions import elicitation as lifted
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.wire import Unknown
from tests.bridge.wire import elicitation, plain
from tests.requirements.marks import requirement

FIELDS: dict[str, Any] = {
    "a": {
        "type": "string",
        "minLength": 1,
        "pattern": "x",
        "format": "email",
        "title": "A",
        "default": "x@y",
    },
    "b": {"type": "integer", "minimum": 1, "maximum": 2, "description": "B"},
    "c": {"type": "number", "default": 0.5},
    "d": {"type": "boolean", "default": True, "_meta": {"k": 1}},
    "e": {"type": "string", "oneOf": [{"const": "x", "title": "X", "description": "…"}]},
    "f": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}, "maxItems": 1},
    "g": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "default": ["x"]},
    "h": {"type": "_odd", "deep": {"er": [1]}},
}


@requirement("ELIC-01")
@pytest.mark.parametrize(
    ("capabilities", "named"),
    [
        (None, set()),
        (v1.ClientCapabilities(), set()),
        (v2.ClientCapabilities(elicitation=v2.ElicitationCapabilities()), set()),
        (v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities()), set()),
        (
            v1.ClientCapabilities(
                elicitation=v1.ElicitationCapabilities(url=v1.ElicitationUrlCapabilities())
            ),
            {"url"},
        ),
        (
            v2.ClientCapabilities(
                elicitation=v2.ElicitationCapabilities(
                    form=v2.ElicitationFormCapabilities(), url=v2.ElicitationUrlCapabilities()
                )
            ),
            {"form", "url"},
        ),
    ],
)
def test_an_empty_object_names_no_mode(capabilities: Any, named: set[str]) -> None:
    assert modes(capabilities) == named


def strict_v1(sent: Any) -> Any:
    read = codec(1).params(Kind.REQUEST, "elicitation/create", msgspec.json.encode(sent))
    assert not isinstance(read, Unknown)
    return read


def test_24_2_a_form_is_the_same_in_v1_and_comes_back_as_it_was() -> None:
    request = elicitation(FIELDS, toolCallId="t", _meta={"trace": "1"})
    lost: list[Any] = []
    down = elicit_v1(request, Ledger(lambda loss, original: lost.append(loss)))
    assert plain(strict_v1(down))["requestedSchema"]["properties"] == FIELDS
    assert lifted(strict_v1(down)) == request
    assert lost == []
    assert V1Writer().elicited(request) == down
    assert Writer().elicited(request) is request


@requirement("ELIC-04")
@pytest.mark.parametrize("scope", [{"session_id": "s"}, {"request_id": 7}, {"request_id": "r"}])
def test_an_address_is_the_same_in_v1_with_its_one_scope(scope: dict[str, Any]) -> None:
    request = v2.ElicitationUrlMode(
        message="Go", url="https://example.com", elicitation_id=v2.ElicitationId("e"), **scope
    )
    down = strict_v1(elicit_v1(request, Ledger()))
    assert plain(down) == plain(request)
    assert lifted(down) == request


@requirement("EXT-10")
def test_a_format_that_v1_does_not_know_is_left_out() -> None:
    request = elicitation({"a": {"type": "string", "format": "_station", "_meta": {"k": 1}}})
    sent = plain(strict_v1(elicit_v1(request, Ledger())))["requestedSchema"]["properties"]["a"]
    assert sent == {
        "type": "string",
        "_meta": {"k": 1, "acp.bridge/original": {"format": "_station"}},
    }


@requirement("ELIC-08")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("result", "meant"),
    [
        ({"action": "accept", "content": {"a": 1}}, v2.ElicitationAcceptAction(content={"a": 1})),
        ({"action": "accept"}, v2.ElicitationAcceptAction()),
        ({"action": "decline", "_meta": {"k": 1}}, v2.ElicitationDeclineAction(meta={"k": 1})),
        ({"action": "cancel"}, v2.ElicitationCancelAction()),
        ({"action": "_perhaps", "content": {"a": 1}}, v2.ElicitationCancelAction()),
        ({"action": "agree"}, v2.ElicitationCancelAction()),
    ],
)
def test_an_answer_means_the_same_in_both_versions(version: int, result: Any, meant: Any) -> None:
    answer = codec(version).result("elicitation/create", msgspec.json.encode(result))
    assert answered(answer) == meant
    assert answered(None) is None
