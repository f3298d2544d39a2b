"""`turn_complete` through the hub: advertised where it is sent, and every follower learns every end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.client.protocol import prompt_calls
from antiphon.errors import StoreError
from antiphon.hub import Hub, HubOptions
from antiphon.schema.version import ours_in
from antiphon.stores import SQLiteStore
from antiphon.stores.memory import MemoryStore
from tests.agent.talk import Talk, client
from tests.agent.test_turn_complete import COMBINATIONS, asking_for
from tests.hub.running import AGENT, DEADLINE, kill_agents, served
from tests.requirements.marks import requirement

COMPLETING = [sys.executable, str(Path(__file__).with_name("completing_agent.py"))]
ASKS = asking_for(True, False, False)
BROKE = {"code": -32001, "message": "it broke", "data": {"k": 1}}
INTERRUPTED = {
    "code": -32603,
    "message": "The turn was interrupted: the agent ended",
    "data": {"reason": "interrupted", "cause": "agent_lost"},
}


@asynccontextmanager
async def two_clients(agent: list[str]) -> AsyncIterator[tuple[str, Talk, Talk]]:
    """A hub in this process, and two v1 clients of one session that asked for `turn_complete`."""
    hub = Hub({"agent": agent}, store=MemoryStore())
    async with asyncio.timeout(DEADLINE), hub.serving(), AsyncExitStack() as stack:
        one = await stack.enter_async_context(client(hub, 1, **ASKS))
        other = await stack.enter_async_context(client(hub, 1, **ASKS))
        session = (await one.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        await join(other, session)
        yield session, one, other


async def join(talk: Talk, session: str) -> None:
    await talk.call("join", "session/load", sessionId=session, cwd="/", mcpServers=[])


def completes(talk: Talk) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in update.items() if key != "sessionUpdate"}
        for update in talk.updates()
        if update["sessionUpdate"] == "turn_complete"
    ]


@requirement("TC-05")
@pytest.mark.parametrize("to_all", [False, True])
@pytest.mark.parametrize("chosen", COMBINATIONS)
@pytest.mark.parametrize("promises", [[], ["--promises"]])
async def test_it_is_advertised_exactly_where_it_is_sent(
    chosen: tuple[bool, bool, bool], to_all: bool, promises: list[str]
) -> None:
    hub = Hub(
        {"agent": [*COMPLETING, *promises]}, store=MemoryStore(), options=HubOptions(turn_complete=to_all)
    )
    async with asyncio.timeout(DEADLINE), hub.serving(), client(hub, 1, **asking_for(*chosen)) as talk:
        session = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        capabilities = talk.seen[0]["result"]["agentCapabilities"]
        talk.prompt(1, session, "say complete result")
        await talk.answer_to(1)
        if chosen[1]:
            await talk.update("state_update", state="idle")
        sent = len(completes(talk))
        assert sent == ((chosen[0] or to_all) and not chosen[1])
        assert ("turnComplete" in capabilities["sessionCapabilities"]) == sent
        assert ("turnComplete" in capabilities["_meta"]["antiphon"]) == sent
        assert (capabilities["_meta"]["antiphon"].get("promptLifecycle") == 2) is chosen[1]


@pytest.mark.parametrize("promises", [[], ["--promises"]])
@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("say result", {"stopReason": "end_turn"}),
        ("say complete result", {"stopReason": "end_turn"}),
        ("say complete complete result", {"stopReason": "end_turn"}),
        ("say result complete complete", {"stopReason": "end_turn"}),
        ("say error", {"error": BROKE}),
        ("say complete error", {"error": BROKE}),
        ("say complete-error error", {"error": BROKE}),
        ("complete-error complete-error error complete-error", {"error": BROKE}),
        ("say complete-error result", {"stopReason": "end_turn"}),
        ("say die", {"error": INTERRUPTED}),
        ("complete-error die", {"error": BROKE}),
        ("complete die", {"stopReason": "end_turn"}),
        ("say complete", {"stopReason": "end_turn"}),
        ("say complete-error", {"error": BROKE}),
    ],
)
async def test_both_clients_get_one_whatever_the_agent_sends(
    text: str, end: dict[str, Any], promises: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = text.split()[-1] in ("result", "error", "die")
    if not answered or (promises and text == "say result"):
        monkeypatch.setattr(prompt_calls, "OVERDUE", 0.3)  # an answer or a promised update never comes
    async with two_clients([*COMPLETING, *promises]) as (session, one, other):
        one.prompt(7, session, text)
        answer = await one.answer_to(7)
        assert answer.get("error") == end.get("error")
        assert answer.get("result", {}).get("stopReason") == end.get("stopReason")
        await other.update("turn_complete")
        one.prompt("8", session, "say complete result")
        await one.answer_to("8")
        await other.update("turn_complete")
        assert completes(one) == [
            {"promptRequestId": "7", **end},
            {"promptRequestId": "8", "stopReason": "end_turn"},
        ]
        assert completes(other) == [end, {"stopReason": "end_turn"}]
        at = one.story().index("turn_complete")
        assert one.story()[at + 1] == "= 7", "it comes right before the answer"


async def test_an_agent_that_left_one_out_is_not_waited_for_in_another_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each session has a process of the agent for itself."""
    monkeypatch.setattr(prompt_calls, "OVERDUE", 0.3)
    async with two_clients([*COMPLETING, "--promises"]) as (session, one, other):
        one.prompt(7, session, "say result")
        await one.answer_to(7)
        monkeypatch.setattr(prompt_calls, "OVERDUE", 60.0)
        another = (await other.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        other.prompt(8, another, "say result")
        await other.answer_to(8)


@pytest.mark.parametrize("by", ["one", "other"])
@pytest.mark.parametrize("method", ["session/cancel", "session/close"])
async def test_a_cancelled_or_closed_turn_ends_for_the_other_client(method: str, by: str) -> None:
    async with two_clients(COMPLETING) as (session, one, other):
        one.prompt(7, session, "say wait")
        for talk in (one, other):
            await talk.update("agent_message_chunk")
        acting = one if by == "one" else other
        if method == "session/cancel":
            acting.send(method=method, params={"sessionId": session})
        else:
            all_of_it = {"antiphon": {"forAll": True}}
            acting.send(id="close", method=method, params={"sessionId": session, "_meta": all_of_it})
        assert (await one.answer_to(7))["result"]["stopReason"] == "cancelled"
        await other.update("turn_complete")
        assert completes(one) == [{"promptRequestId": "7", "stopReason": "cancelled"}]
        assert completes(other) == [{"stopReason": "cancelled"}]


@pytest.mark.parametrize("agent_version", ["1", "2"])
async def test_a_killed_agent_ends_the_turn_for_both(tmp_path: Path, agent_version: str) -> None:
    with served(tmp_path, "--acp-version", agent_version, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk(1, **ASKS) as one, hub.talk(1, **ASKS) as other:
            session = (await one.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await join(other, session)
            one.prompt(7, session, "wait")
            await one.update("agent_message_chunk")
            assert kill_agents(hub) == 1
            assert (await one.answer_to(7))["error"]["data"]["reason"] == "interrupted"
            await other.update("turn_complete")
            (mine,), (theirs,) = completes(one), completes(other)
            assert mine == {"promptRequestId": "7", **theirs}
            assert theirs["error"]["data"]["reason"] == "interrupted"


SEQ: dict[str, Any] = {
    "clientCapabilities": {"_meta": {"antiphon": {"turnComplete": True, "seq": True}}},
}


async def test_after_a_restart_of_the_hub_a_follower_learns_the_end(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk(1) as one, hub.talk(1, **SEQ) as other:
            session = (await one.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await join(other, session)
            one.prompt(7, session, "wait")
            await other.update("agent_message_chunk")
            last = max(
                frame["params"]["_meta"]["antiphon"]["seq"]
                for frame in other.seen
                if "seq" in (frame.get("params", {}).get("_meta") or {}).get("antiphon", {})
            )
        hub.kill()
        hub.restart()
        async with asyncio.timeout(DEADLINE), hub.talk(1, **SEQ) as other:
            params: dict[str, Any] = {"sessionId": session, "cwd": "/", "mcpServers": []}
            ours = {"antiphon": {"after": last}}
            result = await other.call("again", "session/load", **params, _meta=ours)
            (complete,) = completes(other)
            assert complete["error"]["data"]["reason"] == "interrupted"
            assert "promptRequestId" not in complete
            assert result["_meta"]["antiphon"]["state"] == "idle"
        async with asyncio.timeout(DEADLINE), hub.talk(1, **ASKS) as late:
            result = await late.call("whole", "session/load", **params)  # without a cursor
            assert result["_meta"]["antiphon"]["state"] == "idle"


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_who_joins_learns_whether_a_turn_is_open(method: str) -> None:
    hub = Hub({"agent": COMPLETING}, store=MemoryStore())
    async with (
        asyncio.timeout(DEADLINE),
        hub.serving(),
        client(hub, 1) as one,
        client(hub, 1, **ASKS) as other,
        client(hub, 1) as plain,
    ):
        session = (await one.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        one.prompt(7, session, "say wait")
        await one.update("agent_message_chunk")
        params: dict[str, Any] = {"sessionId": session, "cwd": "/", "mcpServers": []}
        joined = await other.call("join", method, **params)
        assert joined["_meta"]["antiphon"]["state"] == "running"
        assert "state" not in ours_in((await plain.call("join", method, **params)).get("_meta"))
        one.send(method="session/cancel", params={"sessionId": session})
        await other.update("turn_complete")
        assert completes(other) == [{"stopReason": "cancelled"}]
        joined = await other.call("again", method, **params)
        assert joined["_meta"]["antiphon"]["state"] == "idle"


async def test_a_store_that_fails_ends_the_turn_for_both() -> None:
    store = MemoryStore()
    hub = Hub({"agent": COMPLETING}, store=store)
    async with (
        asyncio.timeout(DEADLINE),
        hub.serving(),
        client(hub, 1, **ASKS) as one,
        client(hub, 1, **ASKS) as other,
    ):
        session = (await one.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        await join(other, session)
        one.prompt(7, session, "say wait")
        for talk in (one, other):
            await talk.update("agent_message_chunk")

        async def fail(*_: Any, **__: Any) -> Any:
            raise StoreError("the disk is full")

        store.append = fail
        one.send(method="session/cancel", params={"sessionId": session})
        error = (await one.answer_to(7))["error"]
        assert error["data"] == {"reason": "store"}
        await other.update("turn_complete")
        assert completes(one) == [{"promptRequestId": "7", "error": error}]
        assert completes(other) == [{"error": error}]


async def test_a_prompt_that_never_reached_the_agent_has_none(tmp_path: Path) -> None:
    """Nothing was inserted, so no turn began."""
    hub = Hub({"agent": COMPLETING}, store=SQLiteStore(tmp_path / "hub.db"))
    async with asyncio.timeout(DEADLINE), hub.serving(), client(hub, 1, **ASKS) as one:
        session = (await one.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        one.send(id=7, method="session/prompt", params={"sessionId": session, "prompt": []})
        assert "error" in await one.answer_to(7)
        one.prompt(8, session, "result")
        await one.answer_to(8)
        assert completes(one) == [{"promptRequestId": "8", "stopReason": "end_turn"}]
