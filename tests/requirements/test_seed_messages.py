"""Seed 002's future: messages changed, annotated and referred to by their ids, as raw clients see it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon.agent import Agent, AgentTurn
from tests.requirements.agent_by_hand import text
from tests.requirements.seed_agent import SeedAgent
from tests.requirements.seed_places import (
    ASKED_IN_V1,
    DIALECTS,
    V1S,
    V2S,
    Stage,
    Wire,
    offers,
    served,
    staged,
    version_of,
)


def editor() -> Agent:
    """The first prompt is answered with a message that names it; each other prompt changes that message."""
    agent = Agent("editor", version="1")
    first: list[str] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        word, _, rest = turn.prompt.text.partition(" ")
        if word == "say":
            async with turn.message(about=turn.prompt) as message:
                await message.write(rest)
            first.append(message.message_id)
        elif word == "replace":
            await turn.session.replace_message(first[0], rest)
        elif word == "append":
            await turn.session.append_message(first[0], rest)
        elif word == "delete":
            await turn.session.delete_message(first[0])
        elif word == "undo":
            await turn.session.undo_edit(first[0])
        elif word == "redo":
            await turn.session.redo_edit(first[0])
        elif word == "call":
            async with turn.tool_call("Look", about=first[0]):
                pass

    return agent


@asynccontextmanager
async def able(stage: Stage, dialect: str) -> AsyncIterator[Wire]:
    """A client that asks for changes of messages, and for annotations."""
    asked = {**ASKED_IN_V1.get(dialect, {}), "messageUpdate": True, "annotations": True}
    key = "clientCapabilities" if version_of(dialect) == 1 else "capabilities"
    beside = {**offers(dialect), key: {"_meta": {"antiphon": asked}}}
    async with stage.client(dialect, **beside) as wire:
        yield wire


def shown(wire: Wire) -> str | None:
    """What a client shows of the agent's only message after every change; `None` once it was deleted."""
    held: str | None = None
    for update in wire.updates():
        kind = update["sessionUpdate"]
        if kind == "agent_message_chunk":
            held = (held or "") + update["content"]["text"]
        elif kind == "agent_message" and "content" in update:  # without it, the content stays
            deleted = update.get("_meta", {}).get("antiphon", {}).get("deleted") is True
            held = None if deleted else "".join(block["text"] for block in update["content"])
        elif kind == "message_update":
            content = update.get("content", [])
            blocks = content if isinstance(content, list) else [content]
            deleted = update["updateType"] == "delete"
            held = None if deleted else "".join(block["text"] for block in blocks)
    return held


async def follows(place: str, dialect: str, *steps: tuple[str, str | None]) -> None:
    """Prompt step by step; the client and one that loads the session afterwards show what is expected."""
    async with staged(place, editor()) as stage, able(stage, dialect) as wire:
        session = await wire.new_session()
        for number, (words, expected) in enumerate(steps):
            wire.prompt(number, session, words)
            assert await wire.ended(number) == "end_turn"
            assert shown(wire) == expected, words
        ids = {
            update["messageId"] for update in wire.updates() if update["sessionUpdate"].startswith("agent")
        }
        ids |= {update["messageId"] for update in wire.updates_of("message_update")}
        assert len(ids) == 1, "one message, whatever was done to it"
        async with able(stage, dialect) as late:
            await late.join(session)
            assert shown(late) == steps[-1][1]


@served(*DIALECTS)
async def test_an_agent_edits_a_message_that_it_has_sent(place: str, dialect: str) -> None:
    await follows(place, dialect, ("say a", "a"), ("append b", "ab"), ("replace c", "c"), ("append d", "cd"))


@served(*DIALECTS)
async def test_an_agent_deletes_a_message(place: str, dialect: str) -> None:
    await follows(place, dialect, ("say a", "a"), ("delete", None))


@served(*DIALECTS)
async def test_edits_are_undone_and_redone(place: str, dialect: str) -> None:
    steps = [
        ("say a", "a"),
        ("replace b", "b"),
        ("delete", None),
        ("undo", "b"),
        ("undo", "a"),
        ("redo", "b"),
    ]
    await follows(place, dialect, *steps)


