"""Extension methods of agents and clients, in both versions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.client import connect
from antiphon.errors import CallFailed, InvalidParams, LocalError, MethodNotFound
from antiphon.stores import Batch, MemoryStore
from tests.agent.talk import session as talking
from tests.requirements.marks import requirement

VERSIONS = pytest.mark.parametrize("version", [1, 2])
DEADLINE = 60.0


def make() -> tuple[Agent, list[Any]]:
    agent, heard = Agent("extended"), []

    @agent.extension("_example/echo")
    async def echo(params: Any, session: AgentSession | None) -> Any:
        if params.get("refuse"):
            raise InvalidParams("not so")
        return {"given": params, "session": None if session is None else session.id}

    @agent.extension("_example/nothing")
    async def nothing(params: Any, session: AgentSession | None) -> None:
        heard.append(params)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        try:
            picked = await turn.session.call_extension("_example/pick", {"from": [1, 2]})
        except MethodNotFound:
            picked = "nobody"
        except CallFailed as error:
            picked = error.error.code
        await turn.session.notify_extension("_example/picked", {"what": picked})
        await turn.say(f"picked {picked}")

    return agent, heard


@requirement("EXT-01", "EXT-02")
@VERSIONS
async def test_a_client_calls_what_the_agent_has_and_is_told_what_it_has_not(
    version: int,
) -> None:
    agent, heard = make()
    async with asyncio.timeout(DEADLINE), connect(agent, version=version) as client:
        session = await client.new_session()
        given = {"sessionId": session.id, "_meta": {"traceparent": "00-1"}, "deep": [None]}
        assert await client.call_extension("_example/echo", given) == {"given": given, "session": session.id}
        assert await client.call_extension("_example/echo") == {"given": {}, "session": None}
        await client.notify_extension("_example/unheard", {"x": 1})
        await client.notify_extension("_example/nothing", {"x": 1})
        assert await client.call_extension("_example/nothing", {"x": 2}) is None
        assert heard == [{"x": 1}, {"x": 2}]
        for method, params, code in (
            ("_example/unknown", {}, -32601),
            ("_antiphon/unknown", {}, -32601),
            ("_example/echo", {"refuse": True}, -32602),
            ("_example/echo", {"sessionId": "of nobody"}, -32002),
        ):
            with pytest.raises(CallFailed) as failed:
                await client.call_extension(method, params)
            assert failed.value.error.code == code


@requirement("EXT-01")
@VERSIONS
async def test_an_agent_asks_its_clients_and_the_first_answer_counts(version: int) -> None:
    agent, _ = make()
    async with (
        asyncio.timeout(DEADLINE),
        connect(agent, version=version) as one,
        connect(agent) as two,
        connect(agent) as three,
    ):
        session = await one.new_session()
        turn = await session.prompt("pick")
        await turn.drained()
        assert session.messages[-1].text == "picked nobody"
        for other in (two, three):
            await other.load_session(session.id)
        cancelled, told = asyncio.Event(), asyncio.Event()

        @two.extension("_example/pick")
        async def never(params: Any) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        @three.extension("_example/pick")
        async def last(params: Any) -> Any:
            assert params["sessionId"] == session.id
            return params["from"][-1]

        @three.extension("_example/picked")
        async def picked(params: Any) -> None:
            assert params == {"sessionId": session.id, "what": 2}
            told.set()

        await (await session.prompt("pick")).drained()
        assert session.messages[-1].text == "picked 2"
        await cancelled.wait()
        await told.wait()


@requirement("EXT-01")
async def test_an_error_of_one_who_knows_it_is_the_answer_where_nobody_has_a_better() -> None:
    agent, _ = make()
    async with asyncio.timeout(DEADLINE), connect(agent) as client, connect(agent) as other:
        session = await client.new_session()
        await other.load_session(session.id)

        @client.extension("_example/pick")
        async def refuse(params: Any) -> Any:
            raise InvalidParams("neither")

        await (await session.prompt("pick")).drained()
        assert session.messages[-1].text == "picked -32602"


@requirement("EXT-01", "EXT-12")
def test_the_names_of_extensions() -> None:
    agent, _ = make()
    for name in ("example/echo", "_antiphon/own", "_example/echo"):
        with pytest.raises(LocalError):
            agent.extension(name)


@requirement("EXT-12")
async def test_nothing_is_called_that_the_protocol_could_have() -> None:
    agent, _ = make()
    async with connect(agent) as client:
        with pytest.raises(LocalError):
            await client.call_extension("session/odd")
        with pytest.raises(LocalError):
            await client.notify_extension("session/odd")
        with pytest.raises(LocalError):
            client.extension("session/odd")


class CommitsLate(MemoryStore):
    """Commits a batch after a moment, as a busy disk does."""

    async def append(self, session_id: str, batch: Batch, **patch: Any) -> None:
        await asyncio.sleep(0.05)
        await super().append(session_id, batch, **patch)


@VERSIONS
async def test_an_answer_comes_behind_the_updates_that_were_sent_before_it(version: int) -> None:
    agent = Agent("late", store=CommitsLate())

    @agent.on_prompt
    async def nothing(turn: AgentTurn) -> None: ...

    @agent.extension("_example/rename")
    async def rename(params: Any, session: AgentSession | None) -> str:
        assert session is not None
        await session.set_title("renamed")
        return "done"

    async with asyncio.timeout(DEADLINE), talking(agent, version) as (talk, session_id):
        assert await talk.call("x", "_example/rename", sessionId=session_id) == "done"
        assert "renamed" in str(talk.updates())
