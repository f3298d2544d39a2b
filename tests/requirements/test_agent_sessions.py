"""Sections 4 and 4.1, and what `initialize` promises of them, against a real agent on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.server.clients import attachments
from antiphon.stores import SQLiteStore
from antiphon.transports.base import OUTBOX_HIGH
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

START = {"type": "start"}


class Echo:
    """Says the prompt back; `hold` works until it is cancelled, and says so."""

    def __init__(self, **options: Any) -> None:
        self.agent = Agent("echo", version="1", **options)
        self.agent.on_prompt(self.work)
        self.ran: list[str] = []

    async def work(self, turn: AgentTurn) -> None:
        self.ran.append(turn.prompt.text)
        async with turn.thought() as thought:
            await thought.write("Hm.")
        async with turn.message() as message:
            for word in turn.prompt.text.split():
                await message.write(f"{word} ")
            if turn.prompt.text == "hold":
                try:
                    await asyncio.Event().wait()
                finally:
                    await message.write("no more")


@asynccontextmanager
async def stored(path: Path) -> AsyncIterator[tuple[Echo, Talk]]:
    """A client of an agent whose sessions outlive it."""
    echo = Echo(store=SQLiteStore(path))
    async with echo.agent.serving(), client(echo.agent) as talk:
        yield echo, talk


async def finish(talk: Talk, id: str, text: str, number: int = 1) -> str:
    """Prompt and wait for the end; the id of the user's message."""
    talk.prompt(number, id, text)
    await talk.update("state_update", state="idle")
    return (await talk.answer_to(number))["result"]["messageId"]


async def error(talk: Talk, id: Any, method: str, **params: Any) -> int:
    talk.send(id=id, method=method, params=params)
    return (await talk.answer_to(id))["error"]["code"]


def updates(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]


def held(frames: list[dict[str, Any]]) -> dict[str, str]:
    """What a client that follows MSG-13 and MSG-15 holds: the text of each message, by id."""
    messages: dict[str, str] = {}
    for update in updates(frames):
        if "messageId" in update:
            if isinstance(update["content"], list):
                messages[update["messageId"]] = "".join(block["text"] for block in update["content"])
            else:
                messages[update["messageId"]] = (
                    messages.get(update["messageId"], "") + update["content"]["text"]
                )
    return messages


@requirement("SESS-03")
@pytest.mark.parametrize("version", [1, 2])
async def test_two_new_sessions_have_two_ids(version: int) -> None:
    async with client(Echo().agent, version) as talk:
        made = [await talk.call(n, "session/new", cwd="/", mcpServers=[]) for n in (1, 2)]
        ids = [result["sessionId"] for result in made]
        assert all(ids)
        assert ids[0] != ids[1]


@requirement("SESS-16")
async def test_there_is_no_load_in_v2_and_resume_takes_all_of_its_params() -> None:
    async with session(Echo().agent) as (talk, id):
        await finish(talk, id, "hello")
        assert await error(talk, 2, "session/load", sessionId=id, cwd="/", mcpServers=[]) == -32601
        whole = {"cwd": "/", "additionalDirectories": [], "mcpServers": []}
        assert await talk.call(3, "session/resume", sessionId=id, **whole, replayFrom=START) == {}
        assert {"hello", "hello "} <= set(held(talk.seen).values())


@requirement("SESS-19")
@pytest.mark.parametrize("cursor", [5, {"type": 3}, {"type": "later"}, {}])
async def test_a_malformed_cursor_is_refused_and_nothing_is_sent_for_it(cursor: Any) -> None:
    async with session(Echo().agent) as (talk, id):
        before = len(talk.seen)
        assert await error(talk, 1, "session/resume", sessionId=id, cwd="/", replayFrom=cursor) == -32602
        assert len(talk.seen) == before + 1


@requirement("SESS-22", "MSG-12")
async def test_messages_keep_their_ids_in_replay_also_after_a_restart(tmp_path: Path) -> None:
    async with stored(tmp_path / "s.db") as (echo, talk):
        id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
        answered = await finish(talk, id, "hello")
        live = held(talk.seen)
        assert len(live) == 3, "the user's, a thought, the agent's"
        async with client(echo.agent) as second:
            await second.call("join", "session/resume", sessionId=id, cwd="/", replayFrom=START)
            assert held(second.seen) == live
    async with stored(tmp_path / "s.db") as (_, talk):
        await talk.call("join", "session/resume", sessionId=id, cwd="/", replayFrom=START)
        assert held(talk.seen) == live
        assert live[answered] == "hello"


