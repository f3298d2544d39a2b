"""Streamable HTTP as a transport, on the client's side: frames go by POST, one by one, and come by streams.

The connection's own stream is opened with the answer to `initialize`, that of a session before anything is
posted that belongs to it (HTTP-12), or when an answer names it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

import httpx
import msgspec
from msgspec import UNSET, Struct

from antiphon.errors import ErrorObject, LinkLost, LinkRefused, LocalError
from antiphon.jsonrpc.frames import encode_failure
from antiphon.jsonrpc.lines import DEFAULT_BOUND, Overlong, Received
from antiphon.jsonrpc.sse import Event
from antiphon.transports.base import OUTBOX_HIGH, OUTBOX_LOW, Delivery, Framing, Outbox, Receive
from antiphon.transports.http_frames import (
    CLOSES,
    CONNECTION_ID,
    EVENTS,
    REOPEN,
    SESSION_ID,
    Outline,
    agreed_version,
    key_of,
    opened_session,
    outline,
)
from antiphon.transports.http_reading import DEAD, TAKEN, Reading, StreamRefused

logger = logging.getLogger("antiphon.transports")

CONNECT_DEADLINE = 15.0
POST_DEADLINE = 120.0
CLOSE_DEADLINE = 10.0
LEAVE_DEADLINE = 2.0
BODY_SHOWN = 8 * 1024
REFUSALS = (401, 403)


class _Pending(Struct, frozen=True):
    """A request that is not answered yet."""

    id: Any
    method: str
    session: str | None


class HttpClientTransport:
    def __init__(self, client: httpx.AsyncClient, url: str, *, bound: int) -> None:
        self._client = client
        self._url = url
        self._bound = bound
        self._delivery = Delivery()
        self._flowing = asyncio.Event()
        self._outbox = Outbox(self._queue)
        self._queued: deque[bytes] = deque()
        self._queued_size = 0
        self._more = asyncio.Event()
        self._posted = asyncio.Event()
        self._posted.set()
        self.connection_id = ""
        self._headers: dict[str, str] = {}
        """What goes with every request once the connection is initialized (HTTP-08, HTTP-21)."""
        self._streams: dict[str | None, Reading] = {}
        self._taken: dict[str, StreamRefused] = {}
        """Sessions whose stream somebody else has, until they are opened again (HTTP-18)."""
        self._pending: dict[tuple[str, Any], _Pending] = {}
        self._asked: dict[tuple[str, Any], str] = {}
        """Sessions in which the agent asks something, by the ids of the requests (HTTP-09)."""
        self._left: dict[str | None, str] = {}
        """Sessions that were closed, and the last events that were read of them."""
        self._held: dict[str, list[tuple[int, bytes]]] = {}
        """Answers that wait for the stream of their session to be read so far."""
        self._end_reason = ""
        self._gone = False
        """Whether the server does not know the connection any more."""
        loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = {loop.create_task(self._send_all())}
        self._cleaning: asyncio.Task[None] | None = None

    # --- the transport -----------------------------------------------------------------------------

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._delivery.start(receive, ended)
        self._tell_flowing()

    def pause(self) -> None:
        self._delivery.pause()
        self._tell_flowing()

    def resume(self) -> None:
        self._delivery.resume()
        self._tell_flowing()

    def _tell_flowing(self) -> None:
        self._flowing.set() if self._delivery.open else self._flowing.clear()

    def send(self, frame: bytes) -> None:
        self._outbox.send(frame)

    def send_now(self, frame: bytes) -> None:
        self._outbox.send_now(frame)

    @property
    def framing(self) -> Framing | None:
        return None

    def send_framed(self, data: bytes) -> None:
        raise LocalError("this transport frames nothing")

    @property
    def congested(self) -> bool:
        return self._outbox.congested

    async def drain(self) -> None:
        await self._outbox.drain()

    async def aclose(self) -> None:
        self._outbox.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_DEADLINE):
                await self._posted.wait()
        self._delivery.drop()
        self._end("closed by this side")
        assert self._cleaning is not None
        await asyncio.shield(self._cleaning)

    @property
    def end_reason(self) -> str:
        return self._end_reason

    @property
    def stderr(self) -> Sequence[str]:
        return ()

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
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.connection_id and not self._gone:
            with contextlib.suppress(httpx.HTTPError, OSError, TimeoutError):
                async with asyncio.timeout(LEAVE_DEADLINE):
                    await self._client.delete(self._url, headers=self._headers)
        await self._client.aclose()

    # --- what goes out -----------------------------------------------------------------------------

    def _queue(self, frames: Sequence[bytes]) -> None:
        self._queued.extend(frames)
        self._queued_size += sum(map(len, frames))
        self._posted.clear()
        self._more.set()
        if self._queued_size > OUTBOX_HIGH:
            self._outbox.pause()

    async def _send_all(self) -> None:
        while True:
            while self._queued:
                frame = self._queued.popleft()
                try:
                    await self._send(frame)
                except (httpx.HTTPError, OSError, ValueError) as error:
                    # Whether it was read is not known: only who asks again under the same id may repeat it.
                    self._end(f"a message could not be sent: {error or type(error).__name__}")
                    return
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
        session = about.session
        if about.is_response:
            session = self._asked.pop(key_of(about.id), None)
        elif about.id is not UNSET:
            self._pending[key_of(about.id)] = _Pending(about.id, about.method or "", session)
        if session is not None:
            if about.method in REOPEN:
                self._taken.pop(session, None)
            try:
                await self._read_session(session)
            except StreamRefused as refused:
                if refused.status == TAKEN:
                    self._fail_session(session, refused)
                return  # otherwise the connection has ended
        await self._post(frame, about, session)

    async def _initialize(self, frame: bytes) -> None:
        response = await self._client.post(self._url, content=frame, headers=_JSON)
        self.connection_id = response.headers.get(CONNECTION_ID, "")
        if response.status_code != 200 or not self.connection_id:
            said = response.text[:200].strip()
            self._end(f"`initialize` was answered with {response.status_code} {said}".strip(), gone=True)
            return
        version = agreed_version(response.content)
        self._headers = {CONNECTION_ID: self.connection_id}
        if version is not None:
            self._headers["Acp-Protocol-Version"] = str(version)
        self._read(None)
        self._delivery.put([response.content])

    async def _post(self, frame: bytes, about: Outline, session: str | None) -> None:
        headers = {**_JSON, **self._in(session)}
        response = await self._client.post(self._url, content=frame, headers=headers)
        if response.is_success:
            return
        status = response.status_code
        refused = StreamRefused(status, response.content)
        if status in DEAD:
            self._end(f"a message was refused with {status} {response.text[:200].strip()}", gone=True)
        elif status == TAKEN and session is not None:
            self._fail_session(session, refused)
        elif about.method is not None and about.id is not UNSET:
            self._fail(key_of(about.id), refused)
        else:
            logger.warning("a message was refused with %s and is lost", status)

    # --- what fails (HTTP-18) ----------------------------------------------------------------------

    def _fail_session(self, session: str, refused: StreamRefused) -> None:
        """Only what belongs to the session fails, until it is loaded or resumed."""
        self._taken[session] = refused
        self._streams.pop(session, None)
        for key, pending in tuple(self._pending.items()):
            if pending.session == session:
                self._fail(key, refused)

    def _fail(self, key: tuple[str, Any], refused: StreamRefused) -> None:
        pending = self._pending.pop(key, None)
        if pending is not None:
            data = {"status": refused.status, "body": _shown(refused.body)}
            error = ErrorObject(-32603, f"the server answered with {refused.status}", data)
            self._delivery.put([encode_failure(pending.id, error)])

    # --- what comes --------------------------------------------------------------------------------

    async def _read_session(self, session: str) -> None:
        """See to it that the stream of a session is read. Raises `StreamRefused`."""
        if session in self._taken:
            raise self._taken[session]
        if session not in self._streams:
            self._read(session)
        await asyncio.shield(self._streams[session].opened)

    def _read(self, session: str | None) -> None:
        reading = self._streams[session] = Reading(
            self._client,
            self._url,
            self._in(session),
            bound=self._bound,
            take=partial(self._take, session),
            flowing=self._flowing,
        )
        reading.last_id = self._left.pop(session, "")
        task = asyncio.get_running_loop().create_task(self._follow(session, reading))
        reading.stop = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _in(self, session: str | None) -> dict[bytes, bytes]:
        """The headers of what belongs to a session, or to none."""
        named = self._headers if session is None else {**self._headers, SESSION_ID: session}
        return {name.encode(): value.encode() for name, value in named.items()}

    def _leave(self, session: str) -> None:
        """Nothing more comes of a session that was closed, unless it is opened again."""
        reading = self._streams.pop(session, None)
        if reading is not None:
            self._left[session] = reading.last_id
            reading.stop()

    async def _follow(self, session: str | None, reading: Reading) -> None:
        try:
            self._end(f"a stream was cut: {await reading.run()}")
        except StreamRefused as refused:
            if refused.status == TAKEN and session is not None and not reading.last_id:
                self._fail_session(session, refused)
            else:
                self._end(f"{refused} {_words(refused.body)}".strip(), gone=refused.status in DEAD)

    def _take(self, session: str | None, events: list[Event | Overlong]) -> None:
        frames: list[Received] = []
        for event in events:
            if isinstance(event, Overlong):
                frames.append(event)
                continue
            named = event.fields.get("session")
            if named and unquote(named) not in self._streams:
                self._read(unquote(named))
            if event.data:
                self._note(session, event.data)
                if not self._holds(event.fields.get("after", ""), event.data):
                    frames.append(event.data)
        if session is not None and session in self._held:
            frames += self._released(session)
        if frames:
            self._delivery.put(frames)

    def _note(self, session: str | None, frame: bytes) -> None:
        about = outline(frame)
        if about.is_response:
            asked = self._pending.pop(key_of(about.id), None)
            if asked is not None and asked.session is not None and asked.method in CLOSES:
                self._leave(asked.session)
            opened = opened_session(frame)
            if opened is not None and opened not in self._streams:
                self._read(opened)
        elif about.id is not UNSET and session is not None:
            self._asked[key_of(about.id)] = session

    def _holds(self, after: str, frame: bytes) -> bool:
        """What belongs behind an event of a session's stream is handed over when that was read."""
        number, _, named = after.partition(" ")
        session = unquote(named)
        reading = self._streams.get(session)
        if not number.isdecimal() or reading is None or reading.number >= int(number):
            return False
        self._held.setdefault(session, []).append((int(number), frame))
        return True

    def _released(self, session: str) -> list[bytes]:
        held, read = self._held.pop(session), self._streams[session].number
        still = [(number, frame) for number, frame in held if number > read]
        if still:
            self._held[session] = still
        return [frame for number, frame in held if number <= read]


