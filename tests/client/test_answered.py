"""What this client has answered it answers again, without asking its user again."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.client import Permission, Permissions
from antiphon.client.elicitation import Elicitation
from antiphon.client.protocol.questions import REMEMBERED, AnswerMemory
from antiphon.schema import v2
from tests.client.driving import ByHand, by_hand
from tests.client.test_eliciting import Answers

OPTIONS = [
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "n", "name": "No", "kind": "reject_once"},
]


async def answer_to(agent: ByHand, id: str, method: str, **params: Any) -> Any:
    agent.send(id=id, method=method, params={"sessionId": "s", **params})
    while (frame := await agent.receive()).get("id") != id:
        pass
    return frame["result"]


def named(question_id: str) -> dict[str, Any]:
    return {"_meta": {"antiphon": {"questionId": question_id}}}


@pytest.mark.parametrize("version", [1, 2])
async def test_a_permission_that_is_asked_for_again_is_decided_already(version: int) -> None:
    choices = iter(["y", None, "n"])
    asked: list[str] = []

    async def ask(permission: Permission) -> str | None:
        asked.append(permission.title)
        return next(choices)

    about = {"toolCall": {"toolCallId": "t", "title": "Act"}} if version == 1 else {"title": "Act"}
    async with by_hand(version, answers=Permissions(ask=ask)) as (_, agent):
        answers = [
            await answer_to(
                agent, f"r{n}", "session/request_permission", options=OPTIONS, **about, **named(question)
            )
            for n, question in enumerate(["q1", "q1", "q2", "q2", "q3"])
        ]
        outcomes = [answer["outcome"].get("optionId") for answer in answers]
        assert outcomes == ["y", "y", None, None, "n"]
        assert len(asked) == 3


async def test_questions_without_an_id_are_each_asked() -> None:
    asked: list[str] = []

    async def ask(permission: Permission) -> str:
        asked.append(permission.title)
        return "y"

    async with by_hand(answers=Permissions(ask=ask)) as (_, agent):
        for n, meta in enumerate(({}, {}, {"_meta": {"antiphon": {"questionId": 7}}}, {"_meta": {}})):
            params = {"title": "Act", "options": OPTIONS, **meta}
            assert await answer_to(agent, f"r{n}", "session/request_permission", **params)
        assert len(asked) == 4


async def test_a_form_is_filled_in_once() -> None:
    asked: list[str] = []

    async def fill(elicitation: Elicitation) -> Any:
        asked.append(elicitation.message)
        return elicitation.accept(name="ann")

    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    async with by_hand(answers=Answers(fill)) as (_, agent):
        for n in (1, 2):
            params = {"mode": "form", "message": "Who?", "requestedSchema": schema, **named("q")}
            given = await answer_to(agent, f"r{n}", "elicitation/create", **params)
            assert given == {"action": "accept", "content": {"name": "ann"}}
        assert asked == ["Who?"]


def test_the_last_answers_are_remembered_and_no_more() -> None:
    answered = AnswerMemory()
    result = v2.ElicitationDeclineAction()
    for n in range(REMEMBERED + 5):
        answered.keep("s", str(n), result)
    answered.keep("s", None, result)
    assert [answered.get("s", id) for id in ("4", "5", None)] == [None, result, None]
    assert answered.get("other", "5") is None
