"""Messages by id through a hub, with agents and clients of both versions: edits, deletions, undo, references,
annotations; raw JSON on either side."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn, AnnotationNews
from antiphon.client import ClientOptions, ClientSession, connect
from antiphon.engine.transcript import Message
from antiphon.hub import Hub
from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk, client
from tests.hub.parrots import join, new_session, parrot, prompt, updates
from tests.hub.running import DEADLINE

BOTH = pytest.mark.parametrize("version", [1, 2])
"""Of the agent."""
ASKED = {"antiphon": {"messageUpdate": True, "annotations": True}}


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def editor() -> Agent:
    """Each prompt is done to the message that the first prompt was answered with."""
    agent = Agent("editor")
    first: dict[str, str] = {}

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        session = turn.session
        word, _, rest = turn.prompt.text.partition(" ")
        if word == "say":
            async with turn.message(about=turn.prompt) as message:
                await message.write(rest)
            first[session.id] = message.message_id
            return
        id = first[session.id]
        match word:
            case "replace":
                await session.replace_message(id, rest)
            case "append":
                await session.append_message(id, rest)
            case "delete":
                await session.delete_message(id)
            case "undo":
                assert await session.undo_edit(id)
            case "redo":
                assert await session.redo_edit(id)
            case "call":
                async with turn.tool_call("look", about=id):
                    pass

    return agent


def shown(session: ClientSession) -> list[str]:
    """What the agent's messages show."""
    return ["[deleted]" if m.deleted else m.text for m in session.messages if m.role == "agent"]


async def until(session: ClientSession, wanted: Any) -> None:
    async with asyncio.timeout(DEADLINE):
        events = session.events()
        while not wanted():
            await anext(events)


STEPS = [
    ("say a", ["a"]),
    ("append b", ["ab"]),
    ("replace c", ["c"]),
    ("delete", ["[deleted]"]),
    ("undo", ["c"]),
    ("undo", ["ab"]),
    ("redo", ["c"]),
    ("redo", ["[deleted]"]),
]


@BOTH
async def test_each_client_follows_edits_deletions_undo_and_redo(tmp_path: Path, version: int) -> None:
    kept = tmp_path / "hub.db"
    hub = Hub({"editor": editor()}, version=version, store=SQLiteStore(kept))
    async with (
        asyncio.timeout(2 * DEADLINE),
        hub.serving(),
        connect(hub, version=2) as ann,
        connect(hub, version=1) as bob,
        connect(hub, version="v2-proposed") as eve,
    ):
        own = await ann.new_session("/")
        sessions = [own, await bob.load_session(own.id, "/"), await eve.load_session(own.id, "/")]
        for said, expected in STEPS:
            await (await own.prompt(said)).drained()
            for session in sessions:
                await until(session, lambda s=session, e=expected: shown(s) == e)
        for made in (ann, bob, eve):
            assert shown(await made.load_session(own.id, "/")) == ["[deleted]"], "a replay tells it too"
    again = Hub({"editor": editor()}, version=version, store=SQLiteStore(kept))
    async with asyncio.timeout(DEADLINE), again.serving():
        for speaks in (1, 2):
            async with connect(again, version=speaks) as late:
                session = await late.load_session(own.id, "/")
                assert shown(session) == ["[deleted]"], "after a restart too"


@BOTH
async def test_references_cross_the_hub(version: int) -> None:
    async with connect(Hub({"editor": editor()}, version=version), version=2) as ann:
        session = await ann.new_session("/")
        await (await session.prompt("say a")).drained()
        await (await session.prompt("call")).drained()
        said = next(message for message in session.messages if message.role == "agent")
        assert said.about is not None
        (call,) = session.tool_calls
        assert call.about == said.id
        if version == 2:  # a v1 agent does not tell the id that it gave to the prompt
            assert said.about == session.messages[0].id
        again = await ann.load_session(session.id, "/")
        assert [message.about for message in again.messages if message.role == "agent"] == [said.about]


