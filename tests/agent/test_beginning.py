"""`session/new` and `session/fork` under an operation id: the same id gives the same session, made once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, AgentTurn
from antiphon.agent import AgentSession
from antiphon.stores import SQLiteStore
from antiphon.stores.base import Batch, SessionRecord
from antiphon.stores.memory import MemoryStore
from tests.agent.talk import DEADLINE, Talk, client

OURS = {"antiphon": {"operationId": "op"}}


def made(store: SQLiteStore | None = None) -> Agent:
    agent = Agent("echo", store=store)

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.message() as message:
            await message.write(f"heard {turn.prompt.text}")

    return agent


async def new(talk: Talk, n: Any, *, operation: str = "op", cwd: str = "/") -> dict[str, Any]:
    ours = {"antiphon": {"operationId": operation}}
    return await talk.call(n, "session/new", cwd=cwd, mcpServers=[], _meta=ours)


@pytest.mark.parametrize("version", [1, 2])
async def test_asked_again_it_is_the_same_session_also_after_a_restart(version: int, tmp_path: Path) -> None:
    answers = []
    for life in (1, 2):
        agent = made(SQLiteStore(tmp_path / "s.db"))
        async with agent.serving(), client(agent, version) as talk:
            answers += [await new(talk, n) for n in (1, 2)]
            async with client(agent, version) as other:
                answers.append(await new(other, 1, cwd="/tmp"))
            id = answers[0]["sessionId"]
            assert await new(talk, 3, operation="another") != answers[0]
            talk.prompt(life, id, "hello")
            await talk.update("agent_message_chunk")
            listed = await talk.call("list", "session/list")
            assert sorted(one["cwd"] for one in listed["sessions"]) == ["/", "/"]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("version", [1, 2])
async def test_two_at_the_same_time_get_one_session(version: int) -> None:
    agent = made()
    async with agent.serving(), client(agent, version) as one, client(agent, version) as two:
        for n, talk in enumerate((one, two, one)):
            talk.send(id=n, method="session/new", params={"cwd": "/", "mcpServers": [], "_meta": OURS})
        answers = [(await talk.answer_to(n))["result"] for n, talk in enumerate((one, two, one))]
        assert answers[0] == answers[1] == answers[2]
        two.prompt("p", answers[0]["sessionId"], "hi")
        for talk in (one, two):
            await talk.update("agent_message_chunk")
            assert talk.text() == "heard hi"  # each once


async def test_what_happened_meanwhile_is_shown_behind_the_answer() -> None:
    agent = made()
    async with agent.serving():
        async with client(agent) as talk:
            id = (await new(talk, 1))["sessionId"]
            talk.prompt(2, id, "hello")
            await talk.update("state_update", state="idle")
        async with client(agent) as talk:
            await new(talk, 1)
            await talk.update("state_update", state="idle")
            assert talk.story()[1:] == ["= 1", "user_message", "agent_message", "state_update idle"]


async def test_a_client_that_was_gone_before_the_answer_finds_its_session() -> None:
    begun, let_go, times = asyncio.Event(), asyncio.Event(), 0

    class SlowStore(MemoryStore):
        async def create(self, record: SessionRecord, *, batch: Batch | None = None) -> None:
            nonlocal times
            times += 1
            begun.set()
            await let_go.wait()
            await super().create(record, batch=batch)

    agent = Agent("slow", store=SlowStore())
    greeted: list[str] = []
    said = asyncio.Event()

    @agent.on_session
    async def greet(session: AgentSession) -> None:
        greeted.append(session.id)
        said.set()

    async with agent.serving():
        async with client(agent) as talk:
            talk.send(id=1, method="session/new", params={"cwd": "/", "_meta": OURS})
            await begun.wait()
        let_go.set()
        async with client(agent) as talk:
            id = (await new(talk, 1))["sessionId"]
            assert (await new(talk, 2))["sessionId"] == id
            async with asyncio.timeout(DEADLINE):
                await said.wait()
        assert times == 1
        assert greeted == [id]


async def test_what_failed_can_be_tried_again() -> None:
    failures = 2

    class FailingStore(MemoryStore):
        async def create(self, record: SessionRecord, *, batch: Batch | None = None) -> None:
            nonlocal failures
            if failures:
                failures -= 1
                raise RuntimeError("not now")
            await super().create(record, batch=batch)

    agent = Agent("failing", store=FailingStore())
    async with agent.serving(), client(agent) as talk:
        for n in (1, 2):
            talk.send(id=n, method="session/new", params={"cwd": "/", "_meta": OURS})
            assert (await talk.answer_to(n))["error"]["code"] == -32603
        assert (await new(talk, 3))["sessionId"]


async def test_a_session_that_lost_its_first_event_is_not_replaced_by_a_new_one(tmp_path: Path) -> None:
    agent = made(SQLiteStore(tmp_path / "s.db"))
    async with agent.serving(), client(agent) as talk:
        id = (await new(talk, 1))["sessionId"]
        await talk.call(2, "session/delete", sessionId=id)
        await agent.store.create(SessionRecord(session_id=id, cwd="/", created_at=1, updated_at=1))
        talk.send(id=3, method="session/new", params={"cwd": "/", "_meta": OURS})
        refused = (await talk.answer_to(3))["error"]
        assert refused["data"] == {
            "reason": "damaged",
            "sessionId": id,
            "found": "it has no events: it was cut off as it began, or they are lost",
        }
        assert await agent.store.get(id) is not None
        await talk.call(4, "session/delete", sessionId=id)
        assert (await new(talk, 5))["sessionId"] == id
        talk.prompt(6, id, "hello")
        await talk.update("agent_message_chunk")


@pytest.mark.parametrize("version", [1, 2])
async def test_a_fork_is_made_once(version: int) -> None:
    agent = made()
    async with agent.serving(), client(agent, version) as talk:
        source = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        talk.prompt("p", source, "hello")
        await talk.update("agent_message_chunk")
        forks = [
            await talk.call(n, "session/fork", sessionId=source, cwd="/", mcpServers=[], _meta=OURS)
            for n in (1, 2)
        ]
        assert forks[0] == forks[1]
        # An operation of another kind, or on another session, is another one.
        assert (await new(talk, 3))["sessionId"] != forks[0]["sessionId"]
        of = forks[0]["sessionId"]
        other = await talk.call(4, "session/fork", sessionId=of, cwd="/", mcpServers=[], _meta=OURS)
        assert other["sessionId"] != of


@pytest.mark.parametrize("bad", [7, "", "x" * 257, ["op"]])
async def test_an_operation_id_that_is_none_is_refused(bad: Any) -> None:
    agent = made()
    async with agent.serving(), client(agent) as talk:
        params = {"cwd": "/", "_meta": {"antiphon": {"operationId": bad}}}
        talk.send(id=1, method="session/new", params=params)
        assert (await talk.answer_to(1))["error"]["code"] == -32602
