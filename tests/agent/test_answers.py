"""`_antiphon/answer`: a question answered by its id, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, AgentTurn
from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk, client, session
from tests.agent.test_sessions import idle
from tests.requirements.marks import requirement

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ELICITS = {"capabilities": {"elicitation": {"form": {}}}}


def asking(store: SQLiteStore | None = None) -> Agent:
    agent = Agent("asking", store=store)

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        if turn.prompt.text == "form":
            answer = await turn.ask("Who?", FORM)
            await turn.say(str(answer.value))
            return
        async with turn.tool_call("act", kind="execute") as call:
            await turn.say("allowed" if await call.request_permission() else "not allowed")

    return agent


async def asked(talk: Talk, id: str, words: str = "go") -> tuple[str, dict[str, Any]]:
    """A question's id and its request, once it is asked."""
    talk.prompt("p", id, words)
    method = "elicitation/create" if words == "form" else "session/request_permission"
    request = await talk.request(method)
    return request["params"]["_meta"]["antiphon"]["questionId"], request


def selected(request: dict[str, Any], kind: str = "allow_once") -> dict[str, Any]:
    option = next(o["optionId"] for o in request["params"]["options"] if o["kind"] == kind)
    return {"outcome": {"outcome": "selected", "optionId": option}}


async def said(talk: Talk) -> str:
    update = await talk.until(
        lambda f: str(f.get("params", {}).get("update", {}).get("sessionUpdate")).startswith("agent_message")
    )
    content = update["params"]["update"]["content"]
    return str((content[0] if isinstance(content, list) else content)["text"])


@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_that_was_not_asked_answers_and_the_copies_are_withdrawn(version: int) -> None:
    agent = asking()
    async with session(agent, version) as (talk, id), client(agent, version) as phone:
        question, request = await asked(talk, id)
        params = {"sessionId": id, "questionId": question, **selected(request)}
        assert await phone.call(1, "_antiphon/answer", **params) == {}
        withdrawn = await talk.request("$/cancel_request")
        assert withdrawn["params"] == {"requestId": request["id"]}
        assert await said(talk) == "allowed"


async def test_the_same_operation_has_the_same_outcome_and_another_one_comes_too_late(tmp_path: Path) -> None:
    for life in (1, 2):
        agent = asking(SQLiteStore(tmp_path / "s.db"))
        async with agent.serving(), client(agent) as talk:
            if life == 1:
                id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
                question, request = await asked(talk, id)
                params = {"sessionId": id, "questionId": question, **selected(request, "reject_once")}
                assert await talk.call("first", "_antiphon/answer", **params, operationId="op") == {}
                assert await said(talk) == "not allowed"
                await idle(talk)
            else:
                await talk.call("join", "session/resume", sessionId=id, cwd="/")
            assert await talk.call("again", "_antiphon/answer", **params, operationId="op") == {}
            for n, ours in enumerate(({}, {"operationId": "other"})):
                talk.send(id=n, method="_antiphon/answer", params={**params, **selected(request), **ours})
                error = (await talk.answer_to(n))["error"]
                assert (error["code"], error["data"]) == (-32010, {"reason": "already_answered"})


async def test_a_question_that_is_over_takes_no_answer() -> None:
    agent = asking()
    async with session(agent) as (talk, id):
        question, request = await asked(talk, id)
        talk.send(method="session/cancel", params={"sessionId": id})
        await idle(talk, stopReason="cancelled")
        params = {"sessionId": id, "questionId": question, "operationId": "op", **selected(request)}
        for n in (1, 2):
            talk.send(id=n, method="_antiphon/answer", params=params)
            assert (await talk.answer_to(n))["error"]["data"] == {"reason": "already_cancelled"}


@requirement("ELIC-17")
async def test_a_form_is_answered_in_v2s_words_and_has_to_fit() -> None:
    agent = asking()
    async with session(agent, **ELICITS) as (talk, id):
        question, _ = await asked(talk, id, "form")
        of = {"sessionId": id, "questionId": question}
        for n, odd in enumerate(
            ({}, {"action": "accept", "content": {}}, {"action": "accept", "content": 7})
        ):
            talk.send(id=n, method="_antiphon/answer", params={**of, **odd})
            assert (await talk.answer_to(n))["error"]["code"] == -32602, odd
        filled = {"action": "accept", "content": {"name": "ann"}}
        assert await talk.call("fits", "_antiphon/answer", **of, **filled) == {}
        assert await said(talk) == "{'name': 'ann'}"


async def test_what_is_no_answer_is_refused_and_the_question_waits_on() -> None:
    agent = asking()
    async with session(agent) as (talk, id):
        question, request = await asked(talk, id)
        of = {"sessionId": id, "questionId": question}
        odd: list[Any] = [
            {**of},
            {**of, "outcome": {"outcome": "selected", "optionId": "nobody's"}},
            {**of, "outcome": {"outcome": "selected"}},
            {**of, "outcome": "yes"},
            {**of, **selected(request), "operationId": 7},
            [],
            {},
            {"questionId": question},
        ]
        for n, params in enumerate(odd):
            talk.send(id=n, method="_antiphon/answer", params=params)
            assert (await talk.answer_to(n))["error"]["code"] == -32602, params
        unknown = [{**of, "questionId": "q"}, {**of, "sessionId": "s"}]
        for n, params in enumerate(unknown, start=10):
            talk.send(id=n, method="_antiphon/answer", params=params)
            assert (await talk.answer_to(n))["error"]["data"] == {"reason": "unknown_question"}, params
        talk.send(id=request["id"], result=selected(request))
        assert await said(talk) == "allowed"
