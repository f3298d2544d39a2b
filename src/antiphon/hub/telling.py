"""`_antiphon/transcript` and `_antiphon/timeline`: what was said in a session, and when what happened.

Both are made from the journal as it is in the store, whether the session is open or not. A long one is gone
through beside the loop, so that nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from antiphon.agent.keeping import record_of
from antiphon.engine.who import Present, Who
from antiphon.errors import InvalidParams, RequestError
from antiphon.hub.limits import LIMITED
from antiphon.hub.settling import agent_of
from antiphon.hub.timeline import Item, Timeline
from antiphon.moving import Missing, salvage, tell_session
from antiphon.stores.base import SessionRecord
from antiphon.transcripts import Account

if TYPE_CHECKING:
    from antiphon.hub.hub import Hub


def _markdown(account: Account) -> Iterator[str]:
    from antiphon.transcripts.markdown import to_markdown

    return to_markdown(account)


def _html(account: Account) -> Iterator[str]:
    from antiphon.transcripts.page import to_html

    return to_html(account)


FORMATS: dict[str, tuple[Callable[[Account], Iterator[str]], str, str]] = {
    "markdown": (_markdown, ".md", "text/markdown; charset=utf-8"),
    "html": (_html, ".html", "text/html; charset=utf-8"),
}
LARGEST = 32 * 1024 * 1024
"""Characters of a transcript that is sent in one answer."""
MISSING = 100
"""How many of the places where something is missing are told."""
AT_A_TIME = 2
REMEMBERED = 32
"""Of how many sessions the timeline is kept, to go on from there."""


class Telling:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._busy = asyncio.Semaphore(AT_A_TIME)
        self._timelines: OrderedDict[str, _Kept] = OrderedDict()

    # --- transcripts -------------------------------------------------------------------------------

    async def transcript(self, params: Any) -> dict[str, Any]:
        session_id = _session(params)
        wanted = params.get("format", "markdown")
        if wanted not in tuple(FORMATS):  # it may be anything
            raise InvalidParams(f"`format` is one of {', '.join(FORMATS)}")
        write, ending, kind = FORMATS[wanted]
        record = await record_of(self._hub.store, session_id)
        async with self._busy:
            missing: list[str] = []
            told = await tell_session(
                self._hub.store,
                session_id,
                agent=agent_of(record),
                report=lambda found: missing.append(str(found)),
            )
            content = await asyncio.to_thread(_whole, write(told))
        if content is None:
            data = {"reason": "limit", "limit": "transcript", "most": LARGEST}
            raise RequestError(LIMITED, "Too long for one answer: `antiphon sessions export` it", data=data)
        answer = {"name": _file_name(record) + ending, "mimeType": kind, "content": content}
        return {**answer, "missing": missing[:MISSING]} if missing else answer

    # --- timelines ---------------------------------------------------------------------------------

    async def timeline(self, params: Any) -> dict[str, Any]:
        session_id = _session(params)
        record = await record_of(self._hub.store, session_id)
        kept = self._kept(record)
        if kept.reading is None:
            kept.reading = asyncio.get_running_loop().create_task(self._go_on(kept, record))
            kept.reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(kept.reading)  # several may wait for it: one that leaves does not end it
        items = [*kept.timeline.items(), *self._clients(session_id)]
        told: dict[str, Any] = {"items": items, "now": time.time_ns() // 1_000_000}
        return {**told, "omitted": kept.timeline.omitted} if kept.timeline.omitted else told

    async def aclose(self) -> None:
        reading = [kept.reading for kept in self._timelines.values() if kept.reading is not None]
        if reading:
            await asyncio.wait(reading)

    def _kept(self, record: SessionRecord) -> _Kept:
        kept = self._timelines.get(record.session_id)
        if kept is None or kept.created_at != record.created_at:  # another one may have the id of one gone
            kept = self._timelines[record.session_id] = _Kept(record.created_at)
        self._timelines.move_to_end(record.session_id)
        idle = [id for id, each in self._timelines.items() if each.reading is None]
        for old in idle[: max(0, len(self._timelines) - REMEMBERED)]:
            del self._timelines[old]
        return kept

    async def _go_on(self, kept: _Kept, record: SessionRecord) -> None:
        """What is damaged in a journal is passed over."""
        timeline = kept.timeline
        try:
            async with self._busy:
                async for found in salvage(self._hub.store, record, after=timeline.last):
                    if isinstance(found, Missing):
                        timeline.last = found.last
                        continue
                    known = [event for event in found.events if event is not None]
                    await asyncio.to_thread(timeline.add, known)
                    timeline.last = found.first + len(found.lines) - 1
        finally:
            kept.reading = None

    def _clients(self, session_id: str) -> list[Item]:
        """Who is there. Who was there is not kept."""
        session = self._hub.find(session_id)
        return [] if session is None else [_client(one) for one in session.live.presence.clients()]


class _Kept:
    def __init__(self, created_at: int) -> None:
        self.created_at = created_at
        self.timeline = Timeline()
        self.reading: asyncio.Task[None] | None = None
        """What goes on with it, from where it was."""


def _client(one: Present) -> Item:
    return Item(
        kind="client",
        id=one.client_id,
        title=one.name,
        start=int(datetime.fromisoformat(one.joined_at or "1970-01-01T00:00:00Z").timestamp() * 1000),
        end=None,
        status="here",
        by=Who(client_id=one.client_id, name=one.name),
    )


def _session(params: Any) -> str:
    session_id = params.get("sessionId") if isinstance(params, dict) else None
    if not isinstance(session_id, str):
        raise InvalidParams("`sessionId` must be a string")
    return session_id


def _whole(pieces: Iterator[str]) -> str | None:
    """All of it, unless that is too much."""
    written, size = [], 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST:
            return None
        written.append(piece)
    return "".join(written)


def _file_name(record: SessionRecord) -> str:
    """By the title, in letters and digits that every system has in its names."""
    words = re.findall(r"[A-Za-z0-9]+", record.title or "")
    return "-".join(words)[:60].strip("-") or re.sub(r"[^\w.-]", "_", record.session_id)
