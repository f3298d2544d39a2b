"""Streamable HTTP as a transport: the judge's own client of it (section 20 of the catalogue).

`initialize` is answered in the body of its POST, with the id of the connection. Every other POST is answered
with 202, and frames of the server come over one event stream per connection and one per session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

import httpx
from msgspec import UNSET

from antiphon.conformance.recording import RecordedFrame, Role, parse
from antiphon.errors import LinkLost, LinkRefused
from antiphon.jsonrpc.sse import Event, EventDecoder
from antiphon.transports.base import AUTH_REFUSALS
from antiphon.transports.buffered import BufferedTransport

CONNECT_DEADLINE = 15.0
CLOSE_DEADLINE = 2.0
CONNECTION = "Acp-Connection-Id"
SESSION = "Acp-Session-Id"
GONE = (*AUTH_REFUSALS, 404, 410)
"""Statuses of a POST after which the connection is dead (HTTP-18)."""


class HttpTransport(BufferedTransport):
    """One connection. Frames are posted one after the other, in the order in which they were sent."""

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        super().__init__()
        self._url = url
        self._client = client
        self.connection = ""
        """The id of the connection, once `initialize` was answered."""
        self._unsent: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._posted = asyncio.Event()
        """Set while no frame waits to be posted."""
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._sessions: set[str] = set()
        """The sessions whose stream was opened."""
        self._asked: dict[str, str] = {}
        """The session of each open request of the server, by the JSON of its id."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._spawn(self._post_all())

    async def aclose(self) -> None:
        self._outbox.flush()
        with suppress(TimeoutError, httpx.HTTPError):
            async with asyncio.timeout(CLOSE_DEADLINE):
                if not self._end_reason:
                    await self.posted()
                if self.connection:
                    await self._client.delete(self._url, headers={CONNECTION: self.connection})  # HTTP-15
        self._end("closed by this side")
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()
        self._delivery.drop()

    # --- frames out --------------------------------------------------------------------------------

    async def posted(self) -> None:
        """Wait until every frame that was sent so far has been accepted."""
        await self._posted.wait()

    def _write(self, frames: Sequence[bytes]) -> None:
        self._unsent.extend(frames)
        self._posted.clear()
        self._more.set()

    async def _post_all(self) -> None:
        while True:
            self._more.clear()
            while self._unsent:
                await self._post(self._unsent.popleft())
            self._posted.set()
            await self._more.wait()

    async def _post(self, raw: bytes) -> None:
        """Post a frame, and deliver the body of the answer if there is one."""
        frame = RecordedFrame(0, 0, Role.CLIENT, raw, parse(raw))
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        session = self._session_of(frame)
        if self.connection:
            headers[CONNECTION] = self.connection
        if session:
            headers[SESSION] = session
            await self._open_stream(session)  # HTTP-12: before a load or resume
        try:
            response = await self._client.post(self._url, content=raw, headers=headers)
        except httpx.HTTPError as error:
            self._end(f"a POST failed: {_reason(error)}")
            return
        if response.status_code in GONE:
            self._end(f"a POST was answered with {response.status_code}")
            return
        if not self.connection and frame.method == "initialize":
            self.connection = response.headers.get(CONNECTION, "")
            if self.connection:
                await self._open_stream("")
        if response.content:
            self._deliver(response.content)

    def _session_of(self, frame: RecordedFrame) -> str:
        """Return the session that a frame belongs to: by its params, or by the request that it answers."""
        named = frame.session_id
        if isinstance(named, str):
            return named
        return self._asked.pop(_key(frame.id), "") if frame.is_response else ""

    # --- frames in ---------------------------------------------------------------------------------

    async def _open_stream(self, session: str) -> None:
        """Open the stream of a session, or with `""` that of the connection."""
        if session in self._sessions or not self.connection:
            return
        self._sessions.add(session)
        opened = asyncio.Event()
        self._spawn(self._read(session, opened))
        await opened.wait()

    async def _read(self, session: str, opened: asyncio.Event) -> None:
        headers = {"Accept": "text/event-stream", CONNECTION: self.connection}
        if session:
            headers[SESSION] = session
        try:
            async with self._client.stream("GET", self._url, headers=headers) as response:
                opened.set()
                if response.status_code != 200:
                    self._stream_ended(session, f"was answered with {response.status_code}")
                    return
                decoder = EventDecoder()
                async for data in response.aiter_raw():
                    for event in decoder.feed(data):
                        if isinstance(event, Event) and event.data is not None:
                            self._deliver(event.data, session)
                    await self._flowing.wait()
            self._stream_ended(session, "ended")
        except httpx.HTTPError as error:
            self._stream_ended(session, f"failed: {_reason(error)}")
        finally:
            opened.set()

    def _deliver(self, raw: bytes, session: str = "") -> None:
        frame = RecordedFrame(0, 0, Role.AGENT, raw, parse(raw))
        if frame.is_request:
            named = frame.session_id
            self._asked[_key(frame.id)] = named if isinstance(named, str) else session
        created = frame.get("result", "sessionId")
        if isinstance(created, str):
            self._spawn(self._open_stream(created))
        self._delivery.put([raw])

    def _stream_ended(self, session: str, why: str) -> None:
        """The stream of a session may end with the session; without its own stream the connection is dead."""
        self._sessions.discard(session)
        if not session:
            self._end(f"the event stream of the connection {why}")

    # --- the end -----------------------------------------------------------------------------------

    def _overflow(self, reason: str) -> None:
        self._end(reason)

    def _flow(self) -> None:
        if self._delivery.open:
            self._flowing.set()
        else:
            self._flowing.clear()

    def _end(self, reason: str) -> None:
        if not self._end_reason:
            self._end_reason = reason
            self._outbox.close()
            self._delivery.end()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _key(id: Any) -> str:
    return f"{type(id).__name__} {id}" if id is not UNSET else ""


def _reason(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__


async def connect_http(url: str, *, headers: Mapping[str, str] | None = None) -> HttpTransport:
    """Return a transport to an `http://` or `https://` address; HTTP/2 is used where the server offers it.

    The connection begins with the POST of `initialize`. Raises `LinkLost` if nothing listens at the address,
    or `LinkRefused` if the server requires other credentials.
    """
    timeout = httpx.Timeout(CONNECT_DEADLINE, read=None)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx.AsyncClient(headers=dict(headers or {}), timeout=timeout, limits=limits, http2=True)
    try:
        # HTTP-07, HTTP-08: a GET without a connection is refused, which shows that the server is there.
        async with client.stream("GET", url) as answer:
            status = answer.status_code
    except httpx.HTTPError as error:
        await client.aclose()
        raise LinkLost(f"cannot reach {url}: {_reason(error)}") from error
    if status in AUTH_REFUSALS:
        await client.aclose()
        raise LinkRefused(f"{url} answered {status}", status=status)
    return HttpTransport(url, client)
