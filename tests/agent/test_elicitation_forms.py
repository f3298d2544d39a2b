"""Forms that an agent asks with: every kind of field, answers checked again, and forms that are refused."""

from __future__ import annotations

import enum
import logging
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct, field

from antiphon.agent import Answer, Email
from antiphon.agent.elicitation import Action
from antiphon.engine.questions import CREATE_ELICITATION
from antiphon.errors import CannotAsk, LocalError
from tests.agent.talk import session
from tests.agent.test_elicitation import FORM, Password, Where, able, asked, asking, ended
from tests.requirements.marks import requirement


class Size(enum.Enum):
    SMALL = "s"
    EXTRA_LARGE = "xl"


class Everything(Struct, rename="camel"):
    full_name: Annotated[str, Meta(min_length=1, max_length=40, description="As written")]
    mail: Email
    plate: Annotated[str, Meta(pattern=r"^[A-Z]{1,3}-\d+$")]
    born: date
    age: Annotated[int, Meta(gt=0, lt=150)]
    share: Annotated[float, Meta(ge=0, le=1)]
    news: bool
    size: Size
    colour: Literal["red", "blue"] = "blue"
    extras: Annotated[set[Literal["a", "b", "c"]], Meta(max_length=2)] = field(default_factory=lambda: {"b"})
    sizes: Annotated[list[Size], Meta(min_length=1)] = field(default_factory=lambda: [Size.SMALL])
    note: str | None = None


EVERYTHING = {
    "fullName": {"type": "string", "minLength": 1, "maxLength": 40, "description": "As written"},
    "mail": {"type": "string", "format": "email"},
    "plate": {"type": "string", "pattern": r"^[A-Z]{1,3}-\d+$"},
    "born": {"type": "string", "format": "date"},
    "age": {"type": "integer", "minimum": 1, "maximum": 149},
    "share": {"type": "number", "minimum": 0, "maximum": 1},
    "news": {"type": "boolean"},
    "size": {
        "type": "string",
        "oneOf": [{"const": "s", "title": "Small"}, {"const": "xl", "title": "Extra large"}],
    },
    "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
    "extras": {
        "type": "array",
        "items": {"type": "string", "enum": ["a", "b", "c"]},
        "maxItems": 2,
        "default": ["b"],
    },
    "sizes": {
        "type": "array",
        "items": {"anyOf": [{"const": "s", "title": "Small"}, {"const": "xl", "title": "Extra large"}]},
        "minItems": 1,
        "default": ["s"],
    },
    "note": {"type": "string"},
}
GOOD = {
    "fullName": "Ada",
    "mail": "ada@example.com",
    "plate": "UL-1",
    "born": "1815-12-10",
    "age": 36,
    "share": 1,
    "news": False,
    "size": "xl",
}


@requirement("ELIC-05", "ELIC-21")
@pytest.mark.parametrize("version", [1, 2])
async def test_every_kind_of_field_is_asked_for_and_read_back(version: int) -> None:
    agent, came = asking(lambda turn: turn.ask("Who?", Everything))
    async with session(agent, version, **able(version, FORM)) as (talk, id):
        request = await asked(talk, id)
        schema = request["params"]["requestedSchema"]
        assert schema["properties"] == EVERYTHING
        assert schema["required"] == list(GOOD)
        content = {**GOOD, "extras": ["a", "c"], "unasked": "x"}
        talk.send(id=request["id"], result={"action": "accept", "content": content})
        await ended(talk, version)
    assert came[0].value == Everything(
        full_name="Ada",
        mail="ada@example.com",
        plate="UL-1",
        born=date(1815, 12, 10),
        age=36,
        share=1,
        news=False,
        size=Size.EXTRA_LARGE,
        extras={"a", "c"},
    )


