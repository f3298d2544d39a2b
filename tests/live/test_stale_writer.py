"""A live session that another writer has taken over: what it had not committed was shown to no client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live.attached import attached
from tests.live.shared_stores import KINDS, two_stores
from tests.live.test_live import Client, chunk, create, following, texts
from tests.live.test_texts import text

from antiphon.engine.events import Event, encode_event
from antiphon.errors import StaleWriter
from antiphon.live.session import LiveSession
from antiphon.live.stored_session import read_session
from antiphon.stores.base import Batch

DEADLINE = 60.0


def emit(live: LiveSession) -> None:
    live.emit([chunk("never "), chunk("committed")])


def stream(live: LiveSession) -> None:
    live.stream_text([text("never "), text("committed")])


@pytest.mark.parametrize("write", [emit, stream])
@pytest.mark.parametrize("kind", KINDS)
async def test_events_after_those_of_another_writer_are_shown_to_nobody(
    kind: str, write: Callable[[LiveSession], None], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    client, failed = Client(), asyncio.Event()
    async with two_stores(kind, tmp_path, request) as (one, other):
        async with await create(one) as live, following(live, client), attached() as late:
            live.observe(changed=lambda: None, failed=failed.set)
            await client.until(live.emit([chunk("kept")]))
            theirs = Event(3, 0, chunk(" by the other"))
            await other.append("s", Batch(3, (encode_event(theirs),)))
            write(live)
            late.voice.pin(live, lambda *_: None, history=True)
            late.voice.start(state=True)
            async with asyncio.timeout(DEADLINE):
                await failed.wait()
                with pytest.raises(StaleWriter):
                    await live.durable()
                await late.voice.reached(live.fold.last_seq)
            with pytest.raises(StaleWriter):
                live.emit([chunk("more")])
            assert texts(client.events) == ["kept"]
            assert not any(b"never" in frame for frame in late.frames)
        fold = await read_session(other, "s")
        assert [message.text for message in fold.messages] == ["kept by the other"]
