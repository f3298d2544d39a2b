"""The readers of the hub benchmarks: one process, raw sockets; what comes is counted, and nothing else.

python bench/hub_readers.py '{"port": …, "clients": [{"dialect": …, "session": …}, …], "token": …}'

A client is a WebSocket by hand. With a dialect (`v1`, `v2`) it opens the protocol and joins its session,
else it only opens the link; one that is `deaf` never reads again. Prints `ready` when all are there, then
waits until the last chunk has come to the first client of each session, and as many bytes to all others of
it as until there, and prints what it saw as JSON: when the last byte came, the sizes, and the delay of each
chunk from its write to its read, looked at in those first clients, and in the others that are `timed`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import select
import socket
import statistics
import struct
import sys
import time
from typing import Any

from bench.hub_agent import END

BUFFER = 1024 * 1024
DEADLINE = 300.0
INFO = {"name": "bench", "version": "1"}
OPEN = {
    "v1": {"protocolVersion": 1, "clientInfo": INFO, "clientCapabilities": {}},
    "v2": {"protocolVersion": 2, "info": INFO, "capabilities": {}},
}
JOIN = {"v1": "session/load", "v2": "session/resume"}
TEXT, PING, PONG = 0x81, 0x89, b"\x8a\x80" + bytes(4)
WRITTEN = re.compile(rb'"text":"(\d{20})')


class Client:
    """`need` is what it has to have read until it is done; `None` while nobody knows."""

    def __init__(
        self,
        port: int,
        *,
        token: str | None = None,
        dialect: str | None = None,
        session: str | None = None,
        deaf: bool = False,
        timed: bool = False,
    ) -> None:
        self.socket = socket.socket()
        if deaf:  # what the kernel would take for it is not the server's doing
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        self.socket.connect(("127.0.0.1", port))
        self.session = session
        self.timed = timed
        self.count = 0
        self.need: int | None = None
        self.seen: list[tuple[int, int]] | None = None
        self.kept: list[bytes] = []
        self.unread = b""
        self._upgrade(port, token)
        if dialect is not None:
            self.call("initialize", OPEN[dialect])
        if dialect is not None and session is not None:
            self.call(JOIN[dialect], {"sessionId": session, "cwd": "/", "mcpServers": []})

    def _upgrade(self, port: int, token: str | None) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        headers = [
            "GET /acp HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
        ]
        headers += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        headers += [] if token is None else [f"Authorization: Bearer {token}"]
        self.socket.sendall("\r\n".join([*headers, "", ""]).encode())
        while b"\r\n\r\n" not in self.unread:
            self._read_more()
        status, _, self.unread = self.unread.partition(b"\r\n\r\n")
        if b" 101 " not in status:
            raise SystemExit(f"no WebSocket: {status!r}")

    def _read_more(self) -> None:
        data = self.socket.recv(BUFFER)
        if not data:
            raise SystemExit("the server closed a link")
        self.unread += data

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        while True:
            frame = json.loads(self.frame())
            if frame.get("id") == method:
                if "result" not in frame:
                    raise SystemExit(f"{method}: {frame}")
                found: dict[str, Any] = frame["result"]
                return found

    def send(self, frame: dict[str, Any]) -> None:
        data = json.dumps(frame).encode()
        assert len(data) < 65536
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
        self.socket.sendall(b"\x81" + size + bytes(4) + data)  # masked with zeros

    def frame(self) -> bytes:
        while True:
            data = self.unread
            if len(data) >= 2:
                size, start = data[1], 2
                if size == 126 and len(data) >= 4:
                    size, start = struct.unpack("!H", data[2:4])[0], 4
                elif size == 127 and len(data) >= 10:
                    size, start = struct.unpack("!Q", data[2:10])[0], 10
                if (size < 126 or start > 2) and len(data) >= start + size:
                    self.unread = data[start + size :]
                    if data[0] == TEXT:
                        return data[start : start + size]
                    if data[0] == PING:
                        self.socket.sendall(PONG)
                    continue
            self._read_more()


def read(clients: list[Client]) -> int:
    """Until all are done; when the last byte came."""
    poll = select.epoll()
    by_fd = {}
    firsts: dict[str | None, Client] = {}
    for client in clients:
        client.socket.setblocking(False)
        client.count = len(client.unread)
        poll.register(client.socket.fileno(), select.EPOLLIN)
        by_fd[client.socket.fileno()] = client
        if firsts.setdefault(client.session, client) is client or client.timed:
            client.seen, client.kept = [(time.monotonic_ns(), client.count)], [client.unread]
    left = len(clients)
    buffer = bytearray(BUFFER)
    view = memoryview(buffer)
    end = END.encode()
    until = time.monotonic() + DEADLINE
    at = 0
    while left:
        found = poll.poll(max(0.0, until - time.monotonic()))
        if not found:
            raise SystemExit(f"{left} clients are not done: {sorted({client.count for client in clients})}")
        for fd, _ in found:
            client = by_fd[fd]
            try:
                size = client.socket.recv_into(buffer)
            except BlockingIOError:
                continue
            if not size:
                raise SystemExit("the server closed a link")
            client.count += size
            if client.seen is not None:
                at = time.monotonic_ns()
                client.seen.append((at, size))
                client.kept.append(bytes(view[:size]))
            if firsts[client.session] is client:
                last = b"".join(client.kept[-2:])
                if client.need is None and end in last:
                    for other in clients:
                        if other.session == client.session:
                            other.need = client.count - (len(last) - last.index(end) - len(end))
                            left -= other is not client and other.count >= other.need
                    left -= 1
            elif client.need is not None and client.count - size < client.need <= client.count:
                left -= 1
    return time.monotonic_ns()


def delays(client: Client) -> tuple[list[int], int]:
    """How long each chunk took, and when the first one was written."""
    assert client.seen is not None
    data = b"".join(client.kept)
    taken, first, ends, at = [], 0, iter(client.seen), 0
    came = upto = 0
    for found in WRITTEN.finditer(data):
        at = found.end()
        while upto < at:
            came, size = next(ends)
            upto += size
        written = int(found[1])
        first = first or written
        taken.append(came - written)
    return taken, first


def main() -> None:
    asked = json.loads(sys.argv[1])
    deaf, clients = [], []
    for wanted in asked["clients"]:
        client = Client(asked["port"], token=asked.get("token"), **wanted)
        (deaf if wanted.get("deaf") else clients).append(client)
    print("ready", flush=True)
    ended = read(clients)
    every: list[int] = []
    began = 0
    for client in clients:
        if client.seen is not None:
            taken, first = delays(client)
            every += taken
            began = min(began or first, first)
    every.sort()
    cpu = time.process_time()
    seen = {
        "seconds": (ended - began) / 1e9,
        "chunks": len(every),
        "bytes": sum(client.need or 0 for client in clients),
        "p50": statistics.median(every) / 1e6,
        "p99": every[len(every) * 99 // 100] / 1e6,
        "cpu": cpu,
    }
    print(json.dumps(seen), flush=True)
    sys.stdin.readline()  # the links stay until whoever measures has looked


if __name__ == "__main__":
    main()
