"""Clients of all five dialects follow one session, prompt it in a random order, and read the same."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack

from tests.requirements.seed_agent import SeedAgent
from tests.requirements.seed_places import ANSWERED_AT_END, DIALECTS, Wire, served, staged

PROMPTS = ["two", "usage", "stop refusal", "stop max_tokens", "hello", "work"]
TURNS = 8
ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow"}}


def told(wire: Wire, *, own: set[str]) -> list[tuple[str, str | None, str]]:
    """The messages that a client knows, without the prompts that v1 does not repeat to it."""
    return [each for each in wire.messages() if each[0] != "user" or each[2] not in own]


async def caught_up(wire: Wire, words: str) -> None:
    if words not in str(wire.updates()):
        await wire.until(lambda frame: words in str(frame.get("params")))


async def answer(wire: Wire, answered: set[str]) -> None:
    """Answer the question that is open; every client was also asked those of earlier turns."""
    while True:
        asked = await wire.request("session/request_permission")
        question = asked["params"]["_meta"]["antiphon"]["questionId"]
        if question not in answered:
            answered.add(question)
            wire.send(id=asked["id"], result=ALLOW)
            return


@served(*DIALECTS)
async def test_clients_of_every_dialect_read_the_same_session(place: str, dialect: str) -> None:
    """A client of `dialect` begins the session; whoever prompts, all of them read it alike."""
    rng = random.Random(f"{place} {dialect}")
    agent = SeedAgent()
    async with staged(place, agent.agent) as stage, AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(stage.client(each)) for each in DIALECTS]
        first = wires[DIALECTS.index(dialect)]
        session = await first.new_session()
        for wire in wires:
            if wire is not first:
                await wire.join(session)
        answered: set[str] = set()
        prompted: dict[str, set[str]] = {each: set() for each in DIALECTS}
        for number in range(TURNS):
            wire, words = rng.choice(wires), rng.choice(PROMPTS)
            text = f"{words} {number}" if words.startswith(("hello", "two", "usage", "work")) else words
            prompted[wire.dialect].add(text)
            wire.prompt(f"{wire.dialect}-{number}", session, text)
            if words == "work":
                await answer(wire, answered)
            reason = words.partition(" ")[2] or "end_turn"
            assert await wire.ended(f"{wire.dialect}-{number}") == reason
        wires[3].prompt("last", session, "the very last")
        await wires[3].ended("last")
        for wire in wires:
            await caught_up(wire, "the very last")
            await wire.everything()
        whole = wires[3].messages()
        assert len(whole) > 2 * TURNS
        for wire in wires:
            own = prompted[wire.dialect] if wire.dialect in ANSWERED_AT_END else set()
            assert told(wire, own=own) == [each for each in whole if each[0] != "user" or each[2] not in own]
        complete = wires[1].updates_of("turn_complete")
        assert len(complete) == TURNS + 1, "one for each turn"
        for wire in wires[2:]:
            states = [state for state in wire.states() if state != "requires_action"]
            ends = states[1:] if states[:1] == ["idle"] else states
            assert ends.count("idle") == TURNS + 1
            assert ends[-1] == "idle"
        late = [await stack.enter_async_context(stage.client(each)) for each in DIALECTS]
        for wire in late:
            await wire.join(session)
            assert wire.messages() == whole, wire.dialect
