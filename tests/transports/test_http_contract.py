"""An HTTP connection is a transport like any other, over HTTP/1.1, over HTTP/2, and with TLS."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.transports.certificates import certificates

from antiphon.testing import check_transport
from antiphon.transports.base import Inbox, Transport
from antiphon.transports.http_client import HttpClientTransport, connect_http
from antiphon.transports.http_server import http_server

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}'
RESULT = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2}}'


async def first_frame(transport: Any) -> Any:
    """Take what comes first; the transport is as if it had never been started."""
    frames = await Inbox(transport).take()
    transport._delivery._receive = None
    transport.resume()
    return json.loads(frames[0])


@asynccontextmanager
async def linked(
    *, http2: bool = False, folder: Path | None = None
) -> AsyncIterator[tuple[HttpClientTransport, Transport]]:
    """A client and a server, which have said their first words."""
    accepted: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def serve(transport: Transport) -> None:
        assert await first_frame(transport) == json.loads(INITIALIZE)
        transport.send(RESULT)
        accepted.set_result(transport)
        await done.wait()

    ours: ssl.SSLContext | None = None
    theirs: ssl.SSLContext | None = None
    if folder is not None:
        ours, theirs = certificates(folder)
    scheme = "http" if folder is None else "https"
    async with http_server(serve, tls=theirs) as server:
        client = await connect_http(f"{scheme}://127.0.0.1:{server.port}/acp", http2=http2, tls=ours)
        try:
            client.send(INITIALIZE)
            assert await first_frame(client) == json.loads(RESULT)
            yield client, await accepted
        finally:
            done.set()
            await client.aclose()


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("client_first", [True, False], ids=["client_first", "server_first"])
async def test_trans_08_http_03_the_contract_is_kept(http2: bool, client_first: bool) -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[tuple[Transport, Transport]]:
        async with linked(http2=http2) as (client, server):
            yield (client, server) if client_first else (server, client)

    await check_transport(make, deadline=60.0)  # a request for each frame takes its time on a busy machine


async def test_http_03_with_tls_both_agree_on_the_second_version(tmp_path: Path) -> None:
    async with linked(folder=tmp_path) as (client, server):
        answer = await client._client.get(client._url, headers={"Accept": "text/event-stream"})
        assert (answer.http_version, answer.status_code) == ("HTTP/2", 400)
        inbox = Inbox(server)
        client.send(b'{"jsonrpc":"2.0","method":"x"}')
        assert await inbox.take() == [b'{"jsonrpc":"2.0","method":"x"}']
