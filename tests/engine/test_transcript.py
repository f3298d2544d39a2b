"""Messages are what their chunks and upserts say, by type and id."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.engine.transcript import MessageType
from antiphon.schema.v2.content import Annotations, ImageContent, TextContent
from antiphon.schema.v2.identifiers import MediaType
from antiphon.schema.v2.messages import AgentMessage, AgentThought, UserMessage
from antiphon.schema.wire import Unknown
from tests.requirements.marks import requirement

from .journals import chunk, folded, text, update

IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


def said(**fields: Any) -> Any:
    return update("agent_message", messageId="m", **fields)


@requirement("MSG-08")
def test_the_same_id_names_a_user_message_an_agent_message_and_a_thought() -> None:
    session = folded(
        chunk("m", "a", tag="agent_message_chunk"),
        chunk("m", "t", tag="agent_thought_chunk"),
        chunk("m", "u", tag="user_message_chunk"),
        chunk("m", "!", tag="agent_message_chunk"),
    )
    assert [message.materialize() for message in session.messages] == [
        AgentMessage(message_id="m", content=[TextContent(text="a!")], meta=None),  # type: ignore[arg-type]
        AgentThought(message_id="m", content=[TextContent(text="t")], meta=None),  # type: ignore[arg-type]
        UserMessage(message_id="m", content=[TextContent(text="u")], meta=None),  # type: ignore[arg-type]
    ]


@requirement("MSG-06", "MSG-22")
def test_chunks_of_several_messages_interleave_and_each_keeps_its_place() -> None:
    session = folded(chunk("a", "1"), chunk("b", "x"), chunk("a", "2"), chunk("b", "y"), said(content=None))
    assert [(message.id, message.text, message.position) for message in session.messages] == [
        ("a", "12", 1),
        ("b", "xy", 2),
        ("m", "", 5),
    ]


@requirement("MSG-13", "MSG-15")
@pytest.mark.parametrize(
    ("upsert", "expected"),
    [
        ({}, "before"),
        ({"content": None}, ""),
        ({"content": []}, ""),
        ({"content": [text("new")]}, "new"),
        ({"content": 7}, "before"),  # MSG-23: malformed counts as absent
    ],
)
def test_a_whole_message_keeps_clears_or_replaces_and_chunks_go_on_from_there(
    upsert: dict[str, Any], expected: str
) -> None:
    session = folded(chunk("m", "before"), said(**upsert))
    assert session.messages[0].text == expected
    assert folded(chunk("m", "before"), said(**upsert), chunk("m", "+")).messages[0].text == f"{expected}+"


@pytest.mark.parametrize(
    "revived", [said(content=[text("b")]), chunk("m", "b"), said(content=[text("b")], _meta={"k": 2})]
)
def test_a_message_that_was_deleted_and_has_content_again_does_not_say_that_it_is_deleted(
    revived: Any,
) -> None:
    gone = said(content=[], _meta={"k": 1, "antiphon": {"deleted": True}})
    assert folded(chunk("m", "a"), gone).messages[0].deleted
    (message,) = folded(chunk("m", "a"), gone, revived).messages
    assert "deleted" not in str(message.materialize().meta)
    (emptied,) = folded(chunk("m", "a"), gone, revived, said(content=[])).messages
    assert not emptied.deleted
    assert emptied.meta["k"] in (1, 2)


@requirement("MSG-14")
def test_a_new_message_without_content_starts_empty() -> None:
    assert folded(said()).messages[0].content == []


@requirement("MSG-23")
def test_bad_blocks_are_skipped_one_by_one() -> None:
    session = folded(said(content=[text("a"), {"type": "text"}, {"type": "_odd", "x": 1}, 5]))
    assert session.messages[0].content == [TextContent(text="a"), Unknown(type="_odd", x=1)]


def test_plain_text_that_was_streamed_is_one_block_and_blocks_of_an_array_stay_apart() -> None:
    note = Annotations(priority=0.5)
    session = folded(
        said(content=[text("/run"), text("all")]),
        chunk("m", " of"),
        chunk("m", " it"),
        update("agent_message_chunk", messageId="m", content=IMAGE),
        chunk("m", ""),
        update("agent_message_chunk", messageId="m", content=text("n", annotations={"priority": 0.5})),
        chunk("m", "end"),
    )
    assert session.messages[0].content == [
        TextContent(text="/run"),
        TextContent(text="all of it"),
        ImageContent(data="AA==", mime_type=MediaType("image/png")),
        TextContent(text=""),
        TextContent(text="n", annotations=note),
        TextContent(text="end"),
    ]


def test_a_very_long_message_is_whole() -> None:
    pieces = [f"{n} " for n in range(3000)]
    assert folded(*(chunk("m", piece) for piece in pieces)).messages[0].text == "".join(pieces)


@requirement("MSG-18")
@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({}, {"a": 1, "b": {"x": 1}}),
        ({"meta": None}, {}),
        ({"meta": {}}, {"a": 1, "b": {"x": 1}}),
        ({"meta": {"a": None}}, {"b": {"x": 1}}),
        ({"meta": {"b": {"y": 2}, "c": 3}}, {"a": 1, "b": {"y": 2}, "c": 3}),
    ],
)
def test_meta_is_patched_by_its_keys(patch: dict[str, Any], expected: dict[str, Any]) -> None:
    session = folded(said(meta={"a": 1, "b": {"x": 1}, "gone": None}), said(**patch))
    assert session.messages[0].meta == expected


@requirement("MSG-19")
def test_meta_of_a_chunk_is_the_chunks_own() -> None:
    session = folded(update("agent_message_chunk", messageId="m", content=text("x"), meta={"a": 1}))
    assert session.messages[0].meta == {}


def test_a_message_is_found_by_type_and_id() -> None:
    session = folded(chunk("m", "x"))
    assert session.message(MessageType.AGENT, "m") is session.messages[0]
    assert session.message(MessageType.USER, "m") is None


def test_what_was_read_does_not_change_with_what_comes_later() -> None:
    session = folded(chunk("m", "x"))
    content = session.messages[0].content
    content.append(TextContent(text="mine"))
    assert session.messages[0].content == [TextContent(text="x")]
