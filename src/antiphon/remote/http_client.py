"""Streamable HTTP as a transport of a client: it posts each frame, and reads frames from streams."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence

import httpx
from msgspec import UNSET

from antiphon.errors import LinkLost, LinkRefused
from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.remote.client_streams import ClientStreams, PendingRequests, Take, excerpt
from antiphon.remote.frames import (
    CONNECTION_ID,
    REOPEN,
    SESSION_ID,
    Outline,
    agreed_version,
    outline,
)
from antiphon.transports.base import AUTH_REFUSALS, OUTBOX_HIGH, OUTBOX_LOW
from antiphon.transports.buffered import BufferedTransport
from antiphon.transports.http.event_source import DEAD, TAKEN, EventSource, StreamRefused
from antiphon.transports.http.exchange import EVENTS

logger = logging.getLogger("antiphon.transports")

CONNECT_DEADLINE = 15.0
POST_DEADLINE = 120.0
CLOSE_DEADLINE = 10.0
"""Seconds within which a closing transport must send at least one of the queued frames."""
LEAVE_DEADLINE = 2.0
_JSON = {b"Content-Type": b"application/json", b"Accept": b"application/json"}


class HttpClientTransport(BufferedTransport):
    def __init__(self, client: httpx.AsyncClient, url: str, *, bound: int) -> None:
        super().__init__()
        self._client = client
        self._url = url
        self._bound = bound
        self._flowing = asyncio.Event()
        self._queued: deque[bytes] = deque()
        self._queued_size = 0
        self._sent = 0
        """Frames that were sent."""
        self._more = asyncio.Event()
        self._posted = asyncio.Event()
        self._posted.set()
        self.connection_id = ""
        self._headers: dict[str, str] = {}
        """Headers of every request once the connection is initialized (HTTP-08, HTTP-21)."""
        self._requests = PendingRequests(lambda failure: self._delivery.put([failure]))
        self._streams = ClientStreams(self._make_source, self._requests, self._delivery, lost=self._end)
        self._gone = False
        """Whether the server has dropped the connection."""
        self._sending: asyncio.Task[None] | None = None
        """Set once there is something to send."""
        self._cleaning: asyncio.Task[None] | None = None

    # --- the transport -----------------------------------------------------------------------------

    def _overflow(self, reason: str) -> None:
        self._end(reason)

    def _flow(self) -> None:
        self._flowing.set() if self._delivery.open else self._flowing.clear()

    async def aclose(self) -> None:
        self._outbox.flush()
        before = -1
        while not self._posted.is_set() and self._sent != before:
            before = self._sent
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_DEADLINE):
                    await self._posted.wait()
        self._delivery.drop()
        self._end("closed by this side")
        assert self._cleaning is not None
        await asyncio.shield(self._cleaning)

    def _end(self, reason: str, *, gone: bool = False) -> None:
        if self._end_reason:
            return
        self._end_reason = reason
        self._gone = gone
        self._outbox.close()
        self._posted.set()
        self._cleaning = asyncio.get_running_loop().create_task(self._clean())
        self._delivery.end()

    async def _clean(self) -> None:
        stopping: list[Awaitable[None]] = [self._streams.stop()]
        if self._sending is not None:
            self._sending.cancel()
            stopping.append(self._sending)
        await asyncio.gather(*stopping, return_exceptions=True)
        if self.connection_id and not self._gone:
            with contextlib.suppress(httpx.HTTPError, OSError, TimeoutError):
                async with asyncio.timeout(LEAVE_DEADLINE):
                    await self._client.delete(self._url, headers=self._headers)
        await self._client.aclose()

    def _make_source(self, session: str | None, take: Take) -> EventSource:
        headers = self._in(session)
        return EventSource(
            self._client, self._url, headers, bound=self._bound, take=take, flowing=self._flowing
        )

    # --- sending -----------------------------------------------------------------------------------

    def _write(self, frames: Sequence[bytes]) -> None:
        self._queued.extend(frames)
        self._queued_size += sum(map(len, frames))
        self._posted.clear()
        self._more.set()
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_all())
        if self._queued_size > OUTBOX_HIGH:
            self._outbox.pause()

    async def _send_all(self) -> None:
        while True:
            while self._queued:
                frame = self._queued.popleft()
                try:
                    await self._send(frame)
                except (httpx.HTTPError, OSError, ValueError) as error:
                    # The server may have read it, so only the caller can decide to repeat it.
                    self._end(f"a frame could not be sent: {error or type(error).__name__}")
                    return
                self._sent += 1
                self._queued_size -= len(frame)
                if self._queued_size < OUTBOX_LOW and self._outbox.congested:
                    self._outbox.resume()
            self._posted.set()
            self._more.clear()
            await self._more.wait()

    async def _send(self, frame: bytes) -> None:
        about = outline(frame)
        if not self.connection_id:
            await self._initialize(frame)
            return
        session = self._requests.sent(about)
        if session is not None:
            try:
                await self._streams.opened(session, anew=about.method in REOPEN)
            except StreamRefused as refused:
                if refused.status == TAKEN:
                    self._streams.fail_session(session, refused)
                return  # with another status the connection has ended
        await self._post(frame, about, session)

    async def _initialize(self, frame: bytes) -> None:
        response = await self._client.post(self._url, content=frame, headers=_JSON)
        self.connection_id = response.headers.get(CONNECTION_ID, "")
        if response.status_code != 200 or not self.connection_id:
            reason = f"`initialize` was answered with {response.status_code} {excerpt(response.content)}"
            self._end(reason.strip(), gone=True)
            return
        version = agreed_version(response.content)
        self._headers = {CONNECTION_ID: self.connection_id}
        if version is not None:
            self._headers["Acp-Protocol-Version"] = str(version)
        self._streams.read(None)
        self._delivery.put([response.content])

    async def _post(self, frame: bytes, about: Outline, session: str | None) -> None:
        headers = {**_JSON, **self._in(session)}
        response = await self._client.post(self._url, content=frame, headers=headers)
        if response.is_success:
            return
        status = response.status_code
        refused = StreamRefused(status, response.content)
        if status in DEAD:
            self._end(f"a frame was refused with {status} {excerpt(response.content)}", gone=True)
        elif status == TAKEN and session is not None:
            self._streams.fail_session(session, refused)
        elif about.method is not None and about.id is not UNSET:
            self._requests.fail(about.id, refused)
        else:
            logger.warning("frame refused: status %s; it is lost", status)

    def _in(self, session: str | None) -> dict[bytes, bytes]:
        """Return the headers of a request for a session, or for none."""
        named = self._headers if session is None else {**self._headers, SESSION_ID: session}
        return {name.encode(): value.encode() for name, value in named.items()}


class SeparatePosts(httpx.AsyncBaseTransport):
    """Sends POSTs over a separate connection, because a large POST can block next to a stream.

    Over HTTP/2 the POST waits until the server enlarges its window. httpcore lets whichever request reads the
    socket process that. If the stream reads it, the POST still waits for the next bytes of the server, and a
    quiet stream has none. Posts are sent one at a time, so on a separate connection they read themselves.
    """

    def __init__(self, posts: httpx.AsyncBaseTransport, others: httpx.AsyncBaseTransport) -> None:
        self._posts = posts
        self._others = others

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        taken = self._posts if request.method == "POST" else self._others
        return await taken.handle_async_request(request)

    async def aclose(self) -> None:
        await self._posts.aclose()
        await self._others.aclose()


async def connect_http(
    uri: str,
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    bound: int = DEFAULT_BOUND,
    http2: bool = False,
    deadline: float = CONNECT_DEADLINE,
) -> HttpClientTransport:
    """Connect to `http://` or `https://`. It uses HTTP/2 if TLS negotiates it, or always with `http2`.

    Raises `LinkLost`, or `LinkRefused` if the server requires other credentials.
    """
    secure = uri.startswith("https://")
    verify = (tls or ssl.create_default_context()) if secure else False
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=8)
    posts, others = (
        httpx.AsyncHTTPTransport(
            http1=secure or not http2, http2=True, verify=verify, limits=limits, trust_env=False
        )
        for _ in range(2)
    )
    client = httpx.AsyncClient(
        transport=SeparatePosts(posts, others),
        headers=dict(headers or {}),
        timeout=httpx.Timeout(POST_DEADLINE, connect=deadline, read=None),
        trust_env=False,  # a password from `.netrc` would replace the token
    )
    try:
        async with asyncio.timeout(deadline):
            # A server that admits this client refuses the stream only because there is no connection.
            probe = await client.get(uri, headers={"Accept": EVENTS})
    except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
        await client.aclose()
        raise LinkLost(f"cannot reach {uri}: {error or 'no answer in time'}") from error
    except BaseException:
        await client.aclose()
        raise
    if probe.status_code in AUTH_REFUSALS:
        await client.aclose()
        reason = f"{uri} refused this client: {probe.status_code} {excerpt(probe.content)}"
        raise LinkRefused(reason, status=probe.status_code)
    if probe.status_code == 404:
        await client.aclose()
        raise LinkLost(f"there is no agent at {uri}")
    return HttpClientTransport(client, uri, bound=bound)
