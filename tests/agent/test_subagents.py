"""Subagents: announced before anything names them, followed by the parent's clients, left alone by them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.agent.session import Subagent
from antiphon.stores import SQLiteStore
from antiphon.stores.memory import MemoryStore
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement


def working(*, cancellable: bool = False, store: MemoryStore | None = None) -> tuple[Agent, asyncio.Event]:
    agent, go_on = Agent("boss", store=store), asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.subagent("Researcher", description="looks", cancellable=cancellable) as child:
            await child.instruct("Look!")
            async with child.message() as message:
                await message.write("I ")
                await message.write("looked")
            async with child.tool_call("Search", kind="search") as call:
                await call.write("found")
            await go_on.wait()
            await child.report("Found it")
        await turn.say("The child is done")

    return agent, go_on


def updates(talk: Talk, session_id: str) -> list[dict[str, Any]]:
    frames = [f["params"] for f in talk.seen if f.get("method") == "session/update"]
    return [params["update"] for params in frames if params["sessionId"] == session_id]


async def idle(talk: Talk, session_id: str) -> None:
    """The session has ended its work, whenever that was told."""

    def fits(frame: dict[str, Any]) -> bool:
        params = frame.get("params", {})
        return params.get("sessionId") == session_id and "stopReason" in params.get("update", {})

    if not any(map(fits, talk.seen)):
        await talk.until(fits)


async def announced(talk: Talk) -> str:
    update = await talk.update("subagent_update")
    return str(update["sessionId"])


@requirement("SUB-01")
async def test_a_child_is_announced_before_it_is_named_and_followed_without_a_resume() -> None:
    agent, go_on = working()
    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        child = await announced(talk)
        go_on.set()
        await idle(talk, parent)
        await idle(talk, child)
        named = [
            index
            for index, frame in enumerate(talk.seen)
            if frame.get("params", {}).get("sessionId") == child
        ]
        first = next(i for i, f in enumerate(talk.seen) if "subagent_update" in str(f))
        assert named
        assert first < min(named)
        told = updates(talk, parent)
        assert {"title": "Researcher", "description": "looks", "state": {"state": "running"}}.items() <= next(
            u for u in told if u["sessionUpdate"] == "subagent_update"
        ).items()


async def _whole(talk: Talk, parent: str) -> tuple[str, list[dict[str, Any]]]:
    """The child's id, once it has said its last."""
    child = await announced(talk)

    await idle(talk, child)
    return child, updates(talk, child)


@requirement("SUB-01")
async def test_all_that_a_child_does_reaches_the_clients_of_its_parent() -> None:
    agent, go_on = working()
    async with agent.serving(), session(agent) as (talk, parent):
        go_on.set()
        talk.prompt(1, parent, "go")
        child, told = await _whole(talk, parent)
        text = "".join(
            block["text"]
            for u in told
            if u["sessionUpdate"] in ("agent_message_chunk", "agent_message")
            for block in (u["content"] if isinstance(u["content"], list) else [u["content"]])
        )
        assert text == "I looked"
        assert [u["content"][0]["text"] for u in told if u["sessionUpdate"] == "session_message"] == [
            "Look!",
            "Found it",
        ]
        ended = [u for u in updates(talk, parent) if u["sessionUpdate"] == "subagent_update"]
        assert ended[-1] == {
            "sessionUpdate": "subagent_update",
            "sessionId": child,
            "state": {"state": "idle", "stopReason": "end_turn"},
        }


@requirement("SUB-01")
@pytest.mark.parametrize("able", [True, False])
async def test_a_v1_client_gets_them_only_if_it_takes_them(able: bool) -> None:
    agent, go_on = working()
    go_on.set()
    capabilities = {"subagents": {}} if able else {}
    async with agent.serving(), session(agent, 1, clientCapabilities=capabilities) as (talk, parent):
        talk.prompt(1, parent, "go")
        await talk.answer_to(1)
        assert any(f["params"]["sessionId"] == parent for f in talk.seen if "update" in f.get("params", {}))
        assert ("subagent_update" in str(talk.seen)) is able
        if not able:
            assert {f["params"]["sessionId"] for f in talk.seen if "update" in f.get("params", {})} == {
                parent
            }


@requirement("SUB-01")
async def test_a_client_that_joins_later_follows_the_child_after_its_announcement() -> None:
    agent, go_on = working()
    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        child = await announced(talk)
        for params in ({"replayFrom": {"type": "start"}}, {}):
            async with client(agent) as other:
                await other.call(1, "session/resume", sessionId=parent, cwd="/", mcpServers=[], **params)
                seen = await other.until(lambda f: f.get("params", {}).get("sessionId") == child)
                first = next(i for i, f in enumerate(other.seen) if "subagent_update" in str(f))
                assert first < other.seen.index(seen)
        go_on.set()
        await talk.update("state_update", state="idle", stopReason="end_turn")


