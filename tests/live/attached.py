"""A client with its attachment, over a real connection: it collects every frame that it is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.connection.scripted import accept_any

from antiphon.bridge.dialects import writer
from antiphon.connection import Connection, Role
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.attachment_writer import AttachmentWriter, ClientProfile
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.version import Extras
from antiphon.transports.base import Received
from antiphon.transports.memory import MemoryTransport, memory_pair

DEADLINE = 60.0
NONE = Extras()


class Attached:
    def __init__(self, transport: MemoryTransport) -> None:
        self.frames: list[bytes] = []
        self.connection: Connection
        self.voice: AttachmentWriter
        self._transport = transport
        self._arrived = asyncio.Event()
        transport.start(self._receive, lambda: None)

    def _receive(self, frames: Sequence[Received]) -> None:
        self.frames += [frame for frame in frames if isinstance(frame, bytes)]
        self._arrived.set()

    def send(self, **frame: Any) -> None:
        self._transport.send_now(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    def prompt(self, message_id: str) -> None:
        """Send a prompt, whose text is the id that it has in the journal."""
        content = [{"type": "text", "text": message_id}]
        self.send(id=message_id, method="session/prompt", params={"sessionId": "s", "prompt": content})

    def stop_reading(self) -> None:
        self._transport.pause()

    def read_again(self) -> None:
        self._transport.resume()

    async def congested(self) -> None:
        """Wait until nothing more can be written to it: what is sent in one step is written in the next."""
        for _ in range(1000):
            if self.connection.congested:
                return
            await asyncio.sleep(0)
        raise AssertionError("it can still be written to")

    async def until(self, text: str, *, times: int = 1) -> None:
        """Wait for so many frames with a text in them."""
        async with asyncio.timeout(DEADLINE):
            while sum(text.encode() in frame for frame in self.frames) < times:
                self._arrived.clear()
                await self._arrived.wait()

    def asked(self) -> list[dict[str, Any]]:
        """The requests that it was sent."""
        frames = map(json.loads, self.frames)
        return [frame for frame in frames if "id" in frame and "method" in frame]


@asynccontextmanager
async def attached(
    version: int = 2, *, who: str | None = None, extras: Extras = NONE
) -> AsyncIterator[Attached]:
    """A client of session `s` that is not pinned yet."""
    ours, theirs = memory_pair(high=1)
    client = Attached(theirs)

    async def prompted(params: Any, inbound: Inbound) -> None:
        await client.voice.prompted(params.prompt[0].text, inbound)

    options: dict[str, Any] = {"on_initialize": accept_any, "requests": {"session/prompt": prompted}}
    async with Connection(ours, role=Role.AGENT, **options) as connection:
        info = {"protocolVersion": version, "info": {"name": "c", "version": "1"}, "capabilities": {}}
        client.send(id=0, method="initialize", params=info)
        await client.until('"id":0')
        client.frames.clear()
        assert connection.agreement is not None
        profile = ClientProfile(
            who=None if who is None else Who(client_id=who, name=who),
            version=None,
            modes=frozenset(),
            answers=lambda _: True,
            counts=lambda: True,
            credential=None,
        )
        client.connection = connection
        client.voice = AttachmentWriter("s", connection, writer(connection.agreement), profile, extras=extras)
        try:
            yield client
        finally:
            if client.voice.pinned:
                await client.voice.stop()
    await theirs.aclose()
