"""Links to an agent's process by hand, JSON frames over pipes or over a WebSocket: nothing waits unasked."""

from __future__ import annotations

import json
import os
import select
import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

from websockets import ClientProtocol
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from tests.faults.violation import Silence, Violation, check

DEADLINE = 60.0
READ_SIZE = 4096

Frame = dict[str, Any]


class Link(ABC):
    """Frames to and from the agent."""

    def __init__(self) -> None:
        self.waiting: deque[Frame] = deque()
        """What was read and not yet heard."""

    @abstractmethod
    def fileno(self) -> int: ...

    @abstractmethod
    def send(self, frame: Frame) -> None: ...

    @abstractmethod
    def read(self) -> bool:
        """Take in what has come, waiting for the first byte; false at the end."""

    @abstractmethod
    def close(self) -> None: ...

    def read_to_the_end(self) -> None:
        """What was on its way when the process was killed: who wrote it to the kernel has shown it."""
        while self.read():
            pass


class PipeLink(Link):
    """Over a process's stdin and stdout."""

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        super().__init__()
        self._stdin, self._stdout = stdin, stdout
        self._rest = b""

    def fileno(self) -> int:
        return self._stdout.fileno()

    def send(self, frame: Frame) -> None:
        with suppress(BrokenPipeError):  # if it is dead, reading tells
            self._stdin.write(json.dumps(frame).encode() + b"\n")
            self._stdin.flush()

    def read(self) -> bool:
        data = os.read(self._stdout.fileno(), READ_SIZE)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.waiting += map(json.loads, lines)
        return bool(data)

    def close(self) -> None:
        for pipe in (self._stdin, self._stdout):
            with suppress(BrokenPipeError):
                pipe.close()


class WebSocketLink(Link):
    """Over the WebSocket that a process serves at a port of this machine."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{port}/acp"))
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        except OSError as error:
            raise Violation(f"the agent does not listen any more: {error}") from error
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        while self._protocol.state is not OPEN:
            check(self.read(), f"no WebSocket was opened: {self._protocol.handshake_exc}")

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, frame: Frame) -> None:
        if self._protocol.state is OPEN:  # if it was closed, reading tells
            self._protocol.send_text(json.dumps(frame).encode())
            self._flush()

    def read(self) -> bool:
        try:
            data = self._socket.recv(READ_SIZE)
        except ConnectionResetError:
            data = b""
        except TimeoutError:
            raise Silence(f"the agent is silent for {DEADLINE:g} s") from None
        if data:
            self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, WebSocketFrame) and event.opcode is Opcode.TEXT:
                self.waiting.append(json.loads(bytes(event.data)))
        self._flush()
        return bool(data)

    def _flush(self) -> None:
        with suppress(ConnectionError):  # if it is dead, reading tells
            self._socket.sendall(b"".join(self._protocol.data_to_send()))

    def close(self) -> None:
        self._socket.close()


def wait_for_any(links: Sequence[Link]) -> list[Link]:
    """The links with frames to be heard; at least one, before the deadline. Pings of a WebSocket are none."""
    until = time.monotonic() + DEADLINE
    while not (heard := [link for link in links if link.waiting]):
        ready, _, _ = select.select(links, [], [], max(0.0, until - time.monotonic()))
        if not ready or time.monotonic() > until:
            raise Silence(f"the agent is silent for {DEADLINE:g} s")
        for link in ready:
            check(link.read() or link.waiting, "the agent ended by itself")
    return heard
