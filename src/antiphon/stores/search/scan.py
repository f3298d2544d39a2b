"""Scan: the search of a store that has everything in memory. It reads every text, a slice at a time, and
lets other tasks run in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from antiphon.stores.base import Batch, SessionRecord
from antiphon.stores.search.base import (
    MOST_TEXT,
    Match,
    Matches,
    check_search_arguments,
    search_cursor,
    search_place,
)
from antiphon.stores.search.texts import TITLE, TextChange, read_item, text_changes
from antiphon.stores.search.words import (
    Term,
    has_terms,
    plain_text,
    read_query,
    searchable,
    snippet_of,
)

SLICE = 0.002
"""Seconds after which other tasks run."""
EVENTS = 256

Place = tuple[int, str, str]
"""The time of a text, its session and its item."""


class ScannedText(Struct):
    seq: int
    at: int
    text: str
    plain: str
    """The text without case and accents."""


class ScannedSession(Struct):
    """The texts of a session, up to one of its events."""

    upto: int = 0
    texts: dict[str, ScannedText] = field(default_factory=dict)

    def apply(self, changes: Mapping[str, TextChange]) -> None:
        for item, change in changes.items():
            known = self.texts.get(item)
            before = "" if known is None or change.replaces else known.text
            text = before + searchable(change.text)[: max(0, MOST_TEXT - len(before))]
            if text:
                began = change if known is None else known
                self.texts[item] = ScannedText(began.seq, began.at, text, plain_text(text))
            else:
                self.texts.pop(item, None)


class Scanned(Struct, frozen=True):
    """A session as it is scanned."""

    record: SessionRecord
    batches: Sequence[Batch]
    scanned: ScannedSession


async def scan(
    sessions: Iterable[Scanned], query: str, *, limit: int, after: str | None, seconds: float
) -> Matches:
    """Return the matches in sessions, as `Searches.search` does."""
    check_search_arguments(query, limit)
    before = None if after is None else search_place(after, Place)
    terms, complete = read_query(query), True
    until = time.monotonic() + seconds
    turn = _Turn()
    found: list[tuple[Place, str | None, ScannedText]] = []
    for each in sessions if terms else ():
        await _catch_up(each, turn)
        for item, text in _texts(each):
            place = text.at, each.record.session_id, item
            if (before is None or place < before) and _may_match(text, terms):
                found.append((place, each.record.title, text))
            await turn.passes()
        if time.monotonic() >= until:
            complete = False
            break
    found.sort(key=lambda entry: entry[0], reverse=True)
    matches: list[tuple[Place, Match]] = []
    for place, title, text in found:
        if await asyncio.to_thread(has_terms, text.text, terms):  # a long text takes long
            matches.append((place, _match(place, title, text, terms)))
        if len(matches) > limit:
            break
        await turn.passes()
    page = matches[:limit]
    following = search_cursor(page[-1][0]) if len(matches) > limit else None
    return Matches(tuple(match for _, match in page), following, complete)


class _Turn:
    """Lets other tasks run when this one has run for a while."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def passes(self) -> None:
        if time.monotonic() - self._began > SLICE:
            await asyncio.sleep(0)
            self._began = time.monotonic()


async def _catch_up(each: Scanned, turn: _Turn) -> None:
    scanned = each.scanned
    for batch in tuple(each.batches):
        if batch.last <= scanned.upto:
            continue
        rest = batch.after(scanned.upto)
        for start in range(0, len(rest.events), EVENTS):
            events = rest.events[start : start + EVENTS]
            scanned.apply(text_changes(events, first=rest.first + start))
            scanned.upto = rest.first + start + len(events) - 1
            await turn.passes()


def _texts(each: Scanned) -> list[tuple[str, ScannedText]]:
    record = each.record
    title = searchable(record.title or "")
    own = list(each.scanned.texts.items())
    return [*own, (TITLE, ScannedText(0, record.updated_at, title, plain_text(title)))] if title else own


def _may_match(text: ScannedText, terms: Sequence[Term]) -> bool:
    return all(word in text.plain for term in terms for word in term.words)


def _match(place: Place, title: str | None, text: ScannedText, terms: Sequence[Term]) -> Match:
    kind, id = read_item(place[2])
    snippet, ranges = snippet_of(text.text, terms)
    return Match(
        session_id=place[1],
        title=title,
        kind=kind,
        id=id,
        seq=text.seq,
        at=text.at,
        snippet=snippet,
        ranges=ranges,
    )
