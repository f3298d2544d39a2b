"""An HTTP connection is a transport like any other: over HTTP/1.1, behind an HTTP/2 proxy, and with TLS."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from tests.http.front2 import front2
from tests.requirements.marks import requirement
from tests.transports.certificates import certificates

from antiphon.remote.http_client import connect_http
from antiphon.remote.http_server import http_server
from antiphon.testing import check_transport
from antiphon.transports.base import Delivery, Inbox, Transport

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}'
RESULT = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2}}'


class Behind:
    """A transport from behind its first frame on."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._delivery = Delivery()
        self.first: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        transport.start(self._take, self._delivery.end)

    def _take(self, frames: list[Any]) -> None:
        if not self.first.done():
            self.first.set_result(json.loads(frames.pop(0)))
            self.pause()
        if frames:
            self._delivery.put(frames)

    def start(self, receive: Any, ended: Any) -> None:
        self._delivery.start(receive, ended)
        self.resume()

    def pause(self) -> None:
        self._delivery.pause()
        self._transport.pause()

    def resume(self) -> None:
        self._delivery.resume()
        if self._delivery.open:
            self._transport.resume()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@asynccontextmanager
async def linked(
    *, http2: bool = False, folder: Path | None = None
) -> AsyncIterator[tuple[Transport, Transport]]:
    """A client and a server, which have said their first words."""
    accepted: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def serve(transport: Transport) -> None:
        behind = Behind(transport)
        assert await behind.first == json.loads(INITIALIZE)
        transport.send(RESULT)
        accepted.set_result(cast(Transport, behind))
        await done.wait()

    ours: ssl.SSLContext | None = None
    theirs: ssl.SSLContext | None = None
    if folder is not None:
        ours, theirs = certificates(folder)
    scheme = "http" if folder is None else "https"
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(http_server(serve, tls=None if http2 else theirs))
        port = await stack.enter_async_context(front2(server.port, theirs)) if http2 else server.port
        client = await connect_http(f"{scheme}://127.0.0.1:{port}/acp", http2=http2, tls=ours)
        try:
            behind = Behind(client)
            client.send(INITIALIZE)
            assert await behind.first == json.loads(RESULT)
            yield cast(Transport, behind), await accepted
        finally:
            done.set()
            await client.aclose()


@requirement("TRANS-08", "HTTP-03")
@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("client_first", [True, False], ids=["client_first", "server_first"])
async def test_the_contract_is_kept(http2: bool, client_first: bool) -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[tuple[Transport, Transport]]:
        async with linked(http2=http2) as (client, server):
            yield (client, server) if client_first else (server, client)

    await check_transport(make, deadline=60.0)  # a request for each frame takes its time on a busy machine


@requirement("HTTP-03")
async def test_our_tls_agrees_on_the_first_version_only(tmp_path: Path) -> None:
    """HTTP/2 is the job of a reverse proxy."""

    async def serve(transport: Transport) -> None:
        raise AssertionError("nobody initializes it")

    ours, theirs = certificates(tmp_path)
    async with (
        http_server(serve, tls=theirs) as server,
        httpx.AsyncClient(http2=True, verify=ours, trust_env=False) as client,
    ):
        events = {"Accept": "text/event-stream"}
        answer = await client.get(f"https://127.0.0.1:{server.port}/acp", headers=events)
        assert (answer.http_version, answer.status_code) == ("HTTP/1.1", 400)


@requirement("HTTP-03")
@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
async def test_a_client_of_ours_speaks_what_tls_agrees_on(tmp_path: Path, http2: bool) -> None:
    async with linked(http2=http2, folder=tmp_path) as (client, server):
        inbox = Inbox(server)
        client.send(b'{"jsonrpc":"2.0","method":"x"}')
        assert await inbox.take() == [b'{"jsonrpc":"2.0","method":"x"}']
