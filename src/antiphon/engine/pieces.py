"""Pieces: the items of a session as updates of bounded size.

An item is frozen in one step and written later, a piece at a time: text as a whole-message update and then as
chunks, which append; in the same way the content of a tool call and the output of a terminal. Frozen items
share their text with the session, so many clients that replay a large message hold it once.

What the protocol cannot append stays in one update, whatever its size: an image, one diff, a raw input.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, AnyStr, Protocol

from msgspec import Struct, structs

from antiphon.engine.content import is_plain
from antiphon.engine.items import Compaction, Item
from antiphon.engine.json_values import encode
from antiphon.engine.subagents import SessionNote
from antiphon.engine.tools import Terminal, ToolCall
from antiphon.engine.transcript import CHUNK, Message
from antiphon.schema import v2

PIECE = 128 * 1024
"""Characters of text, or bytes of terminal output, in one update."""


class Frozen(Protocol):
    """An item as it was when it was frozen."""

    def updates(self, *, grows: bool) -> Iterator[Any]:
        """Yield the updates that contain all of it, in order. Without `grows` the client cannot append to a
        tool call or a terminal, so each of those is one update."""


def freeze(item: Item) -> Frozen:
    match item:
        case Message():
            empty = not any(item.parts())
            return _blocks(item, item.bare(empty=empty), partial(CHUNK[item.type], message_id=item.id))
        case SessionNote():
            return _blocks(item, item.bare(), partial(v2.SessionMessageChunk, message_id=item.id))
        case Compaction():
            chunk = partial(v2.CompactionSummaryChunk, compaction_id=item.id)
            return _blocks(item, item.bare(), chunk, field="summary")
        case ToolCall():
            return _Call(item.materialize())
        case Terminal():
            return _Output(item.bare(), item.parts())
    return _Whole(item.materialize())


class _Whole(Struct, frozen=True):
    update: Any

    def updates(self, *, grows: bool) -> Iterator[Any]:
        yield self.update


def _blocks(
    item: Message | Compaction | SessionNote, bare: Any, chunk: Callable[..., Any], field: str = "content"
) -> _Blocks:
    blocks, texts = item.parts()
    return _Blocks(bare, field, chunk, blocks, texts)


class _Blocks(Struct, frozen=True):
    """Content blocks, and the plain text after them, in several strings."""

    bare: Any
    """The update without its content, which is in `field`."""
    field: str
    chunk: Callable[..., Any]
    """Makes the update that appends one block."""
    blocks: Sequence[v2.ContentBlock]
    texts: Sequence[str]

    def updates(self, *, grows: bool) -> Iterator[Any]:
        size = sum(map(len, self.texts)) + sum(map(_size, self.blocks))
        if size <= PIECE:
            text = [v2.TextContent(text="".join(self.texts))] if self.texts else []
            yield self._whole([*self.blocks, *text])
            return
        # Blocks of one array stay apart, while a chunk of plain text extends the plain text before it. So all
        # plain blocks that stand behind another one are in the first update, the last of them as a piece.
        plain = [*map(is_plain, self.blocks), *([True] if self.texts else [])]
        apart = [at for at in range(1, len(plain)) if plain[at - 1] and plain[at]]
        first = apart[-1] if apart else 0
        pieces = self._pieces(first)
        yield self._whole([*self.blocks[:first], *([next(pieces)] if first else [])])  # SESS-23
        for piece in pieces:
            yield self.chunk(content=piece)

    def _whole(self, content: list[v2.ContentBlock]) -> Any:
        return structs.replace(self.bare, **{self.field: content}) if content else self.bare

    def _pieces(self, first: int) -> Iterator[v2.ContentBlock]:
        for block in self.blocks[first:]:
            if type(block) is v2.TextContent and is_plain(block):
                yield from _texts((block.text,))
            else:
                yield block
        if self.texts:
            yield from _texts(self.texts)


class _Call(Struct, frozen=True):
    update: v2.SessionToolCallUpdate

    def updates(self, *, grows: bool) -> Iterator[Any]:
        update = self.update
        content = update.content
        if not grows or not isinstance(content, list) or not content:
            yield update
            return
        size, first = 0, 0
        for item in content:
            size += _weight(item)
            if size > PIECE and first:
                break
            first += 1
        yield structs.replace(update, content=content[:first])
        for item in content[first:]:
            yield v2.ToolCallContentChunk(tool_call_id=update.tool_call_id, content=item)


class _Output(Struct, frozen=True):
    update: v2.TerminalUpdate
    parts: Sequence[bytes] | None

    def updates(self, *, grows: bool) -> Iterator[Any]:
        if self.parts is None:
            yield self.update
            return
        pieces = cut(self.parts, PIECE if grows else sum(map(len, self.parts)) or 1)
        yield structs.replace(self.update, output=v2.TerminalOutput(data=_base64(next(pieces, b""))))
        for piece in pieces:
            yield v2.TerminalOutputChunk(terminal_id=self.update.terminal_id, data=_base64(piece))


def cut(parts: Iterable[AnyStr], size: int) -> Iterator[AnyStr]:
    """Yield the same text in pieces of `size`; the last one may be shorter."""
    held: list[AnyStr] = []
    left = size
    for part in parts:
        start = 0
        while start < len(part):
            piece = part[start : start + left]
            held.append(piece)
            start += len(piece)
            left -= len(piece)
            if not left:
                yield part[:0].join(held)
                held, left = [], size
    if held:
        yield held[0][:0].join(held)


def _texts(texts: Sequence[str]) -> Iterator[v2.ContentBlock]:
    if not any(texts):
        yield v2.TextContent(text="")
    for piece in cut(texts, PIECE):
        yield v2.TextContent(text=piece)


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def _size(block: v2.ContentBlock) -> int:
    return len(block.text) if type(block) is v2.TextContent else len(encode(block))


def _weight(item: v2.ToolCallContent) -> int:
    return _size(item.content) if type(item) is v2.Content else len(encode(item))