@served(*V1S)
async def test_message_update_is_sent_as_the_seed_writes_it(place: str, dialect: str) -> None:
    async with staged(place, editor()) as stage, able(stage, dialect) as wire:
        session = await wire.new_session()
        await wire.play(session, "say wrong", "replace right")
        (changed,) = wire.updates_of("message_update")
        changed.pop("_meta", None)
        assert changed == {
            "sessionUpdate": "message_update",
            "messageId": wire.updates_of("agent_message_chunk")[0]["messageId"],
            "updateType": "replace",
            "content": text("right"),
        }


@served(*DIALECTS)
async def test_a_plain_client_is_told_nothing_that_it_did_not_ask_for(place: str, dialect: str) -> None:
    async with staged(place, editor()) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "say a", "replace b", "delete", "undo")
        kinds = {update["sessionUpdate"] for update in wire.updates()}
        agents = {"agent_message_chunk"} if dialect in V1S else {"agent_message_chunk", "agent_message"}
        assert kinds <= {*agents, "user_message", wire.state_kind, "turn_complete"}


@served(*DIALECTS)
async def test_a_reaction_to_a_message_is_told_to_all_and_replayed(place: str, dialect: str) -> None:
    async with (
        staged(place, editor()) as stage,
        able(stage, dialect) as wire,
        able(stage, dialect) as other,
    ):
        session = await wire.new_session()
        await other.join(session)
        await wire.play(session, "say a")
        id = wire.updates_of("agent_message_chunk")[0]["messageId"]
        about = {"sessionId": session, "messageId": id}
        await wire.call("r", "_antiphon/annotate", **about, kind="reaction", value="👍")
        await wire.call("n", "_antiphon/annotate", **about, kind="note", value="well said")
        noted = await other.update("_antiphon_annotation", value="well said")
        assert (noted["messageId"], noted["value"], noted["by"]["name"]) == (id, "well said", "talk")
        assert noted["at"]
        async with able(stage, dialect) as late:
            await late.join(session)
            told = late.updates_of("_antiphon_annotation")
            assert [(each["messageId"], each["value"]) for each in told] == [(id, "👍"), (id, "well said")]


def about(update: dict[str, Any]) -> str | None:
    named = update.get("_meta", {}).get("antiphon", {}).get("about", {}).get("messageId")
    return None if named is None else str(named)


@served(*DIALECTS)
async def test_messages_and_tool_calls_name_the_message_they_are_about(place: str, dialect: str) -> None:
    async with staged(place, editor()) as stage, able(stage, dialect) as wire:
        session = await wire.new_session()
        await wire.play(session, "say a", "call")
        said = wire.updates_of("agent_message_chunk", "agent_message")[0]
        call = wire.updates_of("tool_call", "tool_call_update")[0]
        answers = next(filter(None, map(about, wire.updates())))
        assert answers, "the prompt that it answers"
        assert about(call) == said["messageId"]
        if dialect in V2S and place != "hub-v1":  # a v1 agent does not tell the id that it gave to the prompt
            assert answers == wire.updates_of("user_message")[0]["messageId"]
        async with able(stage, dialect) as late:
            await late.join(session)
            again = late.updates_of("tool_call", "tool_call_update")[0]
            assert about(again) == about(call)


@served(*DIALECTS)
async def test_the_journal_names_the_request_that_each_turn_answers(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        for id in (2, "2", "seven"):
            wire.prompt(id, session, "one")
            found = await wire.until(lambda frame, id=id: json.dumps(frame.get("id")) == json.dumps(id))
            if dialect not in ("v1", "v1+turn_complete"):
                await wire.state("idle")
            assert "result" in found
        page = await stage.front.store.read(session, 0)
        bodies = [json.loads(line)["body"] for batch in page.batches for line in batch.events]
        asked = {body["message_id"]: body for body in bodies if body["type"] == "prompt_queued"}
        taken = [body["message_id"] for body in bodies if body["type"] == "prompt_accepted"]
        named = [asked[id]["request_id"] for id in taken]
        assert [*map(json.dumps, named)] == ["2", '"2"', '"seven"']
        ends = [body["update"]["state"] for body in bodies if body.get("update", {}).get("state")]
        assert ends == ["running", "idle"] * 3, "where each turn begins and ends"
