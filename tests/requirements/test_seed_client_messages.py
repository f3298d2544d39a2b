"""Seed 002's future and the log of seed 003, as the client library keeps them, with a raw agent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.schema.version import OptIns
from tests.requirements.agent_by_hand import opened, story, text
from tests.requirements.seed_places import (
    ASKED_IN_V1,
    CONFIRMED,
    DIALECTS,
    V1S,
    V2S,
    Script,
    client_of,
    read,
    session_of,
    version_of,
)


def changes(script: Script, words: str | None, *, id: str = "a1") -> None:
    """Give a message other content, or delete it, as the dialect has that."""
    if script.dialect in V1S:
        how: dict[str, Any] = {"updateType": "delete"}
        if words is not None:
            how = {"updateType": "replace", "content": text(words)}
        script.agent.update(script.session, "message_update", messageId=id, **how)
    elif words is not None:
        script.agent.update(script.session, "agent_message", messageId=id, content=[text(words)])
    else:
        marked = {"antiphon": {"deleted": True}}
        script.agent.update(script.session, "agent_message", messageId=id, content=[], _meta=marked)


@read(*DIALECTS)
async def test_a_message_is_replaced_appended_to_and_deleted_in_its_place(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        script.says("Lyon", "a1")
        script.says("Anything else?", "a2")
        changes(script, "Paris")
        script.says("!", "a1")
        await agent.settled(session)
        assert story(session) == [("agent", "a1", "Paris!"), ("agent", "a2", "Anything else?")]
        changes(script, None)
        await agent.settled(session)
        assert [(message.message_id, message.deleted) for message in session.messages] == [
            ("a1", True), ("a2", False),
        ], "it leaves a mark, not a hole"  # fmt: skip
        changes(script, "Paris again")  # the agent has undone it
        await agent.settled(session)
        assert story(session)[0] == ("agent", "a1", "Paris again")
        assert not session.messages[0].deleted


@pytest.mark.parametrize("content", [text("Right"), [text("Right")]], ids=["one block", "a list"])
@pytest.mark.parametrize("how", ["replace", "edit"])
@read(*V1S)
async def test_message_update_is_read_as_the_seed_writes_it(
    place: str, dialect: str, how: str, content: Any
) -> None:
    id = "0f8fad5b-d9cb-469f-a165-70867728950e"
    async with session_of(dialect) as script:
        script.says("Wrong", id)
        script.agent.update(script.session, "message_update", messageId=id, updateType=how, content=content)
        await script.agent.settled(script.session)
        assert story(script.session) == [("agent", id, "Right")]


@read(*DIALECTS)
async def test_annotations_of_a_message_are_kept_with_it_and_made(place: str, dialect: str) -> None:
    asked = {**ASKED_IN_V1.get(dialect, {}), "annotations": True}
    version = version_of(dialect)
    able: dict[str, Any] = {"_meta": {"antiphon": asked}}
    able = {**CONFIRMED[dialect], **able} if version == 1 else {"session": {}, **able}
    opt_ins = OptIns.from_meta(asked)
    options: dict[str, Any] = {"only": "v2-proposed"} if dialect == "proposed" else {"opt_ins": opt_ins}
    async with opened(version, able, **options) as (client, agent):
        session = await agent.new_session(client)
        agent.says(session, "Hello.", messageId="a1")
        who = {"clientId": "bob", "name": "Bob"}
        told = {"annotationId": "n1", "messageId": "a1", "role": "agent", "kind": "reaction", "value": "👍"}
        agent.update(session, "_antiphon_annotation", **told, by=who, at="2026-01-01T00:00:00Z")
        await agent.settled(session)
        (message,) = session.messages
        assert [(each.value, each.by.name) for each in message.annotations] == [("👍", "Bob")]
        making = agent.meanwhile(session.annotate(message, "well said"))
        request = await agent.request("_antiphon/annotate")
        assert (request["params"]["messageId"], request["params"]["value"]) == ("a1", "well said")
        agent.answer(request, {"annotationId": "n2"})
        assert await making == "n2"


@read(*DIALECTS)
async def test_a_message_and_a_tool_call_say_what_they_are_about(place: str, dialect: str) -> None:
    about = {"antiphon": {"about": {"messageId": "u1"}}}
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        if dialect in V2S:
            agent.update(session, "agent_message", messageId="a1", content=[text("Yes.")], _meta=about)
        else:
            agent.says(session, "Yes.", messageId="a1", _meta=about)
        script.tool("t", _meta=about)
        await agent.settled(session)
        assert session.tool_calls[0].about == "u1"
        assert session.messages[0].about == "u1"


@read(*DIALECTS)
async def test_a_turn_is_awaited_by_the_id_of_its_request(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        prompting = script.agent.meanwhile(script.session.prompt("go"))
        request = await script.accept("go")
        turn = await prompting
        waiting = asyncio.ensure_future(script.session.drained(str(request["id"])))
        script.says("Hello.")
        script.end(request)
        assert await waiting == await turn.drained()
        assert script.session.turn_of(request["id"]) is turn
        assert turn.text == "Hello."


@read(*DIALECTS)
async def test_a_replay_of_changed_messages_shows_their_last_version(place: str, dialect: str) -> None:
    async with client_of(dialect) as (client, agent):
        loading = agent.meanwhile(client.load_session("s", "/site"))
        request = await agent.request("session/load" if dialect in V1S else "session/resume")
        agent.says("s", "Lyon", messageId="a1")
        if dialect in V1S:
            how = {"updateType": "replace", "content": text("Paris")}
            agent.update("s", "message_update", messageId="a1", **how)
        else:
            agent.update("s", "agent_message", messageId="a1", content=[text("Paris")])
        agent.answer(request, {})
        assert story(await loading) == [("agent", "a1", "Paris")]
