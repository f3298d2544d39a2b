"""Forms as a client gets them: field by field, answered, checked, and refused where they make no sense."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from antiphon.client import Elicitation
from antiphon.engine.forms.form import (
    BooleanField,
    ChoiceField,
    ChoicesField,
    IntegerField,
    NumberField,
    Option,
    TextField,
    UnknownField,
)
from antiphon.errors import FormInvalid
from antiphon.schema import v2
from tests.client.driving import by_hand
from tests.client.test_eliciting import NAME, Answers, answering, ask, form, never, url
from tests.requirements.marks import requirement

FIELDS = {
    "name": {"type": "string", "title": "Name", "minLength": 2, "maxLength": 9, "pattern": "^[a-z]+$"},
    "mail": {"type": "string", "format": "email", "description": "Yours"},
    "share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "news": {"type": "boolean", "default": False},
    "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small", "description": "Tiny"}]},
    "extras": {
        "type": "array",
        "items": {"type": "string", "enum": ["a", "b"]},
        "minItems": 1,
        "maxItems": 2,
        "default": ["a"],
    },
    "more": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X!"}]}},
    "seat": {"type": "_seat_map", "title": "Seat", "rows": 4},
}


@requirement("ELIC-05", "ELIC-07", "ELIC-09", "ELIC-21")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_form_comes_field_by_field_and_is_answered(
    version: int,
) -> None:
    seen: list[Elicitation] = []
    async with by_hand(version, answers=answering({"name": "ada", "news": True}, seen)) as (session, agent):
        given = await ask(agent, form(FIELDS, required=["name"]))
        assert given["result"] == {
            "action": "accept",
            "content": {"name": "ada", "share": 0.5, "news": True, "colour": "red", "extras": ["a"]},
        }
        (elicitation,) = seen
        assert elicitation.mode == "form"
        assert elicitation.message == "Tell me"
        assert elicitation.session is session
        assert elicitation.request_id is None
        assert elicitation.url is None
        assert elicitation.host is None
        assert elicitation.fields == (
            TextField(
                name="name", title="Name", required=True, min_length=2, max_length=9, pattern="^[a-z]+$"
            ),
            TextField(name="mail", title="mail", description="Yours", format=v2.StringFormat.EMAIL),
            NumberField(name="share", title="share", minimum=0, maximum=1, default=0.5),
            IntegerField(name="age", title="age", minimum=0, maximum=150),
            BooleanField(name="news", title="news", default=False),
            ChoiceField(
                name="colour", title="colour", options=(Option("red", "red"), Option("blue", "blue")),
                default="red",
            ),
            ChoiceField(name="size", title="size", options=(Option("s", "Small", "Tiny"),)),
            ChoicesField(
                name="extras", title="extras", options=(Option("a", "a"), Option("b", "b")),
                min_items=1, max_items=2, default=["a"],
            ),
            ChoicesField(name="more", title="more", options=(Option("x", "X!"),)),
            UnknownField(name="seat", title="Seat", raw=FIELDS["seat"]),
        )  # fmt: skip


@requirement("ELIC-17")
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"name": "a"}, "name"),
        ({"name": "abcdefghijk"}, "name"),
        ({"name": "Ada"}, "name"),
        ({"name": None}, "name"),
        ({"name": 3}, "name"),
        ({"mail": "a b@c"}, "mail"),
        ({"mail": "@c"}, "mail"),
        ({"share": 2}, "share"),
        ({"share": float("nan")}, "share"),
        ({"age": -1}, "age"),
        ({"age": 1.5}, "age"),
        ({"age": True}, "age"),
        ({"news": "yes"}, "news"),
        ({"colour": "green"}, "colour"),
        ({"size": "Small"}, "size"),
        ({"extras": []}, "extras"),
        ({"extras": ["a", "b", "a"]}, "extras"),
        ({"extras": [["a"]]}, "extras"),
        ({"more": "x"}, "more"),
        ({"unasked": 1}, "unasked"),
    ],
)
async def test_what_does_not_fit_is_not_sent_and_says_which_field(wrong: dict[str, Any], named: str) -> None:
    problems: list[dict[str, str]] = []

    async def elicit(elicitation: Elicitation) -> Any:
        with pytest.raises(FormInvalid) as refused:
            elicitation.accept({"name": "ada", **wrong})
        problems.append(refused.value.problems)
        assert str(refused.value)
        return elicitation.accept({"name": "ada"}, age=None, colour=None)

    async with by_hand(answers=Answers(elicit)) as (_, agent):
        given = await ask(agent, form(FIELDS, required=["name"]))
    assert list(problems[0]) == [named]
    assert given["result"]["content"] == {"name": "ada", "share": 0.5, "news": False, "extras": ["a"]}


@requirement("ELIC-07", "ELIC-14")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_the_user_may_decline_or_cancel(version: int, action: str) -> None:
    async def elicit(elicitation: Elicitation) -> Any:
        return getattr(elicitation, action)()

    async with by_hand(version, answers=Answers(elicit)) as (session, agent):
        assert (await ask(agent, form(NAME)))["result"] == {"action": action}
        assert (await ask(agent, url(), "u"))["result"] == {"action": action}
        assert session.questions == []


@requirement("ELIC-07")
@pytest.mark.parametrize("mistake", ["raises", "nothing", "a dict", "made up", "cancels itself"])
async def test_an_answer_that_is_none_cancels(mistake: str, caplog: pytest.LogCaptureFixture) -> None:
    async def elicit(elicitation: Elicitation) -> Any:
        if mistake == "raises":
            raise RuntimeError("boom")
        if mistake == "cancels itself":
            raise asyncio.CancelledError
        if mistake == "made up":
            return v2.ElicitationAcceptAction(content={"name": 3})
        return {"name": "x"} if mistake == "a dict" else None

    async with by_hand(answers=Answers(elicit)) as (session, agent):
        with caplog.at_level(logging.CRITICAL, "antiphon.client"):
            assert (await ask(agent, form(NAME)))["result"] == {"action": "cancel"}
            assert session.questions == []


@requirement("ELIC-19")
async def test_an_unknown_format_is_kept_and_never_a_reason_to_refuse() -> None:
    seen: list[Elicitation] = []
    async with by_hand(answers=answering({"to": "anything"}, seen)) as (_, agent):
        given = await ask(agent, form({"to": {"type": "string", "format": "station"}}))
    assert given["result"] == {"action": "accept", "content": {"to": "anything"}}
    (field,) = seen[0].fields
    assert isinstance(field, TextField)
    assert field.format == "station"


@requirement("ELIC-18")
@pytest.mark.parametrize("pattern", [r"^(\w+\s?)+$", "(a?){300}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
async def test_a_pattern_of_the_agents_costs_no_more_than_its_length(pattern: str) -> None:
    took: list[float] = []

    async def elicit(elicitation: Elicitation) -> Any:
        begun = time.perf_counter()
        elicitation.problems({"name": "a" * 5_000 + "!"})
        elicitation.problems({"name": "a" * 90_000 + "!"})
        took.append(time.perf_counter() - begun)
        return elicitation.cancel()

    async with by_hand(answers=Answers(elicit)) as (_, agent):
        given = await ask(agent, form({"name": {"type": "string", "pattern": pattern}}))
        assert given["result"] == {"action": "cancel"}
    assert took[0] < 5


@requirement("ELIC-18")
async def test_a_pattern_that_cannot_be_checked_here_is_left_to_the_agent() -> None:
    async with by_hand(answers=answering({"name": "b"})) as (_, agent):
        for pattern in ("(?=a)b", r"(a)\1", "[", "x" * 2000, "(((((a{99}){99}){99}){99}){99})"):
            given = await ask(agent, form({"name": {"type": "string", "pattern": pattern}}))
            assert given["result"]["action"] == "accept"


@requirement("ELIC-21")
@pytest.mark.parametrize("empty", [{"enum": []}, {"oneOf": []}])
async def test_a_choice_of_nothing_is_refused(empty: dict[str, Any]) -> None:
    async with by_hand(answers=Answers(never)) as (_, agent):
        given = await ask(agent, form({"name": {"type": "string", **empty}}))
        assert given["error"]["code"] == -32602
        items = {"type": "array", "items": {"type": "string", "enum": []}}
        assert (await ask(agent, form({"name": items}), "r"))["error"]["code"] == -32602


async def test_v1_leaves_out_what_is_so_by_default() -> None:
    params = {"mode": "form", "message": "?", "sessionId": "s", "requestedSchema": {}}
    async with by_hand(1, answers=answering({})) as (_, agent):
        assert (await ask(agent, params))["result"]["action"] == "accept"
