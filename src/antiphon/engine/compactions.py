"""Compactions: patched by id, at the place of their first report (COMP-03)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, structs

from antiphon.engine.content import Content, patch_meta
from antiphon.schema.v2.compaction import (
    CompactionId,
    CompactionStatus,
    CompactionSummaryChunk,
    CompactionUpdate,
)
from antiphon.schema.v2.content import ContentBlock


class Compaction:
    __slots__ = ("_summary", "error", "id", "key", "meta", "position", "status")

    def __init__(self, id: CompactionId, *, position: int) -> None:
        self.id = id
        self.key = f"compaction/{id}"
        self.position = position
        self.status = CompactionStatus.IN_PROGRESS
        self.error: str | None = None
        self.meta: dict[str, Any] = {}
        self._summary = Content()

    @property
    def summary(self) -> list[ContentBlock]:
        return self._summary.blocks

    def append(self, block: ContentBlock) -> None:
        self._summary.append(block)

    def patch(self, update: CompactionUpdate) -> None:
        self.status = update.status
        if update.summary is not UNSET:
            self._summary.replace(update.summary or ())
        if update.error is not UNSET:
            self.error = update.error
        self.meta = patch_meta(self.meta, update.meta)

    def materialize(self) -> CompactionUpdate:
        """One update with all that is known (COMP-06)."""
        return structs.replace(self.bare(), summary=self.summary or None)

    def bare(self) -> CompactionUpdate:
        """The same without its summary."""
        return CompactionUpdate(
            compaction_id=self.id,
            status=self.status,
            summary=None,
            error=self.error,
            meta=self.meta or None,
        )

    def parts(self) -> tuple[list[ContentBlock], list[str]]:
        """The summary as it is kept: blocks, and the strings of the plain text behind them."""
        return self._summary.parts


class Compactions:
    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[str, Compaction] = {}

    def __iter__(self) -> Iterator[Compaction]:
        """In the order of first appearance."""
        return iter(self._by_id.values())

    def get(self, id: str) -> Compaction | None:
        return self._by_id.get(id)

    def patch(self, update: CompactionUpdate, *, position: int) -> Compaction:
        compaction = self._of(update.compaction_id, position)
        compaction.patch(update)
        return compaction

    def chunk(self, update: CompactionSummaryChunk, *, position: int) -> Compaction:
        compaction = self._of(update.compaction_id, position)
        compaction.append(update.content)
        return compaction

    def _of(self, id: CompactionId, position: int) -> Compaction:
        compaction = self._by_id.get(id)
        if compaction is None:  # COMP-04
            compaction = self._by_id[id] = Compaction(id, position=position)
        return compaction
