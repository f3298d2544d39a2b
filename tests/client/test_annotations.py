"""What a client sees of messages that are changed by id, and what it puts on them, in each dialect."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import ClientSession
from antiphon.errors import CallFailed, LocalError
from antiphon.wire import OptIns
from tests.agent.talk import client as client_of
from tests.client.driving import DEADLINE, WAYS, by_hand, driven
from tests.client.test_reconnecting import Worker, reached

EACH = pytest.mark.parametrize("way", [*WAYS, "v1 with message_update", "v1 with the future flag"])
WAYS_TOO: dict[str, dict[str, Any]] = {
    **WAYS,
    "v1 with message_update": {"version": 1, "opt_ins": OptIns(turn_complete=True, message_update=True)},
    "v1 with the future flag": {"version": 1, "opt_ins": OptIns(prompt_lifecycle=True, message_update=True)},
}


@pytest.fixture
def agent() -> Agent:
    agent = Agent("annotated")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.message(about=turn.prompt) as message:
            await message.write("Hello")
        if turn.prompt.text == "delete":
            await turn.session.delete_message(message.message_id)

    return agent


async def until(session: ClientSession, wanted: Any) -> None:
    async with asyncio.timeout(DEADLINE):
        events = session.events()
        while not wanted():
            await anext(events)


@EACH
async def test_reactions_and_notes_reach_the_message(agent: Agent, way: str) -> None:
    async with driven(agent, **WAYS_TOO[way]) as session:
        await (await session.prompt("go")).drained()
        said = session.messages[-1]
        first = await session.react(said, "👍")
        assert await session.react(said.id, "👍") == first
        await session.annotate(said, "Well\nsaid")
        await until(session, lambda: len(said.annotations) == 2)
        reaction, note = said.annotations
        assert (reaction.kind, reaction.value, reaction.by) == ("reaction", "👍", session.client.who)
        assert (note.kind, note.value) == ("note", "Well\nsaid")
        await session.remove_annotation(reaction)
        await session.remove_annotation(note.id)
        await until(session, lambda: not said.annotations)


@EACH
async def test_a_deleted_message_and_what_it_was_about(agent: Agent, way: str) -> None:
    updates = way not in ("v1", "v1 with turn_complete")
    async with driven(agent, **WAYS_TOO[way]) as session:
        await (await session.prompt("delete")).drained()
        said = session.messages[-1]
        assert said.about is not None
        assert said.deleted is updates
        assert said.text == ("" if updates else "Hello")


async def test_the_update_of_the_seed_from_an_agent_by_hand() -> None:
    id = "ea87d0e7-beb8-484a-a404-94a30b78a5a8"
    async with by_hand(1) as (session, agent):
        agent.say("Wrong", id)
        block = {"type": "text", "text": "Actually, let me correct that analysis..."}
        agent.told("message_update", messageId=id, updateType="replace", content=block)
        await agent.settled(session)
        (message,) = session.messages
        assert message.text == block["text"]
        agent.told("message_update", messageId=id, updateType="append", content={"type": "text", "text": "!"})
        agent.told("message_update", messageId=id, updateType="edit", _meta={"k": 1})
        await agent.settled(session)
        assert (message.text, message.meta) == (f"{block['text']}!", {"k": 1})
        agent.told("message_update", messageId=id, updateType="delete")
        await agent.settled(session)
        assert message.deleted
        assert [each.id for each in session.messages] == [id], "it stays in its place"


async def test_an_agent_that_offers_none_is_not_asked() -> None:
    async with by_hand(2) as (session, agent):
        agent.told("agent_message", messageId="m", content=[{"type": "text", "text": "a"}])
        await agent.settled(session)
        with pytest.raises(LocalError, match="takes no annotations"):
            await session.react("m", "+1")
        with pytest.raises(LocalError, match="takes no annotations"):
            await session.remove_annotation("a")
        await agent.heard_nothing(session)


async def test_refusals_are_told(agent: Agent) -> None:
    async with driven(agent) as session:
        with pytest.raises(CallFailed, match="no such message"):
            await session.react("nothing", "+1")
        with pytest.raises(LocalError, match="1 to 64 characters"):
            await session.react("nothing", "x" * 65)
        with pytest.raises(LocalError, match="1 to 4096 characters"):
            await session.annotate("nothing", "")


@pytest.mark.parametrize("way_of", WAYS)
async def test_what_happened_while_the_link_was_lost_is_caught_up(way_of: str) -> None:
    """By the events after the cursor: annotations, their removal, edits and a deletion."""
    worker = Worker()
    updates = {"opt_ins": OptIns(turn_complete=True, message_update=True)} if "v1" in way_of else {}
    async with reached(worker, way_of, **updates) as (client, way):
        session = await client.new_session("/")
        await (await session.prompt("count 1")).drained()
        await (await session.prompt("count 2")).drained()
        first, second = [message for message in session.messages if message.role == "agent"]
        made = await session.react(first, "+1")
        served = worker.agent.find(session.id)
        assert served is not None
        async with client_of(
            worker.agent, 2, capabilities={"_meta": {"antiphon": {"annotations": True}}}
        ) as other:
            await other.call(1, "session/resume", sessionId=session.id, cwd="/", mcpServers=[])
            way.cut()
            note = {"sessionId": session.id, "messageId": first.id, "kind": "note", "value": "meanwhile"}
            await other.call(2, "_antiphon/annotate", **note)
            await served.replace_message(first.id, "changed")
            await served.delete_message(second.id)
        await until(
            session, lambda: second.deleted and first.text == "changed" and len(first.annotations) == 2
        )
        assert first.annotations[0].id == made
        assert [message.id for message in session.messages if message.role == "agent"] == [
            first.id,
            second.id,
        ]
