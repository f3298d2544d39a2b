"""A hub behind a real proxy, clients with an address of their own, and what the audit log says of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from antiphon.hub import Access, Hub
from tests.http.raw import INFO, read_head
from tests.http.serving import make_agent
from tests.proxy.proxies import DEADLINE, NAME, Proxy, free_port, proxy_before

CLIENT = "127.0.0.2"
"""Where clients connect from. The proxies connect to the hub from 127.0.0.1."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": 2, "info": INFO, "capabilities": {}},
}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
FORGED = "203.0.113.7"
FORGERIES: tuple[tuple[str, str], ...] = (
    ("X-Forwarded-For", FORGED),
    ("x-forwarded-for", f"{FORGED}, 127.0.0.1"),
    ("X-Forwarded-For", "127.0.0.1"),
    ("Forwarded", f"for={FORGED};host=127.0.0.1;proto=http"),
    ("Forwarded", f'for="{FORGED}'),
    ("X-Real-IP", FORGED),
    ("X-Client-IP", FORGED),
    ("True-Client-IP", FORGED),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Proto", "http"),
    ("X-Forwarded-Port", "1"),
)


class Stage:
    def __init__(self, hub: Hub, proxy: Proxy, go: asyncio.Event, folder: Path) -> None:
        self.hub = hub
        self.proxy = proxy
        self.go = go
        """Lets the agent go on that was told to wait."""
        self._folder = folder

    def client(self) -> httpx.AsyncClient:
        """A client of HTTP/2 through the proxy, with a token."""
        return httpx.AsyncClient(
            base_url=self.proxy.origin,
            transport=httpx.AsyncHTTPTransport(verify=self.proxy.tls, http2=True, local_address=CLIENT),
            headers={"Authorization": f"Bearer {self.hub.token}"},
            timeout=DEADLINE,
        )

    async def upgrade(
        self, headers: Mapping[str, str], more: tuple[tuple[str, str], ...] = (), *, direct: bool = False
    ) -> int:
        """The status that a request for a WebSocket gets, through the proxy or directly at the hub."""
        async with self._socket(direct) as (reader, writer):
            merged = {"Host": self.proxy.host, **UPGRADE, **headers}
            lines = [f"{name}: {value}" for name, value in (*merged.items(), *more)]
            writer.write("\r\n".join(["GET /acp HTTP/1.1", *lines, "", ""]).encode())
            status, _ = await read_head(reader)
            return status

    @asynccontextmanager
    async def _socket(self, direct: bool) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        port = self.hub.port if direct else self.proxy.port
        secured: dict[str, Any] = {} if direct else {"ssl": self.proxy.tls, "server_hostname": NAME}
        self.proxy.tls.set_alpn_protocols(["http/1.1"])
        async with asyncio.timeout(DEADLINE):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=(CLIENT, 0), **secured
            )
            try:
                yield reader, writer
            finally:
                writer.transport.abort()

    @property
    def audit(self) -> list[dict[str, Any]]:
        path = self._folder / "audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@asynccontextmanager
async def staged(program: str, folder: Path, *, more: str = "") -> AsyncIterator[Stage]:
    """The hub in this process, the proxy in one of its own."""
    agent, go = make_agent()
    port = free_port()
    hub = Hub(
        {"echo": agent},
        page={"/": (b"<!doctype html>", "text/html; charset=utf-8")},
        access=Access(
            tokens=folder / "tokens.json",
            audit=folder / "audit.jsonl",
            public_url=f"https://{NAME}:{port}/",
            trusted_proxies=["127.0.0.1"],
        ),
    )
    async with hub.listening():
        assert hub.port is not None
        with proxy_before(program, hub.port, folder, port, more=more) as proxy:
            yield Stage(hub, proxy, go, folder)
        go.set()
