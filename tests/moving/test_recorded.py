"""Files of every version that was ever written are read for ever."""

from __future__ import annotations

from pathlib import Path

from antiphon.engine.session import Session
from antiphon.hub.settling import agent_of
from tests.moving.files import imported
from tests.transcripts.sample import BODIES, journal

RECORDED = Path(__file__).parent / "recorded"


async def test_version_1_is_read() -> None:
    record, _, fold = await imported((RECORDED / "version_1.antiphon").read_bytes())
    assert (record.session_id, record.title, record.last) == ("sess_sample", "Why is the build red?", 25)
    assert agent_of(record) == "claude"
    assert fold == Session().fold(journal(BODIES))
