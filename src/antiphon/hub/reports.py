"""Reports: `_antiphon/transcript`, `_antiphon/timeline` and `_antiphon/journal`.

All are made from the journal in the store, whether the session is open or not. Long journals are read in a
thread, so that the event loop stays free. Only owners may read a journal: it has facts that clients do not
get, such as the sender of an answer.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import msgspec

from antiphon.errors import RequestError, StoreCorrupt
from antiphon.hub.access.limits import LIMITED
from antiphon.hub.records import recorded_agent
from antiphon.hub.timeline import Timeline
from antiphon.schema.antiphon import hub as wire
from antiphon.schema.antiphon.clients import Present, Who
from antiphon.server.registry import record_of
from antiphon.session_files import Missing, read_account, salvage
from antiphon.stores.base import SessionRecord, Store
from antiphon.transcripts import Account


def _markdown(account: Account) -> Iterator[str]:
    from antiphon.transcripts.markdown import to_markdown

    return to_markdown(account)


def _html(account: Account) -> Iterator[str]:
    from antiphon.transcripts.page import to_html

    return to_html(account)


FORMATS: dict[wire.TranscriptFormat, tuple[Callable[[Account], Iterator[str]], str, str]] = {
    wire.TranscriptFormat.MARKDOWN: (_markdown, ".md", "text/markdown; charset=utf-8"),
    wire.TranscriptFormat.HTML: (_html, ".html", "text/html; charset=utf-8"),
}
LARGEST = 32 * 1024 * 1024
"""Characters of a transcript in one answer."""
MISSING = 100
"""Gaps that are named in one answer."""
PAGE = 256 * 1024
"""About how many bytes of events one journal page has, so that other frames do not wait for it."""
AT_A_TIME = 2
REMEMBERED = 32
"""Sessions whose timelines are kept, to be continued."""


class Reports:
    """Answers the methods that report on a stored session."""

    def __init__(self, store: Store, clients_of: Callable[[str], Sequence[Present]]) -> None:
        """`clients_of` returns the clients that are attached to a session."""
        self._store = store
        self._clients_of = clients_of
        self._busy = asyncio.Semaphore(AT_A_TIME)
        self._timelines: OrderedDict[str, _Kept] = OrderedDict()

    # --- transcripts -------------------------------------------------------------------------------

    async def transcript(self, params: wire.TranscriptRequest) -> wire.TranscriptResponse:
        session_id = params.session_id
        write, ending, kind = FORMATS[params.format]
        record = await record_of(self._store, session_id)
        async with self._busy:
            missing: list[str] = []
            account = await read_account(
                self._store,
                session_id,
                agent=recorded_agent(record),
                report=lambda found: missing.append(str(found)),
            )
            content = await asyncio.to_thread(_joined, write(account))
        if content is None:
            data = {"reason": "limit", "limit": "transcript", "most": LARGEST}
            raise RequestError(LIMITED, "Too long for one answer: `antiphon sessions export` it", data=data)
        name = _file_name(record) + ending
        return wire.TranscriptResponse(name=name, mime_type=kind, content=content, missing=missing[:MISSING])

    # --- timelines ---------------------------------------------------------------------------------

    async def timeline(self, params: wire.TimelineRequest) -> wire.TimelineResponse:
        record = await record_of(self._store, params.session_id)
        kept = self._kept(record)
        if kept.reading is None:
            kept.reading = asyncio.get_running_loop().create_task(self._continue(kept, record))
            kept.reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(kept.reading)  # others may wait for the same reading
        items = [*kept.timeline.items(), *map(_client, self._clients_of(params.session_id))]
        now = time.time_ns() // 1_000_000
        return wire.TimelineResponse(items=items, now=now, omitted=kept.timeline.omitted)

    async def aclose(self) -> None:
        reading = [kept.reading for kept in self._timelines.values() if kept.reading is not None]
        if reading:
            await asyncio.wait(reading)

    def _kept(self, record: SessionRecord) -> _Kept:
        kept = self._timelines.get(record.session_id)
        if (
            kept is None or kept.created_at != record.created_at
        ):  # the id of a deleted session may be used again
            kept = self._timelines[record.session_id] = _Kept(record.created_at)
        self._timelines.move_to_end(record.session_id)
        idle = [id for id, each in self._timelines.items() if each.reading is None]
        for old in idle[: max(0, len(self._timelines) - REMEMBERED)]:
            del self._timelines[old]
        return kept

    async def _continue(self, kept: _Kept, record: SessionRecord) -> None:
        """Fold what the journal has got since the last time. Damaged parts are skipped."""
        timeline = kept.timeline
        try:
            async with self._busy:
                async for found in salvage(self._store, record, after=timeline.last):
                    if isinstance(found, Missing):
                        timeline.last = found.last
                        continue
                    known = [event for event in found.events if event is not None]
                    await asyncio.to_thread(timeline.add, known)
                    timeline.last = found.first + len(found.lines) - 1
        finally:
            kept.reading = None

    # --- journals ----------------------------------------------------------------------------------

    async def journal(self, params: wire.JournalRequest) -> wire.JournalResponse:
        """Return the record of a session and one page of its stored events."""
        record = await record_of(self._store, params.session_id)
        stored, events = msgspec.to_builtins(record), list[str]()
        try:
            page = await self._store.read(params.session_id, params.after, limit_bytes=PAGE)
        except StoreCorrupt as error:
            damage = wire.Damage(found=error.found, resume=error.resume)
            return wire.JournalResponse(record=stored, events=[], last=record.last, damage=damage)
        for batch in page.batches:
            for seq, line in enumerate(batch.events, start=batch.first):
                try:
                    events.append(line.decode())
                except UnicodeDecodeError as error:
                    # If this is not the first event of the page, the next page begins with it.
                    found = None if events else wire.Damage(found=f"event {seq}: {error}", resume=seq)
                    return wire.JournalResponse(record=stored, events=events, last=page.last, damage=found)
        return wire.JournalResponse(record=stored, events=events, last=page.last)


class _Kept:
    def __init__(self, created_at: int) -> None:
        self.created_at = created_at
        self.timeline = Timeline()
        self.reading: asyncio.Task[None] | None = None
        """The task that continues the timeline."""


def _client(one: Present) -> wire.TimelineItem:
    """Return the timeline item of an attached client. Earlier clients are not kept."""
    return wire.TimelineItem(
        kind="client",
        id=one.client_id,
        title=one.name,
        start=int(datetime.fromisoformat(one.joined_at or "1970-01-01T00:00:00Z").timestamp() * 1000),
        end=None,
        status="here",
        by=Who(client_id=one.client_id, name=one.name),
    )


def _joined(pieces: Iterator[str]) -> str | None:
    """Join pieces of text; `None` if they exceed `LARGEST`."""
    written, size = [], 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST:
            return None
        written.append(piece)
    return "".join(written)


def _file_name(record: SessionRecord) -> str:
    """Make a file name from the title, in ASCII letters and digits."""
    words = re.findall(r"[A-Za-z0-9]+", record.title or "")
    return "-".join(words)[:60].strip("-") or re.sub(r"[^\w.-]", "_", record.session_id)