UPDATE = {"sessionUpdate": "message_update", "messageId": "m"}


async def test_message_update_of_a_v1_agent_as_the_seed_writes_it() -> None:
    """Raw JSON on both sides: to a v1 client with the opt-in, one without, and a v2 client."""
    hub = Hub({"parrot": parrot(1)}, version=1)
    say = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text("Wrong")}
    asks = {"clientCapabilities": {"_meta": ASKED}}
    async with (
        asyncio.timeout(2 * DEADLINE),
        hub.serving(),
        client(hub, 1, **asks) as asked,
        client(hub, 1) as plain,
        client(hub, 2) as newer,
    ):
        id = await new_session(asked)
        await join(plain, id, version=1)
        await join(newer, id, version=2)
        changes = [
            {**UPDATE, "updateType": "replace", "content": text("Right")},
            {**UPDATE, "updateType": "edit", "content": [text("A"), text("B")]},
            {**UPDATE, "updateType": "append", "content": text("C")},
            {**UPDATE, "updateType": "delete"},
        ]
        await prompt(asked, id, {"update": say}, *({"update": change} for change in changes))
        got = updates(asked, "message_update")
        assert [each["updateType"] for each in got] == ["replace", "replace", "delete"]
        assert [each.get("content") for each in got] == [text("Right"), [text("A"), text("B")], None]
        await newer.until(lambda frame: "deleted" in str(frame))
        whole = [each["content"] for each in updates(newer, "agent_message")]
        assert whole == [[text("Right")], [text("A"), text("B")], []]
        assert [each["content"] for each in updates(newer, "agent_message_chunk")][1:] == [text("C")]
        await prompt(asked, id, id="q")
        await plain.until(
            lambda frame: frame.get("method") == "session/update" and '"C"' in str(frame).replace("'", '"')
        )
        assert {each["sessionUpdate"] for each in plain.updates()} <= {
            "user_message_chunk",
            "agent_message_chunk",
        }


async def test_a_v2_agent_that_marks_a_deletion_as_we_do() -> None:
    hub = Hub({"parrot": parrot(2)}, version=2)
    asks = {"clientCapabilities": {"_meta": ASKED}}
    async with asyncio.timeout(DEADLINE), hub.serving(), client(hub, 1, **asks) as talk:
        id = await new_session(talk)
        say = {"sessionUpdate": "agent_message", "messageId": "m", "content": [text("a")]}
        gone = {**say, "content": [], "_meta": {"antiphon": {"deleted": True}}}
        await prompt(talk, id, {"update": say}, {"update": gone})
        (told,) = updates(talk, "message_update")
        assert (told["messageId"], told["updateType"]) == ("m", "delete")


def asking(version: int, who: str) -> dict[str, Any]:
    key = "clientCapabilities" if version == 1 else "capabilities"
    return {key: {"_meta": ASKED}, "_meta": {"antiphon": {"clientId": who}}}


def named(talk: Talk, kind: str) -> list[str]:
    return [each["value"] for each in updates(talk, kind)]


