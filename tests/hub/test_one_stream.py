"""Extension notifications and updates of one agent reach every client in the order in which they were
sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.hub import Hub, HubOptions
from tests.agent.talk import Talk, client
from tests.hub.habits import Frame, Habit, end_turn
from tests.hub.running import DEADLINE
from tests.hub.test_first_words import DIALECTS, begin

MANY = 300


def speaker(version: int, *, named: bool) -> Habit:
    """Says the even numbers and notes the odd ones, some of them in a row."""

    def prompt(agent: Habit, frame: Frame) -> None:
        params = {"sessionId": agent.session} if named else {}
        if version == 2:
            agent.answer(frame, messageId="u")
            agent.update("user_message", messageId="u", content=frame["params"]["prompt"])
            agent.update("state_update", state="running")
        for number in range(MANY):
            if number % 3 == 0:
                agent.say(str(number) + " ")
            else:
                agent.notify("_vendor/note", **params, number=number)
        if version == 2:
            agent.update("state_update", state="idle", stopReason="end_turn")
        else:
            end_turn(agent, frame)

    return Habit(version, prompt=prompt)


def numbers(talk: Talk) -> list[int]:
    """All that was said and noted, in the order in which it came."""
    told: list[int] = []
    for frame in talk.seen:
        params: dict[str, Any] = frame.get("params", {})
        if frame.get("method") == "_vendor/note":
            told.append(params["number"])
        elif params.get("update", {}).get("sessionUpdate") == "agent_message_chunk":
            told += map(int, params["update"]["content"]["text"].split())
    return told


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("named", [True, False], ids=["of a session", "of none"])
async def test_one_stream_stays_one_stream(version: int, dialect: str, named: bool) -> None:
    shape, asked = DIALECTS[dialect]
    hub = Hub({"habit": speaker(version, named=named)})
    async with (
        asyncio.timeout(DEADLINE),
        hub.serving(),
        client(hub, shape, **asked) as one,
        client(hub, 3 - shape) as other,
    ):
        session = await begin(one)
        opens = "session/load" if shape == 2 else "session/resume"
        await other.call("l", opens, sessionId=session, cwd="/", mcpServers=[])
        one.prompt("p", session, "go")
        for talk in (one, other):
            while len(numbers(talk)) < MANY:
                await talk.until(lambda _: True)
            assert numbers(talk) == list(range(MANY))


async def test_a_client_of_two_sessions_is_notified_once() -> None:
    agent = speaker(1, named=False)
    hub = Hub({"habit": agent}, options=HubOptions(share=True))
    async with asyncio.timeout(DEADLINE), hub.serving(), client(hub, 1) as talk:
        first = await begin(talk)
        agent.session = "other"
        await talk.call("n2", "session/new", cwd="/", mcpServers=[])
        agent.session = "s"
        talk.prompt("p", first, "go")
        while len(numbers(talk)) < MANY:
            await talk.until(lambda _: True)
        assert numbers(talk) == list(range(MANY))