@requirement("SUB-01")
async def test_announcements_are_kept_and_replayed_and_children_are_not_listed() -> None:
    store = MemoryStore()
    agent, go_on = working(store=store)
    go_on.set()
    async with agent.serving():
        async with session(agent) as (talk, parent):
            talk.prompt(1, parent, "go")
            child, _ = await _whole(talk, parent)
            await idle(talk, parent)
            listed = await talk.call(2, "session/list")
            assert [info["sessionId"] for info in listed["sessions"]] == [parent]
        async with client(agent) as talk:
            start = {"type": "start"}
            await talk.call(1, "session/resume", sessionId=parent, cwd="/", mcpServers=[], replayFrom=start)
            kinds = [u["sessionUpdate"] for u in updates(talk, parent)]
            assert kinds.count("subagent_update") == 1
            again = await talk.call(
                2, "session/resume", sessionId=child, cwd="/", mcpServers=[], replayFrom=start
            )
            assert again == {}
            assert "I looked" in str(updates(talk, child))
            await talk.call(3, "session/delete", sessionId=parent)
            assert await store.get(child) is None


@requirement("SUB-02")
@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("session/prompt", {"prompt": [{"type": "text", "text": "x"}]}),
        ("session/close", {}),
        ("session/delete", {}),
        ("session/set_config_option", {"configId": "a", "type": "id", "value": "b"}),
        ("_antiphon/list_inject", {}),
    ],
)
async def test_nothing_is_done_to_a_child_by_a_client(method: str, more: dict[str, Any]) -> None:
    agent, go_on = working()
    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        child = await announced(talk)
        talk.send(id=2, method=method, params={"sessionId": child, **more})
        assert (await talk.answer_to(2))["error"]["code"] == -32602
        go_on.set()
        await talk.update("state_update", state="idle", stopReason="end_turn")


@requirement("SUB-02")
async def test_a_child_is_cancelled_alone_where_that_is_announced() -> None:
    agent, _ = working(cancellable=True)
    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        update = await talk.update("subagent_update")
        assert update["capabilities"] == {"cancel": {}}
        child = update["sessionId"]
        talk.send(method="session/cancel", params={"sessionId": child})
        ended = await talk.update("subagent_update", sessionId=child)
        assert ended["state"] == {"state": "idle", "stopReason": "cancelled"}
        said = await talk.update("agent_message")
        assert said["content"][0]["text"] == "The child is done"
        await talk.update("state_update", state="idle", stopReason="end_turn")


@requirement("SUB-02")
async def test_a_child_that_may_not_be_cancelled_goes_on() -> None:
    agent, go_on = working()
    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        child = await announced(talk)
        talk.send(method="session/cancel", params={"sessionId": child})
        await talk.call(2, "session/list")  # the cancel has been read
        go_on.set()
        ended = await talk.update("subagent_update", sessionId=child)
        assert ended["state"]["stopReason"] == "end_turn"


async def test_a_cancelled_parent_takes_its_child_along() -> None:
    agent, _ = working()
    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        child = await announced(talk)
        talk.send(method="session/cancel", params={"sessionId": parent})
        ended = await talk.update("subagent_update", sessionId=child)
        assert ended["state"] == {"state": "idle", "stopReason": "cancelled"}
        await talk.update("state_update", state="idle", stopReason="cancelled")


async def test_a_child_asks_in_its_own_name() -> None:
    agent = Agent("boss")
    allowed: list[bool] = []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.subagent("Worker") as child, child.tool_call("rm", kind="delete") as call:
            allowed.append(await call.request_permission())

    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        child = await announced(talk)
        asked = await talk.request("session/request_permission")
        assert asked["params"]["sessionId"] == child
        talk.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "allow"}})
        await talk.update("subagent_update", sessionId=child)
        assert allowed == [True]


async def test_several_children_work_side_by_side_and_a_failure_of_one_is_its_own() -> None:
    agent = Agent("boss")

    async def work(turn: AgentTurn, name: str) -> str:
        try:
            async with turn.subagent(name) as child:
                assert isinstance(child, Subagent)
                await child.say(name)
                if name == "b":
                    raise ValueError(name)
        except ValueError:
            return "failed"
        return "done"

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work(turn, name)) for name in "abc"]
        await turn.say(" ".join(task.result() for task in tasks))

    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        said = await talk.update("agent_message")
        while said["content"][0]["text"] in "abc":
            said = await talk.update("agent_message")
        assert said["content"][0]["text"] == "done failed done"
        ends = [
            u for u in updates(talk, parent) if u["sessionUpdate"] == "subagent_update" and "title" not in u
        ]
        assert sorted(u["state"]["stopReason"] for u in ends) == ["end_turn", "end_turn", "error"]


