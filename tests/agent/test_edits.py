"""Messages changed by their ids, undo and redo from the journal, references; each in every dialect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.engine.transcript import MessageType
from antiphon.errors import LocalError
from antiphon.schema.version import ours_in
from antiphon.stores import SQLiteStore
from tests.agent.talk import client, session
from tests.requirements.marks import requirement

UPDATES = {"clientCapabilities": {"_meta": {"antiphon": {"messageUpdate": True}}}}
DELETIONS = {"antiphon": {"messageDeleted": True}}


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def tells(talk: Any) -> list[dict[str, Any]]:
    return [frame["params"]["update"] for frame in talk.seen if frame.get("method") == "session/update"]


@pytest.fixture
def agent() -> Agent:
    agent = Agent("editor")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        said = await turn.say("first")
        match turn.prompt.text:
            case "replace":
                await turn.session.replace_message(said, "second")
            case "several":
                await turn.session.replace_message(said, "one", "two")
            case "append":
                await turn.session.append_message(said, ", more")
            case "delete":
                await turn.session.delete_message(said)
            case "prompt":
                await turn.session.delete_message(turn.prompt.message_id)
        await turn.say("end")

    return agent


class TestOnTheWire:
    @requirement("SD-27")
    async def test_one_block_is_sent_as_the_seed_has_it(self, agent: Agent) -> None:
        async with session(agent, 1, **UPDATES) as (talk, id):
            talk.prompt(1, id, "replace")
            await talk.answer_to(1)
            (changed,) = [each for each in tells(talk) if each["sessionUpdate"] == "message_update"]
            assert changed["updateType"] == "replace"
            assert changed["content"] == text("second")

    async def test_several_blocks_are_a_list(self, agent: Agent) -> None:
        async with session(agent, 1, **UPDATES) as (talk, id):
            talk.prompt(1, id, "several")
            changed = await talk.update("message_update")
            assert changed["content"] == [text("one"), text("two")]

    async def test_a_deletion_is_message_update_delete_in_v1(self, agent: Agent) -> None:
        async with session(agent, 1, **UPDATES) as (talk, id):
            talk.prompt(1, id, "delete")
            gone = await talk.update("message_update", updateType="delete")
            assert "content" not in gone
            loaded = await talk.call(2, "session/load", sessionId=id, cwd="/", mcpServers=[])
            assert loaded is not None
            deleted = [each for each in tells(talk) if each.get("updateType") == "delete"]
            assert [each["messageId"] for each in deleted] == [gone["messageId"]] * 2

    async def test_a_plain_v1_client_sees_only_published_shapes(self, agent: Agent) -> None:
        async with session(agent, 1) as (talk, id):
            for number, what in enumerate(("replace", "append", "delete"), start=1):
                talk.prompt(number, id, what)
                await talk.answer_to(number)
            assert {each["sessionUpdate"] for each in tells(talk)} == {"agent_message_chunk"}

    @pytest.mark.parametrize("dialect", [{}, {"_meta": {"antiphon": {"dialect": "proposed"}}}])
    async def test_a_plain_v2_client_gets_the_upsert_that_empties_it(
        self, agent: Agent, dialect: dict[str, Any]
    ) -> None:
        async with session(agent, **dialect) as (talk, id):
            talk.prompt(1, id, "delete")
            said = await talk.update("agent_message", content=[text("first")])
            gone = await talk.update("agent_message", messageId=said["messageId"])
            assert gone["content"] == []
            assert gone["_meta"]["antiphon"]["deleted"] is True
            await talk.update("agent_message", content=[text("end")])
            assert not [each for each in tells(talk) if each["sessionUpdate"].startswith("_")]

    @pytest.mark.parametrize("version", [1, 2])
    async def test_who_asked_is_told_of_the_deletion(self, agent: Agent, version: int) -> None:
        key = "clientCapabilities" if version == 1 else "capabilities"
        async with session(agent, version, **{key: {"_meta": DELETIONS}}) as (talk, id):
            talk.prompt(1, id, "delete")
            gone = await talk.update("_antiphon_message_deleted")
            assert gone["role"] == "agent"
            talk.send(id=9, method="session/list", params={})
            loaded = "session/load" if version == 1 else "session/resume"
            how = {} if version == 1 else {"replayFrom": {"type": "start"}}
            await talk.call(2, loaded, sessionId=id, cwd="/", mcpServers=[], **how)
            told = [each for each in tells(talk) if each["sessionUpdate"] == "_antiphon_message_deleted"]
            assert [each["messageId"] for each in told] == [gone["messageId"]] * 2

    async def test_a_prompt_keeps_its_sender_when_its_message_is_deleted(self, agent: Agent) -> None:
        async with session(agent) as (talk, id):
            talk.prompt(1, id, "prompt")
            prompted = await talk.update("user_message")
            gone = await talk.update("user_message", messageId=prompted["messageId"])
            assert (gone["content"], gone["_meta"]["antiphon"]["deleted"]) == ([], True)
            assert gone["_meta"]["antiphon"]["sender"] == prompted["_meta"]["antiphon"]["sender"]

    async def test_what_is_appended_comes_as_a_chunk(self, agent: Agent) -> None:
        for version in (1, 2):
            async with session(agent, version) as (talk, id):
                talk.prompt(1, id, "append")
                assert (await talk.update("agent_message_chunk", content=text(", more")))["messageId"]


class Undoing:
    """A session whose agent does what the test wants."""

    def __init__(self, session: AgentSession, id: str) -> None:
        self.session = session
        self.id = id

    @property
    def shown(self) -> str | None:
        message = self.session.fold.message(MessageType.AGENT, self.id)
        assert message is not None
        return None if message.deleted else message.text


async def begun(agent: Agent, id: str) -> Undoing:
    found = agent.find(id)
    assert found is not None
    async with found.turn() as turn:
        return Undoing(found, await turn.say("a"))


class TestUndo:
    async def test_edits_are_undone_and_redone_one_by_one(self) -> None:
        agent = Agent("editor")
        async with session(agent) as (_, id):
            made = await begun(agent, id)
            act, message = made.session, made.id
            assert not await act.undo_edit(message)
            await act.replace_message(message, "b")
            await act.append_message(message, "c")
            await act.delete_message(message)
            seen = []
            while await act.undo_edit(message):
                seen.append(made.shown)
            assert seen == ["bc", "b", "a"]
            while await act.redo_edit(message):
                seen.append(made.shown)
            assert seen[3:] == ["b", "bc", None]
            assert not await act.redo_edit(message)

    async def test_an_edit_after_an_undo_clears_what_could_be_redone(self) -> None:
        agent = Agent("editor")
        async with session(agent) as (_, id):
            made = await begun(agent, id)
            for said in ("b", "c", "d"):
                await made.session.replace_message(made.id, said)
            assert await made.session.undo_edit(made.id)
            assert await made.session.undo_edit(made.id)
            await made.session.replace_message(made.id, "e")
            assert not await made.session.redo_edit(made.id)
            seen = []
            while await made.session.undo_edit(made.id):
                seen.append(made.shown)
            assert seen == ["b", "a"]
            assert await made.session.redo_edit(made.id)
            assert await made.session.redo_edit(made.id)
            assert made.shown == "e"

    async def test_what_is_streamed_belongs_to_the_version_that_is_shown(self) -> None:
        agent = Agent("editor")
        async with session(agent) as (_, id):
            found = agent.find(id)
            assert found is not None
            async with found.turn() as turn, turn.message() as message:
                await message.write("1")
                await message.replace("2")
                await message.write("3")
                await message.replace("4")
            made = Undoing(found, message.message_id)
            assert await found.undo_edit(made.id)
            assert made.shown == "23"
            await found.undo_edit(made.id)
            assert made.shown == "1"

    async def test_undo_works_after_a_restart(self, tmp_path: Path) -> None:
        file = tmp_path / "kept.db"
        agent = Agent("editor", store=SQLiteStore(file))
        async with agent.serving(), session(agent) as (_, id):
            made = await begun(agent, id)
            await made.session.replace_message(made.id, "b")
            await made.session.delete_message(made.id)
        again = Agent("editor", store=SQLiteStore(file))
        async with again.serving(), client(again, 2) as talk:
            await talk.call(1, "session/resume", sessionId=id, cwd="/", mcpServers=[])
            found = again.find(id)
            assert found is not None
            made = Undoing(found, made.id)
            assert made.shown is None
            assert await found.undo_edit(made.id)
            assert made.shown == "b"
            back = await talk.update("agent_message", content=[text("b")])
            assert "deleted" not in back["_meta"]["antiphon"]
            assert await found.undo_edit(made.id)
            assert made.shown == "a"
            assert await found.redo_edit(made.id)
            assert made.shown == "b"

    async def test_a_fork_begins_with_what_is_shown(self) -> None:
        agent = Agent("editor")
        async with session(agent) as (talk, id):
            made = await begun(agent, id)
            await made.session.replace_message(made.id, "b")
            await made.session.delete_message(made.id)
            forked = await talk.call(7, "session/fork", sessionId=id, cwd="/", mcpServers=[])
            there = agent.find(forked["sessionId"])
            assert there is not None
            message = there.fold.message(MessageType.AGENT, made.id)
            assert message is not None
            assert message.deleted
            assert not await there.undo_edit(made.id)

    async def test_an_unknown_message_is_the_authors_mistake(self) -> None:
        agent = Agent("editor")
        async with session(agent) as (_, id):
            found = agent.find(id)
            assert found is not None
            for act in (found.delete_message, found.undo_edit, found.redo_edit, found.append_message):
                with pytest.raises(LocalError, match="no message with the id 'nothing'"):
                    await act("nothing")


class TestReferences:
    @pytest.mark.parametrize("version", [1, 2])
    async def test_messages_and_tool_calls_say_what_they_are_about(self, version: int) -> None:
        agent = Agent("referring")

        @agent.on_prompt
        async def work(turn: AgentTurn) -> None:
            async with turn.message(about=turn.prompt) as message:
                await message.write("I see. ")
                await message.write("Wait.")
            async with turn.tool_call("look", about=message):
                pass
            await turn.say("Done.", about=message.message_id)

        async with session(agent, version) as (talk, id):
            talk.prompt(1, id, "go")
            call = await talk.update("tool_call" if version == 1 else "tool_call_update", title="look")
            first = next(each for each in tells(talk) if each.get("content") == text("I see. "))
            assert call["_meta"]["antiphon"]["about"] == {"messageId": first["messageId"]}
            found = agent.find(id)
            assert found is not None
            await talk.until(lambda frame: "Done." in str(frame))
            prompt, said, done = found.fold.messages
            assert (said.about, done.about) == (prompt.id, said.id)
            (call_item,) = found.fold.tool_calls
            assert call_item.about == said.id
            loaded = "session/load" if version == 1 else "session/resume"
            how = {} if version == 1 else {"replayFrom": {"type": "start"}}
            before = len(talk.seen)
            await talk.call(2, loaded, sessionId=id, cwd="/", mcpServers=[], **how)
            replayed = [frame["params"]["update"] for frame in talk.seen[before:] if "params" in frame]
            abouts = [ours_in(each.get("_meta")).get("about") for each in replayed]
            assert [about["messageId"] for about in abouts if about] == [prompt.id, said.id, said.id]
