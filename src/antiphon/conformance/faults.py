"""Faults: a proxy between the judge and a peer that loses, repeats, delays and cuts what passes through it.

The proxy knows where frames begin and end: lines of stdio, or messages of a WebSocket. A scenario says which
frame is hit, and waits for the fault:

    proxy = await proxy_to("ws://127.0.0.1:9000/acp")
    lost = proxy.to_peer.disconnect_after(is_prompt)
    ...
    await lost.happens(timeout=30)
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import NamedTuple, Protocol, Self
from urllib.parse import urlsplit, urlunsplit

from antiphon.conformance.client.socket_transport import SocketTransport
from antiphon.conformance.link import Condition, NotSeen
from antiphon.conformance.recording import RecordedFrame, Role, parse
from antiphon.transports.base import Transport

READ_SIZE = 64 * 1024
NARROW = 256 * 1024
"""Bytes that the system buffers for a reader: few, so that a paused reader is felt by the peer."""
KILL_SECONDS = 5.0


class Piece(NamedTuple):
    """Bytes that belong together: one frame, or something else such as the head of a handshake."""

    raw: bytes
    payload: bytes | None
    """The JSON of a frame; `None` if it is none."""


class Splitter(Protocol):
    """Splits what is read into pieces."""

    def feed(self, data: bytes) -> Iterator[Piece]: ...


class LinePieces:
    """One frame per line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Piece]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield Piece(line + b"\n", line)


class WebSocketPieces:
    """The head of the handshake, then one frame per WebSocket frame."""

    def __init__(self) -> None:
        self._rest = b""
        self._opened = False

    def feed(self, data: bytes) -> Iterator[Piece]:
        self._rest += data
        if not self._opened:
            end = self._rest.find(b"\r\n\r\n")
            if end < 0:
                return
            self._opened = True
            yield self._cut(end + 4, None)
        while (size := self._size()) is not None:
            yield self._cut(size[0] + size[1], size)

    def _size(self) -> tuple[int, int] | None:
        """Return the sizes of the head and the payload of the first frame, once it is there as a whole."""
        rest = self._rest
        if len(rest) < 2:
            return None
        head, length = 2, rest[1] & 0x7F
        if length >= 126:
            more = 2 if length == 126 else 8
            head += more
            length = int.from_bytes(rest[2:head], "big")
        head += 4 if rest[1] & 0x80 else 0
        return (head, length) if len(rest) >= head + length else None

    def _cut(self, size: int, parts: tuple[int, int] | None) -> Piece:
        raw, self._rest = self._rest[:size], self._rest[size:]
        whole_text = parts is not None and raw[0] == 0x81
        return Piece(raw, _unmasked(raw, parts[0]) if whole_text and parts is not None else None)


