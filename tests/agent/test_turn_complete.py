"""`turn_complete` on the wire: advertised exactly where it is sent, once per turn, also when a turn fails."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from tests.agent.talk import client, session
from tests.requirements.marks import requirement

OPT_INS = ("turnComplete", "promptLifecycle", "messageUpdate")
COMBINATIONS = list(product([False, True], repeat=3))


def asking_for(*chosen: bool) -> dict[str, Any]:
    """The params of an `initialize` that asks for these of the opt-ins."""
    given = {"turnComplete": True, "promptLifecycle": 2, "messageUpdate": True}
    ours = {name: given[name] for name, wanted in zip(OPT_INS, chosen, strict=True) if wanted}
    return {"clientCapabilities": {"_meta": {"antiphon": ours}}}


def agent_of(*, turn_complete: bool = False) -> Agent:
    made = Agent("small", version="1", turn_complete=turn_complete)

    @made.on_prompt
    async def answer(turn: AgentTurn) -> None:
        if turn.prompt.text == "fail":
            raise ValueError("secret")
        await turn.say("hello")

    return made


@requirement("TC-05")
@pytest.mark.parametrize("to_all", [False, True])
@pytest.mark.parametrize("chosen", COMBINATIONS)
async def test_it_is_advertised_exactly_where_it_is_sent(
    chosen: tuple[bool, bool, bool], to_all: bool
) -> None:
    async with session(agent_of(turn_complete=to_all), 1, **asking_for(*chosen)) as (talk, id):
        capabilities = talk.seen[0]["result"]["agentCapabilities"]
        confirmed = capabilities["_meta"]["antiphon"]
        talk.prompt(1, id, "hello")
        await talk.answer_to(1)
        if chosen[1]:
            await talk.update("state_update", state="idle")
        sent = "turn_complete" in talk.story()
        assert sent is ((chosen[0] or to_all) and not chosen[1])
        assert ("turnComplete" in capabilities["sessionCapabilities"]) is sent
        assert ("turnComplete" in confirmed) is sent
        assert (confirmed.get("promptLifecycle") == 2) is chosen[1]
        assert ("state_update idle" in talk.story()) is chosen[1]
        assert ("messageUpdate" in confirmed) is chosen[2]


FAILED = {"code": -32603, "message": "Internal error"}


@requirement("TC-09")
async def test_a_turn_that_fails_has_one_with_the_error_and_no_stop_reason() -> None:
    async with session(agent_of(), 1, **asking_for(True, False, False)) as (talk, id):
        talk.prompt(1, id, "fail")
        assert (await talk.answer_to(1))["error"] == FAILED
        assert talk.story()[2:] == ["turn_complete", "= 1"]
        assert talk.updates()[-1] == {
            "sessionUpdate": "turn_complete",
            "promptRequestId": "1",
            "error": FAILED,
        }


@pytest.mark.parametrize("chosen", [(False, False, False), (False, True, False), (True, True, False)])
async def test_a_failed_turn_has_none_where_it_was_not_agreed(chosen: tuple[bool, bool, bool]) -> None:
    async with session(agent_of(), 1, **asking_for(*chosen)) as (talk, id):
        talk.prompt(1, id, "fail")
        await talk.answer_to(1)
        if chosen[1]:
            assert (await talk.update("state_update", state="idle"))["error"] == FAILED
        assert "turn_complete" not in talk.story()


@pytest.mark.parametrize(("text", "said"), [("fail", {"error": FAILED}), ("hi", {"stopReason": "end_turn"})])
async def test_a_client_that_follows_the_turn_of_another_learns_its_end(
    text: str, said: dict[str, Any]
) -> None:
    agent = agent_of()
    async with session(agent, 1) as (talk, id), client(agent, 1, **asking_for(True, False, False)) as other:
        await other.call("load", "session/load", sessionId=id, cwd="/", mcpServers=[])
        talk.prompt(1, id, text)
        assert await other.update("turn_complete") == {"sessionUpdate": "turn_complete", **said}
        await talk.answer_to(1)
        assert "turn_complete" not in talk.story()


async def test_a_prompt_that_is_refused_opens_no_turn_and_has_none() -> None:
    async with session(agent_of(), 1, **asking_for(True, False, False)) as (talk, id):
        audio = {"type": "audio", "data": "", "mimeType": "audio/wav"}
        talk.send(id=1, method="session/prompt", params={"sessionId": id, "prompt": [audio]})
        assert (await talk.answer_to(1))["error"]["code"] == -32602
        talk.prompt(2, id, "hi")
        await talk.answer_to(2)
        assert talk.story()[2:] == ["= 1", "agent_message_chunk", "turn_complete", "= 2"]
