"""v2 agents that tell their turns in odd ways: with our client alone, and behind a hub in every dialect."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.client import connect
from antiphon.client.session import tracker
from antiphon.hub import Hub
from antiphon.hub.worker import prompt_acceptance
from tests.hub.habits import Frame, Habit, end_turn
from tests.hub.running import DEADLINE
from tests.hub.test_first_words import DIALECTS
from tests.hub.test_habits import PROMPT, ended, own_texts, talking, user_texts

ECHO = pytest.mark.parametrize("echo", ["whole", "pieces", "none"])
ORDERS: dict[str, tuple[str, ...]] = {
    "never running": ("answer", "echo", "say", "idle"),
    "never running, echo first": ("echo", "answer", "say", "idle"),
    "never running, answered late": ("echo", "say", "idle", "answer"),
    "answered behind idle": ("echo", "running", "say", "idle", "answer"),
    "answered behind idle, echo inside": ("running", "echo", "say", "idle", "answer"),
    "answered amid": ("running", "say", "answer", "echo", "idle"),
    "answered first": ("answer", "running", "echo", "say", "idle"),
}
ORDER = pytest.mark.parametrize("order", ORDERS)


@pytest.fixture(autouse=True)
def concluded_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer behind the end of a turn is the last of these agents' frames: nothing is to be waited for."""
    for module in (prompt_acceptance, tracker):
        monkeypatch.setattr(module, "CONCLUDE_AFTER", 0.05)


def odd(order: str, echo: str, *, proposed: bool = False) -> Habit:
    def prompt(agent: Habit, frame: Frame) -> None:
        id = f"user-{frame['id']}"
        for step in ORDERS[order]:
            if step == "answer":
                agent.answer(frame, **({} if proposed else {"messageId": id}))
            elif step == "echo" and echo == "whole":
                agent.update("user_message", messageId=id, content=frame["params"]["prompt"])
            elif step == "echo" and echo == "pieces":
                for block in frame["params"]["prompt"]:
                    for half in (slice(0, 5), slice(5, None)):
                        piece = {**block, "text": block["text"][half]}
                        agent.update("user_message_chunk", messageId=id, content=piece)
            elif step == "running":
                agent.update("state_update", state="running")
            elif step == "say":
                agent.say("Done.", f"agent-{frame['id']}")
            elif step == "idle":
                agent.update("state_update", state="idle", stopReason="end_turn")

    return Habit(2, prompt=prompt)


@ORDER
@ECHO
@pytest.mark.parametrize("through", ["directly", "through a hub"])
async def test_a_turn_of_an_odd_agent_ends_for_our_client(order: str, echo: str, through: str) -> None:
    agent: Any = odd(order, echo)
    target = agent if through == "directly" else Hub({"odd": agent})
    async with asyncio.timeout(DEADLINE), connect(target) as client:
        session = await client.new_session("/")
        for _ in range(2):
            turn = await session.prompt(PROMPT)
            assert (await turn.drained()).stop_reason == "end_turn"
        said = [message.text for message in session.messages if message.type == "agent"]
        assert said == ["Done.", "Done."]


@ORDER
@ECHO
@pytest.mark.parametrize("proposed", [False, True], ids=["named", "unnamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_prompt_to_an_odd_agent_is_answered_once_behind_a_hub(
    order: str, echo: str, proposed: bool, dialect: str
) -> None:
    agent = odd(order, echo, proposed=proposed)
    async with talking(agent, dialect, other=2) as (talk, session, other):
        for id in ("p1", "p2"):
            talk.prompt(id, session, PROMPT)
            answer = await ended(talk, id)
            assert "error" not in answer, answer
            assert answer["result"].get("stopReason", "end_turn") == "end_turn"
        for id in ("p1", "p2"):
            assert len([frame for frame in talk.seen if frame.get("id") == id]) == 1
        while other.text().count("Done.") < 2 or len(user_texts(other)) < 2:
            await other.until(lambda _: True)
        assert user_texts(talk) == own_texts(dialect) * 2
        assert user_texts(other) == [PROMPT, PROMPT]
        assert talk.text().count("Done.") == 2


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("through", ["directly", "through a hub"])
async def test_an_answer_with_result_and_error_fails_its_prompt(version: int, through: str) -> None:
    prompts = 0

    def prompt(agent: Habit, frame: Frame) -> None:
        nonlocal prompts
        prompts += 1
        if prompts > 1:
            end_turn(agent, frame)
            return
        result = {"stopReason": "end_turn"} if version == 1 else {"messageId": "m"}
        agent.send(id=frame["id"], result=result, error={"code": -32000, "message": "no"})

    agent: Any = Habit(version, prompt=prompt)
    target = agent if through == "directly" else Hub({"odd": agent})
    async with asyncio.timeout(DEADLINE), connect(target) as client:
        session = await client.new_session("/")
        if version == 1:
            end = await (await session.prompt(PROMPT)).drained()
            assert end.stop_reason == "error"
            assert end.error is not None
            assert "both `result` and `error`" in end.error.message
        else:
            with pytest.raises(Exception, match="both `result` and `error`"):
                await session.prompt(PROMPT)
        assert (await (await session.prompt(PROMPT)).drained()).stop_reason == "end_turn"