async def test_a_child_with_nobody_attached_works_all_the_same() -> None:
    agent, go_on = working()
    async with agent.serving():
        async with session(agent) as (talk, parent):
            talk.prompt(1, parent, "go")
            await announced(talk)
        go_on.set()
        async with client(agent) as talk:
            await talk.call(1, "session/resume", sessionId=parent, cwd="/", mcpServers=[])
            await idle(talk, parent)


async def test_a_child_is_cut_short_with_its_process_and_its_announcement_says_so(tmp_path: Path) -> None:
    agent, _ = working(store=SQLiteStore(tmp_path / "s.db"))
    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        child = await announced(talk)
        await talk.until(lambda f: f.get("params", {}).get("sessionId") == child)
    again, _ = working(store=SQLiteStore(tmp_path / "s.db"))
    async with again.serving(), client(again) as talk:
        start = {"type": "start"}
        await talk.call(1, "session/resume", sessionId=parent, cwd="/", mcpServers=[], replayFrom=start)
        (told,) = [u for u in updates(talk, parent) if u["sessionUpdate"] == "subagent_update"]
        assert (told["title"], told["state"]["state"], told["state"]["stopReason"]) == (
            "Researcher",
            "idle",
            "error",
        )
        assert updates(talk, child) == []
        talk.prompt(2, child, "x")
        assert (await talk.answer_to(2))["error"]["code"] == -32002
        await talk.call(3, "session/resume", sessionId=child, cwd="/", mcpServers=[], replayFrom=start)
        assert "I looked" in str(updates(talk, child))
        talk.prompt(4, child, "x")
        assert (await talk.answer_to(4))["error"]["code"] == -32602


async def test_a_client_that_leaves_the_parent_leaves_its_children() -> None:
    agent, go_on = working()
    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        child = await announced(talk)
        async with client(agent) as other:
            await other.call(1, "session/resume", sessionId=parent, cwd="/", mcpServers=[])
            await other.until(lambda f: f.get("params", {}).get("sessionId") == child)
            await other.call(2, "session/close", sessionId=parent)
            read = len(other.seen)
            go_on.set()
            await idle(talk, child)
            await other.call(3, "session/list")
            assert [f for f in other.seen[read:] if f.get("method") == "session/update"] == []


async def test_a_child_that_no_turn_asked_for_is_background_work() -> None:
    agent, go_on = Agent("boss"), asyncio.Event()

    @agent.on_session
    async def begun(opened: AgentSession) -> None:
        async with opened.subagent("Watcher") as child:
            await child.say("here")
            await go_on.wait()

    async with agent.serving(), session(agent) as (talk, _):
        child = await announced(talk)
        state = await talk.update(
            "state_update", state="idle", background=[{"type": "subagent", "sessionId": child}]
        )
        assert "stopReason" not in state
        await talk.until(lambda f: f.get("params", {}).get("sessionId") == child)
        go_on.set()
        ended = await talk.update("subagent_update", sessionId=child)
        assert ended["state"]["state"] == "idle"
        assert (await talk.update("state_update", background=[]))["state"] == "idle"


async def test_a_child_stops_for_a_reason_of_its_own_and_tells_what_it_used() -> None:
    agent = Agent("boss")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.subagent("Small") as child:
            child.count_tokens(input=1, output=2)
            child.stop("max_tokens")
        async with turn.subagent("Other"):
            turn.stop("refusal")

    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        await talk.update("state_update", state="idle", stopReason="refusal")
        ends = [
            u["state"]
            for u in updates(talk, parent)
            if u["sessionUpdate"] == "subagent_update" and "title" not in u
        ]
        assert [end["stopReason"] for end in ends] == ["max_tokens", "cancelled"]
        assert (ends[0]["usage"]["inputTokens"], ends[0]["usage"]["outputTokens"]) == (1, 2)


async def test_a_cancel_of_both_at_once_ends_both() -> None:
    agent, _ = working(cancellable=True)
    async with agent.serving(), session(agent) as (talk, parent):
        talk.prompt(1, parent, "go")
        child = await announced(talk)
        await talk.until(lambda f: f.get("params", {}).get("sessionId") == child)
        talk.send(method="session/cancel", params={"sessionId": child})
        talk.send(method="session/cancel", params={"sessionId": parent})
        await talk.update("state_update", state="idle", stopReason="cancelled")
        await idle(talk, parent)
        assert "The child is done" not in str(updates(talk, parent))


async def test_a_turn_that_the_agent_opened_stops_for_the_reason_it_gives() -> None:
    agent = Agent("boss")

    @agent.on_session
    async def begun(opened: AgentSession) -> None:
        async with opened.turn() as turn:
            turn.stop("refusal")

    async with agent.serving(), session(agent) as (talk, _):
        await talk.update("state_update", state="idle", stopReason="refusal")
