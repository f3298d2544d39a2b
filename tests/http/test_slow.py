"""Who sends as slowly as can be, a byte now and a byte then, is not waited for; and somebody hears of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.hub import Access, Hub
from antiphon.hub.access.limits import HubLimits
from antiphon.remote.http_server import HttpServer, http_server
from antiphon.remote.websocket_server import ServerOptions
from antiphon.transports.http.exchange import Head, Limits
from antiphon.transports.http.routes import Site
from tests.http.raw import DEADLINE, Raw, read_head
from tests.http.serving import make_agent
from tests.requirements.marks import requirement

SHORT = Limits(head_seconds=0.2, body_seconds=0.2, idle_seconds=0.2)
DRIP = 0.02
"""Seconds from one byte to the next."""


class Noted:
    """What is refused for its slowness."""

    def __init__(self, server: HttpServer, told: list[tuple[str, str, int]]) -> None:
        self.port = server.port
        self.server = server
        self.told = told


@asynccontextmanager
async def noting() -> AsyncIterator[Noted]:
    agent, _ = make_agent()
    told: list[tuple[str, str, int]] = []

    def refused(head: Head, status: int) -> None:
        told.append((head.peer, head.path, status))

    async with (
        asyncio.timeout(DEADLINE),
        agent.serving(),
        http_server(agent.serve, site=Site(refused=refused), options=ServerOptions(limits=SHORT)) as server,
    ):
        yield Noted(server, told)


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    """For ever, or until the other side has enough of it."""
    for byte in data:
        writer.write(bytes([byte]))
        await asyncio.sleep(DRIP)


async def answered(port: int, data: bytes, *, at_once: int) -> int | None:
    """The status that is told while the rest of it is still coming."""
    async with Raw(port).socket() as (reader, writer):
        writer.write(data[:at_once])
        dripping = asyncio.ensure_future(drip(writer, data[at_once:]))
        try:
            return (await read_head(reader))[0]
        except asyncio.IncompleteReadError:
            return None
        finally:
            assert not dripping.done(), "there would have been more"
            dripping.cancel()


@pytest.mark.parametrize("first", ["GET /acp HTTP/1.1", "POST /acp HTTP/1.1", "PRI * HTTP/2.0\r\n\r\nS"])
async def test_a_head_byte_by_byte(first: str) -> None:
    async with noting() as noted:
        head = f"{first}\r\nX-Long: {'x' * 1000}".encode()
        assert await answered(noted.port, head, at_once=1) == 408
        assert noted.told == [("127.0.0.1", "", 408)]
        assert noted.server.counts.refused[408] == 1


async def test_a_body_byte_by_byte() -> None:
    async with noting() as noted:
        raw = Raw(noted.port)
        data = raw.request("POST", b" " * 1000)
        assert await answered(noted.port, data, at_once=len(data) - 1000) == 408
        assert noted.told == [("127.0.0.1", "/acp", 408)]


async def test_who_says_nothing_is_sent_away_without_a_word() -> None:
    async with noting() as noted:
        async with Raw(noted.port).socket() as (reader, _):
            assert await reader.read() == b""
        assert noted.told == []


@requirement("HTTP-22")
async def test_each_is_in_the_audit_log_with_where_it_came_from(tmp_path: Path) -> None:
    agent, _ = make_agent()
    limits = HubLimits(head_seconds=0.2, body_seconds=0.2)
    hub = Hub({"echo": agent}, limits=limits, access=Access(audit=tmp_path / "audit.jsonl"))
    async with asyncio.timeout(DEADLINE), hub.listening():
        assert hub.port is not None
        body = Raw(hub.port, hub.token).request("POST", b" " * 1000)
        assert await answered(hub.port, body[:200], at_once=10) == 408
        assert await answered(hub.port, body, at_once=len(body) - 1000) == 408
    lines: list[Any] = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    told = [(line["status"], line["peer"], line.get("token"), line.get("path")) for line in lines]
    assert told == [(408, "127.0.0.1", None, None), (408, "127.0.0.1", "owner", "/acp")]
