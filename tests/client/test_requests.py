"""A turn by the id of its prompt's request: found, awaited, and remembered for a while after its end."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import ClientOptions, ClientSession, TurnEnd, connect
from antiphon.client.session.turn import REMEMBERED, TurnsByRequest
from antiphon.errors import CallFailed, LocalError
from antiphon.hub import Hub
from antiphon.schema import v2
from antiphon.stores.memory import MemoryStore
from antiphon.wire import OptIns
from tests.client.driving import WAYS, by_hand, driven
from tests.hub.running import AGENT
from tests.hub.test_processes import hub_of
from tests.options import connect_options
from tests.requirements.marks import requirement


def agent_of(go: asyncio.Event) -> Agent:
    agent = Agent("waits", version="1")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say("one ")
        await go.wait()
        if turn.prompt.text == "fail":
            raise ValueError("secret")
        await turn.say("two")

    return agent


@requirement("TC-07")
@pytest.mark.parametrize("form", [int, str])
@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_is_awaited_by_the_id_of_its_request(way: str, form: Any) -> None:
    go = asyncio.Event()
    async with driven(agent_of(go), way) as session:
        turn = await session.prompt("hi")
        assert turn.request_id is not None
        assert session.turn_of(form(turn.request_id)) is turn
        waiting = asyncio.ensure_future(session.drained(form(turn.request_id)))
        go.set()
        end = await waiting
        assert end == await turn.drained()
        assert end.stop_reason == "end_turn"
        assert session.messages[-1].text == "two"
        assert await session.drained(form(turn.request_id)) == end


@pytest.mark.parametrize("way", WAYS)
async def test_an_ended_turn_is_remembered_by_its_end_and_not_held(way: str) -> None:
    go = asyncio.Event()
    go.set()
    async with driven(agent_of(go), way) as session:
        ids = []
        for text in ("hi", "fail"):
            turn = await session.prompt(text)
            ids.append(turn.request_id)
            await turn.drained()
        del turn
        gc.collect()
        assert ids[0] is not None
        assert ids[1] is not None
        assert (await session.drained(ids[0])).stop_reason == "end_turn"
        assert (await session.drained(ids[1])).stop_reason == "error"
        with pytest.raises(LocalError, match=r"has ended and is not kept; drained\(\) has its end"):
            session.turn_of(ids[0])


@pytest.mark.parametrize("way", WAYS)
async def test_an_unknown_id_is_refused(way: str) -> None:
    async with driven(agent_of(asyncio.Event()), way) as session:
        for unknown in (999, "999", "no-such-request"):
            with pytest.raises(LocalError, match=f"known by request id {unknown!r}"):
                await session.drained(unknown)
            with pytest.raises(LocalError, match=f"known by request id {unknown!r}"):
                session.turn_of(unknown)


async def test_so_many_ends_are_remembered() -> None:
    requests = TurnsByRequest()
    for id in range(REMEMBERED + 1):
        requests.end(id, TurnEnd(stop_reason=v2.StopReason.END_TURN))
    for id in range(1, REMEMBERED + 1):
        assert (await requests.drained(id)).stop_reason == "end_turn"
    with pytest.raises(LocalError, match="known by request id 0"):
        await requests.drained(0)


@pytest.mark.parametrize(("version", "code"), [(1, -32603), (2, -32603), (2, -32800)])
async def test_a_prompt_that_is_refused_ends_for_who_waits_by_its_id(version: int, code: int) -> None:
    async with by_hand(version) as (session, agent):
        prompting = asyncio.ensure_future(session.prompt("hi"))
        id = await agent.prompted()
        waiting = asyncio.ensure_future(session.drained(id))
        await asyncio.sleep(0)
        agent.send(id=id, error={"code": code, "message": "no"})
        assert (await waiting).stop_reason == ("error" if code == -32603 else "cancelled")
        if version == 2:
            with pytest.raises(CallFailed):
                await prompting
        await asyncio.wait([prompting])


@pytest.mark.parametrize("version", [1, 2])
async def test_a_lost_agent_ends_the_wait(version: int) -> None:
    async with by_hand(version) as (session, agent):
        prompting = asyncio.ensure_future(session.prompt("hi"))
        waiting = asyncio.ensure_future(session.drained(await agent.prompted()))
        await asyncio.sleep(0)
        await agent.transport.aclose()
        assert (await waiting).cut is not None
        await asyncio.gather(prompting, return_exceptions=True)


@pytest.mark.parametrize("text", ["hi", "fail"])
@pytest.mark.parametrize("through_hub", [False, True])
@pytest.mark.parametrize("chosen", list(product([False, True], repeat=3)))
async def test_every_combination_of_opt_ins_ends_a_turn_once(
    chosen: tuple[bool, bool, bool], through_hub: bool, text: str
) -> None:
    go = asyncio.Event()
    go.set()
    agent = agent_of(go)
    async with asyncio.timeout(15), AsyncExitStack() as stack:
        served: Any = agent
        if through_hub:
            served = Hub({"agent": agent}, store=MemoryStore())
            await stack.enter_async_context(served.serving())
        client = await stack.enter_async_context(
            connect(served, version=1, options=ClientOptions(opt_ins=OptIns(*chosen)))
        )
        agreed = client.agreement.opt_ins
        assert agreed == OptIns(chosen[0] and not chosen[1], chosen[1], chosen[2])
        session = await client.new_session("/")
        for _ in range(2):
            turn = await session.prompt(text)
            assert turn.request_id is not None
            end = await session.drained(turn.request_id)
            assert end.stop_reason == ("error" if text == "fail" else "end_turn")
            assert (end.error is not None) is (text == "fail")
            assert session.state == "idle"


@pytest.mark.parametrize("way", WAYS)
async def test_through_a_hub(tmp_path: Path, way: str) -> None:
    async with hub_of(tmp_path, AGENT) as (hub, _), connect(hub, **connect_options(**WAYS[way])) as client:
        session: ClientSession = await client.new_session("/")
        turn = await session.prompt("say hi")
        assert turn.request_id is not None
        assert (await session.drained(turn.request_id)).stop_reason == "end_turn"
        assert session.messages[-1].text == "heard say hi"
