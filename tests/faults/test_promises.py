"""An answer is a promise: it is given when what it says is in the store, and not before (invariant 1)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.stores.base import Batch, RecordPatch
from antiphon.stores.memory import MemoryStore
from tests.agent.talk import Talk, client, session


class SlowStore(MemoryStore):
    """Commits are asked for, and wait, while it is held."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()

    @contextmanager
    def held(self) -> Iterator[None]:
        self._open.clear()
        self.asked.clear()
        try:
            yield
        finally:
            self._open.set()

    async def append(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> None:
        self.asked.set()
        await self._open.wait()
        await super().append(session_id, batch, record=record)


def content(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


async def inject(talk: Talk, id: str, text: str) -> str:
    answer = await talk.call(text, "_antiphon/inject", sessionId=id, content=content(text))
    return str(answer["messageId"])


@pytest.mark.parametrize("method", ["inject", "replace_inject", "move_inject", "revoke_inject"])
async def test_what_is_done_to_the_queue_is_answered_once_it_is_committed(method: str) -> None:
    store = SlowStore()
    agent = Agent("slow", store=store)

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await asyncio.Event().wait()

    async with agent.serving(), session(agent) as (talk, id):
        talk.prompt("first", id, "first")
        await talk.update("state_update", state="running")
        params: dict[str, Any] = {"sessionId": id, "content": content("new")}
        if method != "inject":
            params["messageId"], _ = [await inject(talk, id, text) for text in ("one", "two")]
        with store.held():
            talk.send(id="promise", method=f"_antiphon/{method}", params=params)
            await store.asked.wait()
            await talk.call("after", "session/list")  # asked later, and it needs no commit
            assert "= promise" not in talk.story()
        assert "result" in await talk.answer_to("promise")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("end", ["cancelled", "withdrawn"])
async def test_an_operation_that_came_to_nothing_comes_to_nothing_again(version: int, end: str) -> None:
    agent = Agent("busy")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await asyncio.Event().wait()

    async with agent.serving(), session(agent) as (first, id), client(agent, version) as other:
        first.prompt("first", id, "first")
        await first.update("state_update", state="running")
        first.prompt("next", id, "next", operationId="next")
        if end == "cancelled":
            first.send(method="session/cancel", params={"sessionId": id})
        else:
            first.send(method="$/cancel_request", params={"requestId": "next"})
        outcome = (await first.answer_to("next"))["error"]
        join = "session/load" if version == 1 else "session/resume"
        await other.call("join", join, sessionId=id, cwd="/", mcpServers=[])
        other.prompt("again", id, "next", operationId="next")
        again = await other.answer_to("again")
        if version == 1 and end == "cancelled":
            assert again["result"]["stopReason"] == "cancelled"  # v1's word for it (PROMPT-V1-14)
        else:
            assert again["error"] == outcome
