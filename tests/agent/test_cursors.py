"""A cursor of a v1 client, beside `session/load`: what comes after it is what would have come anyway."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.schema import v2
from tests.agent.talk import Talk, client

ASKING = {"clientCapabilities": {"_meta": {"antiphon": {"seq": True, "turnComplete": True}}}}
Told = tuple[int, int | None, dict[str, Any]]


class Halfway:
    """Says and does something, and waits in the middle of it."""

    def __init__(self) -> None:
        self.half, self.go = asyncio.Event(), asyncio.Event()
        self.agent = Agent("halfway")
        self.agent.on_prompt(self.work)

    async def work(self, turn: AgentTurn) -> None:
        async with turn.tool_call("Dig") as call:
            await call.write("one ")
            await call.write("two ")
            self.half.set()
            await self.go.wait()
            await call.write("three ")
        await turn.say("done")


def numbered(talk: Talk) -> list[Told]:
    told = []
    for frame in talk.seen:
        ours = (frame.get("params", {}).get("_meta") or {}).get("antiphon", {})
        if "seq" in ours:
            told.append((ours["seq"], ours.get("part"), frame["params"]["update"]))
    return told


async def load(talk: Talk, session: str, **ours: Any) -> Any:
    beside = {"_meta": {"antiphon": ours}} if ours else {}
    return await talk.call(
        f"load {ours}", "session/load", sessionId=session, cwd="/", mcpServers=[], **beside
    )


async def test_what_a_v1_client_is_told_after_its_cursor_is_what_it_would_have_been_told() -> None:
    worker = Halfway()
    async with (
        worker.agent.serving(),
        client(worker.agent, 1, **ASKING) as one,
        client(worker.agent, 1, **ASKING) as other,
    ):
        made = await one.call("new", "session/new", cwd="/", mcpServers=[])
        session, first = made["sessionId"], made["_meta"]["antiphon"]["seq"]
        assert (await load(other, session))["_meta"]["antiphon"]["seq"] == first
        one.prompt("p", session, "go", operationId="op")
        await worker.half.wait()
        worker.go.set()
        await one.answer_to("p")
        await other.update("turn_complete")
        whole = numbered(other)
        assert whole[-1][2]["sessionUpdate"] == "turn_complete"
        for at, (seq, part, _) in enumerate(whole):
            if part is not None:
                continue  # the event is not read yet
            async with client(worker.agent, 1, **ASKING) as late:
                await load(late, session, after=seq)
                assert numbered(late) == whole[at + 1 :]
        async with client(worker.agent, 1, **ASKING) as own:
            await load(own, session, after=first, operations=["op", "of nobody"])
            kinds = [update["sessionUpdate"] for _, _, update in numbered(own)]
            assert "user_message_chunk" in [update["sessionUpdate"] for _, _, update in whole]
            assert "user_message_chunk" not in kinds  # it shows that itself


async def test_an_event_that_is_several_updates_in_v1_is_read_with_the_last_of_them() -> None:
    agent = Agent("many")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.say("done")

    async with agent.serving(), client(agent, 1, **ASKING) as one, client(agent, 1, **ASKING) as other:
        session = (await one.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        await load(other, session)
        blocks = [{"type": "text", "text": text} for text in ("a", "b", "c")]
        await one.call("p", "session/prompt", sessionId=session, prompt=blocks)
        await other.update("agent_message_chunk")
        said = [(seq, part) for seq, part, update in numbered(other) if "user" in update["sessionUpdate"]]
        (seq,) = {seq for seq, _ in said}
        assert said == [(seq, 0), (seq, 1), (seq, None)]


@pytest.mark.parametrize(
    "wrong",
    [{"after": -1}, {"after": "1"}, {"after": 10**6}, {"after": True}, {"after": 1, "operations": "op"}],
)
async def test_a_cursor_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    agent = Agent("strict")
    async with agent.serving(), client(agent, 1, **ASKING) as talk:
        session = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        params = {"sessionId": session, "cwd": "/", "mcpServers": [], "_meta": {"antiphon": wrong}}
        talk.send(id="bad", method="session/load", params=params)
        assert (await talk.answer_to("bad"))["error"]["code"] == v2.ErrorCode.INVALID_PARAMS


async def test_a_prompt_that_waits_is_not_shown_to_its_client_that_comes_back() -> None:
    worker = Halfway()
    async with worker.agent.serving(), client(worker.agent, 2) as other:
        session = (await other.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        other.prompt("first", session, "go")
        await worker.half.wait()
        async with client(worker.agent, 1, **ASKING) as lost:
            cursor = (await load(lost, session))["_meta"]["antiphon"]["seq"]
            lost.prompt("p", session, "mine", operationId="op")
            await lost.call("behind it", "_antiphon/list_inject", sessionId=session)
        async with client(worker.agent, 1, **ASKING) as back:
            await load(back, session, after=cursor, operations=["op"])
            worker.go.set()
            await back.update("tool_call")  # of its own prompt, which was taken before it asks again
            assert back.text("user_message_chunk") == ""
            back.prompt("again", session, "mine", operationId="op")
            assert (await back.answer_to("again"))["result"]["stopReason"] == "end_turn"
