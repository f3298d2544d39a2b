"""Questions of an agent to the user: forms and addresses, by clients that are written by hand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from antiphon.agent import Agent, AgentTurn, Answer
from antiphon.agent.elicitation import Action
from antiphon.agent.logins import Login
from antiphon.engine.questions import CREATE_ELICITATION
from antiphon.errors import CannotAsk, LocalError
from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

FORM = {"elicitation": {"form": {}}}
URL = {"elicitation": {"url": {}}}
BOTH = {"elicitation": {"form": {}, "url": {}}}


class Where(Struct):
    city: Annotated[str, Meta(min_length=2, title="City")]
    floor: Annotated[int, Meta(ge=0, le=99)] = 0


def able(version: int, capabilities: dict[str, Any]) -> dict[str, Any]:
    return {"clientCapabilities" if version == 1 else "capabilities": capabilities}


def asking(ask: Callable[[AgentTurn], Awaitable[Any]], **options: Any) -> tuple[Agent, list[Any]]:
    """An agent that asks, and what came of it: the answer, or the error."""
    agent, came = Agent("asks", **options), []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        try:
            came.append(await ask(turn))
        except LocalError as error:
            came.append(error)

    return agent, came


async def where(turn: AgentTurn) -> Answer[Where]:
    return await turn.ask("Where is it?", Where)


async def asked(talk: Talk, id: str, text: str = "go") -> dict[str, Any]:
    talk.prompt("p", id, text)
    return await talk.request(CREATE_ELICITATION)


async def waits(talk: Talk) -> None:
    """The session requires action: told before the request or after it."""
    if "state_update requires_action" not in talk.story():
        await talk.update("state_update", state="requires_action")


async def ended(talk: Talk, version: int) -> None:
    if version == 1:
        await talk.answer_to("p")
    else:
        await talk.update("state_update", state="idle")


@requirement("ELIC-04", "ELIC-05")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_struct_is_asked_for_as_a_flat_form_of_the_session(version: int) -> None:
    agent, came = asking(where)
    async with session(agent, version, **able(version, FORM)) as (talk, id):
        request = await asked(talk, id)
        assert request["params"].pop("_meta").keys() == {"antiphon"}
        assert request["params"] == {
            "mode": "form",
            "sessionId": id,
            "message": "Where is it?",
            "requestedSchema": {
                # A v1 client takes both as given; written all the same, they mean the same.
                **({} if version == 1 else {"type": "object"}),
                "properties": {
                    "city": {"type": "string", "title": "City", "minLength": 2},
                    "floor": {"type": "integer", "minimum": 0, "maximum": 99, "default": 0},
                },
                "required": ["city"],
            },
        }
        talk.send(id=request["id"], result={"action": "accept", "content": {"city": "Ulm", "floor": 3.0}})
        await ended(talk, version)
    assert came == [Answer(Action.ACCEPT, Where("Ulm", 3))]


@requirement("ELIC-08", "ELIC-15", "ELIC-17")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("result", "action"),
    [
        ({"action": "decline"}, "decline"),
        ({"action": "cancel"}, "cancel"),
        ({"action": "decline", "content": {"city": "Ulm"}}, "decline"),
        ({"action": "_later", "content": {"city": "Ulm"}}, "cancel"),  # ELIC-08
        ({"action": "accept"}, "cancel"),
        ({"action": "accept", "content": {"city": "U"}}, "cancel"),
        ({"action": "accept", "content": {"city": "Ulm", "floor": 100}}, "cancel"),
        ({"action": "accept", "content": {"city": "Ulm", "floor": True}}, "cancel"),
        ({"action": "accept", "content": {"city": ["Ulm"]}}, "cancel"),
        ({"action": "accept", "content": "Ulm"}, "cancel"),
        ({}, "cancel"),
        ("accept", "cancel"),
        (None, "cancel"),
    ],
)
async def test_what_is_no_valid_consent_gives_no_value(
    version: int, result: Any, action: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent, came = asking(where)
    with caplog.at_level(logging.CRITICAL, "antiphon"):
        async with session(agent, version, **able(version, FORM)) as (talk, id):
            request = await asked(talk, id)
            talk.send(id=request["id"], result=result)
            await ended(talk, version)
    assert came == [Answer(Action(action))]
    assert (came[0].accepted, came[0].declined, came[0].cancelled) == (
        False,
        action == "decline",
        action == "cancel",
    )


@requirement("ELIC-15")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_that_fails_is_a_cancel(version: int, caplog: pytest.LogCaptureFixture) -> None:
    agent, came = asking(where)
    with caplog.at_level(logging.CRITICAL, "antiphon"):
        async with session(agent, version, **able(version, FORM)) as (talk, id):
            request = await asked(talk, id)
            talk.send(id=request["id"], error={"code": -32603, "message": "no window"})
            await ended(talk, version)
    assert came == [Answer(Action.CANCEL)]


@requirement("ELIC-02")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("able_to", [{}, {"elicitation": {}}, {"elicitation": {"form": None}}, URL])
async def test_what_no_client_that_is_there_takes_fails_at_once(
    version: int, able_to: dict[str, Any]
) -> None:
    told: list[bool] = []

    async def ask(turn: AgentTurn) -> object:
        told.extend([turn.can_ask("form"), turn.can_ask("url")])
        return await where(turn)

    agent, came = asking(ask)
    async with session(agent, version, **able(version, able_to)) as (talk, id):
        talk.prompt("p", id, "go")
        await ended(talk, version)
        assert isinstance(came[0], CannotAsk)
        assert told == [False, able_to == URL]
        assert [frame for frame in talk.seen if frame.get("method") == CREATE_ELICITATION] == []


@requirement("ELIC-02")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_handler_that_cannot_ask_and_does_not_mind_ends_its_turn_saying_so(
    version: int,
) -> None:
    agent = Agent("asker")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await where(turn)

    async with session(agent, version) as (talk, id):
        talk.prompt("p", id, "go")
        if version == 1:
            error = (await talk.answer_to("p"))["error"]
        else:
            error = (await talk.update("state_update", state="idle"))["error"]
    assert (error["code"], error["message"]) == (
        -32603,
        "no attached client accepts questions of mode 'form'",
    )


@requirement("ELIC-02")
async def test_of_two_clients_only_the_one_that_takes_it_is_asked() -> None:
    agent, came = asking(where)
    async with session(agent, 2) as (plain, id), client(agent, 1, **able(1, FORM)) as able_one:
        await able_one.call("load", "session/load", sessionId=id, cwd="/", mcpServers=[])
        plain.prompt("p", id, "go")
        request = await able_one.request(CREATE_ELICITATION)
        able_one.send(id=request["id"], result={"action": "accept", "content": {"city": "Ulm"}})
        await plain.update("state_update", state="idle")
        assert came[0].value == Where("Ulm")
        assert [frame for frame in plain.seen if frame.get("method") == CREATE_ELICITATION] == []


async def test_the_first_answer_counts_and_the_other_copy_is_withdrawn() -> None:
    agent, came = asking(where)
    async with (
        session(agent, 2, **able(2, FORM)) as (one, id),
        client(agent, 2, **able(2, FORM)) as two,
    ):
        await two.call("res", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        first = await asked(one, id)
        second = await two.request(CREATE_ELICITATION)
        two.send(id=second["id"], result={"action": "accept", "content": {"city": "Bonn"}})
        withdrawn = await one.request("$/cancel_request")
        assert withdrawn["params"]["requestId"] == first["id"]
        one.send(id=first["id"], result={"action": "accept", "content": {"city": "Ulm"}})
        await one.update("state_update", state="idle")
    assert came == [Answer(Action.ACCEPT, Where("Bonn"))]


async def test_an_answer_that_is_none_does_not_decide_for_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent, came = asking(where)
    with caplog.at_level(logging.CRITICAL, "antiphon"):
        async with (
            session(agent, 2, **able(2, FORM)) as (one, id),
            client(agent, 2, **able(2, FORM)) as two,
        ):
            await two.call("res", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            first = await asked(one, id)
            second = await two.request(CREATE_ELICITATION)
            one.send(id=first["id"], error={"code": -32601, "message": "what?"})
            one.send(id="x", method="session/list", params={})
            await one.answer_to("x")
            two.send(id=second["id"], result={"action": "accept", "content": {"city": "Bonn"}})
            await one.update("state_update", state="idle")
    assert came == [Answer(Action.ACCEPT, Where("Bonn"))]


async def test_it_waits_with_nobody_there_and_reaches_who_comes() -> None:
    agent, came = asking(where)
    async with agent.serving():
        async with session(agent, 2, **able(2, FORM)) as (talk, id):
            await asked(talk, id)
            await waits(talk)
        assert came == []
        found = agent.find(id)
        assert found is not None
        assert [question.method for question in found.fold.questions.open] == [CREATE_ELICITATION]
        async with client(agent, 2, **able(2, FORM)) as late:
            await late.call("res", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            request = await late.request(CREATE_ELICITATION)
            late.send(id=request["id"], result={"action": "accept", "content": {"city": "Ulm"}})
            await late.update("state_update", state="idle")
    assert came == [Answer(Action.ACCEPT, Where("Ulm"))]


@requirement("PROMPT-V2-23")
async def test_the_session_requires_action_exactly_while_everything_waits() -> None:
    async def ask(turn: AgentTurn) -> object:
        async with turn.tool_call("Find it") as call:
            return await call.ask("Where?", Where)

    agent, _ = asking(ask)
    async with session(agent, 2, **able(2, FORM)) as (talk, id):
        request = await asked(talk, id)
        call = next(
            frame["params"]["update"]["toolCallId"]
            for frame in talk.seen
            if frame.get("params", {}).get("update", {}).get("sessionUpdate") == "tool_call_update"
        )
        assert request["params"]["toolCallId"] == call
        await waits(talk)
        talk.send(id=request["id"], result={"action": "decline"})
        await talk.update("state_update", state="running")
        await talk.update("state_update", state="idle")


@requirement("PROMPT-V2-25")
async def test_one_answer_of_two_is_not_running_yet() -> None:
    async def ask(turn: AgentTurn) -> object:
        async with turn.tool_call("Find it") as call:
            return await asyncio.gather(call.ask("Where?", Where), call.ask("Where else?", Where))

    agent, _ = asking(ask)
    async with session(agent, 2, **able(2, FORM)) as (talk, id):
        first = await asked(talk, id)
        second = await talk.request(CREATE_ELICITATION)
        talk.send(id=first["id"], result={"action": "decline"})
        talk.send(id=second["id"], result={"action": "decline"})
        await talk.update("state_update", state="idle")
    states = [line for line in talk.story() if line.startswith("state_update")]
    assert states == [
        "state_update running",
        "state_update requires_action",
        "state_update running",
        "state_update idle",
    ]


@requirement("ELIC-20")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_cancelled_turn_takes_its_question_back(version: int) -> None:
    agent, came = asking(where)
    async with session(agent, version, **able(version, FORM)) as (talk, id):
        request = await asked(talk, id)
        talk.send(method="session/cancel", params={"sessionId": id})
        withdrawn = await talk.request("$/cancel_request")
        assert withdrawn["params"]["requestId"] == request["id"]
        talk.send(id=request["id"], result={"action": "accept", "content": {"city": "Ulm"}})
        if version == 1:
            assert (await talk.answer_to("p"))["result"]["stopReason"] == "cancelled"
        else:
            await talk.update("state_update", state="idle", stopReason="cancelled")
    assert came == []


@requirement("ELIC-20")
async def test_the_question_of_background_work_outlives_the_turn() -> None:
    agent, came = Agent("asks"), []
    running = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async def behind(call: Any) -> None:
            came.append(await call.ask("Where?", Where))

        await turn.session.background("Search", behind)
        await running.wait()

    async with session(agent, 2, **able(2, FORM)) as (talk, id):
        request = await asked(talk, id)
        talk.send(method="session/cancel", params={"sessionId": id})
        await talk.update("state_update", state="idle")
        assert [f for f in talk.seen if f.get("method") == "$/cancel_request"] == []
        talk.send(id=request["id"], result={"action": "accept", "content": {"city": "Ulm"}})
        await talk.update("tool_call_update", status="completed")
    assert came == [Answer(Action.ACCEPT, Where("Ulm"))]
    assert "state_update requires_action" not in talk.story()


async def test_a_question_expires_with_the_process_that_asked(tmp_path: Path) -> None:
    agent, _ = asking(where, store=SQLiteStore(tmp_path / "s.db"))
    async with agent.serving(), session(agent, 2, **able(2, FORM)) as (talk, id):
        await asked(talk, id)
        await waits(talk)
    again, _ = asking(where, store=SQLiteStore(tmp_path / "s.db"))
    async with again.serving(), client(again, 2, **able(2, FORM)) as later:
        await later.call("res", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        await later.call("list", "session/list")
        assert [f for f in later.seen if f.get("method") == CREATE_ELICITATION] == []
        reopened = again.find(id)
        assert reopened is not None
        assert reopened.fold.questions.open == []


class Password(Struct):
    password: str


# --- requests ------------------------------------------------------------------------------------


@requirement("ELIC-04")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_question_may_belong_to_a_request_before_there_is_a_session(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent("asks")
    came: list[Any] = []
    method = "authenticate" if version == 1 else "auth/login"

    @agent.on_login("web", name="In the browser")
    async def log_in(login: Login) -> None:
        assert login.can_ask("form")
        came.append(await login.ask("Where?", Where))
        consent = await login.ask_url("Go", "https://example.com")
        await consent.complete()
        came.append(login)

    async with client(agent, version, **able(version, BOTH)) as talk:
        talk.send(id="in", method=method, params={"methodId": "web"})
        request = await talk.request(CREATE_ELICITATION)
        assert request["params"]["requestId"] == "in"
        assert "sessionId" not in request["params"]
        talk.send(id=request["id"], result={"action": "accept", "content": {"city": "Ulm"}})
        request = await talk.request(CREATE_ELICITATION)
        assert request["params"]["requestId"] == "in"
        talk.send(id=request["id"], result={"action": "accept"})
        told = await talk.request("elicitation/complete")
        assert told["params"]["elicitationId"] == request["params"]["elicitationId"]
        await talk.answer_to("in")
        answer, login = came
        assert answer == Answer(Action.ACCEPT, Where("Ulm"))
        with pytest.raises(LocalError):
            login.can_ask("form")

        came.clear()
        talk.send(id="bad", method=method, params={"methodId": "web"})
        with caplog.at_level(logging.CRITICAL, "antiphon"):
            for result in ({"action": "accept", "content": {"city": 7}}, None):
                request = await talk.request(CREATE_ELICITATION)
                talk.send(id=request["id"], result=result)
            assert "error" in await talk.answer_to("bad")  # what was not agreed to cannot be completed
        assert came == [Answer(Action.CANCEL)]

        talk.send(id="again", method=method, params={"methodId": "web"})
        request = await talk.request(CREATE_ELICITATION)
        talk.send(method="$/cancel_request", params={"requestId": "again"})
        assert (await talk.request("$/cancel_request"))["params"]["requestId"] == request["id"]
        assert (await talk.answer_to("again"))["error"]["code"] == -32800


@requirement("ELIC-02", "ELIC-13")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_request_asks_nothing_that_its_client_does_not_take(version: int) -> None:
    agent = Agent("asks")
    came: list[Any] = []

    @agent.on_login("web", name="In the browser")
    async def log_in(login: Login) -> None:
        assert not login.can_ask("url")
        with pytest.raises(CannotAsk):
            await login.ask_url("Go", "https://example.com")
        with pytest.raises(LocalError, match="secret"):
            await login.ask("Then tell me", Password)
        came.append(login.method_id)

    async with client(agent, version, **able(version, FORM)) as talk:
        await talk.call("in", "authenticate" if version == 1 else "auth/login", methodId="web")
    assert came == ["web"]
