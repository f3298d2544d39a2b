"""Sessions seen from outside: archived, titled, asked for their status; and system prompts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentOptions, AgentTurn
from antiphon.agent.system_prompts import SystemPrompt
from antiphon.errors import LocalError, StoreFull
from antiphon.stores import SQLiteStore
from antiphon.stores.base import LIST_LIMIT, SessionRecord
from antiphon.stores.memory import MemoryStore
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

VERSIONS = [1, 2]


class Waiting:
    def __init__(self, **options: Any) -> None:
        self.agent = Agent("waiting", version="1", **options)
        self.going_on = asyncio.Event()
        self.agent.on_prompt(self.work)

    async def work(self, turn: AgentTurn) -> None:
        await turn.say("begun")
        await self.going_on.wait()


def offered(talk: Talk) -> dict[str, Any]:
    result = talk.seen[0]["result"]
    where: dict[str, Any] = (
        result["agentCapabilities"]["sessionCapabilities"]
        if "agentCapabilities" in result
        else result["capabilities"]["session"]
    )
    return where


async def failure(talk: Talk, id: Any, method: str, **params: Any) -> dict[str, Any]:
    talk.send(id=id, method=method, params=params)
    error: dict[str, Any] = (await talk.answer_to(id))["error"]
    return error


async def listed(talk: Talk, id: Any, **params: Any) -> dict[str, bool]:
    found: dict[str, bool] = {}
    cursor: dict[str, Any] = {}
    while True:
        page = await talk.call(f"{id}{cursor}", "session/list", **params, **cursor)
        found |= {info["sessionId"]: info["archived"] for info in page["sessions"]}
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


def titles(talk: Talk) -> list[str]:
    updates = [frame["params"]["update"] for frame in talk.seen if "update" in frame.get("params", {})]
    return [update["title"] for update in updates if update["sessionUpdate"] == "session_info_update"]


# --- the archive -----------------------------------------------------------------------------------


@requirement("SESS-53", "SESS-54")
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_archived_session_is_out_of_the_usual_list_and_comes_back(
    version: int,
) -> None:
    waiting = Waiting()
    async with session(waiting.agent, version) as (talk, id):
        assert offered(talk)["archive"] == {}
        other = (await talk.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        assert await talk.call("a", "session/archive", sessionId=id) == {}
        assert await talk.call("b", "session/archive", sessionId=id) == {}
        assert await listed(talk, 1) == {other: False}
        assert await listed(talk, 2, archived="exclude") == {other: False}
        assert await listed(talk, 3, archived="include") == {other: False, id: True}
        assert await listed(talk, 4, archived="only") == {id: True}
        assert waiting.agent.find(id) is None

        assert await talk.call("u", "session/unarchive", sessionId=id) == {}
        assert await talk.call("v", "session/unarchive", sessionId=id) == {}
        assert waiting.agent.find(id) is None  # it is not loaded by that
        assert await listed(talk, 5) == {other: False, id: False}
        assert await listed(talk, 6, archived="only") == {}


@requirement("SESS-53", "SESS-54")
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_not_there_or_not_meant_is_refused(version: int) -> None:
    async with client(Agent("empty"), version) as talk:
        for method in ("archive", "unarchive"):
            error = await failure(talk, method, f"session/{method}", sessionId="no")
            assert (error["code"], error["data"]) == (-32002, {"sessionId": "no"})
        assert (await failure(talk, "l", "session/list", archived="sometimes"))["code"] == -32602


@requirement("SESS-53")
@pytest.mark.parametrize("version", VERSIONS)
async def test_archiving_a_session_at_work_ends_it_as_a_close_does(version: int) -> None:
    waiting = Waiting()
    async with session(waiting.agent, version) as (talk, id), client(waiting.agent, version) as other:
        talk.prompt("p", id, "work")
        await talk.update("agent_message_chunk" if version == 1 else "agent_message")
        await other.call("a", "session/archive", sessionId=id)  # by whoever it is, for everybody
        if version == 1:
            assert (await talk.answer_to("p"))["result"]["stopReason"] == "cancelled"
        else:
            await talk.update("state_update", state="idle", stopReason="cancelled")
        history = "session/load" if version == 1 else "session/resume"
        start = {} if version == 1 else {"replayFrom": {"type": "start"}}
        await other.call("r", history, sessionId=id, cwd="/", mcpServers=[], **start)
        said = "user_message_chunk" if version == 1 else "user_message"
        assert said in other.story()
        assert await listed(other, 1, archived="only") == {id: True}


@requirement("SESS-54")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_the_list_goes_on_over_many_pages_whatever_is_left_out(kind: str, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "s.db")
    agent = Agent("many", store=store)
    every = 4 * LIST_LIMIT
    async with agent.serving():
        for number in range(every):
            meta = {"mine": number} | ({} if number % 20 else {"archived": True})
            record = SessionRecord(
                session_id=f"s{number}", cwd="/", created_at=number, updated_at=number, meta=meta
            )
            await store.create(record)
        async with client(agent) as talk:
            assert len(await listed(talk, 1)) == every - every // 20
            assert list(await listed(talk, 2, archived="only")) == [
                f"s{number}" for number in range(every - 20, -1, -20)
            ]
            assert len(await listed(talk, 3, archived="include")) == every
            await talk.call("a", "session/archive", sessionId="s7")
            kept = await store.get("s7")
            assert kept is not None
            assert kept.meta == {"mine": 7, "archived": True}  # beside whatever else is noted there


@requirement("SESS-53")
async def test_an_archived_session_stays_so_after_a_restart(tmp_path: Path) -> None:
    first = Agent("first", store=SQLiteStore(tmp_path / "s.db"))
    async with first.serving(), session(first) as (talk, id):
        await talk.call("a", "session/archive", sessionId=id)
    second = Agent("second", store=SQLiteStore(tmp_path / "s.db"))
    async with second.serving(), client(second) as talk:
        assert await listed(talk, 1, archived="only") == {id: True}


@requirement("SESS-53")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ["session/close", "session/archive"])
@pytest.mark.parametrize("works", [False, True])
async def test_who_opens_a_session_while_it_is_closed_gets_it_opened_anew(
    works: bool, method: str, version: int, tmp_path: Path
) -> None:
    waiting = Waiting(store=SQLiteStore(tmp_path / "s.db"))
    async with waiting.agent.serving(), session(waiting.agent, version) as (talk, id):
        if works:
            talk.prompt("p", id, "work")
            await talk.update("agent_message_chunk" if version == 1 else "agent_message")
        talk.send(id="c", method=method, params={"sessionId": id})
        resume = {"sessionId": id, "cwd": "/", "mcpServers": []}
        talk.send(id="r", method="session/resume", params=resume)
        assert (await talk.answer_to("c"))["result"] == {}
        assert "result" in await talk.answer_to("r")
        waiting.going_on.set()
        talk.prompt("q", id, "again")
        assert "result" in await talk.answer_to("q")


# --- the status ------------------------------------------------------------------------------------


@requirement("SESS-55")
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_status_tells_what_is_open_and_attaches_nobody(version: int) -> None:
    waiting = Waiting()
    async with session(waiting.agent, version) as (talk, id), client(waiting.agent, version) as other:
        assert offered(other)["status"] == {}

        async def status(number: int) -> Any:
            return await other.call(number, "session/status", sessionId=id)

        if version == 1:
            assert await status(1) == {"status": "open"}
        else:
            assert await status(1) == {"status": "open", "state": {"state": "idle"}}
            talk.prompt("p", id, "work")
            await talk.update("agent_message")
            assert await status(2) == {"status": "open", "state": {"state": "running"}}
            waiting.going_on.set()
            await talk.update("state_update", state="idle")
            ended = {"state": "idle", "stopReason": "end_turn"}
            assert await status(3) == {"status": "open", "state": ended}
        await talk.call("c", "session/close", sessionId=id)
        assert await status(4) == {"status": "saved"}
        assert waiting.agent.find(id) is None
        error = await failure(other, 5, "session/status", sessionId="no")
        assert (error["code"], error["data"]) == (-32002, {"sessionId": "no"})
        assert all("update" not in frame.get("params", {}) for frame in other.seen)


@requirement("SESS-56")
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_open_session_has_to_be_resumed_here_before_it_is_prompted(version: int) -> None:
    waiting = Waiting()
    async with session(waiting.agent, version) as (_, id), client(waiting.agent, version) as other:
        assert (await other.call(1, "session/status", sessionId=id))["status"] == "open"
        other.prompt(2, id, "hello")
        assert (await other.answer_to(2))["error"]["code"] == -32002


# --- titles ----------------------------------------------------------------------------------------


@requirement("SESS-57")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_title_is_kept_before_it_is_answered_and_not_replaced(version: int, tmp_path: Path) -> None:
    waiting = Waiting(store=SQLiteStore(tmp_path / "s.db"))
    async with waiting.agent.serving(), session(waiting.agent, version) as (talk, id):
        assert offered(talk)["title"] == {}
        live = waiting.agent.find(id)
        assert live is not None
        assert await live.set_title("The agent's") is True
        stored = await talk.call(1, "session/set_title", sessionId=id, title="  My \n title ")
        assert stored == {"title": "My title"}
        record = await waiting.agent.store.get(id)
        assert record is not None
        assert record.title == "My title"
        assert titles(talk)[-1] == "My title"
        assert await live.set_title("Another of the agent's") is False
        assert live.fold.facts.info is not None
        assert live.fold.facts.info.title == "My title"
    again = Waiting(store=SQLiteStore(tmp_path / "s.db"))
    async with again.agent.serving(), client(again.agent, version) as talk:
        await talk.call(0, "session/resume", sessionId=id, cwd="/", mcpServers=[])
        found = again.agent.find(id)
        assert found is not None
        assert await found.set_title("After a restart") is False
        stored = await talk.call(1, "session/set_title", sessionId=id, title="Mine again")
        assert stored == {"title": "Mine again"}


@requirement("SESS-57")
async def test_a_session_that_is_not_open_is_titled_and_stays_so(tmp_path: Path) -> None:
    here = Waiting(store=SQLiteStore(tmp_path / "s.db"))
    elsewhere = Waiting(store=SQLiteStore(tmp_path / "s.db"))
    async with (
        here.agent.serving(),
        elsewhere.agent.serving(),
        session(here.agent) as (talk, id),
        client(elsewhere.agent) as other,
    ):
        await talk.call("c", "session/close", sessionId=id)
        for number in range(10):  # at once, and with somebody who opens it
            talk.send(id=number, method="session/set_title", params={"sessionId": id, "title": f"T{number}"})
        talk.send(id="r", method="session/resume", params={"sessionId": id, "cwd": "/"})
        assert [(await talk.answer_to(number))["result"] for number in range(10)] == [
            {"title": f"T{number}"} for number in range(10)
        ]
        assert "result" in await talk.answer_to("r")
        assert (await failure(other, 1, "session/set_title", sessionId=id, title="No"))["code"] == -32603
        await talk.call("d", "session/close", sessionId=id)
        await talk.call("t", "session/set_title", sessionId=id, title="Last")
        assert here.agent.find(id) is None
        await other.call(2, "session/resume", sessionId=id, cwd="/")  # it was not kept from others
        assert [info["title"] for info in (await other.call(3, "session/list"))["sessions"]] == ["Last"]


@requirement("SESS-57")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_title_that_is_none_and_a_session_that_is_not_there_are_refused(version: int) -> None:
    async with session(Agent("titled"), version) as (talk, id):
        for number, title in enumerate(["", "  \n ", "x" * 1001, 7, None]):
            assert (await failure(talk, number, "session/set_title", sessionId=id, title=title))[
                "code"
            ] == -32602
        error = await failure(talk, "u", "session/set_title", sessionId="no", title="T")
        assert (error["code"], error["data"]) == (-32002, {"sessionId": "no"})


@requirement("SESS-57")
async def test_a_title_that_cannot_be_kept_is_not_answered_as_if() -> None:
    class Full(MemoryStore):
        full = False

        async def append(self, *args: Any, **more: Any) -> None:
            if self.full:
                raise StoreFull("no room")
            await super().append(*args, **more)

    store = Full()
    async with session(Agent("full", store=store)) as (talk, id):
        store.full = True
        assert (await failure(talk, 1, "session/set_title", sessionId=id, title="T"))["code"] == -32603


# --- system prompts --------------------------------------------------------------------------------


def given(mode: str, *texts: str) -> dict[str, Any]:
    return {"mode": mode, "content": [{"type": "text", "text": text} for text in texts]}


@requirement("SESS-58")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_system_prompt_reaches_the_handler_where_it_is_offered(version: int) -> None:
    agent = Agent("told", options=AgentOptions(system_prompt="override"))
    async with client(agent, version) as talk:
        assert offered(talk)["systemPrompt"] == {"mode": {"override": {}}}

        async def opened(number: Any, method: str, **more: Any) -> Any:
            made = await talk.call(number, f"session/{method}", cwd="/", mcpServers=[], **more)
            found = agent.find(made.get("sessionId") or more["sessionId"])
            assert found is not None
            return found

        new = await opened(1, "new", systemPrompt=given("append", "Be brief.", "Be kind."))
        assert new.system_prompt == SystemPrompt(text="Be brief.\nBe kind.", override=False)
        again = await opened(2, "resume", sessionId=new.id, systemPrompt=given("override", "Be odd."))
        assert again.system_prompt == SystemPrompt(text="Be odd.", override=True)
        fork = await opened(3, "fork", sessionId=new.id, systemPrompt=given("append", "Be new."))
        assert fork.system_prompt == SystemPrompt(text="Be new.", override=False)
        assert (await opened(4, "new")).system_prompt is None
        if version == 1:
            loaded = await opened(5, "load", sessionId=new.id, systemPrompt=given("append", "Be back."))
            assert loaded.system_prompt == SystemPrompt(text="Be back.", override=False)


@requirement("SESS-58")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("able", [False, True, "append"])
async def test_what_was_not_offered_fails_and_is_never_done_by_half(able: Any, version: int) -> None:
    agent = Agent("untold", options=AgentOptions(system_prompt=able))
    async with session(agent, version) as (talk, id):
        assert offered(talk).get("systemPrompt") == ({} if able else None)
        bad = [given("override", "x"), given("_other", "x"), given("append")]
        bad.append(
            {"mode": "append", "content": [{"type": "resource_link", "uri": "file:///x", "name": "x"}]}
        )
        for number, prompt in enumerate(bad if able else [*bad, given("append", "x")]):
            for method in ("new", "resume", "fork"):
                params = {"cwd": "/", "mcpServers": [], "sessionId": id, "systemPrompt": prompt}
                error = await failure(talk, f"{number}{method}", f"session/{method}", **params)
                assert error["code"] == -32602, (method, prompt)


@requirement("SESS-58")
def test_an_agent_takes_one_of_two_modes() -> None:
    with pytest.raises(LocalError, match="system_prompt"):
        Agent("odd", options=AgentOptions(system_prompt="replace"))
