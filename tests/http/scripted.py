"""A server whose answers a test gives: what a client of ours does where no hub of ours would say that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from antiphon.jsonrpc.sse import encode_event
from antiphon.remote.http_server import http_server
from antiphon.transports.http.exchange import Exchange, Head, Reply
from antiphon.transports.http.exchange import json as as_json
from antiphon.transports.http.routes import Site
from tests.http.raw import INFO

RESULT = {"protocolVersion": 2, "info": INFO, "capabilities": {"session": {"load": {}, "resume": {}}}}

Answer = Callable[[Exchange, Any], Awaitable[Reply | None]]


class Scripted:
    """Initializes, opens streams and takes everything else, but for what `answer` says."""

    def __init__(self, answer: Answer | None = None, *, ids: bool = False) -> None:
        self._answer = answer
        self._ids = ids
        self.heads: list[Head] = []
        self.streams: dict[str | None, Exchange] = {}
        self.opened: asyncio.Queue[str | None] = asyncio.Queue()
        self.left: asyncio.Queue[str | None] = asyncio.Queue()
        """The sessions of streams that are read, and of those that are not any more."""
        self.cookies: dict[str, str] = {}
        self.url = ""

    def admit(self, head: Head) -> Reply | None:
        self.heads.append(head)
        return None

    def refused(self, head: Head, status: int) -> None: ...

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        frame = json.loads(body) if body else None
        given = None if self._answer is None else await self._answer(exchange, frame)
        headers = exchange.head.headers
        if given is not None:
            exchange.reply(given)
        elif exchange.head.method == "GET" and "acp-connection-id" in headers:
            session = headers.get("Acp-Session-Id")
            self.streams[session] = exchange
            exchange.on_gone = lambda: self.left.put_nowait(session)
            exchange.begin({"Content-Type": "text/event-stream"})
            self.opened.put_nowait(session)
        elif exchange.head.method == "GET":
            exchange.reply(Reply(400))
        elif frame is not None and frame.get("method") == "initialize":
            result = {"jsonrpc": "2.0", "id": frame["id"], "result": RESULT}
            told = {"Acp-Connection-Id": "c", **self.cookies}
            exchange.reply(as_json(200, json.dumps(result).encode(), told))
        else:
            exchange.reply(Reply(202))

    def tell(self, session: str | None, **frame: Any) -> None:
        """Send a frame over a stream."""
        data = json.dumps({"jsonrpc": "2.0", **frame}).encode()
        self.streams[session].write(encode_event(data, id="1" if self._ids else ""))


@asynccontextmanager
async def scripted(answer: Answer | None = None, **options: Any) -> AsyncIterator[Scripted]:
    async def serve(transport: Any) -> None:
        raise AssertionError("nobody goes there")

    script = Scripted(answer, **options)
    async with http_server(serve, path="/elsewhere", site=Site(routes={"/acp": script})) as server:
        script.url = f"http://127.0.0.1:{server.port}/acp"
        yield script
