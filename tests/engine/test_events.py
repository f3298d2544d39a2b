"""Events keep what they were born with, and every format ever released is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Raw

from antiphon.engine import events as e
from antiphon.engine.events import (
    AnyBody,
    Event,
    Translated,
    Updated,
    decode_event,
    encode_event,
)
from antiphon.engine.fold import _BODIES
from antiphon.engine.session import Session
from antiphon.engine.snapshot import parts, state_update
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.content import TextContent
from antiphon.schema.v2.identifiers import MessageId
from antiphon.schema.v2.messages import AgentMessageChunk
from antiphon.schema.wire import Unknown

from .journals import AT, chunk, decoded, queued, raw, replay, text, update

JOURNALS = Path(__file__).parents[1] / "journals"
CHUNK = AgentMessageChunk(message_id=MessageId("m"), content=TextContent(text="hi"))


def test_an_update_is_encoded_once_and_its_typed_form_is_kept() -> None:
    body = Updated.of(CHUNK)
    assert body == chunk("m", "hi")
    assert body.update is CHUNK
    event = Event(7, AT, body)
    assert encode_event(event) == (
        b'{"seq":7,"at":1700000000000,"body":{"type":"update","update":{"sessionUpdate":"agent_message_chunk",'
        b'"messageId":"m","content":{"type":"text","text":"hi"}}}}'
    )


def test_an_update_keeps_the_bytes_its_sender_wrote() -> None:
    written = (
        b'{ "sessionUpdate":"agent_message_chunk", "messageId":"m", "x":1e2,'
        b' "content":{"type":"text","text":"hi"}}'
    )
    body = Updated.of(CHUNK, raw=written)
    read = decode_event(encode_event(Event(1, AT, body)))
    assert read.body == body
    assert isinstance(read.body, Updated)
    assert bytes(read.body.raw) == written
    assert read.body.update == CHUNK


def test_an_update_that_was_written_over_several_lines_is_one_line_of_the_journal() -> None:
    line = encode_event(Event(1, AT, Updated.of(CHUNK, raw=msgspec.json.format(msgspec.json.encode(CHUNK)))))
    assert b"\n" not in line
    event = decode_event(line)
    assert isinstance(event.body, Updated)
    assert event.body.update == CHUNK


def test_a_typed_form_is_read_when_asked_for_and_once() -> None:
    body = chunk("m", "hi")
    assert body.update == CHUNK
    assert body.update is body.update
    assert isinstance(Updated.update, e.lazy)


def test_an_unknown_update_is_kept_whole_and_a_known_tag_with_a_bad_payload_is_an_error() -> None:
    assert update("_odd", deep={"x": [1]}).update == Unknown(sessionUpdate="_odd", deep={"x": [1]})
    with pytest.raises(Malformed):
        _ = update("agent_message_chunk", messageId=3).update


def test_the_content_of_a_prompt_is_read_when_asked_for() -> None:
    assert queued("m", "hi").content == [TextContent(text="hi")]
    odd = e.PromptQueued(message_id="m", raw_content=raw([{"type": "_odd"}, text("x")]))
    assert odd.content == [Unknown(type="_odd"), TextContent(text="x")]


@pytest.mark.parametrize("line", [b"", b"{}", b'{"seq":1,"at":2,"body":{"type":"_no"}}', b"\xff", b"[1,2]"])
def test_what_is_no_event_is_told_apart(line: bytes) -> None:
    with pytest.raises(e.UnreadableEvent):
        decode_event(line)


def test_every_kind_of_event_is_folded_and_recorded() -> None:
    kinds = set(get_args(AnyBody))
    assert kinds == {Updated, Translated, *_BODIES}
    recorded = {
        type(event.body) for path in JOURNALS.glob("*/*.jsonl") for event in decoded(path.read_bytes())
    }
    assert recorded == kinds


def as_json(session: Session) -> dict[str, Any]:
    return {
        "parts": {key: json.loads(part) for key, part in sorted(parts(session).items())},
        "replay": [json.loads(line) for line in replay(session)],
        "state": json.loads(state_update(session)),
    }


@pytest.mark.parametrize(
    "path", sorted(JOURNALS.glob("*/*.jsonl")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_a_recorded_journal_folds_to_what_it_folded_to_when_it_was_recorded(path: Path) -> None:
    session = Session().fold(decoded(path.read_bytes()))
    assert as_json(session) == json.loads(path.with_suffix(".json").read_text())


def test_the_first_event_names_the_format() -> None:
    for path in JOURNALS.glob("*/*.jsonl"):
        first = decoded(path.read_bytes())[0]
        assert isinstance(first.body, e.SessionCreated)
        assert str(first.body.format) == path.parent.name
    written = encode_event(Event(1, AT, e.SessionCreated(session_id="s", cwd="/")))
    assert json.loads(written)["body"]["format"] == e.FORMAT


def test_a_raw_result_that_is_absent_is_null() -> None:
    closed = e.QuestionClosed(question_id="q", end=e.QuestionEnd.EXPIRED)
    read = decode_event(encode_event(Event(1, AT, closed)))
    assert read.body == closed
    assert closed.result == Raw(b"null")