@requirement("SESS-23")
async def test_a_client_that_already_holds_a_message_holds_it_once_after_a_replay() -> None:
    async with session(Echo().agent) as (talk, id):
        await finish(talk, id, "one two three")
        before = held(talk.seen)
        assert "one two three " in before.values()
        await talk.call("again", "session/resume", sessionId=id, cwd="/", replayFrom=START)
        replayed = [update["sessionUpdate"] for update in updates(talk.seen)][-4:]
        assert replayed == ["user_message", "agent_thought", "agent_message", "state_update"]
        assert held(talk.seen) == before


@requirement("SESS-26")
async def test_a_replayed_command_does_not_run_again(tmp_path: Path) -> None:
    async with stored(tmp_path / "s.db") as (echo, talk):
        id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
        await finish(talk, id, "/deploy")
        await talk.call("again", "session/resume", sessionId=id, cwd="/", replayFrom=START)
        await finish(talk, id, "next", 2)
        assert echo.ran == ["/deploy", "next"]
    async with stored(tmp_path / "s.db") as (echo, talk):
        await talk.call("join", "session/resume", sessionId=id, cwd="/", replayFrom=START)
        assert "/deploy" in held(talk.seen).values()
        await finish(talk, id, "after")
        assert echo.ran == ["after"]


@requirement("SESS-30", "INIT-19")
async def test_in_v2_all_but_delete_is_there_without_a_marker() -> None:
    async with client(Echo().agent) as talk:
        markers = talk.seen[0]["result"]["capabilities"]["session"]
        assert markers["delete"] == {}
        assert not markers.keys() & {"new", "list", "resume", "close", "prompt", "cancel", "load"}
        id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
        assert [one["sessionId"] for one in (await talk.call("list", "session/list"))["sessions"]] == [id]
        talk.prompt(1, id, "hold")
        await talk.update("agent_message_chunk")
        talk.send(method="session/cancel", params={"sessionId": id})
        await talk.update("state_update", state="idle", stopReason="cancelled")
        assert await talk.call("close", "session/close", sessionId=id) == {}
        assert await talk.call("resume", "session/resume", sessionId=id, cwd="/") == {}


@requirement("INIT-20")
async def test_v1_has_new_prompt_cancel_and_update() -> None:
    async with session(Echo().agent, 1) as (talk, id):
        talk.prompt(1, id, "hold")
        await talk.update("agent_message_chunk")
        talk.send(method="session/cancel", params={"sessionId": id})
        assert (await talk.answer_to(1))["result"] == {"stopReason": "cancelled"}


@requirement("SESS-32")
@pytest.mark.parametrize("version", [1, 2])
async def test_what_is_listed_of_a_session(version: int) -> None:
    echo = Echo()
    async with client(echo.agent, version) as talk:
        roots = ["/b", "/a"]
        params = {"cwd": "/site", "mcpServers": [], "additionalDirectories": roots}
        id = (await talk.call("new", "session/new", **params))["sessionId"]
        found = echo.agent.find(id)
        assert found is not None
        await found.set_title("A title")
        await talk.update("session_info_update", title="A title")
        (listed,) = (await talk.call("list", "session/list"))["sessions"]
        at = datetime.fromisoformat(listed.pop("updatedAt"))
        assert at.tzinfo is not None
        assert listed.pop("_meta").keys() == {"antiphon"}
        assert listed == {
            "sessionId": id, "cwd": "/site", "additionalDirectories": roots, "title": "A title",
            "archived": False,
        }  # fmt: skip


@requirement("SESS-37")
async def test_listing_neither_loads_nor_changes_a_session(tmp_path: Path) -> None:
    async with stored(tmp_path / "s.db") as (_, talk):
        id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
        await finish(talk, id, "hello")
    async with stored(tmp_path / "s.db") as (echo, talk):
        listed = await talk.call(1, "session/list")
        assert [one["sessionId"] for one in listed["sessions"]] == [id]
        assert await talk.call(2, "session/list") == listed
        assert echo.agent.find(id) is None
        assert talk.story() == ["= init", "= 1", "= 2"]
        talk.prompt(3, id, "x")
        assert (await talk.answer_to(3))["error"]["code"] == -32002


@requirement("SESS-38", "SESS-40")
async def test_close_cancels_and_tells_the_last_of_it_before_its_answer() -> None:
    async with session(Echo().agent) as (talk, id):
        talk.prompt(1, id, "hold")
        await talk.update("agent_message_chunk")
        assert await talk.call("close", "session/close", sessionId=id) == {}
        assert talk.story()[-3:] == ["agent_message_chunk", "state_update idle", "= close"]
        last, idle = updates(talk.seen)[-2:]
        assert last["content"]["text"] == "no more"
        assert idle["stopReason"] == "cancelled"


