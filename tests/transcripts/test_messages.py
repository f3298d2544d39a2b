"""Deleted messages leave a mark in transcripts, and what clients put on messages stands under them."""

from __future__ import annotations

import re

import pytest
from msgspec import Raw

from antiphon.engine import events as e
from antiphon.engine.events import AnyBody
from antiphon.transcripts import to_html, to_markdown
from tests.engine.journals import text, update
from tests.transcripts.sample import told

DELETED = {"antiphon": {"deleted": True}}


def annotated(value: str, *, kind: str = "reaction", by: str = "Ann", id: str = "1") -> AnyBody:
    return update(
        "_antiphon_annotation", annotationId=id, messageId="m", role="agent", kind=kind, value=value,
        by={"clientId": by, "name": by}, at="2026-01-01T00:00:00Z",
    )  # fmt: skip


@pytest.mark.parametrize("write", [to_markdown, to_html])
@pytest.mark.parametrize("kind", ["user_message", "agent_message", "agent_thought"])
def test_a_deleted_message_leaves_a_mark(write: object, kind: str) -> None:
    assert callable(write)
    said = update(kind, messageId="m", content=[text("a secret")])
    gone = update(kind, messageId="m", content=[], meta=DELETED)
    written = "".join(write(told([said, gone])))
    assert "Message deleted" in written
    assert "secret" not in written


@pytest.mark.parametrize("write", [to_markdown, to_html])
def test_reactions_and_notes_stand_under_their_message(write: object) -> None:
    assert callable(write)
    bodies = [
        update("agent_message", messageId="m", content=[text("Done.")]),
        annotated("🎉"),
        annotated("🎉", by="Bob", id="2"),
        annotated("<b>why</b>\n# now?", kind="note", id="3"),
        annotated("gone", kind="note", id="4"),
        update("_antiphon_annotation_removed", annotationId="4", messageId="m", role="agent"),
    ]
    written = "".join(write(told(bodies)))
    assert "🎉 Ann, Bob" in written
    assert "Note by Ann: " in written
    assert "gone" not in written
    assert "<b>why" not in written
    assert "\n# now?" not in written


@pytest.mark.parametrize("write", [to_markdown, to_html])
def test_a_cut_turn_says_by_what_and_that_its_question_was_not_answered(write: object) -> None:
    assert callable(write)
    asked = e.QuestionOpened(
        question_id="q", method="elicitation/create", params=Raw(b'{"message":"Which one?"}')
    )
    closed = e.QuestionClosed(question_id="q", end=e.QuestionEnd.EXPIRED, cause="hub_lost")
    error = {"code": -32603, "message": "m", "data": {"reason": "interrupted", "cause": "hub_lost"}}
    running = update("state_update", state="running")
    end = update("state_update", state="idle", stopReason="error", error=error)
    written = "".join(write(told([running, asked, closed, end])))
    assert "Which one? not answered: the hub ended unexpectedly" in re.sub(r"<[^>]+>|\\", "", written)
    assert "Interrupted: the hub ended unexpectedly" in written
