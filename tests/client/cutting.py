"""A way to an agent that is cut on command: a TCP proxy between a client and a WebSocket server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from antiphon.client import Client, LinkState


class Way:
    """`cut` ends every link that goes through it, at once and without a word; while it is `closed`, none is
    let in. `watch` sees what goes down to the client over one link, and says where to cut this one."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self.host, self.port, self._path = parts.hostname, parts.port, parts.path
        self.closed = False
        self.links = 0
        """How many there ever were."""
        self.watch: Callable[[bytes], int | None] = lambda _: None
        """Given what has come down so far over a link; how many bytes of it get through before the cut."""
        self.flows = asyncio.Event()
        """Clear it, and nothing gets through in either direction."""
        self.flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._came = asyncio.Condition()
        self.server: asyncio.Server

    @property
    def address(self) -> str:
        return f"ws://127.0.0.1:{self.server.sockets[0].getsockname()[1]}{self._path}"

    def cut(self) -> None:
        for writer in tuple(self._writers):
            with suppress(RuntimeError):
                writer.transport.abort()

    async def came(self, links: int) -> None:
        """Wait until there were so many."""
        async with self._came:
            await self._came.wait_for(lambda: self.links >= links)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.transport.abort()
            return
        self.links += 1
        async with self._came:
            self._came.notify_all()
        try:
            beyond, there = await asyncio.open_connection(self.host, self.port)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, there}
        self._writers |= pair
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, there, None))
                group.create_task(self._pass(beyond, writer, bytearray()))
        finally:
            self._writers -= pair
            for one in pair:
                one.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: bytearray | None
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self.flows.wait()
                if seen is not None:
                    before = len(seen)
                    seen += data
                    upto = self.watch(bytes(seen))
                    if upto is not None:
                        writer.write(data[: max(0, upto - before)])
                        await writer.drain()
                        # The others stay: a client may not repeat a POST whose answer was cut off.
                        self.watch = lambda _: None
                        break
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


async def becomes(client: Client, state: LinkState) -> None:
    """Wait until the link of a client is in a state."""
    async for present in client.link.changes():
        if present is state:
            return


@asynccontextmanager
async def way_to(target: str) -> AsyncIterator[Way]:
    way = Way(target)
    way.server = await asyncio.start_server(way.serve, "127.0.0.1", 0)
    try:
        yield way
    finally:
        way.closed = True
        way.server.close()
        way.cut()
        await asyncio.sleep(0)
