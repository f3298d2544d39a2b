"""A bare relay: the least that can stand between an agent's pipe and WebSocket clients.

python -m bench.hub_relay AGENT…

It starts the agent, writes each line of the agent's output as one WebSocket text frame to every client, and
does nothing else: it parses nothing and commits nothing. It runs on the event loop that a hub runs on, and
reads and writes through asyncio's transports, as a hub does. It prints its port. Its stdin is the agent's.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import sys
from typing import cast

from antiphon.transports.loop import run

KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3


class Agent(asyncio.SubprocessProtocol):
    """Relays what the agent writes to its stdout."""

    def __init__(self) -> None:
        self.clients: list[asyncio.Transport] = []
        self.exited = asyncio.Event()
        self._rest = b""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        frames = b"".join([_text_frame(line) for line in lines])
        for client in self.clients:
            client.write(frames)

    def process_exited(self) -> None:
        self.exited.set()


def _text_frame(line: bytes) -> bytes:
    assert 126 <= len(line) < 65536  # every chunk of the agent is
    return b"\x81\x7e" + len(line).to_bytes(2) + line


class Client(asyncio.Protocol):
    """Answers the upgrade and joins; what comes later is not read."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._opening = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._opening += data
        if not self._opening.endswith(b"\r\n\r\n"):
            return
        headers = dict(line.split(b": ", 1) for line in self._opening.split(b"\r\n")[1:] if line)
        accept = base64.b64encode(hashlib.sha1(headers[b"Sec-WebSocket-Key"] + KEY).digest())
        self._transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %b\r\n\r\n" % accept
        )
        self._agent.clients.append(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport in self._agent.clients:
            self._agent.clients.remove(self._transport)


async def relay(command: list[str]) -> None:
    loop = asyncio.get_running_loop()
    agent = Agent()
    server = await loop.create_server(lambda: Client(agent), "127.0.0.1", 0)
    await loop.subprocess_exec(lambda: agent, *command, stdin=None, stderr=None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await agent.exited.wait()
    server.close()


if __name__ == "__main__":
    run(relay(sys.argv[1:]))
