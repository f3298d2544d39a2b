"""How much somebody who was let in may take: sessions by every way to open one, prompts that wait, bytes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.connection.initialization import LARGEST
from antiphon.hub.access.limits import REMEMBERED, HubLimits, Rate
from antiphon.server.methods.sessions import PATHS, SETUP
from antiphon.server.session_facts import TITLE_LIMIT
from antiphon.stores import SQLiteStore
from antiphon.transports.websocket import connect_websocket
from tests.agent.talk import INFO, Talk
from tests.hub.doors import DEADLINE, doors, is_open, refused
from tests.hub.operating import IDLE, open_sessions, until

SESSIONS = {"reason": "limit", "limit": "sessions"}


async def new(talk: Talk, id: str = "new") -> str:
    return str((await talk.call(id, "session/new", cwd="/", mcpServers=[]))["sessionId"])


async def put_away(talk: Talk, session: str) -> None:
    await talk.call(f"close {session}", "session/close", sessionId=session)
    assert not await is_open(talk, session)


OPENING: dict[str, dict[str, Any]] = {
    "session/load": {"cwd": "/", "mcpServers": []},
    "session/resume": {"cwd": "/", "mcpServers": []},
    "session/fork": {"cwd": "/", "mcpServers": []},
    "session/new": {"cwd": "/", "mcpServers": []},
    "_antiphon/attach": {},
}


@pytest.mark.parametrize("method", OPENING)
async def test_every_way_to_open_a_session_counts(tmp_path: Path, method: str) -> None:
    version = 1 if method == "session/load" else 2
    limits = HubLimits(sessions=1)
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, limits=limits) as door,
        door.talk(door.token("bob", "owner"), version) as talk,
    ):
        kept = await new(talk, "kept")
        await put_away(talk, kept)
        opened = await new(talk, "open")
        error = await refused(talk, "over", method, sessionId=kept, **OPENING[method])
        assert error is not None
        assert (error["code"], error["data"]) == (-32004, SESSIONS)
        assert "1 sessions are open" in error["message"]
        assert door.audit(token="bob", method=method, outcome="limit: sessions")
        # One that is open already takes no more room.
        assert (
            await refused(talk, "again", "session/resume", sessionId=opened, cwd="/", mcpServers=[]) is None
        )
        await put_away(talk, opened)
        if method != "session/fork":  # its source is opened as well
            assert await refused(talk, "room", method, sessionId=kept, **OPENING[method]) is None


async def test_requests_that_come_at_once_do_not_pass_the_limit_together(tmp_path: Path) -> None:
    limits = HubLimits(sessions=3)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=limits) as door, door.talk() as talk:
        kept = [await new(talk, f"kept {n}") for n in range(3)]
        for session in kept:
            await put_away(talk, session)
        for number in range(5):
            talk.send(id=number, method="session/new", params={"cwd": "/", "mcpServers": []})
        for session in kept:
            params = {"sessionId": session, "cwd": "/", "mcpServers": []}
            talk.send(id=session, method="session/resume", params=params)
        answers = [await talk.answer_to(id) for id in (*range(5), *kept)]
        assert len([answer for answer in answers if "result" in answer]) == 3
        assert await open_sessions(door.hub) == 3


async def test_what_failed_to_open_gives_its_room_back(tmp_path: Path) -> None:
    limits = HubLimits(sessions=1)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=limits) as door, door.talk() as talk:
        for number in range(3):
            error = await refused(talk, number, "session/resume", sessionId="none", cwd="/", mcpServers=[])
            assert error is not None
            assert error["code"] == -32002
        await new(talk)


async def test_subagents_count_and_an_agent_goes_on_without_room_for_them(tmp_path: Path) -> None:
    agent = Agent("nests", version="1", store=SQLiteStore(tmp_path / "agent.db"))

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        for number in range(5):
            async with turn.subagent(f"helper {number}") as helper:
                await helper.say("done")
        await turn.say("all done")

    limits = HubLimits(sessions=2)
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, agents={"nests": agent}, limits=limits, idle=IDLE) as door,
    ):
        async with door.talk() as talk:
            await new(talk, "one")
            session = await new(talk, "two")
            talk.prompt("p", session, "go")
            await talk.update("state_update", state="idle", stopReason="end_turn")
            assert "all done" in str(talk.updates())
            assert await open_sessions(door.hub) == 2

        async def let_go() -> bool:
            return await open_sessions(door.hub) == 0

        await until(let_go)


# --- prompts that wait ---------------------------------------------------------------------------------


def content(size: int) -> list[dict[str, str]]:
    return [{"type": "text", "text": "x" * size}]


async def busy(talk: Talk, id: str = "new") -> str:
    session = await new(talk, id)
    talk.prompt(f"work {session}", session, "wait")
    await talk.update("state_update", state="running")
    return session


async def test_prompts_that_wait_in_a_session_are_counted_edits_included(tmp_path: Path) -> None:
    limits = HubLimits(queued_bytes=10_000)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=limits) as door, door.talk() as talk:
        session = await busy(talk)

        async def inject(id: str, size: int) -> Any:
            return await refused(talk, id, "_antiphon/inject", sessionId=session, content=content(size))

        assert await inject("alone", 20_000) is None  # bounded by the size of a message alone
        error = await inject("more", 1)
        assert error is not None
        assert (error["code"], error["data"]) == (-32004, {"reason": "limit", "limit": "queued_bytes"})
        assert "over 10000" in error["message"]
        id = (await talk.answer_to("alone"))["result"]["messageId"]
        edit = {"sessionId": session, "messageId": id}
        assert await refused(talk, "e", "_antiphon/replace_inject", **edit, content=content(4000)) is None
        assert await inject("second", 4000) is None
        error = await refused(talk, "e2", "_antiphon/replace_inject", **edit, content=content(8000))
        assert error is not None
        assert error["data"]["limit"] == "queued_bytes"
        # A held prompt waits as any.
        talk.prompt("held", session, "x" * 4000)
        assert (await talk.answer_to("held"))["error"]["data"]["limit"] == "queued_bytes"
        listed = await talk.call("l", "_antiphon/list_inject", sessionId=session)
        assert [len(entry["content"][0]["text"]) for entry in listed["entries"]] == [4000, 4000]
        assert door.audit(outcome="limit: queued_bytes", method="_antiphon/replace_inject")
        assert await refused(talk, "w", "_antiphon/revoke_inject", **edit) is None
        assert await inject("room", 4000) is None


async def test_prompts_that_wait_in_all_sessions_are_counted_by_token(tmp_path: Path) -> None:
    limits = HubLimits(queued_bytes_per_token=10_000)
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, limits=limits) as door,
        door.talk(door.token("ann", "controller")) as ann,
        door.talk(door.token("bob", "controller")) as bob,
    ):
        sessions = [await busy(ann, f"new {number}") for number in range(3)]
        for session in sessions[:2]:
            inject = {"sessionId": session, "content": content(4000)}
            assert await refused(ann, session, "_antiphon/inject", **inject) is None
        over = {"sessionId": sessions[2], "content": content(4000)}
        error = await refused(ann, "over", "_antiphon/inject", **over)
        assert error is not None
        assert error["data"] == {"reason": "limit", "limit": "queued_bytes_per_token"}
        await bob.call("r", "session/resume", sessionId=sessions[2], cwd="/", mcpServers=[])
        assert await refused(bob, "b", "_antiphon/inject", **over) is None  # another token has its own


async def test_so_many_prompts_wait_and_no_more(tmp_path: Path) -> None:
    limits = HubLimits(queued_prompts=2)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=limits) as door, door.talk() as talk:
        session = await busy(talk)
        inject = {"sessionId": session, "content": content(1)}
        errors = [await refused(talk, n, "_antiphon/inject", **inject) for n in range(3)]
        assert [error and error["data"]["limit"] for error in errors] == [None, None, "queued_prompts"]


@pytest.mark.parametrize("method", ["_antiphon/replace_inject", "_antiphon/annotate", "session/set_title"])
async def test_everything_that_is_written_is_counted_by_its_bytes(tmp_path: Path, method: str) -> None:
    """40 edits of 1 MB each make the queue no longer, but the journal."""
    limits = HubLimits(bytes_per_minute=4_000_000)
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, limits=limits) as door,
        door.talk(door.token("ann", "controller")) as ann,
        door.talk(door.token("bob", "controller")) as bob,
    ):
        session = await busy(ann)
        first = await ann.call("i", "_antiphon/inject", sessionId=session, content=content(10))
        params: dict[str, Any] = {"sessionId": session, "messageId": first["messageId"]}
        large = {
            "_antiphon/replace_inject": {"content": content(1_000_000)},
            "_antiphon/annotate": {"kind": "note", "value": "x" * 1_000_000},
            "session/set_title": {"title": "x" * 1_000_000},
        }[method]
        errors = [await refused(ann, n, method, **params, **large) for n in range(10)]
        limited = [error for error in errors if error is not None and error["code"] == -32004]
        assert len(limited) >= 5
        assert limited[0]["data"] == {"reason": "limit", "limit": "bytes_per_minute"}
        assert door.audit(token="ann", outcome="limit: bytes_per_minute")
        # Whoever is over the limit can still take back and cancel.
        assert await refused(ann, "w", "_antiphon/revoke_inject", **params) is None
        await bob.call("r", "session/resume", sessionId=session, cwd="/", mcpServers=[])
        second = await bob.call("i", "_antiphon/inject", sessionId=session, content=content(10))
        edit = {"sessionId": session, "messageId": second["messageId"], "content": content(10)}
        assert await refused(bob, "b", "_antiphon/replace_inject", **edit) is None
        ann.send(method="session/cancel", params={"sessionId": session})
        await ann.update("state_update", state="idle", stopReason="cancelled")


async def test_edits_count_as_prompts(tmp_path: Path) -> None:
    limits = HubLimits(prompts_per_minute=4)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=limits) as door, door.talk() as talk:
        session = await busy(talk)
        first = await talk.call("i", "_antiphon/inject", sessionId=session, content=content(1))
        edit = {"sessionId": session, "messageId": first["messageId"], "content": content(1)}
        errors = [await refused(talk, n, "_antiphon/replace_inject", **edit) for n in range(3)]
        assert [error and error["data"]["limit"] for error in errors] == [None, None, "prompts_per_minute"]


class Key(str):
    """A key; whether it is kept shows by a weak reference."""

    __slots__ = ("__weakref__",)


def test_a_rate_takes_a_large_one_whole_and_then_waits() -> None:
    now = 0.0
    rate = Rate(60, clock=lambda: now)
    assert rate.take("a", 90)
    assert not rate.take("a")
    assert rate.take("b")
    now = 31.0
    assert rate.take("a")
    kept: WeakSet[Key] = WeakSet()
    for number in range(2 * REMEMBERED):
        now += 60
        kept.add(key := Key(number))
        rate.take(key)
    assert len(kept) <= REMEMBERED


async def test_requests_that_are_being_handled_count_and_their_end_makes_room(tmp_path: Path) -> None:
    agent, go = Agent("slow"), asyncio.Event()

    @agent.extension("_example.com/wait")
    async def wait(params: Any, session: Any) -> Any:
        await go.wait()
        return {}

    limits = HubLimits(bytes_in_progress=100_000)
    big = {"x": "x" * 60_000}
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, agents={"slow": agent}, limits=limits) as door,
        door.talk(bob := door.token("bob", "controller")) as first,
        door.talk(bob) as second,
        door.talk(door.token("eve", "controller")) as other,
    ):
        first.send(id=1, method="_example.com/wait", params=big)
        error = await refused(first, 2, "_example.com/wait", **big)
        assert error is not None
        assert error["data"] == {"reason": "limit", "limit": "bytes_in_progress"}
        assert await refused(second, 3, "_example.com/wait", **big) == error, "of another connection, too"
        await door.audited(outcome="limit: bytes_in_progress", token="bob")
        for number in range(5):  # they get no answer; they are handled, or not, in the order they came
            second.send(method="_example.com/wait", params={**big, "number": number})
        other.send(id=4, method="_example.com/wait", params=big)
        go.set()
        assert "result" in await first.answer_to(1)
        assert "result" in await other.answer_to(4)
        await second.call(5, "_example.com/wait", **big)


@pytest.mark.parametrize("method", ["session/new", "session/fork", "session/resume"])
async def test_what_sets_up_a_session_is_limited_because_it_is_kept(tmp_path: Path, method: str) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path) as door,
        door.talk(door.token("bob", "controller")) as talk,
    ):
        known = {} if method == "session/new" else {"sessionId": await new(talk)}
        server = {"type": "stdio", "name": "a", "command": "/a", "env": [{"name": "A", "value": "x" * SETUP}]}
        large: list[dict[str, Any]] = [
            {"cwd": "/" + "x" * PATHS},
            {"additionalDirectories": ["/" + "x" * PATHS]},
            {"mcpServers": [server]},
        ]
        for number, params in enumerate(large):
            error = await refused(talk, number, method, **{"cwd": "/", "mcpServers": [], **known, **params})
            assert error is not None
            assert error["code"] == -32602
            assert len(str(error)) < 1000


async def test_initialize_is_limited_because_a_connection_keeps_it(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        headers = {"Authorization": f"Bearer {door.token('eve', 'observer')}"}
        talk = Talk(await connect_websocket(door.address, headers=headers))
        try:
            large = {"protocolVersion": 2, "info": INFO, "capabilities": {"_meta": {"a": "x" * LARGEST}}}
            error = await refused(talk, "large", "initialize", **large)
            assert error is not None
            assert error["code"] == -32602
            await talk.call("again", "initialize", protocolVersion=2, info=INFO, capabilities={})
        finally:
            await talk.transport.aclose()


async def test_the_title_of_an_agent_is_cut_because_every_list_has_it(tmp_path: Path) -> None:
    agent = Agent("talker")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.session.set_title("T" * 1_000_000)

    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, agents={"talker": agent}) as door,
        door.talk() as talk,
    ):
        session = await new(talk)
        talk.prompt("p", session, "go")
        await talk.update("state_update", state="idle")
        [listed] = (await talk.call("list", "session/list"))["sessions"]
        assert listed["title"] == "T" * TITLE_LIMIT
        assert max(len(json.dumps(frame)) for frame in talk.seen) < 10_000
