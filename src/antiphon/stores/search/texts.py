"""Texts: what events of a journal change in the texts that are searched.

It is the fold of texts alone: the changes of a part of a journal, applied to the texts before it, give the
texts after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct

from antiphon.engine.events import Translated, UnreadableEvent, Updated, decode_event
from antiphon.engine.transcript import MESSAGE_CHUNKS, TYPE_OF
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.content import TextContent
from antiphon.schema.v2.tool_calls import SessionToolCallUpdate
from antiphon.stores.search.base import MatchKind

ITEMS = tuple(f"{kind}/" for kind in MatchKind)
TITLE = "title/"
"""The item of a session's title."""


class TextChange(Struct, eq=False):
    """A change of the text of one item: `parts` replace it, or are appended to it."""

    item: str
    seq: int
    at: int
    """The event with which the change began, and its time."""
    replaces: bool
    parts: list[str]

    @property
    def text(self) -> str:
        return "".join(self.parts)


def item_of(kind: MatchKind, id: str) -> str:
    return f"{kind}/{id}"


def read_item(item: str) -> tuple[MatchKind, str]:
    kind, _, id = item.partition("/")
    return MatchKind(kind), id


def text_changes(lines: Iterable[bytes], *, first: int) -> dict[str, TextChange]:
    """Return the changes of texts in events, by item. Events that cannot be read are skipped."""
    changes: dict[str, TextChange] = {}
    for seq, line in enumerate(lines, first):
        if b"essage" not in line and b"agent_thought" not in line and b"tool_call" not in line:
            continue
        try:
            event = decode_event(line)
            body = event.body
            update: Any = body.update if isinstance(body, Updated | Translated) else None
        except (UnreadableEvent, Malformed, UnicodeDecodeError):
            continue
        _add(changes, update, seq, event.at)
    return changes


def _add(changes: dict[str, TextChange], update: Any, seq: int, at: int) -> None:
    kind = type(update)
    if kind is SessionToolCallUpdate:
        if update.title is not UNSET:
            item = item_of(MatchKind.TOOL, update.tool_call_id)
            _replace(changes, item, seq, at, [update.title or ""])
    elif kind in MESSAGE_CHUNKS:
        if isinstance(update.content, TextContent):
            item = item_of(MatchKind(TYPE_OF[kind]), update.message_id)
            change = changes.get(item)
            if change is None:
                changes[item] = TextChange(item, seq, at, False, [update.content.text])
            else:
                change.parts.append(update.content.text)
    elif kind in TYPE_OF and update.content is not UNSET:
        item = item_of(MatchKind(TYPE_OF[kind]), update.message_id)
        texts = [block.text for block in update.content or () if isinstance(block, TextContent)]
        _replace(changes, item, seq, at, texts)


def _replace(changes: dict[str, TextChange], item: str, seq: int, at: int, parts: list[str]) -> None:
    change = changes.get(item)
    if change is None:
        changes[item] = TextChange(item, seq, at, True, parts)
    else:
        change.replaces, change.parts = True, parts
