"""Sections 7 and 18 as they bind a client: what the session holds of messages and their content."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import File, TurnEnd
from antiphon.schema import v2
from tests.requirements.agent_by_hand import ALL_V1, ALL_V2, session, story, text, whole
from tests.requirements.marks import requirement

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def message(id: str, *content: Any, **fields: Any) -> dict[str, Any]:
    """A whole agent message as the session holds it."""
    said = {"sessionUpdate": "agent_message", "messageId": id, "content": list(content)}
    return {**said, "_meta": None, **fields}


@requirement("MSG-05", "SD-26")
async def test_in_v1_another_id_begins_another_message() -> None:
    async with session(1) as (of, agent):
        await of.prompt("go")
        agent.says(of, "One, ", messageId="1")
        agent.says(of, "still one.", messageId="1")
        agent.says(of, "Two.", messageId="2")
        await agent.settled(of)
        assert story(of)[1:] == [("agent", "1", "One, still one."), ("agent", "2", "Two.")]


@requirement("MSG-05", "SD-26")
async def test_in_v1_without_ids_another_kind_or_something_between_is_the_boundary() -> None:
    async with session(1) as (of, agent):
        await of.prompt("go")
        agent.says(of, "One, ")
        agent.update(of, "usage_update", used=1, size=2)
        agent.says(of, "still one.")
        agent.update(of, "agent_thought_chunk", content=text("Hm."))
        agent.says(of, "Two.")
        agent.update(of, "tool_call", toolCallId="t", title="Read")
        agent.says(of, "Three, ")
        agent.update(of, "tool_call_update", toolCallId="t", status="completed")
        agent.says(of, "still three.")
        await agent.settled(of)
        assert [(role, words) for role, _, words in story(of)] == [
            ("user", "go"),
            ("agent", "One, still one."),
            ("thought", "Hm."),
            ("agent", "Two."),
            ("agent", "Three, still three."),
        ]
        assert len({id for _, id, _ in story(of)}) == 5


@requirement("MSG-05")
async def test_in_v1_the_end_of_a_turn_parts_two_messages_without_ids() -> None:
    async with session(1) as (of, agent):
        for words in ("One.", "Two."):
            turn = await of.prompt("go")
            agent.says(of, words)
            agent.answer(await agent.request("session/prompt"), {"stopReason": "end_turn"})
            assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason.END_TURN)
            assert turn.text == words
        assert [words for role, _, words in story(of) if role == "agent"] == ["One.", "Two."]


@requirement("MSG-06", "SD-26", "MSG-22")
async def test_in_v2_chunks_interleave_and_each_message_keeps_its_place() -> None:
    async with session() as (of, agent):
        await agent.working(of, "go")
        agent.says(of, "a1 ", messageId="a")
        agent.says(of, "b1 ", messageId="b")
        agent.update(of, "agent_thought_chunk", messageId="t", content=text("t1 "))
        agent.says(of, "a2 ", messageId="a")
        agent.update(of, "agent_thought_chunk", messageId="t", content=text("t2 "))
        agent.update(of, "agent_message", messageId="b", content=[text("b2 ")])
        agent.says(of, "a3 ", messageId="a")
        agent.says(of, "b3 ", messageId="b")
        await agent.settled(of)
        assert story(of) == [
            ("user", "u1", "go"),
            ("agent", "a", "a1 a2 a3 "),
            ("agent", "b", "b2 b3 "),
            ("thought", "t", "t1 t2 "),
        ]


@requirement("MSG-08")
async def test_one_id_names_three_messages_of_three_types() -> None:
    async with session() as (of, agent):
        turn = await agent.working(of, "go", "1")
        agent.update(of, "agent_thought_chunk", messageId="1", content=text("Think."))
        agent.says(of, "Say.", messageId="1")
        agent.update(of, "agent_thought", messageId="1", content=[text("Thought.")])
        agent.state(of, "idle", stopReason="end_turn")
        await turn.drained()
        assert story(of) == [("user", "1", "go"), ("thought", "1", "Thought."), ("agent", "1", "Say.")]
        assert turn.text == "Say."


@requirement("MSG-09")
@pytest.mark.parametrize("version", [1, 2])
async def test_ids_are_compared_as_strings_and_never_read(version: int) -> None:
    ids = ["1", "01", "1.0", " 1", "A", "a", "é", "e\u0301", "null", "b:agent:1.1", "0" * 200, "\U0001f600"]
    async with session(version) as (of, agent):
        for _ in range(2):
            for id in ids:
                agent.says(of, f"[{id}]", messageId=id)
        await agent.settled(of)
        if version == 1:  # a changed id begins another message, and the same id is the same one again
            assert {id for _, id, _ in story(of)} == set(ids)
        assert story(of) == [("agent", id, f"[{id}][{id}]") for id in ids]


@requirement("MSG-10")
async def test_a_client_makes_no_ids() -> None:
    async with session() as (of, agent):
        agent.meanwhile(of.prompt("hi"))
        assert (await agent.request("session/prompt"))["params"] == {"sessionId": "s", "prompt": [text("hi")]}
        await of.cancel()
        assert (await agent.request("session/cancel"))["params"] == {"sessionId": "s"}


@requirement("MSG-13", "MSG-14", "MSG-15", "MSG-21")
async def test_a_whole_message_keeps_clears_or_replaces_and_chunks_append() -> None:
    async with session() as (of, agent):

        async def after(kind: str, **fields: Any) -> list[Any]:
            agent.update(of, kind, messageId="a", **fields)
            await agent.settled(of)
            return list(whole(of.messages[0])["content"])

        assert await after("agent_message") == []
        assert await after("agent_message_chunk", content=text("one")) == [text("one")]
        assert await after("agent_message") == [text("one")]
        assert await after("agent_message_chunk", content=IMAGE) == [text("one"), IMAGE]
        assert await after("agent_message", content=[text("two"), IMAGE]) == [text("two"), IMAGE]
        assert await after("agent_message", content=None) == []
        assert await after("agent_message_chunk", content=text("three")) == [text("three")]
        assert await after("agent_message", content=[]) == []
        assert len(of.messages) == 1


@requirement("MSG-16", "RPC-37")
async def test_updates_and_chunks_are_applied_in_the_order_they_came() -> None:
    async with session() as (of, agent):
        turn = await agent.working(of, "go")
        for n in range(500):
            agent.says(of, f"{n};", messageId="a")
            if n == 250:
                agent.update(of, "agent_message", messageId="a", content=[text("anew;")])
        agent.state(of, "idle", stopReason="end_turn")
        await turn.drained()
        assert turn.text == "anew;" + "".join(f"{n};" for n in range(251, 500))
        told = [update async for update in turn.updates() if isinstance(update, v2.AgentMessageChunk)]
        assert [update.content for update in told] == [v2.TextContent(text=f"{n};") for n in range(500)]


@requirement("MSG-17")
@pytest.mark.parametrize("wrong", [[text("no")], "no", None, 7])
async def test_a_chunk_is_one_block_and_one_that_is_not_costs_itself_alone(wrong: Any) -> None:
    async with session() as (of, agent):
        agent.says(of, "one ", messageId="a")
        agent.update(of, "agent_message_chunk", messageId="a", content=wrong)
        agent.update(of, "agent_message_chunk", messageId="b", content=wrong)
        agent.says(of, "two", messageId="a")
        await agent.settled(of)
        assert story(of) == [("agent", "a", "one two")]


@requirement("MSG-17", "MSG-23")
@pytest.mark.parametrize("wrong", [text("no"), "no", 7])
async def test_a_whole_content_that_is_no_array_counts_as_omitted(wrong: Any) -> None:
    async with session() as (of, agent):
        agent.says(of, "kept", messageId="a")
        agent.update(of, "agent_message", messageId="a", content=wrong, _meta={"x": 1})
        await agent.settled(of)
        assert [whole(item) for item in of.messages] == [message("a", text("kept"), _meta={"x": 1})]


@requirement("MSG-23")
async def test_bad_blocks_are_skipped_one_by_one_and_the_good_ones_stay() -> None:
    async with session() as (of, agent):
        agent.says(of, "old", messageId="a")
        blocks = [text("one"), {"type": "text"}, 7, {"type": "_map", "at": [1, 2]}, None, text("two")]
        agent.update(of, "agent_message", messageId="a", content=blocks)
        await agent.settled(of)
        good = [text("one"), {"type": "_map", "at": [1, 2]}, text("two")]
        assert [whole(item) for item in of.messages] == [message("a", *good)]


@requirement("MSG-18", "MSG-19")
async def test_meta_of_a_message_is_patched_and_that_of_a_chunk_is_its_own() -> None:
    async with session() as (of, agent):

        async def after(**fields: Any) -> Any:
            agent.update(of, "agent_message", messageId="a", **fields)
            await agent.settled(of)
            return of.messages[0].meta

        assert await after(_meta={"x": {"deep": 1}, "y": 2}) == {"x": {"deep": 1}, "y": 2}
        agent.says(of, "hi", messageId="a", _meta={"z": 3})
        assert await after(content=[text("hi")]) == {"x": {"deep": 1}, "y": 2}
        assert await after(_meta={"x": {"other": 1}, "z": 3}) == {"x": {"other": 1}, "y": 2, "z": 3}
        assert await after(_meta={"y": None}) == {"x": {"other": 1}, "z": 3}
        assert await after(_meta={}) == {"x": {"other": 1}, "z": 3}
        assert await after(_meta=None) == {}


# --- content ---------------------------------------------------------------------------------------


@requirement("CONT-03")
@pytest.mark.parametrize("version", [1, 2])
async def test_every_kind_of_block_is_held_as_it_came(version: int) -> None:
    blocks = [
        {"type": "text", "text": "words", "annotations": {"audience": ["user"], "priority": 0.5}},
        {**IMAGE, "uri": "file:///a.png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3, "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "a"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGk="}},
    ]
    async with session(version) as (of, agent):
        for block in blocks:
            agent.update(of, "agent_message_chunk", messageId="a", content=block)
        await agent.settled(of)
        assert [whole(item) for item in of.messages] == [message("a", *blocks)]


@requirement("CONT-08")
async def test_an_unknown_block_of_an_update_is_kept_whole() -> None:
    strange = {"type": "_map", "at": {"lat": 1}, "text": "here"}
    async with session() as (of, agent):
        agent.says(of, "Look: ", messageId="a")
        agent.update(of, "agent_message_chunk", messageId="a", content=strange)
        await agent.settled(of)
        assert [whole(item) for item in of.messages] == [message("a", text("Look: "), strange)]
        assert of.messages[0].text == "Look: "


@requirement("CONT-07")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_file_is_embedded_where_that_is_taken_and_linked_where_not(
    version: int, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Hi\n")
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG")
    sound = tmp_path / "a.wav"
    sound.write_bytes(b"RIFF")
    files = [File(note, mime_type="text/markdown"), File(picture), File(sound, mime_type="audio/wav")]
    data = [base64.b64encode(path.read_bytes()).decode() for path in (picture, sound)]
    async with session(version, ALL_V1 if version == 1 else ALL_V2) as (of, agent):
        agent.meanwhile(of.prompt("look", *files))
        resource = {"uri": note.as_uri(), "text": "# Hi\n", "mimeType": "text/markdown"}
        assert (await agent.request("session/prompt"))["params"]["prompt"] == [
            text("look"),
            {"type": "resource", "resource": resource},
            {"type": "image", "data": data[0], "mimeType": "image/png"},
            {"type": "audio", "data": data[1], "mimeType": "audio/wav"},
        ]
    async with session(version, {} if version == 1 else {"session": {}}) as (of, agent):
        agent.meanwhile(of.prompt("look", *files))
        link = {"type": "resource_link"}
        assert (await agent.request("session/prompt"))["params"]["prompt"] == [
            text("look"),
            {**link, "uri": note.as_uri(), "name": "note.md", "mimeType": "text/markdown", "size": 5},
            {**link, "uri": picture.as_uri(), "name": "a.png", "mimeType": "image/png", "size": 4},
            {**link, "uri": sound.as_uri(), "name": "a.wav", "mimeType": "audio/wav", "size": 4},
        ]
