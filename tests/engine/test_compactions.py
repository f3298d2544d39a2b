"""A compaction stays where it was first reported."""

from __future__ import annotations

from antiphon.schema.v2.compaction import CompactionId, CompactionStatus, CompactionUpdate
from antiphon.schema.v2.content import TextContent
from tests.requirements.marks import requirement

from .journals import chunk, folded, text, update


@requirement("COMP-03", "COMP-04")
def test_a_chunk_creates_it_in_progress_and_later_updates_patch_it_in_place() -> None:
    piece = update("compaction_summary_chunk", compactionId="k", content=text("so "))
    session = folded(piece, chunk("m", "x"), piece)
    assert session.compactions.get("k") is session.items[0]
    assert session.items[0].materialize() == CompactionUpdate(
        compaction_id=CompactionId("k"),
        status=CompactionStatus.IN_PROGRESS,
        summary=[TextContent(text="so so ")],
        error=None,
        meta=None,
    )
    done = update(
        "compaction_update", compactionId="k", status="failed", summary=None, error="no", meta={"a": 1}
    )
    (compaction,) = folded(piece, done).compactions
    assert compaction.materialize() == CompactionUpdate(
        compaction_id=CompactionId("k"),
        status=CompactionStatus.FAILED,
        summary=None,
        error="no",
        meta={"a": 1},
    )


@requirement("COMP-03")
def test_a_status_alone_keeps_the_summary() -> None:
    piece = update("compaction_summary_chunk", compactionId="k", content=text("so"))
    (compaction,) = folded(
        piece, update("compaction_update", compactionId="k", status="completed")
    ).compactions
    assert (compaction.status, compaction.summary) == (CompactionStatus.COMPLETED, [TextContent(text="so")])