@requirement("SESS-40")
async def test_a_client_that_is_behind_gets_the_last_of_it_before_the_answer_to_its_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting, caught_up = asyncio.Event(), AttachmentWriter.caught_up

    async def noted(voice: AttachmentWriter) -> None:
        asyncio.get_running_loop().call_later(0, waiting.set)
        await caught_up(voice)

    monkeypatch.setattr(AttachmentWriter, "caught_up", noted)
    monkeypatch.setattr(attachments, "LAST_UPDATES", 0.0)  # other clients are not waited for
    agent = Agent("talkative")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.message() as message:
            for _ in range(100):
                await message.write("x" * OUTBOX_HIGH)
            await asyncio.Event().wait()

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("agent_message_chunk")
        talk.transport.pause()
        talk.send(id="close", method="session/close", params={"sessionId": id})
        await waiting.wait()
        talk.transport.resume()
        await talk.answer_to("close")
        assert talk.story()[-2:] == ["state_update idle", "= close"]


@requirement("SESS-40")
async def test_an_idle_session_is_closed_without_another_idle() -> None:
    async with session(Echo().agent) as (talk, id):
        await finish(talk, id, "hello")
        before = len(updates(talk.seen))
        await talk.call("close", "session/close", sessionId=id)
        assert len(updates(talk.seen)) == before


@requirement("SESS-42", "SESS-43")
async def test_close_takes_questions_back_and_nothing_comes_after_its_answer() -> None:
    agent = Agent("asking")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("act") as call:
            await call.request_permission()

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        asked = await talk.request("session/request_permission")
        talk.send(id="close", method="session/close", params={"sessionId": id})
        taken_back = await talk.request("$/cancel_request")
        assert taken_back["params"] == {"requestId": asked["id"]}
        await talk.answer_to("close")
        talk.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "allow"}})
        talk.send(method="session/cancel", params={"sessionId": id})
        await talk.call("list", "session/list")
        assert talk.story()[-3:] == ["state_update idle", "= close", "= list"]


@requirement("SESS-41")
async def test_close_refuses_what_was_not_inserted_and_keeps_what_was() -> None:
    async with session(Echo().agent) as (talk, id):
        talk.prompt(1, id, "hold")
        talk.prompt(2, id, "held")
        talk.prompt(3, id, "held too")
        await talk.update("agent_message_chunk")
        await talk.call("close", "session/close", sessionId=id)
        assert (await talk.answer_to(1))["result"]["messageId"]
        assert [(await talk.answer_to(n))["error"]["code"] for n in (2, 3)] == [-32800, -32800]
        assert talk.story().count("user_message") == 1


@requirement("SESS-47")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("closed", [True, False])
async def test_a_deleted_session_is_not_listed(version: int, closed: bool) -> None:
    async with session(Echo().agent, version) as (talk, id):
        kept = (await talk.call("kept", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        if closed:
            await talk.call("close", "session/close", sessionId=id)
        assert await talk.call("delete", "session/delete", sessionId=id) == {}
        listed = (await talk.call("list", "session/list"))["sessions"]
        assert [one["sessionId"] for one in listed] == [kept]


@requirement("SESS-50")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_cwd_of_a_session_stays_what_it_was(version: int) -> None:
    echo = Echo()
    async with session(echo.agent, version) as (talk, id):
        # A client may not send another (SESS-27); one that does changes nothing.
        talk.send(
            id=1, method="session/resume", params={"sessionId": id, "cwd": "/elsewhere", "mcpServers": []}
        )
        await talk.answer_to(1)
        (listed,) = (await talk.call("list", "session/list"))["sessions"]
        assert listed["cwd"] == "/"
        found = echo.agent.find(id)
        assert found is not None
        assert found.cwd == "/"


async def test_in_v1_a_stdio_server_has_no_type_and_all_of_its_fields() -> None:
    whole = {"name": "files", "command": "/bin/files", "args": [], "env": [{"name": "A", "value": "1"}]}
    async with client(Echo().agent, 1) as talk:
        assert (await talk.call("whole", "session/new", cwd="/", mcpServers=[whole]))["sessionId"]
        for lacking in whole:
            server = {key: value for key, value in whole.items() if key != lacking}
            assert await error(talk, lacking, "session/new", cwd="/", mcpServers=[server]) == -32602