@BOTH
@pytest.mark.parametrize("speaks", [1, 2])
async def test_annotations_through_the_hub(version: int, speaks: int) -> None:
    """Told to who asked, kept by the hub, and heard by an agent of ours with the name of the hub's client."""
    agent = editor()
    heard: asyncio.Queue[AnnotationNews] = asyncio.Queue()

    @agent.on_annotation
    async def annotated(session: AgentSession, news: AnnotationNews) -> None:
        await heard.put(news)

    hub = Hub({"editor": agent}, version=version)
    async with (
        asyncio.timeout(2 * DEADLINE),
        hub.serving(),
        client(hub, speaks, **asking(speaks, "ann")) as ann,
        client(hub, 2, **asking(2, "bob")) as bob,
        client(hub, speaks) as plain,
    ):
        id = await new_session(ann)
        await join(bob, id, version=2)
        await join(plain, id, version=speaks)
        ann.prompt("p", id, "say a")
        said = await ann.update("agent_message_chunk", content=text("a"))
        about = {"sessionId": id, "messageId": said["messageId"]}
        by = {"clientId": "mallory", "name": "Mallory"}
        made = await ann.call(1, "_antiphon/annotate", **about, kind="reaction", value="🎉", by=by)
        told = await bob.update("_antiphon_annotation")
        assert told["by"] == {"clientId": "ann", "name": "talk"}, "a client of a hub names nobody else"
        async with asyncio.timeout(DEADLINE):
            news = await heard.get()
        assert (news.annotation.value, news.annotation.by.client_id, news.removed) == ("🎉", "ann", False)
        await ann.call(2, "_antiphon/remove_annotation", sessionId=id, **made)
        async with asyncio.timeout(DEADLINE):
            assert (await heard.get()).removed
        await bob.update("_antiphon_annotation_removed")
        await ann.call(3, "_antiphon/annotate", **about, kind="note", value="kept")
        await bob.update("_antiphon_annotation", value="kept")
        again = {"sessionId": id, "cwd": "/", "mcpServers": [], "replayFrom": {"type": "start"}}
        await bob.call("again", "session/resume", **again)
        assert named(bob, "_antiphon_annotation") == ["🎉", "kept", "kept"]
        assert not [each for each in plain.updates() if each["sessionUpdate"].startswith("_")]


async def test_an_agent_of_another_make_is_told_nothing_of_annotations() -> None:
    hub = Hub({"parrot": parrot(2)}, version=2)
    async with asyncio.timeout(DEADLINE), hub.serving(), client(hub, 2, **asking(2, "ann")) as talk:
        id = await new_session(talk)
        say = {"sessionUpdate": "agent_message", "messageId": "m", "content": [text("a")]}
        await prompt(talk, id, {"update": say})
        await talk.call(1, "_antiphon/annotate", sessionId=id, messageId="m", kind="reaction", value="+1")
        heard = await talk.call(2, "_parrot/heard", sessionId=id)
        assert "annotate" not in str(heard)


async def test_a_prompt_keeps_its_sender_when_the_agent_edits_its_message() -> None:
    agent = Agent("redacting")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.session.replace_message(turn.prompt.message_id, "[redacted]")

    async with connect(
        Hub({"redacting": agent}, version=2), version=2, options=ClientOptions(name="ann")
    ) as ann:
        session = await ann.new_session("/")
        await (await session.prompt("secret")).drained()
        (message,) = session.messages
        assert isinstance(message, Message)
        assert (message.text, message.edited) == ("[redacted]", True)
        assert message.sender == ann.who


async def test_an_injected_prompt_is_edited_and_annotated_under_the_id_that_clients_know() -> None:
    agent = Agent("redacting")
    heard: asyncio.Queue[str] = asyncio.Queue()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.say("seen", about=turn.prompt)
        await turn.session.delete_message(turn.prompt.message_id)
        assert await turn.session.undo_edit(turn.prompt.message_id)

    @agent.on_annotation
    async def annotated(session: AgentSession, news: AnnotationNews) -> None:
        assert session.annotations(news.annotation.message_id) == [news.annotation]
        await heard.put(news.annotation.value)

    async with asyncio.timeout(DEADLINE), connect(Hub({"redacting": agent}, version=2)) as ann:
        session = await ann.new_session("/")
        queued = await session.queue.add("secret")
        await (await queued.accepted()).drained()
        prompt, said = session.messages
        assert (prompt.id, said.about) == (queued.message_id, queued.message_id)
        assert (prompt.text, prompt.deleted, prompt.sender) == ("secret", False, ann.who)
        await session.react(prompt, "+1")
        assert await heard.get() == "+1"
