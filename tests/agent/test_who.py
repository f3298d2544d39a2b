"""Who sent what, who is there, and who answered: told to those who asked for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.engine.events import QuestionClosed
from antiphon.engine.who import NAME_LIMIT
from antiphon.live.stored_session import read_session
from antiphon.schema.antiphon.clients import Who
from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

PRESENCE = {"_meta": {"antiphon": {"presence": True}}}
SPOKEN = pytest.mark.parametrize("version", [1, 2])


def named(name: str, version: int = 2, *, client_id: str | None = None, **able: Any) -> dict[str, Any]:
    """What a client that asks for presence says of itself."""
    info, able = {"name": name, "version": "1.5"}, {**PRESENCE, **able}
    given = {} if client_id is None else {"_meta": {"antiphon": {"clientId": client_id}}}
    if version == 1:
        return {"clientInfo": info, "clientCapabilities": able, **given}
    return {"info": info, "capabilities": able, **given}


def talkative(**options: Any) -> Agent:
    """Answers at once; `ask` asks for permission, `form` for a form, `wait` waits."""
    agent = Agent("talkative", version="1", **options)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        text = turn.prompt.text
        if text == "ask":
            async with turn.tool_call("Touch", kind="edit") as call:
                await turn.say(f"allowed: {await call.request_permission()}")
        elif text == "form":
            form = {"type": "object", "properties": {"a": {"type": "string"}}}
            await turn.say(f"{(await turn.ask('Which?', form)).action}")
        elif text == "wait":
            await asyncio.Event().wait()
        elif text == "who":
            assert turn.prompt.sender is not None
            await turn.say(turn.prompt.sender.name)
        else:
            await turn.say(f"heard {text}")

    return agent


async def join(talk: Talk, id: str, version: int = 2) -> None:
    if version == 1:
        await talk.call(f"join {len(talk.seen)}", "session/load", sessionId=id, cwd="/", mcpServers=[])
    else:
        start = {"type": "start"}
        await talk.call(f"join {len(talk.seen)}", "session/resume", sessionId=id, cwd="/", replayFrom=start)


async def present(talk: Talk, *names: str) -> list[dict[str, Any]]:
    """Until these and no others are there."""
    while True:
        clients: list[dict[str, Any]] = (await talk.update("_antiphon_presence"))["clients"]
        if [each["name"] for each in clients] == list(names):
            return clients


def client_id(talk: Talk) -> str:
    found = talk.seen[0]["result"]["_meta"]["antiphon"]["clientId"]
    assert isinstance(found, str)
    return found


def strange(talk: Talk) -> list[str]:
    """What only who asked for it may see: our own updates, and ids of clients."""
    return [
        str(frame)
        for frame in talk.seen
        if str(frame.get("params", {}).get("update", {}).get("sessionUpdate")).startswith("_antiphon")
        or "clientId" in str(frame.get("result", {}).get("_meta"))
    ]


# --- who sent what ------------------------------------------------------------------------------------


async def test_a_prompt_is_signed_for_everybody_and_in_every_replay(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    agent = talkative(store=SQLiteStore(path))
    proposed = {**named("prop"), "_meta": {"antiphon": {"dialect": "proposed"}}}
    async with (
        agent.serving(),
        session(agent, **named("ann")) as (ann, id),
        client(agent, 1, **named("bob", 1)) as bob,
        client(agent, **proposed) as third,
    ):
        await join(bob, id, 1)
        await join(third, id)
        ann.prompt(1, id, "hello")
        sender = {"clientId": client_id(ann), "name": "ann"}
        for talk in (ann, third):
            message = await talk.update("user_message")
            assert message["_meta"]["antiphon"]["sender"] == sender
        chunk = await bob.update("user_message_chunk")
        assert chunk["_meta"]["antiphon"]["sender"] == sender
        await bob.update("agent_message_chunk")
        bob.prompt(2, id, "who")
        theirs = {"clientId": client_id(bob), "name": "bob"}
        message = await ann.update("user_message")
        assert message["_meta"]["antiphon"]["sender"] == theirs
        await bob.answer_to(2)
        assert bob.text("user_message_chunk") == "hello", "v1 clients are not told their own prompts"
    again = talkative(store=SQLiteStore(path))
    async with again.serving(), client(again) as plain, client(again, 1) as old:
        await join(plain, id)
        await join(old, id, 1)
        told = [f["params"]["update"] for f in plain.seen if "update" in f.get("params", {})]
        senders = [u["_meta"]["antiphon"]["sender"] for u in told if u["sessionUpdate"] == "user_message"]
        assert senders == [sender, theirs], "after a restart, too"
        told = [f["params"]["update"] for f in old.seen if "update" in f.get("params", {})]
        senders = [
            u["_meta"]["antiphon"]["sender"] for u in told if u["sessionUpdate"] == "user_message_chunk"
        ]
        assert senders == [sender, theirs]


async def test_the_agent_knows_who_prompts() -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (talk, id):
        talk.prompt(1, id, "who")
        message = await talk.update("agent_message")
        assert message["content"][0]["text"] == "ann"


async def test_what_waits_in_the_queue_is_signed() -> None:
    agent = talkative()
    able = {"_meta": {"antiphon": {"presence": True, "queueUpdates": True}}}
    async with session(agent, **named("ann", **able)) as (ann, id), client(agent, **named("bob")) as bob:
        await join(bob, id)
        ann.prompt(1, id, "wait")
        await ann.update("state_update", state="running")
        later = {"type": "text", "text": "later"}
        await bob.call(2, "_antiphon/inject", sessionId=id, content=[later])
        sender = {"clientId": client_id(bob), "name": "bob"}
        while not (entries := (await ann.update("_antiphon_queue"))["entries"]):
            pass
        assert entries[0]["sender"] == sender
        listed = await ann.call(3, "_antiphon/list_inject", sessionId=id)
        assert [entry["sender"] for entry in listed["entries"]] == [sender]


# --- ids and names ------------------------------------------------------------------------------------


@SPOKEN
async def test_an_id_that_a_client_gives_is_its_own_over_all_its_connections(version: int) -> None:
    agent = talkative()
    async with session(agent, **named("watch")) as (watch, id):
        for _ in range(2):
            async with client(agent, version, **named("ann", version, client_id="ann-1")) as ann:
                assert client_id(ann) == "ann-1"
                await join(ann, id, version)
                clients = await present(watch, "watch", "ann")
                assert clients[1]["clientId"] == "ann-1"
                assert clients[1]["version"] == "1.5"
                ann.prompt("p", id, "hello")
                message = await watch.update("user_message")
                assert message["_meta"]["antiphon"]["sender"] == {"clientId": "ann-1", "name": "ann"}
                await ann.answer_to("p")
            await present(watch, "watch")


@pytest.mark.parametrize("bad", ["", " ", "a b", "x" * 65, "é", "a\nb", "\x1b[2J", 5, None, {}])
async def test_an_id_that_is_none_is_not_taken(bad: Any) -> None:
    agent = talkative()
    given = {**named("ann"), "_meta": {"antiphon": {"clientId": bad}}}
    async with session(agent, **given) as (talk, id):
        assert client_id(talk).startswith("client_")
        talk.send(id=1, method="_antiphon/attach", params={"sessionId": id, "clientId": bad})
        answer = await talk.answer_to(1)
        if bad is None:
            assert answer["result"]["clientId"] == client_id(talk)
        else:
            assert answer["error"]["code"] == -32602
            assert answer["error"]["data"]["reason"] == "bad_client_id"


HOSTILE = {
    "\x1b[31mred\x07": "[31mred",
    "two\r\nlines\t and\x00more": "two lines and more",
    "\u202egnp.exe": "gnp.exe",
    "\ud83d": "\ufffd",
    "   ": "unknown",
    "a" * 10_000: "a" * NAME_LIMIT,
    "\n" * 10_000 + "late": "unknown",
    "zero\u200bwidth\u2066": "zero width",
    "naïve 🎵": "naïve 🎵",
}


@pytest.mark.parametrize(("name", "shown"), HOSTILE.items(), ids=range(len(HOSTILE)))
@SPOKEN
async def test_names_are_cleaned_and_bounded(name: str, shown: str, version: int) -> None:
    agent = talkative()
    async with (
        session(agent, **named("watch")) as (watch, id),
        client(agent, version, **named(name, version)) as odd,
    ):
        await join(odd, id, version)
        await present(watch, "watch", shown)
        odd.prompt(1, id, "hello")
        message = await watch.update("user_message")
        assert message["_meta"]["antiphon"]["sender"]["name"] == shown


# --- who is there -------------------------------------------------------------------------------------


async def test_who_comes_and_goes_is_told_the_whole_list_each_time() -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id):
        [alone] = await present(ann, "ann")
        assert alone["you"] is True
        assert alone["clientId"] == client_id(ann)
        assert alone["joinedAt"].endswith("Z")
        async with client(agent, 1, **named("bob", 1)) as bob, client(agent) as plain:
            await join(bob, id, 1)
            one, two = await present(bob, "ann", "bob")
            assert "you" not in one
            assert two["you"] is True
            one, two = await present(ann, "ann", "bob")
            assert one == alone
            assert "you" not in two
            await join(plain, id)
            await present(ann, "ann", "bob", "talk")
            await present(bob, "ann", "bob", "talk")
            await bob.call("c", "session/close", sessionId=id)
            await present(ann, "ann", "talk")
            plain.prompt(1, id, "hello")
            await plain.update("state_update", state="idle")
            assert not strange(plain)
        await present(ann, "ann")


async def test_one_client_that_is_attached_twice_counts_once() -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id), client(agent, **named("bob")) as last:
        await present(ann, "ann")
        async with (
            client(agent, **named("twin", client_id="t")) as one,
            client(agent, **named("twin", client_id="t")) as two,
        ):
            for talk in (one, two):
                await join(talk, id)
                clients = await present(talk, "ann", "twin")
                assert clients[1]["you"] is True
        await join(last, id)
        await present(ann, "ann", "bob")


async def test_who_moves_its_attachment_neither_comes_nor_goes() -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id), client(agent, **named("bob")) as bob:
        await join(bob, id)
        await present(ann, "ann", "bob")
        seen = len(ann.seen)
        await join(bob, id)
        await bob.call("a", "_antiphon/attach", sessionId=id, historyPolicy="none")
        async with client(agent, **named("eve")) as eve:
            await join(eve, id)
            await present(ann, "ann", "bob", "eve")
        first = ann.seen[seen]["params"]["update"]
        assert [each["name"] for each in first["clients"]] == ["ann", "bob", "eve"]


async def test_a_client_that_does_not_read_is_told_of_a_crowd_once() -> None:
    """Invariant 9: what it costs does not grow with who comes and goes."""
    agent = talkative()
    async with session(agent, **named("deaf")) as (deaf, id):
        await present(deaf, "deaf")
        deaf.transport.pause()
        deaf.prompt(1, id, "x" * 4_000_000)  # it is sent its own message
        async with client(agent, **named("watch")) as watch:
            await join(watch, id)
            for number in range(30):
                async with client(agent, **named(f"guest {number}")) as guest:
                    await join(guest, id)
                    await present(watch, "deaf", "watch", f"guest {number}")
            deaf.transport.resume()
            while len((await deaf.update("_antiphon_presence"))["clients"]) != 2:
                pass
        told = [f for f in deaf.seen if "_antiphon_presence" in str(f)]
        assert len(told) < 10


# --- who answered -------------------------------------------------------------------------------------


async def asked(talk: Talk, method: str = "session/request_permission") -> tuple[dict[str, Any], str]:
    request = await talk.request(method)
    return request, request["params"]["_meta"]["antiphon"]["questionId"]


@SPOKEN
async def test_everybody_is_told_who_answered_what_before_their_copy_is_withdrawn(
    version: int, tmp_path: Path
) -> None:
    store = SQLiteStore(tmp_path / "sessions.db")
    agent = talkative(store=store)
    async with (
        agent.serving(),
        session(agent, **named("ann")) as (ann, id),
        client(agent, version, **named("bob", version)) as bob,
        client(agent) as plain,
    ):
        await join(bob, id, version)
        await join(plain, id)
        ann.prompt(1, id, "ask")
        opened = await ann.update("_antiphon_question")
        request, question = await asked(ann)
        copy, same = await asked(bob)
        _, third = await asked(plain)
        assert question == same == third == opened["questionId"]
        call = request["params"]["subject"]["toolCall"]["toolCallId"]
        about = {"sessionUpdate": "_antiphon_question", "questionId": question, "toolCallId": call}
        assert opened == {**about, "state": "opened"}
        option = request["params"]["options"][0]
        chosen = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        bob.send(id=copy["id"], result=chosen)
        by = {"clientId": client_id(bob), "name": "bob"}
        ended = {
            **about,
            "state": "answered",
            "by": by,
            "outcome": "selected",
            "optionId": option["optionId"],
            "optionName": option["name"],
        }
        assert await ann.update("_antiphon_question") == ended
        await ann.request("$/cancel_request")
        assert await bob.update("_antiphon_question", state="answered") == ended
        await plain.request("$/cancel_request")
        await plain.update("state_update", state="idle")
        assert not strange(plain)
        page = await store.read(id, 0)
        closed = [
            line for batch in page.batches for line in batch.events if b"question_closed" in bytes(line)
        ]
        assert len(closed) == 1
        assert b'"by":{"clientId":"%b","name":"bob"}' % by["clientId"].encode() in bytes(closed[0])
        [kept] = (await read_session(store, id)).questions.all.values()
        assert kept.by == Who(client_id=by["clientId"], name="bob")


async def test_how_a_form_was_answered_is_told_and_not_what_stands_in_it() -> None:
    agent = talkative()
    able = {"elicitation": {"form": {}}}
    async with session(agent, **named("ann", **able)) as (ann, id), client(agent, **named("bob")) as bob:
        await join(bob, id)
        ann.prompt(1, id, "form")
        request, question = await asked(ann, "elicitation/create")
        assert (await bob.update("_antiphon_question"))["state"] == "opened", "who cannot answer knows, too"
        ann.send(id=request["id"], result={"action": "accept", "content": {"a": "secret"}})
        told = await bob.update("_antiphon_question")
        assert told == {
            "sessionUpdate": "_antiphon_question",
            "questionId": question,
            "state": "answered",
            "by": {"clientId": client_id(ann), "name": "ann"},
            "outcome": "accept",
        }


async def test_a_question_that_nobody_answers_ends_as_cancelled_or_expired() -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id):
        ann.prompt(1, id, "ask")
        _, question = await asked(ann)
        ann.send(method="session/cancel", params={"sessionId": id})
        told = await ann.update("_antiphon_question", state="cancelled")
        assert told["questionId"] == question
        assert "by" not in told


async def test_questions_that_are_open_are_told_at_joining_and_once() -> None:
    agent = talkative()
    numbered = {"_meta": {"antiphon": {"presence": True, "seq": True}}}
    async with (
        session(agent, **named("ann")) as (ann, id),
        client(agent, **named("bob")) as bob,
        client(agent, **named("eve", **numbered)) as eve,
    ):
        ann.prompt(1, id, "ask")
        _, question = await asked(ann)
        await join(bob, id)
        after = {"type": "_antiphon_after", "seq": 1}
        await eve.call("r", "session/resume", sessionId=id, cwd="/", replayFrom=after)
        for talk in (bob, eve):
            _, same = await asked(talk)
            assert same == question
            steps = talk.story()
            assert (
                steps.count("_antiphon_question opened") == steps.count("? session/request_permission") == 1
            )
            answer = steps.index("= r") if talk is eve else steps.index("= join 1")
            assert steps.index("? session/request_permission") > answer, "a question comes behind the answer"


def test_old_journals_name_senders_by_a_word() -> None:
    from antiphon.engine.events import decode_event

    line = b'{"seq":2,"at":0,"body":{"type":"question_closed","question_id":"q","end":"answered","by":"ann"}}'
    body = decode_event(line).body
    assert isinstance(body, QuestionClosed)
    assert body.by == "ann"


@requirement("EXT-03", "EXT-06", "EXT-10")
@SPOKEN
async def test_who_asked_for_nothing_sees_nothing_but_a_meta(version: int) -> None:
    agent = talkative()
    async with (
        session(agent, **named("ann")) as (ann, id),
        client(agent, version) as plain,
        client(agent, **named("bob")) as bob,
    ):
        await join(plain, id, version)
        await join(bob, id)
        await present(ann, "ann", "talk", "bob")
        ann.prompt(1, id, "ask")
        request, _ = await asked(plain)
        copy, _ = await asked(bob)
        bob.send(id=copy["id"], result={"outcome": {"outcome": "cancelled"}})
        await plain.request("$/cancel_request")
        await bob.call("d", "_antiphon/detach", sessionId=id)
        plain.prompt(2, id, "hello")
        await plain.answer_to(2)
        await ann.update("agent_message", content=[{"type": "text", "text": "heard hello"}])
        await plain.call(3, "session/list")
        assert not strange(plain)
        assert "presence" not in str(plain.seen[0])
        kind = "user_message" if version == 2 else "user_message_chunk"
        shown = [f["params"]["update"] for f in plain.seen if kind in str(f.get("params"))]
        assert [set(update) for update in shown] == [
            {"sessionUpdate", "messageId", "content", "_meta"} for _ in range(2 if version == 2 else 1)
        ]
        subject = "subject" if version == 2 else "toolCall"
        assert {"sessionId", subject, "options", "_meta"} <= set(request["params"])
        assert set(request["params"]) <= {"sessionId", subject, "options", "_meta", "title", "description"}


async def test_who_answers_without_being_attached_is_told_of_too() -> None:
    agent = talkative()
    async with session(agent, **named("ann")) as (ann, id), client(agent, **named("eve")) as eve:
        ann.prompt(1, id, "ask")
        request, question = await asked(ann)
        outcome = {"outcome": "selected", "optionId": request["params"]["options"][0]["optionId"]}
        await eve.call(2, "_antiphon/answer", sessionId=id, questionId=question, outcome=outcome)
        told = await ann.update("_antiphon_question", state="answered")
        assert told["by"] == {"clientId": client_id(eve), "name": "eve"}
