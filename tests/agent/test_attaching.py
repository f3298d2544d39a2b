"""`_antiphon/attach` and `_antiphon/detach`: joining under a name, with as much of what was as is wanted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk, client, session
from tests.agent.test_who import SPOKEN, asked, client_id, join, named, present, talkative


async def attach(talk: Talk, id: str, **params: Any) -> tuple[dict[str, Any], list[str]]:
    """The answer, and the kinds of updates that came before it."""
    seen, request = len(talk.seen), f"attach {len(talk.seen)}"
    talk.send(id=request, method="_antiphon/attach", params={"sessionId": id, **params})
    answer = await talk.answer_to(request)
    before = talk.seen[seen : talk.seen.index(answer)]
    return answer, [
        frame["params"]["update"]["sessionUpdate"] for frame in before if "update" in frame.get("params", {})
    ]


async def said(agent: Agent, talk: Talk, id: str, *texts: str) -> None:
    for text in texts:
        talk.prompt(text, id, text)
        await talk.update("state_update", state="idle")


HISTORY = {1: ["user_message_chunk", "agent_message_chunk"], 2: ["user_message", "agent_message"]}


@SPOKEN
async def test_the_whole_history_comes_before_the_answer(version: int) -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id), client(agent, version) as talk:
        await said(agent, ann, id, "one")
        answer, before = await attach(
            talk, id, clientId="dash-1", clientInfo={"name": "dash", "version": "7"}
        )
        result = answer["result"]
        assert before == [*HISTORY[version], *(["state_update"] if version == 2 else [])]
        assert result["sessionId"] == id
        assert result["clientId"] == "dash-1"
        assert result["historyPolicy"] == "full"
        assert result["state"] == "idle"
        assert isinstance(result["seq"], int)
        assert [(one["name"], one.get("you")) for one in result["clients"]] == [("ann", None), ("dash", True)]
        assert result["clients"][1]["version"] == "7"
        assert client_id(ann) == result["clients"][0]["clientId"]
        await present(ann, "ann", "dash")
        talk.prompt("p", id, "two")
        while (message := await ann.update("user_message"))["content"][0]["text"] != "two":
            pass
        assert message["_meta"]["antiphon"]["sender"] == {"clientId": "dash-1", "name": "dash"}
        await talk.answer_to("p")


@SPOKEN
async def test_none_and_pending_only_replay_no_history(version: int) -> None:
    agent = talkative()
    closing = ["state_update"] if version == 2 else []
    async with session(agent, **named("ann")) as (ann, id), client(agent, version) as talk:
        await said(agent, ann, id, "one")
        ann.prompt("ask", id, "ask")
        await asked(ann)
        answer, before = await attach(talk, id, historyPolicy="none")
        assert (answer["result"]["historyPolicy"], before) == ("none", closing)
        assert answer["result"]["state"] == "requires_action", "a v1 client learns it here, too"
        await asked(talk)
        assert talk.seen.index(answer) < len(talk.seen) - 1, "questions come behind the answer"
        answer, before = await attach(talk, id, historyPolicy="pending_only")
        shown = "tool_call" if version == 1 else "tool_call_update"
        assert (answer["result"]["historyPolicy"], before) == ("pending_only", [shown, *closing])
        request, _ = await asked(talk)
        talk.send(id=request["id"], result={"outcome": {"outcome": "cancelled"}})
        await ann.update("agent_message", content=[{"type": "text", "text": "allowed: False"}])


@SPOKEN
async def test_after_a_message_or_an_event_comes_what_followed(version: int) -> None:
    agent = talkative()
    closing = ["state_update"] if version == 2 else []
    async with session(agent, **named("ann")) as (ann, id), client(agent, version) as talk:
        await said(agent, ann, id, "one")
        first = [f["params"]["update"] for f in ann.seen if "update" in f.get("params", {})]
        [spoken] = [u for u in first if u["sessionUpdate"] == "agent_message"]
        [prompt] = [u for u in first if u["sessionUpdate"] == "user_message"]
        await said(agent, ann, id, "two")
        for policy, messages in (
            (spoken, HISTORY[version]),
            (prompt, [HISTORY[version][1], *HISTORY[version]]),
        ):
            answer, before = await attach(
                talk, id, historyPolicy="after_message", afterMessageId=policy["messageId"]
            )
            assert answer["result"]["historyPolicy"] == "after_message"
            assert [kind for kind in before if "message" in kind] == messages
        answer, before = await attach(talk, id, historyPolicy="after_message", afterMessageId="nothing")
        assert answer["result"]["historyPolicy"] == "full", "it falls back, and says so"
        assert before == [*HISTORY[version] * 2, *closing]
        seq = answer["result"]["seq"]
        await talk.call("d", "_antiphon/detach", sessionId=id)
        await said(agent, ann, id, "three")
        answer, before = await attach(talk, id, historyPolicy="after", after=seq)
        assert answer["result"]["historyPolicy"] == "after"
        assert [kind for kind in before if "message" in kind] == HISTORY[version]


async def test_what_follows_a_message_that_came_in_pieces_begins_behind_its_last_one() -> None:
    agent = Agent("pieces")

    @agent.on_prompt
    async def answer(turn: Any) -> None:
        async with turn.message() as message:
            await message.write("a")
            async with turn.tool_call("Look"):
                await message.write("b")
            await message.write("c")

    async with session(agent) as (ann, id), client(agent) as talk:
        ann.prompt(1, id, "go")
        chunk = await ann.update("agent_message_chunk")
        await ann.update("state_update", state="idle")
        _, before = await attach(talk, id, historyPolicy="after_message", afterMessageId=chunk["messageId"])
        assert before == ["state_update", "state_update"], "the end of the turn, and what closes a replay"


@SPOKEN
async def test_what_is_asked_wrongly_is_refused(version: int) -> None:
    agent = talkative()
    async with session(agent, version) as (talk, id):
        for params, reason in (
            ({"historyPolicy": "some"}, "unknown_history_policy"),
            ({"historyPolicy": 5}, "unknown_history_policy"),
            ({"historyPolicy": "after", "after": -1}, "bad_cursor"),
            ({"historyPolicy": "after"}, "bad_cursor"),
            ({"historyPolicy": "after_message"}, None),
            ({"historyPolicy": "after", "after": 10_000}, None),
            ({"clientId": "a b"}, "bad_client_id"),
        ):
            answer, before = await attach(talk, id, **params)
            assert before == []
            assert answer["error"]["code"] == -32602, params
            assert reason is None or answer["error"]["data"]["reason"] == reason
        answer, _ = await attach(talk, "sess_none")
        assert answer["error"]["code"] == -32002
        assert answer["error"]["data"] == {"sessionId": "sess_none", "reason": "unknown_session"}
        talk.prompt("p", id, "still here")
        await talk.answer_to("p")


async def test_a_second_attach_moves_the_attachment() -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id):
        await present(ann, "ann")
        ann.prompt(1, id, "wait")
        await ann.update("state_update", state="running")
        answer, before = await attach(ann, id, historyPolicy="none", clientInfo={"name": "anna"})
        assert before == ["state_update"]
        assert [each["name"] for each in answer["result"]["clients"]] == ["anna"]
        await present(ann, "anna")
        ann.send(method="session/cancel", params={"sessionId": id})
        await ann.update("state_update", state="idle")
        idle = [f for f in ann.seen if f.get("params", {}).get("update", {}).get("state") == "idle"]
        assert len(idle) == 1, "one attachment, told once"


@SPOKEN
async def test_who_detaches_is_told_nothing_more_and_the_session_goes_on(version: int) -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id), client(agent, version) as talk:
        await join(talk, id, version)
        await present(ann, "ann", "talk")
        talk.prompt("p", id, "wait")
        await ann.update("state_update", state="running")
        for _ in range(2):
            done = await talk.call(f"d {len(talk.seen)}", "_antiphon/detach", sessionId=id)
            assert done == {"sessionId": id, "status": "detached"}, "also a second time"
        if version == 1:
            answer = await talk.answer_to("p")
            assert answer["error"]["data"]["reason"] == "detached", "nothing stays unanswered"
        await present(ann, "ann")
        seen = len(talk.seen)
        ann.send(method="session/cancel", params={"sessionId": id})
        await ann.update("state_update", state="idle")
        await said(agent, ann, id, "on")
        talk.send(id="late", method="session/prompt", params={"sessionId": id, "prompt": []})
        assert (await talk.answer_to("late"))["error"]["code"] in (-32002, -32602)
        assert len(talk.seen) == seen + 1
        await attach(talk, id)
        await present(ann, "ann", "talk")


async def test_a_kept_session_is_opened_by_who_attaches_as_it_was(tmp_path: Path) -> None:
    store = tmp_path / "sessions.db"
    agent = talkative(store=SQLiteStore(store))
    async with agent.serving(), client(agent) as talk:
        roots = {"cwd": "/", "mcpServers": [], "additionalDirectories": ["/tmp"]}
        id = (await talk.call("new", "session/new", **roots))["sessionId"]
        await said(agent, talk, id, "one")
    again = talkative(store=SQLiteStore(store))
    async with again.serving(), client(again) as talk:
        _, before = await attach(talk, id)
        assert before == [*HISTORY[2], "state_update"]
        opened = again.find(id)
        assert opened is not None
        assert opened.additional_directories == ("/tmp",)


async def test_many_attach_and_leave_at_once_and_nobody_is_forgotten_there() -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id):
        async with asyncio.TaskGroup() as group:

            async def visit(number: int) -> None:
                async with client(agent, **named(f"guest {number}")) as guest:
                    await attach(guest, id)
                    if number % 2:
                        await guest.call("d", "_antiphon/detach", sessionId=id)

            for number in range(40):
                group.create_task(visit(number))
        live = agent.find(id)
        assert live is not None
        assert [one.name for one in live.live.presence.clients()] == ["ann"]
        async with client(agent, **named("last")) as last:
            await attach(last, id)
            await present(ann, "ann", "last")


@pytest.mark.parametrize("version", [1, 2])
async def test_attach_is_announced(version: int) -> None:
    async with client(talkative(), version) as talk:
        able = talk.seen[0]["result"]["agentCapabilities" if version == 1 else "capabilities"]
        policies = able["_meta"]["antiphon"]["attach"]["historyPolicy"]
        assert policies == ["full", "pending_only", "none", "after_message", "after"]
        assert "presence" not in able["_meta"]["antiphon"]


@pytest.mark.parametrize("how", ["cancelled", "gone", "again"])
async def test_whenever_an_attach_is_given_up_nobody_stays_there_who_is_not(how: str) -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id):
        await said(agent, ann, id, "one", "two")
        for steps in range(12):
            async with client(agent, **named("guest")) as guest:
                if steps % 2:
                    await attach(guest, id)
                guest.send(id="x", method="_antiphon/attach", params={"sessionId": id})
                for _ in range(steps):
                    await asyncio.sleep(0)
                if how == "again":
                    guest.send(id="y", method="_antiphon/attach", params={"sessionId": id})
                    await guest.answer_to("y")
                elif how == "cancelled":
                    guest.send(method="$/cancel_request", params={"requestId": "x"})
                    await guest.answer_to("x")
        live = agent.find(id)
        assert live is not None
        assert [one.name for one in live.live.presence.clients()] == ["ann"], how
        await said(agent, ann, id, "three")