def _unmasked(raw: bytes, head: int) -> bytes:
    payload = raw[head:]
    if not raw[1] & 0x80 or not payload:
        return payload
    mask = (raw[head - 4 : head] * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")).to_bytes(len(payload), "big")


class _Kind(Enum):
    DROP = auto()
    DUPLICATE = auto()
    HOLD = auto()
    CUT_INSIDE = auto()
    DISCONNECT_BEFORE = auto()
    DISCONNECT_AFTER = auto()


class Fault:
    """One planned fault: it hits the first frame that fits, once."""

    def __init__(self, kind: _Kind, when: Condition) -> None:
        self.kind = kind
        self.when = when
        self._happened = asyncio.Event()
        self._released = asyncio.Event()

    async def happens(self, *, timeout: float) -> None:
        """Wait until the fault has hit its frame. Raises `NotSeen`."""
        try:
            async with asyncio.timeout(timeout):
                await self._happened.wait()
        except TimeoutError:
            raise NotSeen(f"no frame came within {timeout:g} s for the fault of the judge") from None

    def release(self) -> None:
        """Let the frames pass that a `hold` holds."""
        self._released.set()

    def hit(self) -> None:
        self._happened.set()

    async def until_released(self) -> None:
        await self._released.wait()


class Lane:
    """One direction of a proxied connection: the words for faults, and the frames that passed."""

    def __init__(self, sender: Role, pieces: Splitter, disconnect: Callable[[], None]) -> None:
        self._sender = sender
        self._pieces = pieces
        self._disconnect = disconnect
        self._faults: list[Fault] = []
        self._open = asyncio.Event()
        self._open.set()
        self._writer: asyncio.StreamWriter | None = None

    # --- the words ---------------------------------------------------------------------------------

    def drop(self, when: Condition) -> Fault:
        """Lose a frame; the connection goes on."""
        return self._plan(_Kind.DROP, when)

    def duplicate(self, when: Condition) -> Fault:
        """Pass a frame on twice."""
        return self._plan(_Kind.DUPLICATE, when)

    def hold(self, when: Condition) -> Fault:
        """Delay a frame, and those behind it, until `release`."""
        return self._plan(_Kind.HOLD, when)

    def cut_inside(self, when: Condition) -> Fault:
        """Pass on the first half of a frame, then end the connection."""
        return self._plan(_Kind.CUT_INSIDE, when)

    def disconnect_before(self, when: Condition) -> Fault:
        """End the connection in place of a frame: its receiver never sees it."""
        return self._plan(_Kind.DISCONNECT_BEFORE, when)

    def disconnect_after(self, when: Condition) -> Fault:
        """Pass a frame on, then end the connection: its sender never sees the answer."""
        return self._plan(_Kind.DISCONNECT_AFTER, when)

    def pause(self) -> None:
        """Stop reading: what the sender writes fills its buffers."""
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    def half_close(self) -> None:
        """End the stream in this direction; the other one goes on."""
        if self._writer is not None and self._writer.can_write_eof():
            self._writer.write_eof()

    def _plan(self, kind: _Kind, when: Condition) -> Fault:
        fault = Fault(kind, when)
        self._faults.append(fault)
        return fault

    # --- the work ----------------------------------------------------------------------------------

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what is read, until the end or a fault that ends the connection."""
        self._writer = writer
        with suppress(ConnectionError, OSError):
            while data := await reader.read(READ_SIZE):
                await self._open.wait()
                for piece in self._pieces.feed(data):
                    if not await self._pass(piece, writer):
                        self._disconnect()
                        return
                await writer.drain()
            self.half_close()

    async def _pass(self, piece: Piece, writer: asyncio.StreamWriter) -> bool:
        """Write a piece, changed by the fault that it is due. Return whether the connection goes on."""
        fault = self._due(piece)
        kind = None if fault is None else fault.kind
        if kind is _Kind.HOLD and fault is not None:
            fault.hit()
            await fault.until_released()
        if kind is _Kind.CUT_INSIDE:
            writer.write(piece.raw[: max(1, len(piece.raw) // 2)])
        elif kind not in (_Kind.DROP, _Kind.DISCONNECT_BEFORE):
            writer.write(piece.raw * (2 if kind is _Kind.DUPLICATE else 1))
        if kind in (_Kind.CUT_INSIDE, _Kind.DISCONNECT_AFTER):
            await writer.drain()
        if fault is not None:
            fault.hit()
        return kind not in (_Kind.CUT_INSIDE, _Kind.DISCONNECT_BEFORE, _Kind.DISCONNECT_AFTER)

    def _due(self, piece: Piece) -> Fault | None:
        if piece.payload is None or not self._faults:
            return None
        frame = RecordedFrame(0, 0, self._sender, piece.payload, parse(piece.payload))
        for fault in self._faults:
            if fault.when(frame):
                self._faults.remove(fault)
                return fault
        return None


class FaultProxy:
    """One proxied connection. `to_peer` is what the judge's client sends, `to_client` what it receives."""

    def __init__(self, splitter: Callable[[], Splitter]) -> None:
        self.to_peer = Lane(Role.CLIENT, splitter(), self.disconnect)
        self.to_client = Lane(Role.AGENT, splitter(), self.disconnect)
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []

    def disconnect(self) -> None:
        """End the connection on both sides, at once. What was passed on still arrives."""
        for writer in self._writers:
            writer.close()

    def carry(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        peer: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Pass on frames between two byte streams."""
        self._writers += [client[1], peer[1]]
        loop = asyncio.get_running_loop()
        self._tasks += [
            loop.create_task(self.to_peer.run(client[0], peer[1])),
            loop.create_task(self.to_client.run(peer[0], client[1])),
        ]

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        for writer in self._writers:
            with suppress(OSError, ConnectionError):
                await writer.wait_closed()


class WebSocketProxy(FaultProxy):
    """Listens at `address` for the judge's one connection, and connects it to the peer."""

    def __init__(self, peer: str) -> None:
        super().__init__(WebSocketPieces)
        self._peer = urlsplit(peer)
        self._server: asyncio.Server
        self.address = ""

    @classmethod
    async def listen(cls, peer: str) -> Self:
        """Return a proxy to a `ws://` address. Raises `ValueError` for another one."""
        self = cls(peer)
        if self._peer.scheme != "ws":
            raise ValueError(f"expected an address that begins with ws://, got {peer!r}")
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.address = urlunsplit(self._peer._replace(netloc=f"127.0.0.1:{port}"))
        return self

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = socket.socket(socket.AF_INET)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW)
        link.setblocking(False)
        host, port = self._peer.hostname or "", self._peer.port or 80
        try:
            await asyncio.get_running_loop().sock_connect(link, (host, port))
        except OSError:
            link.close()
            writer.close()
            return
        self.carry((reader, writer), await asyncio.open_connection(sock=link, limit=READ_SIZE))

    async def aclose(self) -> None:
        self._server.close()
        await super().aclose()


class FaultyProcess(FaultProxy):
    """A command that speaks ACP on stdin and stdout, with the proxy between."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__(LinePieces)
        self._process = process
        self.transport: Transport

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """Start a command. `transport` is the judge's end. Raises `OSError`."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        self = cls(process)
        assert process.stdin is not None
        assert process.stdout is not None
        ours, theirs = socket.socketpair()
        transport = SocketTransport()
        await asyncio.get_running_loop().create_unix_connection(
            lambda: transport.protocol(lambda: None), sock=ours
        )
        self.transport = transport
        client = await asyncio.open_unix_connection(sock=theirs)
        self.carry(client, (process.stdout, process.stdin))
        return self

    def kill(self) -> None:
        """Kill the process at once."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def aclose(self) -> None:
        await self.transport.aclose()
        await super().aclose()
        try:
            async with asyncio.timeout(KILL_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
