"""Reactions and notes of clients on messages: who, what and when, journalled, replayed, told to who asked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn, AnnotationNews, MessageWriter
from antiphon.engine.annotations import MOST_PER_MESSAGE
from antiphon.stores import SQLiteStore
from antiphon.stores.base import Store
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

ASKED = {"antiphon": {"annotations": True}}


def asking(version: int, **more: Any) -> dict[str, Any]:
    key = "clientCapabilities" if version == 1 else "capabilities"
    return {key: {"_meta": ASKED}, "_meta": {"antiphon": {"clientId": "ann"}}, **more}


@pytest.fixture
def agent() -> Agent:
    return greeting()


def greeting(store: Store | None = None) -> Agent:
    agent = Agent("annotated", store=store)

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.say("Hello")

    return agent


async def said(talk: Talk, id: str) -> str:
    """The id of a message of the agent's."""
    talk.prompt("said", id, "go")
    frame = await talk.until(lambda frame: "Hello" in str(frame))
    return str(frame["params"]["update"]["messageId"])


async def told_of(talk: Talk, kind: str) -> dict[str, Any]:
    """An update of a kind, which comes before the answer to what made it."""
    found = [each for each in talk.updates() if each["sessionUpdate"] == kind]
    return found[-1] if found else await talk.update(kind)


async def refused(talk: Talk, id: Any, method: str, **params: Any) -> tuple[int, Any]:
    talk.send(id=id, method=method, params=params)
    error = (await talk.answer_to(id))["error"]
    return error["code"], error.get("data", {}).get("reason")


DIALECTS: list[tuple[int, dict[str, Any]]] = [
    (1, {}),
    (2, {}),
    (2, {"_meta": {"antiphon": {"clientId": "ann", "dialect": "proposed"}}}),
]


@pytest.mark.parametrize(("version", "more"), DIALECTS)
async def test_a_reaction_is_told_replayed_and_removed(
    agent: Agent, version: int, more: dict[str, Any]
) -> None:
    async with session(agent, version, **asking(version, **more)) as (talk, id):
        message = await said(talk, id)
        about = {"sessionId": id, "messageId": message}
        made = await talk.call(1, "_antiphon/annotate", **about, kind="reaction", value="👍🏽")
        told = await told_of(talk, "_antiphon_annotation")
        assert told.pop("at").endswith("Z")
        assert told == {
            "sessionUpdate": "_antiphon_annotation",
            "annotationId": made["annotationId"],
            "messageId": message,
            "role": "agent",
            "kind": "reaction",
            "value": "👍🏽",
            "by": {"clientId": "ann", "name": "talk"},
        }
        again = await talk.call(2, "_antiphon/annotate", **about, kind="reaction", value="👍🏽")
        assert again == made  # a client has each sign once
        method = "session/load" if version == 1 else "session/resume"
        how = {} if version == 1 else {"replayFrom": {"type": "start"}}
        before = len(talk.seen)
        await talk.call(3, method, sessionId=id, cwd="/", mcpServers=[], **how)
        kinds = [f["params"]["update"]["sessionUpdate"] for f in talk.seen[before:] if "params" in f]
        assert kinds.count("_antiphon_annotation") == 1
        await talk.call(4, "_antiphon/remove_annotation", sessionId=id, **made)
        gone = await told_of(talk, "_antiphon_annotation_removed")
        assert (gone["annotationId"], gone["messageId"]) == (made["annotationId"], message)
        found = agent.find(id)
        assert found is not None
        assert found.annotations(message) == []


@pytest.mark.parametrize("version", [1, 2])
async def test_who_did_not_ask_hears_nothing(agent: Agent, version: int) -> None:
    async with session(agent, 2, **asking(2)) as (talk, id), client(agent, version) as other:
        method = "session/load" if version == 1 else "session/resume"
        await other.call(1, method, sessionId=id, cwd="/", mcpServers=[])
        message = await said(talk, id)
        made = await talk.call(
            1, "_antiphon/annotate", sessionId=id, messageId=message, kind="note", value="Why?\nBecause."
        )
        await talk.call(2, "_antiphon/remove_annotation", sessionId=id, **made)
        talk.prompt(3, id, "more")
        await other.until(lambda frame: "Hello" in str(frame))
        await other.until(lambda frame: "Hello" in str(frame))
        assert not [each for each in other.updates() if each["sessionUpdate"].startswith("_antiphon_ann")]


async def test_capabilities_confirm_it_where_it_was_asked_for(agent: Agent) -> None:
    for version, key, where in (
        (1, "clientCapabilities", "agentCapabilities"),
        (2, "capabilities", "capabilities"),
    ):
        for wanted in ({}, {"_meta": ASKED}):
            async with client(agent, version, **{key: wanted}) as talk:
                ours = talk.seen[0]["result"][where]["_meta"]["antiphon"]
                assert ours.get("annotations", False) is bool(wanted)


