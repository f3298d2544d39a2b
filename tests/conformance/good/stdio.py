"""The good agent's end of stdio: lines from stdin, one frame per line to stdout."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from threading import Thread

from tests.conformance.good.peer import INVALID_REQUEST, Json, Peer

LONGEST_LINE = 32 * 1024 * 1024


class Lines:
    """Splits what is read into lines, and drops a line that is too long (RPC-38)."""

    def __init__(self, agent: Peer) -> None:
        self.agent = agent
        self.pieces: list[bytes] = []
        self.size = 0

    def feed(self, data: bytes) -> None:
        *ends, rest = data.split(b"\n")
        for end in ends:
            self.add(end)
            self.finish()
        self.add(rest)

    def add(self, piece: bytes) -> None:
        was_too_long = self.size > LONGEST_LINE
        self.size += len(piece)
        if self.size <= LONGEST_LINE:
            self.pieces.append(piece)
        elif not was_too_long:
            self.pieces.clear()
            self.agent.refuse_line(INVALID_REQUEST, "the line is too long")

    def finish(self) -> None:
        """Hand over the line that is complete."""
        line = b"".join(self.pieces)
        self.pieces, self.size = [], 0
        self.agent.receive_line(line)

    def end(self) -> None:
        self.finish()  # TRANS-07: the last line may have no newline
        self.agent.end_of_input()


async def serve_stdio(agent: Peer) -> None:
    """Serve the client at stdin and stdout until the end of input."""
    received: asyncio.Queue[bytes] = asyncio.Queue()
    # A thread reads any kind of stdin, files and terminals too, which an event loop does not.
    Thread(target=read_stdin, args=(asyncio.get_running_loop(), received), daemon=True).start()
    lines = Lines(agent)
    while data := await received.get():
        lines.feed(data)
    lines.end()


def read_stdin(loop: asyncio.AbstractEventLoop, received: asyncio.Queue[bytes]) -> None:
    data = b"begin"
    while data:
        data = os.read(0, 65536)
        loop.call_soon_threadsafe(received.put_nowait, data)


def write_line(frame: Json) -> None:
    with suppress(BrokenPipeError):  # the end of input follows
        sys.stdout.buffer.write(json.dumps(frame).encode() + b"\n")
        sys.stdout.buffer.flush()
