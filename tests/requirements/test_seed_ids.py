"""Seed 002, as a raw client sees it: the agent library, directly and behind a hub."""

from __future__ import annotations

from typing import Any

from examples import smallest_agent

from antiphon.agent import Agent, AgentTurn
from antiphon.agent.writers import MessageWriter
from tests.requirements.seed_agent import SeedAgent
from tests.requirements.seed_places import DIALECTS, V1S, V2S, WITH_STATES, served, staged

CHUNKS = ("agent_message_chunk", "user_message_chunk", "agent_thought_chunk")


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@served(*DIALECTS)
async def test_every_chunk_has_an_id_that_stays_over_its_message_and_changes_with_the_next(
    place: str, dialect: str
) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "two")
        chunks = wire.updates_of("agent_message_chunk")
        ids = [chunk["messageId"] for chunk in chunks]
        assert [chunk["content"]["text"] for chunk in chunks] == [
            "the first ",
            "message",
            "the second ",
            "message",
        ]
        assert ids == [ids[0], ids[0], ids[2], ids[2]]
        assert ids[0] != ids[2]
        assert all(isinstance(id, str) and id for id in ids)
        assert chunks[0] == {
            "sessionUpdate": "agent_message_chunk", "messageId": ids[0], "content": text("the first "),
        }  # fmt: skip
        assert [words for role, words in wire.words() if role == "agent"] == [
            "the first message", "the second message",
        ]  # fmt: skip


@served(*DIALECTS)
async def test_thoughts_have_ids_of_their_own(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "work")
        asked = await wire.request("session/request_permission")
        wire.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "reject"}})
        assert await wire.ended(1) == "end_turn"
        thoughts = {update["messageId"] for update in wire.updates_of("agent_thought_chunk")}
        said = {update["messageId"] for update in wire.updates_of("agent_message_chunk", "agent_message")}
        assert len(thoughts) == 1
        assert thoughts.isdisjoint(said)


@served(*DIALECTS)
async def test_ids_are_unique_in_a_session_whatever_they_name(place: str, dialect: str) -> None:
    async with (
        staged(place, SeedAgent().agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as late,
    ):
        await wire.play(session, "two", "one", "whole")
        await late.join(session)
        named = [(role, id) for role, id, _ in late.messages()]
        ids = [id for _, id in named]
        assert len(ids) == len(set(ids)) == 8
        assert [role for role, _ in named].count("user") == 3


@served(*DIALECTS)
async def test_the_answer_to_a_prompt_has_no_id_where_the_seed_has_none(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "one")
        result = (await wire.answer_to("play-one"))["result"]
        published = dialect in ("v2", "v1+lifecycle2")  # the published draft names the message
        assert ("messageId" in result) is published


@served("v1", "v1+turn_complete")
async def test_a_v1_client_gets_no_id_for_what_it_submitted(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "one")
        assert wire.updates_of("user_message", "user_message_chunk") == []


@served(*V1S)
async def test_a_replayed_user_message_has_the_id_of_the_message(place: str, dialect: str) -> None:
    async with (
        staged(place, SeedAgent().agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as late,
    ):
        await wire.play(session, "one")
        await late.join(session)
        shown = late.updates_of("user_message_chunk", "user_message")[0]
        assert shown["messageId"]
        if dialect != "v1+lifecycle2":
            assert shown.keys() - {"_meta"} == {"sessionUpdate", "messageId", "content"}
            assert shown["sessionUpdate"] == "user_message_chunk"
            assert shown["content"] == text("one")


@served(*DIALECTS)
async def test_loading_again_shows_each_message_under_the_same_id(place: str, dialect: str) -> None:
    async with (
        staged(place, SeedAgent().agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as one,
        stage.client(dialect) as two,
    ):
        await wire.play(session, "one", "two")
        await one.join(session)
        await two.join(session)
        assert one.messages() == two.messages()
        before = one.messages()
        await one.join(session, "again")
        again = [each for each in one.messages() if each not in before]
        if dialect in V2S:
            assert again == [], "a client that holds a message holds it once"


@served(*WITH_STATES)
async def test_the_agent_shows_the_accepted_prompt_with_an_id_that_it_made(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "one", "two")
        shown = wire.updates_of("user_message")
        assert [each["content"] for each in shown] == [[text("one")], [text("two")]]
        assert len({each["messageId"] for each in shown}) == 2


ODD_IDS = ["0", "null", " spaced out ", "ünï☃", "a/b\\c:d", "x" * 300, "{}", "-1"]


@served(*DIALECTS)
async def test_any_string_is_an_id_and_is_passed_on_as_it_is(place: str, dialect: str) -> None:
    agent = Agent("odd", version="1")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        for id in ODD_IDS:
            writer = MessageWriter(turn.session, thought=False, message_id=id)
            await writer.write("one ")
            await writer.write("message")

    async with (
        staged(place, agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as late,
    ):
        await wire.play(session, "one")
        told = [each["messageId"] for each in wire.updates_of("agent_message_chunk")]
        assert told == [id for id in ODD_IDS for _ in range(2)]
        await late.join(session)
        assert late.messages()[1:] == [("agent", id, "one message") for id in ODD_IDS]


@served(*DIALECTS)
async def test_an_agent_corrects_a_message_of_an_earlier_turn_by_its_id(place: str, dialect: str) -> None:
    agent = Agent("corrects", version="1")
    said: list[str] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        if said:
            await turn.session.replace_message(said[0], "Paris")
        else:
            said.append(await turn.say("Lyon"))

    async with (
        staged(place, agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client("v2") as late,
    ):
        await wire.play(session, "capital?", "sure?")
        await late.join(session)
        assert [words for role, words in late.words() if role == "agent"] == ["Paris"]
        if dialect in V2S:
            assert [each for each in wire.messages() if each[0] == "agent"] == [("agent", said[0], "Paris")]


@served(*V2S)
async def test_whole_and_streamed_messages_may_be_one_message(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "whole")
        assert wire.words() == [("user", "whole"), ("agent", "at once"), ("agent", "in one piece")]
        if place != "hub-v1":  # v1 has no whole messages: they come from there in chunks
            kinds = [
                each["sessionUpdate"] for each in wire.updates() if each["sessionUpdate"].startswith("agent")
            ]
            assert kinds == ["agent_message", "agent_message_chunk", "agent_message"]


@served(*DIALECTS)
async def test_tool_calls_have_their_own_ids(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "ask")
        asked = await wire.request("session/request_permission")
        wire.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "allow"}})
        await wire.ended(1)
        tools = wire.updates_of("tool_call", "tool_call_update")
        assert len({each["toolCallId"] for each in tools}) == 1
        assert not any("messageId" in each for each in tools)


@served(*DIALECTS)
async def test_the_example_agent_streams_its_message_under_one_id(place: str, dialect: str) -> None:
    agent = Agent("smallest", version="1")
    agent.on_prompt(smallest_agent.answer)
    async with staged(place, agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "one", "two")
        chunks = wire.updates_of("agent_message_chunk")
        ids = list(dict.fromkeys(chunk["messageId"] for chunk in chunks))
        assert len(chunks) > len(ids) == 2, "several chunks each"
        assert [words for role, words in wire.words() if role == "agent"] == [
            "You said: one",
            "You said: two",
        ]