async def test_refusals(agent: Agent) -> None:
    async with session(agent, 2, **asking(2)) as (talk, id):
        message = await said(talk, id)
        about = {"sessionId": id, "messageId": message}
        refusals = [
            ({**about, "messageId": "no", "kind": "note", "value": "x"}, (-32002, "unknown_message_id")),
            ({**about, "role": "user", "kind": "note", "value": "x"}, (-32002, "unknown_message_id")),
            ({**about, "kind": "odd", "value": "x"}, (-32602, None)),
            ({**about, "kind": "note", "value": "x" * 4097}, (-32602, None)),
            ({**about, "kind": "note", "value": "  "}, (-32602, None)),
            ({**about, "kind": "reaction", "value": "x" * 65}, (-32602, None)),
            ({**about, "kind": "reaction", "value": "a\nb"}, (-32602, None)),
            ({**about, "kind": "reaction"}, (-32602, None)),
            ({"sessionId": id, "kind": "reaction", "value": "x"}, (-32602, None)),
        ]
        for number, (params, expected) in enumerate(refusals):
            assert await refused(talk, number, "_antiphon/annotate", **params) == expected
        unknown = await refused(talk, "r", "_antiphon/remove_annotation", sessionId=id, annotationId="no")
        assert unknown == (-32002, "unknown_annotation_id")
        made = await talk.call("n", "_antiphon/annotate", **about, kind="reaction", value="👨‍👩‍👧")
        other = asking(2, _meta={"antiphon": {"clientId": "ben"}})
        async with client(agent, **other) as ben:
            await ben.call(1, "session/resume", sessionId=id, cwd="/", mcpServers=[])
            forbidden = await refused(ben, 2, "_antiphon/remove_annotation", sessionId=id, **made)
            assert forbidden == (-32003, "forbidden")


async def test_there_are_only_so_many(agent: Agent) -> None:
    async with session(agent, 2, **asking(2)) as (talk, id):
        about = {"sessionId": id, "messageId": await said(talk, id), "kind": "note"}
        for number in range(MOST_PER_MESSAGE):
            await talk.call(number, "_antiphon/annotate", **about, value=str(number))
        assert await refused(talk, "over", "_antiphon/annotate", **about, value="x") == (-32004, "limit")


async def test_a_copy_of_the_request_adds_nothing(agent: Agent) -> None:
    async with session(agent, 2, **asking(2)) as (talk, id):
        message = await said(talk, id)
        note = {"sessionId": id, "messageId": message, "kind": "note", "value": "x", "operationId": "op"}
        made = await talk.call(1, "_antiphon/annotate", **note)
        assert await talk.call(2, "_antiphon/annotate", **note) == made
        found = agent.find(id)
        assert found is not None
        assert [each.value for each in found.annotations(message)] == ["x"]
        gone = {"sessionId": id, "operationId": "gone", **made}
        assert await talk.call(3, "_antiphon/remove_annotation", **gone) == {}
        assert await talk.call(4, "_antiphon/remove_annotation", **gone) == {}
        assert await talk.call(5, "_antiphon/annotate", **note) == made
        assert found.annotations(message) == []


async def test_they_outlive_a_restart_and_go_with_a_fork(tmp_path: Path) -> None:
    agent = greeting(SQLiteStore(tmp_path / "kept.db"))
    async with agent.serving(), session(agent, 2, **asking(2)) as (talk, id):
        message = await said(talk, id)
        note = {"sessionId": id, "messageId": message, "kind": "note", "value": "kept"}
        await talk.call(1, "_antiphon/annotate", **note)
        await talk.call(2, "_antiphon/annotate", **{**note, "kind": "reaction", "value": "🎉"})
    again = Agent("annotated", store=SQLiteStore(tmp_path / "kept.db"))
    async with again.serving(), client(again, 2, **asking(2)) as talk:
        await talk.call(
            1, "session/resume", sessionId=id, cwd="/", mcpServers=[], replayFrom={"type": "start"}
        )
        told = [each["value"] for each in talk.updates() if each["sessionUpdate"] == "_antiphon_annotation"]
        assert told == ["kept", "🎉"]
        at = {"antiphon": {"messageId": message}}
        forked = await talk.call(2, "session/fork", sessionId=id, cwd="/", mcpServers=[], _meta=at)
        there = again.find(forked["sessionId"])
        assert there is not None
        assert [each.value for each in there.annotations(message)] == ["kept", "🎉"]


async def test_the_agent_hears_of_them(agent: Agent) -> None:
    heard: asyncio.Queue[tuple[str, AnnotationNews]] = asyncio.Queue()

    @agent.on_annotation
    async def annotated(session: AgentSession, news: AnnotationNews) -> None:
        await heard.put((session.id, news))

    async with session(agent, 2, **asking(2)) as (talk, id):
        about = {"sessionId": id, "messageId": await said(talk, id)}
        made = await talk.call(1, "_antiphon/annotate", **about, kind="reaction", value="+1")
        await talk.call(2, "_antiphon/remove_annotation", sessionId=id, **made)
        async with asyncio.timeout(15):
            first, second = await heard.get(), await heard.get()
        assert (first[0], first[1].annotation.value, first[1].removed) == (id, "+1", False)
        assert (second[1].annotation.id, second[1].removed) == (made["annotationId"], True)


@requirement("MSG-07")
async def test_a_v1_client_names_messages_by_the_ids_it_knows() -> None:
    agent = Agent("twice")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        for thought in (True, False):  # the same id for a thought and for a message (MSG-08)
            await MessageWriter(turn.session, thought=thought, message_id="m").write("Hello")

    async with session(agent, 1, **asking(1)) as (talk, id):
        talk.prompt(1, id, "go")
        chunk = await talk.update("agent_message_chunk")
        assert chunk["messageId"] != "m"
        named = {"sessionId": id, "messageId": chunk["messageId"]}
        await talk.call(2, "_antiphon/annotate", **named, kind="reaction", value="+1")
        told = await told_of(talk, "_antiphon_annotation")
        assert (told["messageId"], told["role"]) == (chunk["messageId"], "agent")
