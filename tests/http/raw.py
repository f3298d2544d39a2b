"""A client of HTTP/1.1 by hand: what goes over the socket is what a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from antiphon.jsonrpc.sse import Event, EventDecoder

DEADLINE = 60.0
INFO = {"name": "raw", "version": "1"}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    assert first.startswith("HTTP/1.")
    pairs = [line.partition(":") for line in lines]
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}


class Raw:
    def __init__(self, port: int, token: str = "") -> None:
        self.port = port
        self.token = token
        self.connection = ""

    async def ask(
        self,
        method: str,
        body: Any = None,
        *,
        path: str = "/acp",
        headers: Mapping[str, str | None] | None = None,
    ) -> Answer:
        """One request over a socket of its own; a header that is `None` is left out."""
        return await self.send(self.request(method, body, path=path, headers=headers))

    def request(
        self,
        method: str,
        body: Any = None,
        *,
        path: str = "/acp",
        headers: Mapping[str, str | None] | None = None,
    ) -> bytes:
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        merged: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}" if self.token else None,
            "Content-Type": "application/json" if method == "POST" else None,
            "Accept": "text/event-stream" if method == "GET" else None,
            "Acp-Connection-Id": self.connection or None,
            "Content-Length": str(len(content)) if content or method == "POST" else None,
            **(headers or {}),
        }
        lines = [f"{name}: {value}" for name, value in merged.items() if value is not None]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + content

    async def send(self, data: bytes) -> Answer:
        async with asyncio.timeout(DEADLINE), self.socket() as (reader, writer):
            writer.write(data)
            status, headers = await read_head(reader)
            return Answer(status, headers, await reader.readexactly(int(headers.get("content-length", "0"))))

    @asynccontextmanager
    async def socket(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def initialize(self, version: int = 2, **capabilities: Any) -> Any:
        """Open a connection; the answer to `initialize`."""
        shape = (
            {"clientInfo": INFO, "clientCapabilities": capabilities}
            if version == 1
            else {"info": INFO, "capabilities": capabilities}
        )
        params = {"protocolVersion": version, **shape}
        answer = await self.ask(
            "POST", {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}
        )
        assert answer.status == 200, answer
        self.connection = answer.headers["acp-connection-id"]
        return answer.json["result"]

    async def post(self, frame: Mapping[str, Any], session: str | None = None) -> Answer:
        return await self.ask("POST", {"jsonrpc": "2.0", **frame}, headers={"Acp-Session-Id": session})

    @asynccontextmanager
    async def stream(self, session: str | None = None, *, last: str | None = None) -> AsyncIterator[Events]:
        async with self.socket() as (reader, writer):
            headers = {"Acp-Session-Id": session, "Last-Event-ID": last}
            writer.write(self.request("GET", headers=headers))
            async with asyncio.timeout(DEADLINE):
                status, told = await read_head(reader)
            yield Events(reader, status, told)

    async def new_session(self, own: Events) -> str:
        assert (await self.post({"id": "new", "method": "session/new", "params": NEW})).status == 202
        return (await own.answer("new"))["sessionId"]

    async def prompt(self, session: str, text: str, id: Any = "p") -> None:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        answer = await self.post({"id": id, "method": "session/prompt", "params": params}, session)
        assert (answer.status, answer.body) == (202, b"")


NEW = {"cwd": "/", "mcpServers": []}


class Events:
    """What comes over a stream."""

    def __init__(self, reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.reader = reader
        self._decoder = EventDecoder()
        self._ready: list[Event] = []
        self.seen: list[Event] = []

    @property
    def frames(self) -> list[Any]:
        return [json.loads(event.data) for event in self.seen if event.data]

    @property
    def updates(self) -> list[Any]:
        return [frame["params"] for frame in self.frames if frame.get("method") == "session/update"]

    async def chunk(self) -> bytes:
        """One piece of the body, as it was written; empty at its end."""
        size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def next(self) -> Event:
        async with asyncio.timeout(DEADLINE):
            while not self._ready:
                chunk = await self.chunk()
                assert chunk, "the stream ended"
                self._ready += self._decoder.feed(chunk)  # type: ignore[arg-type]
        event = self._ready.pop(0)
        self.seen.append(event)
        return event

    async def frame(self, fits: Any = lambda _: True) -> Any:
        """The next one that fits."""
        while True:
            event = await self.next()
            if event.data and fits(found := json.loads(event.data)):
                return found

    async def answer(self, id: Any) -> Any:
        answer = await self.frame(lambda frame: frame.get("id") == id and "method" not in frame)
        assert "result" in answer, answer
        return answer["result"]

    async def idle(self) -> None:
        """Until the turn is over."""
        await self.frame(lambda frame: frame.get("params", {}).get("update", {}).get("state") == "idle")