@requirement("ELIC-17")
@pytest.mark.parametrize(
    "wrong",
    [
        {"fullName": ""},
        {"fullName": "x" * 41},
        {"mail": "nobody"},
        {"plate": "ul-1"},
        {"plate": "UL-1\n"},
        {"born": "1815-13-10"},
        {"born": "18151210"},
        {"age": 0},
        {"age": 1.5},
        {"share": 1.01},
        {"share": "1"},
        {"news": "yes"},
        {"size": "m"},
        {"colour": "green"},
        {"extras": ["a", "b", "c"]},
        {"extras": ["d"]},
        {"extras": "a"},
        {"sizes": []},
        {"note": 1},
        {"mail": None},
    ],
)
async def test_the_agent_checks_every_answer_again(
    wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    agent, came = asking(lambda turn: turn.ask("Who?", Everything))
    with caplog.at_level(logging.CRITICAL, "antiphon"):
        async with session(agent, 2, **able(2, FORM)) as (talk, id):
            request = await asked(talk, id)
            talk.send(id=request["id"], result={"action": "accept", "content": {**GOOD, **wrong}})
            await talk.update("state_update", state="idle")
    assert came == [Answer(Action.CANCEL)]


@requirement("ELIC-17")
async def test_what_the_struct_itself_refuses_counts_as_cancelled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Even(Struct):
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("odd")

    agent, came = asking(lambda turn: turn.ask("Which?", Even))
    with caplog.at_level(logging.CRITICAL, "antiphon"):
        async with session(agent, 2, **able(2, FORM)) as (talk, id):
            request = await asked(talk, id)
            talk.send(id=request["id"], result={"action": "accept", "content": {"number": 3}})
            await talk.update("state_update", state="idle")
    assert came == [Answer(Action.CANCEL)]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_schema_of_ones_own_gives_a_dict(version: int) -> None:
    schema = {
        "type": "object",
        "title": "Trip",
        "properties": {
            "to": {"type": "string", "format": "_station"},
            "seat": {"type": "_seat_map", "rows": 4},
        },
        "required": ["to"],
    }
    agent, came = asking(lambda turn: turn.ask("Where to?", schema))
    async with session(agent, version, **able(version, FORM)) as (talk, id):
        request = await asked(talk, id)
        shown = request["params"]["requestedSchema"]
        assert shown["properties"]["seat"] == {"type": "_seat_map", "rows": 4}
        if version == 1:  # its formats are a closed set
            assert "format" not in shown["properties"]["to"]
        else:
            assert shown["properties"]["to"]["format"] == "_station"
        content = {"to": "Ulm", "seat": "4a", "unasked": 1}
        talk.send(id=request["id"], result={"action": "accept", "content": content})
        await ended(talk, version)
    assert came == [Answer(Action.ACCEPT, {"to": "Ulm", "seat": "4a"})]


class DatabasePassword(Struct, rename="camel"):
    db_password: str | None = None


class Token(Struct):
    key: Annotated[str, Meta(extra_json_schema={"format": "password"})]


class Nested(Struct):
    inner: Where


class Optional(Struct):
    name: str | None


class Several(Struct):
    name: str | int


class Numbers(Struct):
    number: Literal[1, 2]


class Fraction(Struct):
    share: Annotated[float, Meta(gt=0)]


class Multiple(Struct):
    count: Annotated[int, Meta(multiple_of=5)]


class Lookahead(Struct):
    word: Annotated[str, Meta(pattern="(?=a)b")]


class Texts(Struct):
    words: list[str]


class UnfitDefault(Struct):
    count: Annotated[int, Meta(ge=1)] = 0


class OwnFormat(Struct):
    station: Annotated[str, Meta(extra_json_schema={"format": "station"})]


@requirement("ELIC-13")
@pytest.mark.parametrize(
    "form",
    [Password, DatabasePassword, Token, {"properties": {"api_key": {"type": "string"}}, "type": "object"}],
)
async def test_a_secret_is_not_asked_for_with_a_form(form: Any) -> None:
    agent, came = asking(lambda turn: turn.ask("Tell me", form))
    async with session(agent, 2, **able(2, FORM)) as (talk, id):
        talk.prompt("p", id, "go")
        await talk.update("state_update", state="idle")
        assert "ask_url" in str(came[0])
        assert [f for f in talk.seen if f.get("method") == CREATE_ELICITATION] == []


@requirement("ELIC-05", "ELIC-18", "ELIC-21")
@pytest.mark.parametrize(
    "form",
    [
        Nested,
        Optional,
        Several,
        Numbers,
        Fraction,
        Multiple,
        Lookahead,
        Texts,
        UnfitDefault,
        OwnFormat,
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": []}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"anyOf": []}}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}},
        {"type": "object", "properties": {}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "["}}},
    ],
)
async def test_a_form_that_cannot_be_asked_is_told_to_its_author(form: Any) -> None:
    agent, came = asking(lambda turn: turn.ask("Tell me", form))
    async with session(agent, 2, **able(2, FORM)) as (talk, id):
        talk.prompt("p", id, "go")
        await talk.update("state_update", state="idle")
        assert isinstance(came[0], LocalError)
        assert not isinstance(came[0], CannotAsk)
        assert [f for f in talk.seen if f.get("method") == CREATE_ELICITATION] == []


@requirement("ELIC-18")
async def test_an_answer_costs_no_more_than_its_length(caplog: pytest.LogCaptureFixture) -> None:
    class Words(Struct):
        words: Annotated[str, Meta(pattern=r"^(\w+\s?)+$", max_length=10_000)]

    agent, came = asking(lambda turn: turn.ask("Say", Words))
    with caplog.at_level(logging.CRITICAL, "antiphon"):
        async with session(agent, 2, **able(2, FORM)) as (talk, id):
            request = await asked(talk, id)
            content = {"words": "a" * 9_999 + "!"}
            talk.send(id=request["id"], result={"action": "accept", "content": content})
            await talk.update("state_update", state="idle")
            request = await asked(talk, id)
            talk.send(id=request["id"], result={"action": "accept", "content": {"words": "a" * 5_000}})
            await talk.update("state_update", state="idle")
    assert [answer.action for answer in came] == ["cancel", "accept"]
