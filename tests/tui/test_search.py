"""The search over all sessions in the terminal."""

from __future__ import annotations

import msgspec

from antiphon import Hub, MemoryStore
from antiphon.stores import Batch, SessionRecord
from antiphon.testing.store_searches import said
from antiphon.tui.screens.search import SearchScreen
from antiphon.tui.screens.sessions import SessionsScreen
from tests.tui.conftest import scene


async def kept(store: MemoryStore, session_id: str, title: str, *texts: str) -> None:
    created = {"type": "session_created", "session_id": session_id, "cwd": "/site", "format": 1}
    first = msgspec.json.encode({"seq": 1, "at": 1, "body": created})
    lines = [said(seq, text, id=f"m{seq}") for seq, text in enumerate(texts, 2)]
    record = SessionRecord(session_id=session_id, cwd="/site", title=title, created_at=1, updated_at=1)
    await store.create(record, batch=Batch(1, (first, *lines)))


async def test_a_message_is_found_in_all_sessions_and_opened_at_its_place() -> None:
    store = MemoryStore()
    await kept(store, "s1", "On music", "the \x1b[31m xylophone concert", *(f"line {n}" for n in range(200)))
    await kept(store, "s2", "Another", "nothing of it")
    async with scene(Hub({}, store=store), version=2, new=False) as stage:
        await stage.until(lambda: isinstance(stage.app.screen, SessionsScreen))
        await stage.shows("On music")
        await stage.pilot.press("slash", *"xyl concerto")
        await stage.shows("Nothing found")
        await stage.pilot.press("backspace")  # "xyl concert": only the last word may be cut short
        await stage.pilot.press("ctrl+u", *'"xylophone con')
        await stage.shows("1 found")
        assert "xylophone concert" in stage.text
        assert "\x1b" not in stage.text
        await stage.pilot.press("escape")
        await stage.until(lambda: isinstance(stage.app.screen, SessionsScreen))
        await stage.pilot.press("slash", *"xylophone")
        await stage.until(lambda: isinstance(stage.app.screen, SearchScreen))
        await stage.shows("1 found")
        await stage.pilot.press("enter")
        await stage.opened()
        await stage.shows("xylophone concert")
        assert stage.chat.session.id == "s1"
        pointed = stage.chat.transcript.pointed
        assert pointed is not None
        assert pointed.key == "message/agent/m2"
        assert stage.chat.transcript.has_focus