_JSON = {b"Content-Type": b"application/json", b"Accept": b"application/json"}


def _words(body: bytes) -> str:
    return body[:200].decode("utf-8", "replace").strip()


def _shown(body: bytes) -> Any:
    """What a server said, as far as it is worth showing."""
    try:
        return msgspec.json.decode(body[:BODY_SHOWN])
    except msgspec.DecodeError:
        return body[:BODY_SHOWN].decode("utf-8", "ignore")


async def connect_http(
    uri: str,
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    bound: int = DEFAULT_BOUND,
    http2: bool = False,
    deadline: float = CONNECT_DEADLINE,
) -> HttpClientTransport:
    """A link to `http://` or `https://`. HTTP/2 is spoken where TLS agrees on it, or with `http2` always.
    Raises `LinkLost` where nobody is there, `LinkRefused` where the other side does not let us in."""
    secure = uri.startswith("https://")
    client = httpx.AsyncClient(
        http1=secure or not http2,
        http2=True,
        verify=(tls or ssl.create_default_context()) if secure else False,
        headers=dict(headers or {}),
        timeout=httpx.Timeout(POST_DEADLINE, connect=deadline, read=None),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
        trust_env=False,  # a password from `.netrc` would take the place of the token
    )
    try:
        async with asyncio.timeout(deadline):
            # Without a connection there is no stream: who says that lets us in.
            probe = await client.get(uri, headers={"Accept": EVENTS})
    except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
        await client.aclose()
        raise LinkLost(f"cannot reach {uri}: {error or 'no answer in time'}") from error
    except BaseException:
        await client.aclose()
        raise
    if probe.status_code in REFUSALS:
        await client.aclose()
        said = f"{uri} does not let us in: {probe.status_code} {_words(probe.content)}"
        raise LinkRefused(said, status=probe.status_code)
    if probe.status_code == 404:
        await client.aclose()
        raise LinkLost(f"there is no agent at {uri}")
    return HttpClientTransport(client, uri, bound=bound)
