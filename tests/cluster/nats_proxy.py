"""NatsProxy: stands between one hub and the NATS servers, and can cut, stall or lose what passes.

It has an event loop in a thread of its own, so that one proxy can serve tests that run in different loops.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TypeVar

WITH_BODY = (b"PUB", b"HPUB", b"MSG", b"HMSG")
"""Lines of the NATS protocol that are followed by a body. The last word is its size."""
T = TypeVar("T")


class Link(StrEnum):
    """What the network between the hub and the servers does."""

    WHOLE = "whole"
    STALLED = "stalled"
    """Nothing arrives until it is whole again, then everything does."""
    BLACK_HOLE = "black hole"
    """What is sent is lost. When it is whole again, the connections break."""
    CUT = "cut"
    """Connections break, and new ones are refused."""


class NatsProxy:
    def __init__(self, ports: Sequence[int]) -> None:
        """`ports`: those of the servers."""
        self.lost = 0
        """Replies and requests that were lost since `lose_replies` or `lose_requests` was called."""
        self._link = Link.WHOLE
        self._replies_to_lose = self._requests_to_lose = 0
        self._doomed: set[bytes] = set()
        """Subjects of replies that will be lost."""
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        servers = [self._call(self._listen(port)) for port in ports]
        self._servers = servers
        self.address = ",".join(
            f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers
        )

    def _call(self, work: Awaitable[T]) -> T:
        async def run() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)

    async def _listen(self, port: int) -> asyncio.Server:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._connected(port, reader, writer)

        return await asyncio.start_server(accept, "127.0.0.1", 0)

    # --- what a test does --------------------------------------------------------------------------

    def set(self, link: Link) -> None:
        """Change the network. Returns when it has changed."""
        self._call(self._set(link))

    def lose_replies(self, count: int) -> None:
        """Lose the replies to the next requests of this hub to other hubs."""
        self.lost, self._replies_to_lose = 0, count

    def lose_requests(self, count: int) -> None:
        """Lose the next requests of this hub to other hubs."""
        self.lost, self._requests_to_lose = 0, count

    def heal(self) -> None:
        """Lose nothing any more."""
        self._replies_to_lose = self._requests_to_lose = 0
        self._doomed.clear()
        self.set(Link.WHOLE)

    def close(self) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _set(self, link: Link) -> None:
        before, self._link = self._link, link
        if link is Link.CUT or before is Link.BLACK_HOLE:
            self._break()
        if link is Link.STALLED:
            self._whole.clear()
        else:
            self._whole.set()

    def _break(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        self._whole.set()
        self._break()
        here = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not here]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    # --- one connection ----------------------------------------------------------------------------

    async def _connected(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._link is Link.CUT:
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            with suppress(OSError):
                there, back = await asyncio.open_connection("127.0.0.1", port)
                self._writers.add(back)
                try:
                    await asyncio.wait(
                        [
                            asyncio.ensure_future(self._pass(reader, back, self._sends)),
                            asyncio.ensure_future(self._pass(there, writer, self._receives)),
                        ],
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                finally:
                    self._writers.discard(back)
                    back.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        passes: Callable[[list[bytes]], bool],
    ) -> None:
        """Pass frames on, one by one, until either side is gone."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await reader.readuntil(b"\r\n")
                words = frame.split()
                if words and words[0].upper() in WITH_BODY:
                    frame += await reader.readexactly(int(words[-1]) + 2)
                await self._whole.wait()
                if self._link is not Link.BLACK_HOLE and passes(words):
                    writer.write(frame)
                    await writer.drain()

    def _sends(self, words: list[bytes]) -> bool:
        """Return whether a frame of the hub gets through."""
        is_request = len(words) > 3 and words[0] in (b"PUB", b"HPUB") and b".request." in words[1]
        if is_request and self._requests_to_lose:
            self._requests_to_lose -= 1
            self.lost += 1
            return False
        if is_request and self._replies_to_lose:
            self._replies_to_lose -= 1
            self._doomed.add(words[2])
        return True

    def _receives(self, words: list[bytes]) -> bool:
        """Return whether a frame for the hub gets through."""
        if self._doomed and words and words[0] in (b"MSG", b"HMSG") and words[1] in self._doomed:
            self._doomed.discard(words[1])
            self.lost += 1
            return False
        return True
