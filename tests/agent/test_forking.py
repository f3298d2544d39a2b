"""`session/fork`: a session that goes on from a point of another one, live or kept, idle or at work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.live.session import LiveSession
from antiphon.stores import SQLiteStore
from antiphon.stores.memory import MemoryStore
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

VERSIONS = [1, 2]


class Talker:
    """Says `re: …` to each prompt; `wait` waits in a tool call, with a word said before it."""

    def __init__(self, **options: Any) -> None:
        self.agent = Agent("talker", version="1", **options)
        self.going_on = asyncio.Event()
        self.agent.on_prompt(self.work)

    async def work(self, turn: AgentTurn) -> None:
        await turn.say(f"re: {turn.prompt.text}")
        if turn.prompt.text == "wait":
            async with turn.tool_call("Waiting"):
                await self.going_on.wait()


async def say(talk: Talk, id: str, words: str) -> None:
    """One whole turn."""
    talk.prompt(words, id, words)
    answer = await talk.answer_to(words)
    if "messageId" in answer["result"]:
        await talk.update("state_update", state="idle")


def story(fold: Any) -> list[str]:
    return [message.text for message in fold.messages]


def sources(agent: Agent, id: str) -> Any:
    found = agent.find(id)
    assert found is not None
    return found.fold


async def events(store: Any, id: str) -> list[bytes]:
    kept: list[bytes] = []
    cursor = 0
    while (page := await store.read(id, cursor)).batches:
        kept += [event for batch in page.batches for event in batch.events]
        cursor = page.cursor
    return kept


@requirement("SESS-51", "SESS-52")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fork_has_its_own_id_and_the_sources_history(version: int) -> None:
    talker = Talker()
    async with session(talker.agent, version) as (talk, id):
        where = "sessionCapabilities" if version == 1 else "session"
        shown = talk.seen[0]["result"]["agentCapabilities" if version == 1 else "capabilities"][where]
        assert shown["fork"] == {}
        await say(talk, id, "one")
        await say(talk, id, "two")
        before = await events(talker.agent.store, id)
        result = await talk.call("f", "session/fork", sessionId=id, cwd="/", mcpServers=[])
        fork = result["sessionId"]
        assert set(result) == {"sessionId"}
        assert fork != id
        assert story(sources(talker.agent, fork)) == story(sources(talker.agent, id))
        await say(talk, fork, "three")
        assert await events(talker.agent.store, id) == before
        assert story(sources(talker.agent, fork))[-2:] == ["three", "re: three"]
        assert story(sources(talker.agent, id))[-2:] == ["two", "re: two"]
        made = talker.agent.find(fork)
        assert made is not None
        assert made.forked_from == id


@requirement("SESS-52")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fork_is_replayed_from_its_start_after_a_restart(version: int, tmp_path: Path) -> None:
    first = Talker(store=SQLiteStore(tmp_path / "s.db"))
    async with first.agent.serving(), session(first.agent, version) as (talk, id):
        await say(talk, id, "one")
        live = first.agent.find(id)
        assert live is not None
        await live.set_title("A title")
        fork = (await talk.call("f", "session/fork", sessionId=id, cwd="/w", mcpServers=[]))["sessionId"]
        listed = (await talk.call("l", "session/list"))["sessions"]
        assert [(info["sessionId"], info["cwd"], info["title"]) for info in listed] == [
            (fork, "/w", "A title"),
            (id, "/", "A title"),
        ]
    second = Talker(store=SQLiteStore(tmp_path / "s.db"))
    async with second.agent.serving(), client(second.agent, version) as talk:
        if version == 1:
            await talk.call(1, "session/load", sessionId=fork, cwd="/w", mcpServers=[])
            assert talk.text("user_message_chunk") + talk.text() == "onere: one"
        else:
            start = {"type": "start"}
            await talk.call(1, "session/resume", sessionId=fork, cwd="/w", replayFrom=start)
            assert story(sources(second.agent, fork)) == ["one", "re: one"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fork_right_after_a_message_ends_there(version: int) -> None:
    talker = Talker()
    async with session(talker.agent, version) as (talk, id):
        await say(talk, id, "one")
        await say(talk, id, "two")
        ids = [message.id for message in sources(talker.agent, id).messages]

        async def fork(number: int, at: Any) -> list[str]:
            meta = {"antiphon": {"messageId": at}}
            params = {"sessionId": id, "cwd": "/", "mcpServers": [], "_meta": meta}
            made = await talk.call(f"f{number}", "session/fork", **params)
            return story(sources(talker.agent, made["sessionId"]))

        assert await fork(1, ids[0]) == ["one"]
        assert await fork(2, ids[1]) == ["one", "re: one"]
        assert await fork(3, ids[3]) == ["one", "re: one", "two", "re: two"]
        for number, (at, code) in enumerate([("nowhere", -32002), (7, -32602)]):
            params = {"sessionId": id, "cwd": "/", "mcpServers": [], "_meta": {"antiphon": {"messageId": at}}}
            talk.send(id=f"bad{number}", method="session/fork", params=params)
            assert (await talk.answer_to(f"bad{number}"))["error"]["code"] == code


@requirement("SESS-52")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fork_of_a_session_at_work_begins_where_it_was_last_idle(version: int) -> None:
    talker = Talker()
    async with session(talker.agent, version) as (talk, id):
        await say(talk, id, "one")
        talk.prompt("w", id, "wait")
        await talk.update("tool_call" if version == 1 else "tool_call_update")
        made = await talk.call("f", "session/fork", sessionId=id, cwd="/", mcpServers=[])
        fork = sources(talker.agent, made["sessionId"])
        assert (story(fork), fork.state) == (["one", "re: one"], "idle")

        said = sources(talker.agent, id).messages[-1].id  # by name, also from the middle of the turn
        meta = {"antiphon": {"messageId": said}}
        made = await talk.call("g", "session/fork", sessionId=id, cwd="/", mcpServers=[], _meta=meta)
        at = sources(talker.agent, made["sessionId"])
        assert (story(at)[-2:], at.state, at.tool_calls) == (["wait", "re: wait"], "idle", [])

        assert sources(talker.agent, id).state == "running"
        await say(talk, made["sessionId"], "three")  # while the source works
        talker.going_on.set()
        if version == 1:
            assert (await talk.answer_to("w"))["result"]["stopReason"] == "end_turn"
        else:
            await talk.update("state_update", state="idle")
        assert sources(talker.agent, id).tool_calls[0].status == "completed"


async def test_what_goes_on_in_the_source_and_is_older_has_failed_in_the_fork() -> None:
    agent = Agent("behind")
    going_on = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async def behind(call: Any) -> None:
            await going_on.wait()

        await turn.session.background("Behind", behind)

    async with session(agent) as (talk, id):
        await say(talk, id, "one")
        made = await talk.call("f", "session/fork", sessionId=id, cwd="/")
        fork = sources(agent, made["sessionId"])
        assert [call.status for call in fork.tool_calls] == ["failed"]
        assert [call.status for call in sources(agent, id).tool_calls] == ["in_progress"]
        going_on.set()


@requirement("SESS-52")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_session_that_is_kept_is_forked_without_being_opened(kind: str, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "s.db")
    talker = Talker(store=store)
    async with talker.agent.serving(), session(talker.agent) as (talk, id):
        await say(talk, id, "one")
        await talk.call("close", "session/close", sessionId=id)
        before, record = await events(store, id), await store.get(id)
        made = await talk.call("f", "session/fork", sessionId=id, cwd="/")
        assert talker.agent.find(id) is None
        assert story(sources(talker.agent, made["sessionId"])) == ["one", "re: one"]
        assert (await events(store, id), await store.get(id)) == (before, record)


@requirement("SESS-52")
async def test_one_that_another_process_works_in_is_forked_at_its_last_idle(tmp_path: Path) -> None:
    other = Talker(store=SQLiteStore(tmp_path / "s.db"))
    here = Talker(store=SQLiteStore(tmp_path / "s.db"))
    async with (
        other.agent.serving(),
        here.agent.serving(),
        session(other.agent) as (talk, id),
        client(here.agent) as second,
    ):
        await say(talk, id, "one")
        talk.prompt("w", id, "wait")
        await talk.update("tool_call_update")
        made = await second.call(1, "session/fork", sessionId=id, cwd="/")
        assert story(sources(here.agent, made["sessionId"])) == ["one", "re: one"]
        other.going_on.set()
        await talk.update("state_update", state="idle")


@requirement("SESS-51")
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_cannot_be_forked_is_refused(version: int) -> None:
    talker = Talker()
    async with session(talker.agent, version) as (talk, id):
        talk.send(id=1, method="session/fork", params={"sessionId": "no", "cwd": "/", "mcpServers": []})
        error = (await talk.answer_to(1))["error"]
        assert (error["code"], error["data"]) == (-32002, {"sessionId": "no"})
        talk.send(id=2, method="session/fork", params={"sessionId": id, "cwd": "w", "mcpServers": []})
        assert (await talk.answer_to(2))["error"]["code"] == -32602
        talk.send(id=3, method="session/fork", params={"sessionId": id, "mcpServers": []})
        assert (await talk.answer_to(3))["error"]["code"] == -32602


@requirement("SESS-51")
async def test_a_fork_has_the_options_as_they_are_and_is_a_new_session_to_the_agent() -> None:
    agent = Agent("optional")
    agent.config("model", options={"small": "Small", "large": "Large"}, default="small")
    seen: list[tuple[str, str | None]] = []

    @agent.on_session
    async def begun(new: AgentSession) -> None:
        seen.append((new.id, new.forked_from))

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.session.set_config("model", "large")

    async with session(agent) as (talk, id):
        await say(talk, id, "one")
        made = await talk.call("f", "session/fork", sessionId=id, cwd="/")
        assert [option["currentValue"] for option in made["configOptions"]] == ["large"]
        await talk.call("c", "session/close", sessionId=made["sessionId"])
        assert seen == [(id, None), (made["sessionId"], id)]


async def test_a_session_begun_with_a_history_is_found_whole_by_whoever_opens_it(tmp_path: Path) -> None:
    talker = Talker()
    async with session(talker.agent) as (talk, id):
        await say(talk, id, "one")
        made = (await talk.call("f", "session/fork", sessionId=id, cwd="/"))["sessionId"]
        await talk.call("close", "session/close", sessionId=made)
        live = await LiveSession.open(talker.agent.store, made, clock=lambda: 0)
        async with live:
            assert story(live.fold) == ["one", "re: one"]
            assert live.fold.queue == []
