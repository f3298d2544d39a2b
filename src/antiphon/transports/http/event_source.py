"""EventSource: reads one stream of server-sent events, and reconnects after the last event that it read."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from antiphon.jsonrpc.oversized import OversizedFrame
from antiphon.jsonrpc.sse import Event, EventDecoder
from antiphon.transports.http.event_stream import Position
from antiphon.transports.http.exchange import EVENTS

SILENCE = 75.0
"""Seconds without any byte after which a resumable stream counts as lost."""
RETRY_SECONDS = 55.0
"""Seconds for which to reconnect. A server keeps a connection without streams about as long."""
FIRST_DELAY = 0.05
LONGEST_DELAY = 5.0
DEAD = frozenset({401, 403, 404, 410})
"""Statuses with which the whole connection ends (HTTP-18)."""
TAKEN = 409


class StreamRefused(Exception):
    """The server refused a stream with `status` and `body`."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the server refused a stream with status {status}")
        self.status = status
        self.body = body


class EventSource:
    """Run it in a task. `take` gets the events. `opened` is done once the stream is open, or has the
    exception that prevented it."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        headers: Mapping[bytes, bytes],
        *,
        bound: int,
        take: Callable[[list[Event | OversizedFrame]], None],
        flowing: asyncio.Event,
    ) -> None:
        self._client = client
        self._url = url
        self._headers = headers
        self._bound = bound
        self._take = take
        self._flowing = flowing
        self.last_id = ""
        """The id of the last event that was read."""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.opened.add_done_callback(lambda done: done.cancelled() or done.exception())

    @property
    def number(self) -> int:
        """The number of the last event, if the server is Antiphon's; else 0."""
        position = Position.read(self.last_id)
        return 0 if position is None else position.number

    async def run(self) -> str:
        """Read until the stream is lost and cannot be resumed. Return the reason. Raises `StreamRefused`."""
        try:
            return await self._run()
        except StreamRefused as refused:
            if not self.opened.done():
                self.opened.set_exception(refused)
            raise
        finally:
            if not self.opened.done():
                self.opened.set_exception(StreamRefused(0, b"the stream was lost"))

    async def _run(self) -> str:
        loop = asyncio.get_running_loop()
        until, attempt = loop.time() + RETRY_SECONDS, 0
        while True:
            before = self.last_id
            try:
                why = await self._read()
            except StreamRefused as refused:
                if not self.opened.done() or refused.status < 500:
                    raise
                why = str(refused)
            except (httpx.HTTPError, OSError, TimeoutError) as error:
                why = str(error) or type(error).__name__
            if not self.last_id:
                return why  # HTTP-19: events that were sent meanwhile are lost
            if self.last_id != before:
                until, attempt = loop.time() + RETRY_SECONDS, 0
            elif loop.time() > until:
                return why
            delay = min(FIRST_DELAY * 2.0**attempt, LONGEST_DELAY)
            attempt += 1
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))

    async def _read(self) -> str:
        headers = {**self._headers, b"Accept": EVENTS.encode()}
        if self.last_id:
            headers[b"Last-Event-ID"] = self.last_id.encode()
        async with self._client.stream("GET", self._url, headers=headers) as response:
            if response.status_code != 200:
                with contextlib.suppress(httpx.HTTPError):
                    await response.aread()
                raise StreamRefused(response.status_code, response.content if response.is_closed else b"")
            if not self.opened.done():
                self.opened.set_result(None)
            decoder = EventDecoder(bound=self._bound)
            chunks: Any = response.aiter_bytes()
            while True:
                await self._flowing.wait()
                try:
                    async with asyncio.timeout(SILENCE if self.last_id else None):
                        chunk = await anext(chunks)
                except StopAsyncIteration:
                    return "the server ended the stream"
                events = decoder.feed(chunk)
                if events:
                    self.last_id = decoder.last_id or self.last_id
                    self._take(events)
