"""The client library's handle of a prompt that waits in a hub's queue: it is accepted, its turn drained."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import ClientSession
from antiphon.schema.version import OptIns
from tests.hub.hands import AGENTS, hand
from tests.hub.running import DEADLINE, Served, served

CLIENTS: dict[str, dict[str, Any]] = {
    "v1-turn-complete": {"version": 1, "opt_ins": OptIns(turn_complete=True)},
    "v1-future": {"version": 1, "opt_ins": OptIns(prompt_lifecycle=True)},
    "v2": {"version": 2},
    "v2-proposed": {"version": "v2-proposed"},
}


async def until_heard(session: ClientSession, text: str) -> None:
    """Wait until a prompt is the last that the agent got."""
    while True:
        told = await session.client.connection.call("_hand/heard", {"sessionId": session.id})
        if [one[1] for one in told["heard"] if one[0] == "session/prompt"][-1:] == [text]:
            return


async def end_turn(session: ClientSession, text: str) -> None:
    """End the turn of a prompt, once the agent has that."""
    await until_heard(session, text)
    await session.client.connection.notify("_hand/end", {"sessionId": session.id})


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_queued_prompt_is_accepted_and_drained(tmp_path: Path, agent: str) -> None:
    with served(tmp_path, agent=hand(**AGENTS[agent])) as hub:
        for dialect in CLIENTS:
            await queue_and_drain(hub, dialect, shows="silent" not in agent)


async def queue_and_drain(hub: Served, dialect: str, *, shows: bool) -> None:
    """A turn in v1 begins with its message, which an agent that never shows it has only at the end."""
    async with hub.client(**CLIENTS[dialect]) as client, asyncio.timeout(DEADLINE):
        session = await client.new_session("/")
        first = asyncio.create_task(session.prompt(f"first {dialect}"))
        await asyncio.sleep(0)
        queued = await session.queue.add("second")
        last = await session.queue.add("last")
        await queued.edit(f"second {dialect}")
        await last.move(before=queued)
        await end_turn(session, f"first {dialect}")
        await (await first).drained()
        for prompt, text in ((last, "last"), (queued, f"second {dialect}")):
            await end_turn(session, text)
            turn = await prompt.accepted()
            end = await turn.drained()
            assert end.stop_reason == "end_turn", dialect
            if shows or dialect != "v1-turn-complete":
                assert turn.text == f"done: {text}", dialect
            assert turn.message_id == prompt.message_id, dialect


@pytest.mark.parametrize("dialect", CLIENTS)
async def test_a_queued_prompt_that_steers_is_accepted_into_the_open_turn(
    tmp_path: Path, dialect: str
) -> None:
    agent = hand(busy="insert", delivery=["queue", "steer", "interrupt"])
    with served(tmp_path, agent=agent) as hub:
        async with hub.client(**CLIENTS[dialect]) as client, asyncio.timeout(DEADLINE):
            session = await client.new_session("/")
            first = asyncio.create_task(session.prompt("first"))
            await until_heard(session, "first")
            queued = await session.queue.add("second", mode="steer")
            turn = await queued.accepted()
            await end_turn(session, "second")
            assert (await turn.drained()).stop_reason == "end_turn"
            await (await first).drained()
            assert turn.message_id == queued.message_id
            assert session.messages[-1].text == "done: first + second"
