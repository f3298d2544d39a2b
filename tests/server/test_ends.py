"""What a session or a server has started ends with it: no task and no timer is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, AgentSession, AgentTurn, Hub, SQLiteStore
from antiphon.agent import ToolCallWriter
from antiphon.hub import HubOptions, QuestionOptions
from antiphon.hub.session_list import PACE
from antiphon.transports.memory import memory_pair
from antiphon.transports.websocket import connect_websocket
from tests.agent.talk import INFO, Talk, client
from tests.hub.running import AGENT

DEADLINE = 20
FOR_EVER = 3600.0


class Busy:
    """An agent whose sessions have everything at work: a turn, background work, a subagent and a question."""

    def __init__(self, **options: Any) -> None:
        self.agent = Agent("busy", **options)
        self.agent.on_prompt(self._answer)
        self.agent.on_session(self._begun)

    async def _begun(self, session: AgentSession) -> None:
        await asyncio.sleep(FOR_EVER)

    async def _answer(self, turn: AgentTurn) -> None:
        async def index(call: ToolCallWriter) -> None:
            await asyncio.sleep(FOR_EVER)

        await turn.session.background("Index", index)
        async with turn.subagent("Child") as child:
            await child.say("working")
            async with turn.tool_call("rm", kind="execute") as call:
                await call.request_permission()


def running() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if not task.done()}


def timers() -> set[asyncio.TimerHandle]:
    """The timers of the standard event loop, which is the one that the tests run on."""
    loop: Any = asyncio.get_running_loop()
    return {handle for handle in loop._scheduled if not handle.cancelled()}


@asynccontextmanager
async def nothing_left(*, paced: float = 0.0) -> AsyncIterator[None]:
    """Check that the block leaves no task and no timer behind. `paced`: seconds within which timers may be
    due that a server's own tasks use to pace what they report."""
    tasks, due = running(), timers()
    yield
    async with asyncio.timeout(DEADLINE):
        while running() - tasks:  # what has ended is gone a few steps later
            await asyncio.wait(running() - tasks, return_when=asyncio.FIRST_COMPLETED)
    soon = asyncio.get_running_loop().time() + paced
    assert not {handle.when(): handle for handle in timers() - due if not paced or handle.when() > soon}


async def at_work(talk: Talk) -> str:
    name = f"new {len(talk.seen)}"
    id: str = (await talk.call(name, "session/new", cwd="/", mcpServers=[]))["sessionId"]
    talk.prompt(f"prompt {id}", id, "go")
    left = {"the question", "the subagent"}

    def arrived(frame: dict[str, Any]) -> bool:
        if frame.get("method") == "session/request_permission":
            left.discard("the question")
        if frame.get("params", {}).get("update", {}).get("sessionUpdate") == "agent_message":
            left.discard("the subagent")
        return not left

    await talk.until(arrived)
    return id


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_the_end_of_the_server_leaves_nothing_behind(kind: str, tmp_path: Path) -> None:
    async with nothing_left():
        busy = Busy() if kind == "memory" else Busy(store=SQLiteStore(tmp_path / "s.db"))
        async with busy.agent.serving(), client(busy.agent) as talk:
            await at_work(talk)


@pytest.mark.parametrize("how", ["session/close", "session/archive", "session/delete"])
async def test_a_session_that_ends_leaves_nothing_behind_while_its_server_lives(how: str) -> None:
    busy = Busy()
    async with busy.agent.serving(), client(busy.agent) as talk, nothing_left():
        id = await at_work(talk)
        await talk.call("end", how, sessionId=id)
        assert busy.agent.find(id) is None


async def test_one_session_ends_and_another_one_works_on() -> None:
    busy = Busy()
    async with busy.agent.serving(), client(busy.agent) as talk:
        other = await at_work(talk)
        async with nothing_left():
            id = await at_work(talk)
            await talk.call("end", "session/close", sessionId=id)
        found = busy.agent.find(other)
        assert found is not None
        assert found.fold.turn is not None
        assert found.fold.background


async def test_a_second_life_of_a_server_ends_like_the_first() -> None:
    busy = Busy()
    for _ in range(2):
        async with nothing_left(), busy.agent.serving(), client(busy.agent) as talk:
            await at_work(talk)


@pytest.mark.parametrize("steps", range(8))
async def test_a_client_that_is_cut_off_while_it_leaves_is_detached_from_every_session(steps: int) -> None:
    busy = Busy()
    ours, theirs = memory_pair()
    async with nothing_left(), busy.agent.serving():
        serving = asyncio.ensure_future(busy.agent.serve(ours))
        talk = Talk(theirs)
        await talk.call("init", "initialize", protocolVersion=2, info=INFO, capabilities={})
        for _ in range(3):
            await at_work(talk)
        await theirs.aclose()
        for _ in range(steps):
            await asyncio.sleep(0)
        serving.cancel()
        await asyncio.wait([serving])


# --- hubs ---------------------------------------------------------------------------------------------


def make_hub(*, share: bool = False, **options: Any) -> Hub:
    """A hub that has timers, too: for questions that expire and agents that rest."""
    return Hub(
        Busy().agent,
        options=HubOptions(share=share, idle=FOR_EVER),
        questions=QuestionOptions(expiry=FOR_EVER),
        **options,
    )


@asynccontextmanager
async def at_hub(hub: Hub, *, listens: bool = False) -> AsyncIterator[Talk]:
    """A client of a hub, in this process or over a socket."""
    if not listens:
        async with client(hub) as talk:
            yield talk
        return
    headers = {"Authorization": f"Bearer {hub.token}"}
    transport = await connect_websocket(f"ws://127.0.0.1:{hub.port}/acp", headers=headers)
    try:
        talk = Talk(transport)
        await talk.call("init", "initialize", protocolVersion=2, info=INFO, capabilities={})
        yield talk
    finally:
        await transport.aclose()


@pytest.mark.parametrize("listens", [False, True])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_the_end_of_a_hub_leaves_nothing_behind(kind: str, listens: bool, tmp_path: Path) -> None:
    async with nothing_left():
        hub = make_hub(store=None if kind == "memory" else SQLiteStore(tmp_path / "s.db"))
        async with hub.listening() if listens else hub.serving(), at_hub(hub, listens=listens) as talk:
            await at_work(talk)


@pytest.mark.parametrize("how", ["session/close", "session/archive", "session/delete"])
async def test_a_session_of_a_hub_that_ends_leaves_nothing_behind(how: str) -> None:
    hub = make_hub(share=True)
    async with hub.serving(), at_hub(hub) as talk:
        await at_work(talk)
        async with nothing_left(paced=PACE):
            id = await at_work(talk)
            await talk.call("end", how, sessionId=id)


async def test_the_end_of_a_hub_with_agent_processes_leaves_nothing_behind() -> None:
    async with nothing_left():
        hub = Hub(AGENT)
        async with hub.listening(), at_hub(hub, listens=True) as talk:
            for name in ("one", "two"):
                id = (await talk.call(name, "session/new", cwd="/", mcpServers=[]))["sessionId"]
                talk.prompt(f"prompt {name}", id, "wait")
                await talk.until(lambda frame: "waiting" in str(frame))


async def test_a_second_life_of_a_hub_ends_like_the_first() -> None:
    hub = make_hub()
    for _ in range(2):
        async with nothing_left(), hub.serving(), at_hub(hub) as talk:
            await at_work(talk)
