"""Content that grows by chunks, and the one rule by which `_meta` is patched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, AnyStr

from msgspec import UNSET, UnsetType

from antiphon.schema.v2.content import ContentBlock, TextContent

_RUN = 1024
_SETTLED = 64 * 1024
"""From this length on, a run is not joined to others, because replays share it."""
_CACHED = 1024 * 1024
"""Up to this length the text stays joined once it was read."""


def add_run(runs: list[AnyStr], pieces: list[AnyStr], empty: AnyStr) -> None:
    """Join pieces into a run. Short runs are joined with the ones before them, so that a long text consists
    of a few long strings, and each character is copied a few times at most."""
    run = empty.join(pieces)
    pieces.clear()
    while runs and len(runs[-1]) < _SETTLED and len(runs[-1]) <= len(run):
        run = runs.pop() + run
    runs.append(run)


def is_plain(block: ContentBlock) -> bool:
    """Whether a block is text and nothing else."""
    return type(block) is TextContent and block.annotations is None and block.meta is None


class Content:
    """Blocks, of which the last one may be plain text that still grows.

    A chunk of plain text extends plain text at the end, however that came there. So the content is the same
    whether it was streamed, or replayed whole and then streamed on. Blocks of one array stay separate.
    """

    __slots__ = ("_blocks", "_pieces", "_runs")

    def __init__(self) -> None:
        self._blocks: list[ContentBlock] = []
        self._runs: list[str] = []
        self._pieces: list[str] = []
        # The plain text at the end is `_runs` and then `_pieces`, joined when asked for. Pieces are
        # joined into a run now and then: a million short strings take ten times the room of their text.

    def replace(self, blocks: Sequence[ContentBlock]) -> None:
        self._blocks = list(blocks)
        self._runs = []
        self._pieces = []
        if self._blocks and is_plain(self._blocks[-1]):
            last = self._blocks.pop()
            assert isinstance(last, TextContent)
            self._pieces.append(last.text)

    def append_text(self, texts: Sequence[str]) -> None:
        """Append plain texts, one after the other."""
        pieces = self._pieces
        pieces += texts
        if len(pieces) >= _RUN:
            add_run(self._runs, pieces, "")

    def append(self, block: ContentBlock) -> None:
        if type(block) is TextContent and block.annotations is None and block.meta is None:
            pieces = self._pieces
            pieces.append(block.text)
            if len(pieces) >= _RUN:
                add_run(self._runs, pieces, "")
            return
        self._blocks = [*self.blocks, block]
        self._runs = []
        self._pieces = []

    @property
    def blocks(self) -> list[ContentBlock]:
        """The blocks, as a new list."""
        if not self._pieces and not self._runs:
            return self._blocks.copy()
        text = "".join([*self._runs, *self._pieces])
        if len(text) <= _CACHED:  # a longer one stays in its runs, which replays under way share
            self._runs = [text]
            self._pieces = []
        return [*self._blocks, TextContent(text=text)]

    @property
    def parts(self) -> tuple[list[ContentBlock], list[str]]:
        """The blocks, and the strings of the plain text after them. Nothing is copied."""
        return self._blocks.copy(), [*self._runs, *self._pieces]

    @property
    def empty(self) -> bool:
        return not (self._blocks or self._runs or self._pieces)

    @property
    def text(self) -> str:
        """The text of all text blocks."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextContent))


def patch_meta(current: dict[str, Any], patch: dict[str, Any] | UnsetType | None) -> dict[str, Any]:
    """`current` after a patch: absent keeps, null clears, a key replaces, a null key removes (MSG-18)."""
    if patch is UNSET:
        return current
    if not patch:
        return {} if patch is None else current
    return {key: value for key, value in (current | patch).items() if value is not None}
