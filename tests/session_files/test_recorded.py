"""Files of every version that was ever written are read for ever."""

from __future__ import annotations

from pathlib import Path

from antiphon.engine.session import Session
from antiphon.hub.records import recorded_agent
from antiphon.live.stored_session import read_session
from antiphon.stores import MemoryStore
from tests.session_files.files import imported
from tests.transcripts.sample import BODIES, journal

RECORDED = Path(__file__).parent / "recorded"


async def test_version_1_is_read() -> None:
    record, _, fold = await imported((RECORDED / "version_1.antiphon").read_bytes())
    assert (record.session_id, record.title, record.last) == ("sess_sample", "Why is the build red?", 25)
    assert recorded_agent(record) == "claude"
    assert fold == Session().fold(journal(BODIES))


async def test_version_2_is_read_with_the_sessions_of_its_subagents() -> None:
    store = MemoryStore()
    record, _, fold = await imported((RECORDED / "version_2.antiphon").read_bytes(), store)
    assert [message.text for message in fold.messages] == ["Why is it red?"]
    researcher, writer = [await read_session(store, told.id) for told in fold.subagents]
    assert [message.text for message in researcher.messages] == ["I ask somebody."]
    assert [message.text for message in writer.messages] == ["Mended."]
    [reader] = [await read_session(store, told.id) for told in researcher.subagents]
    assert [message.text for message in reader.messages] == ["It is in line 7."]
    assert reader.created is not None
    assert reader.created.meta == {"subagentOf": researcher.created and researcher.created.session_id}
    assert record.cwd == "/site"
