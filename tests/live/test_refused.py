"""An event that could not be read back is refused when it is emitted, and harms no other."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec import Raw

from antiphon.engine.events import PromptQueued, QuestionOpened, Translated, Updated
from antiphon.errors import EventRefused
from antiphon.live.session import LiveSession
from antiphon.live.stored_session import read_session
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from antiphon.stores.memory import MemoryStore

DEEP = b'{"sessionUpdate":"_x","a":' + b"[" * 300 + b"]" * 300 + b"}"


def said(text: str) -> v2.AgentMessageChunk:
    return v2.AgentMessageChunk(message_id=v2.MessageId("m"), content=v2.TextContent(text=text))


async def opened(store: MemoryStore) -> LiveSession:
    return await LiveSession.create(store, session_id="s", cwd="/", clock=lambda: 1)


@pytest.mark.parametrize(
    "body",
    [
        Updated(raw=Raw(DEEP)),
        Updated(raw=Raw(b'{"sessionUpdate":"_x","a":"\xff"}')),
        Translated(raw=Raw(b'{"sessionUpdate":"_x"}'), origin=Raw(DEEP)),
        PromptQueued(message_id="p", raw_content=Raw(b"[]"), meta={"x": object()}),
        PromptQueued(message_id="\ud83d", raw_content=Raw(b"[]")),
        PromptQueued(message_id=5, raw_content=Raw(b"[]")),  # type: ignore[arg-type]
        PromptQueued(message_id="p", raw_content=Raw(b"[")),
        QuestionOpened(question_id="q", method="m", params=Raw(DEEP)),
    ],
)
async def test_a_refused_event_takes_no_number_and_the_others_are_kept(body: Updated) -> None:
    store = MemoryStore()
    async with await opened(store) as live:
        live.stream(said("before "))
        last = live.fold.last_seq
        with pytest.raises(EventRefused):
            live.emit((Updated.of(v2.SessionInfoUpdate(title="not taken")), body))
        assert live.fold.last_seq == last, "all of them are taken, or none"
        live.stream(said("after"))
        await live.durable()
        assert not live.failed
    fold = await read_session(store, "s")
    assert [message.text for message in fold.messages] == ["before after"]
    assert fold.facts.info is None


async def test_an_update_of_several_lines_is_one_event() -> None:
    store = MemoryStore()
    async with await opened(store) as live:
        live.emit((Updated(raw=Raw(b'{\n"sessionUpdate":\r\n"session_info_update",\n"title":"T"}')),))
        await live.durable()
        assert (await store.read("s", 0)).last == 2
    fold = await read_session(store, "s")
    assert fold.facts.info is not None
    assert fold.facts.info.title == "T"


async def test_what_is_emitted_does_not_change_with_what_its_emitter_holds() -> None:
    meta = {"x": [1]}
    store = MemoryStore()
    async with await opened(store) as live:
        live.emit((PromptQueued(message_id="p", raw_content=Raw(b"[]"), meta=meta),))
        meta["x"].append(meta)  # type: ignore[arg-type]
        await live.durable()
        entry = live.fold.prompts.get("p")
        assert entry is not None
        assert entry.meta == {"x": [1]}


async def test_a_malformed_update_of_a_peer_does_not_keep_its_session_from_being_opened() -> None:
    """It is journalled as it came. The fold passes it over, so that no snapshot holds it."""
    store = MemoryStore()
    async with await opened(store) as live:
        live.emit(
            (Updated.of(Unknown({"sessionUpdate": "tool_call_update", "toolCallId": {"not": "an id"}})),)
        )
        live.emit((Updated.of(said("said")),))
    async with await LiveSession.open(store, "s", clock=lambda: 2) as live:
        assert [message.text for message in live.fold.messages] == ["said"]


class Refusing(MemoryStore):
    """Cannot keep a snapshot."""

    async def save_parts(self, session_id: str, upto: int, parts: Mapping[str, bytes | None]) -> None:
        raise AssertionError("no snapshot is made")


async def test_a_snapshot_that_cannot_be_made_costs_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RecursionError("too deep to be encoded")

    monkeypatch.setattr("antiphon.live.snapshot_saver.take_dirty", fail)
    monkeypatch.setattr("antiphon.live.snapshot_saver.SNAPSHOT_EVERY", 2)
    store = Refusing()
    async with await opened(store) as live:
        for text in "abcd":
            live.emit((Updated.of(said(text)),))
            await live.durable()
        assert not live.failed
    assert [message.text for message in (await read_session(store, "s")).messages] == ["abcd"]
