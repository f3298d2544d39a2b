"""Nobody takes more of a hub than it gives: not by long bodies, nor by slow ones, nor by not reading."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from antiphon.transports.http_connection import Bounds
from antiphon.transports.http_exchange import Limits
from tests.http.raw import DEADLINE, Raw, read_head
from tests.http.serving import agent_at_hand

LIST = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
SMALL = Limits(head=2000, body=1000, head_seconds=0.2, body_seconds=0.2, idle_seconds=0.3)


async def answered(raw: Raw, *pieces: bytes) -> int | None:
    """The status that is answered to what comes in pieces; `None` where the socket is just closed."""
    async with asyncio.timeout(DEADLINE), raw.socket() as (reader, writer):
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        try:
            status, _ = await read_head(reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return status


CHUNKED = {"Content-Length": None, "Transfer-Encoding": "chunked"}


@pytest.mark.parametrize(
    ("status", "pieces"),
    [
        (413, lambda raw: [raw.request("POST", b" " * 1001)]),
        (413, lambda raw: [raw.request("POST", headers={"Content-Length": "9" * 9})]),
        (413, lambda raw: [raw.request("POST", headers=CHUNKED), *[b"64\r\n" + b" " * 100 + b"\r\n"] * 11]),
        (408, lambda raw: [raw.request("POST", b" " * 500)[:-100]]),
        (408, lambda raw: [raw.request("POST", headers=CHUNKED), b"1\r\n \r\n"]),
        (408, lambda raw: [b"GET /acp HTTP/1.1\r\nHost: x\r\n"]),
        (431, lambda raw: [b"GET /acp HTTP/1.1\r\n" + b"X: y\r\n" * 400]),
        (400, lambda raw: [b"GET /acp HTTP/1.1\r\n\r\n"]),  # no host
        (400, lambda raw: [b"this is not HTTP\r\n\r\n"]),
        (400, lambda raw: [raw.request("POST", b"{}", headers={"Transfer-Encoding": "chunked, chunked"})]),
        (None, lambda raw: []),
        (None, lambda raw: [b"PRI * HTTP/2.0\r\n"]),
    ],
)
async def test_what_is_too_long_or_too_slow_is_refused(status: int | None, pieces) -> None:
    async with agent_at_hand(limits=SMALL) as (_, raw, _):
        refused = await answered(raw, *pieces(raw))
        assert refused == status or (status in (400, 501) and refused in (400, 501))
        assert (await raw.ask("GET", path="/")).status == 404, "others are served"


async def test_a_socket_that_asks_for_nothing_more_is_closed() -> None:
    async with agent_at_hand(limits=SMALL) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize()
        async with raw.socket() as (reader, writer):
            writer.write(raw.request("POST", LIST))
            await read_head(reader)
            assert await reader.read() == b""


async def test_http_03_the_same_holds_over_the_second_version() -> None:
    async with agent_at_hand(limits=SMALL) as (_, raw, _):
        url = f"http://127.0.0.1:{raw.port}/acp"
        async with httpx.AsyncClient(http1=False, http2=True, trust_env=False) as client:
            as_json = {"Content-Type": "application/json"}
            for status, answer in [
                (405, client.put(url)),
                (405, client.head(url)),
                (406, client.get(url)),
                (404, client.get(f"http://127.0.0.1:{raw.port}/")),
                (415, client.post(url, content=b"{}")),
                (413, client.post(url, content=b" " * 1001, headers=as_json)),
                (400, client.post(url, content=b"{", headers=as_json)),
                (400, client.post(url, json=LIST)),
            ]:
                assert (await answer).status_code == status

            async def slowly():
                yield b"{"
                await asyncio.sleep(1)
                yield b"}"

            with pytest.raises(httpx.HTTPError):  # it is told, and does not listen while it sends
                (await client.post(url, content=slowly(), headers=as_json)).raise_for_status()


async def test_http_23_output_that_nobody_reads_is_bounded_and_then_the_connection_ends() -> None:
    bounds = Bounds(waiting=50_000, stall=0.4)
    async with agent_at_hand(bounds=bounds) as (agent, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            await raw.prompt(session, "stream 5000 1000")
            (link,) = agent._links
            transport = link.connection._transport
            full = asyncio.Event()
            transport._outbox.pause = full.set
            await full.wait()
            assert transport._streams[session].waiting_size < 2_000_000, (
                "what one commit holds may be over it"
            )
            await link.connection.wait_closed()
            while await own.chunk():
                pass
        live = agent.find(session)
        assert live is not None
        assert live.fold.turn is None or await live.rest(DEADLINE) is None, "its turn went on"


async def test_http_23_a_slow_reader_loses_nothing() -> None:
    async with agent_at_hand(bounds=Bounds(waiting=20_000, window=1)) as (_, raw, _):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            await raw.prompt(session, "stream 300 1000")
            await asyncio.sleep(0.2)
            async with raw.stream(session) as events:
                await events.idle()
                chunks = [p["update"] for p in events.updates if "content" in p["update"]]
                said = [u["content"]["text"] for u in chunks if u["sessionUpdate"] == "agent_message_chunk"]
                whole = "".join(said)
                assert [int(word.rstrip("x")) for word in whole.split()] == list(range(300))


async def test_http_23_sessions_that_nobody_reads_from_are_bounded() -> None:
    async with agent_at_hand(bounds=Bounds(streams=3)) as (agent, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize()
        async with raw.stream() as own:
            for number in range(3):
                session = await raw.new_session(own)
                await raw.prompt(session, "hi", number)
            (link,) = agent._links
            session = await raw.new_session(own)
            await raw.prompt(session, "hi", 3)
            await link.connection.wait_closed()
