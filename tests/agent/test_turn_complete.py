"""`turn_complete` on the wire: advertised exactly where it is sent, once per turn, also when a turn fails."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from tests.agent.talk import session

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


@pytest.mark.parametrize("to_all", [False, True])
@pytest.mark.parametrize("chosen", COMBINATIONS)
async def test_tc_05_it_is_advertised_exactly_where_it_is_sent(
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
