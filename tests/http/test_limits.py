"""Nobody takes more of a hub than it gives: not by long bodies, nor by slow ones, nor by not reading."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Mapping

import pytest

from antiphon import Agent
from antiphon.client import connect
from antiphon.remote.frames import outline
from antiphon.remote.stream_router import StreamBounds, StreamRouter
from antiphon.transports.http.event_stream import Position
from antiphon.transports.http.exchange import Exchange, Limits, Reply
from tests.http.raw import DEADLINE, NEW, Raw, read_head
from tests.http.serving import Links, agent_at_hand
from tests.http.test_streams import numbers, texts
from tests.requirements.marks import requirement

LIST = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
SMALL = Limits(head=2000, body=1000, head_seconds=0.2, body_seconds=0.2, idle_seconds=0.3)


async def answered(raw: Raw, *pieces: bytes) -> int | None:
    """The status that is answered to what comes in pieces; `None` where the socket is just closed."""
    async with asyncio.timeout(DEADLINE), raw.socket() as (reader, writer):
        for piece in pieces:
            writer.write(piece)
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
        (431, lambda raw: [b"GET /acp HTTP/1.1\r\n" + (b"X: " + b"y" * 500 + b"\r\n") * 5]),
        (431, lambda raw: [b"GET /acp HTTP/1.1\r\nX: " + b"y" * 3000]),
        (400, lambda raw: [b"GET /acp HTTP/1.1\r\n" + b"X: y\r\n" * 400]),
        (400, lambda raw: [b"GET /acp HTTP/1.1\r\n\r\n"]),  # no host
        (400, lambda raw: [b"this is not HTTP\r\n\r\n"]),
        (400, lambda raw: [raw.request("POST", b"{}", headers={"Transfer-Encoding": "chunked, chunked"})]),
        (408, lambda raw: [b"PRI * HTTP/2.0\r\n"]),
        (None, lambda raw: []),
    ],
)
async def test_what_is_too_long_or_too_slow_is_refused(status: int | None, pieces) -> None:
    async with agent_at_hand(limits=SMALL) as (_, raw, _):
        assert await answered(raw, *pieces(raw)) == status
        assert (await raw.ask("GET", path="/")).status == 404, "others are served"


async def test_a_socket_that_asks_for_nothing_more_is_closed() -> None:
    async with agent_at_hand(limits=SMALL) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize()
        async with raw.socket() as (reader, writer):
            writer.write(raw.request("POST", LIST))
            await read_head(reader)
            assert await reader.read() == b""


@requirement("HTTP-23")
async def test_output_that_nobody_reads_is_bounded_and_then_the_connection_ends() -> None:
    links = Links()
    bounds = StreamBounds(waiting=50_000, stall=0.4)
    async with agent_at_hand(links, bounds=bounds) as (agent, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize()
        link = await links.came.get()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            await raw.prompt(session, "stream 5000 1000")
            assert await links.gone.get() is link
            assert "the client has read nothing for 0.4 s" in link.end_reason
            while await own.chunk():
                pass
        await its_turn_is_over(agent, session)


async def its_turn_is_over(agent: Agent, session: str) -> None:
    async with connect(agent) as client:
        joined = await client.load_session(session, "/")
        if joined.turn is not None:
            await joined.turn.drained()
        assert len(joined.messages[-1].text) > 300_000


@requirement("HTTP-23")
async def test_who_does_not_wait_for_the_reader_cannot_fill_the_memory() -> None:
    """Answers are sent whether they are read or not."""
    links = Links()
    bounds = StreamBounds(waiting=5_000, most=50_000)
    async with agent_at_hand(links, bounds=bounds) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize()
        link = await links.came.get()
        asked, most = 0, 0
        while not link.end_reason:
            asked += 1
            await raw.post({"id": asked, "method": "session/new", "params": NEW})
            most = max(most, link.router.waiting)
        assert "over 50000 bytes" in link.end_reason
        assert 5_000 < most < 51_000, "no answer of these is over 1000"
        assert (await raw.post({"id": 0, "method": "session/list", "params": {}})).status == 404


@requirement("HTTP-23")
async def test_a_slow_reader_loses_nothing() -> None:
    async with agent_at_hand(bounds=StreamBounds(waiting=20_000, window=1)) as (agent, raw, _):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            await raw.prompt(session, "stream 300 1000")
            await its_turn_is_over(agent, session)
            async with raw.stream(session) as events:
                await events.idle()
                assert texts(events.updates) == numbers(300, 1000)


@requirement("HTTP-23")
async def test_sessions_that_nobody_reads_from_are_bounded() -> None:
    links = Links()
    async with agent_at_hand(links, bounds=StreamBounds(streams=3)) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize()
        link = await links.came.get()
        async with raw.stream() as own:
            for number in range(4):
                assert not link.end_reason
                session = await raw.new_session(own)
                await raw.prompt(session, "hi", number)
            assert await links.gone.get() is link
            assert "over 3 streams" in link.end_reason


async def test_requests_that_nobody_can_answer_end_the_connection() -> None:
    links = Links()
    async with (
        agent_at_hand(links, bounds=StreamBounds(requests=20)) as (_, raw, _),
        asyncio.timeout(DEADLINE),
    ):
        await raw.initialize()
        link = await links.came.get()
        for number in range(20):
            unreadable = {"id": number, "method": "session/list", "params": {}}
            assert (await raw.ask("POST", unreadable)).status == 202
        await raw.ask("POST", {"id": 20, "method": "session/list"})
        assert await links.gone.get() is link
        assert link.end_reason == "over 20 requests without a response"


async def test_sessions_that_a_client_names_are_not_remembered_without_end() -> None:
    """Each name has a thousand characters; a thousand of them would be a megabyte."""
    async with (
        agent_at_hand(bounds=StreamBounds(known=8)) as (_, raw, _),
        asyncio.timeout(DEADLINE),
        raw.socket() as (reader, writer),
    ):
        await raw.initialize()
        tracemalloc.start()
        try:
            for number in range(1000):
                named = {"Acp-Session-Id": f"{number:01000}"}
                writer.write(raw.request("POST", b'{"jsonrpc":"2.0","method":"_unknown"}', headers=named))
                assert (await read_head(reader))[0] == 202
            grown = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert grown < 500_000


class Reader(Exchange):
    """Reads all of a stream, without a socket."""

    def __init__(self) -> None: ...
    def reply(self, reply: Reply) -> None: ...
    def begin(self, headers: Mapping[str, str]) -> None: ...
    def write(self, data: bytes) -> None: ...
    def end(self) -> None: ...
    def abort(self) -> None: ...

    @property
    def congested(self) -> bool:
        return False


def test_what_stays_of_all_streams_of_a_connection_is_bounded() -> None:
    update = b'{"method":"session/update","params":{"sessionId":"%d","_meta":{"antiphon":{"seq":1}}'
    bounds = StreamBounds(window=20_000, all_kept=200_000)
    outgoing = StreamRouter(bounds, moved=lambda: None, ask=lambda _: None, fail=pytest.fail)
    for session in range(20):
        stream = outgoing.ready(str(session), None)
        assert stream is not None
        stream.attach(Reader())
        for _ in range(10):
            frame = update % session + b',"x":"%b"}}' % (b"x" * 1000)
            outgoing.route(frame, outline(frame))
        stream.flush()
        stream.end()
    for stream in outgoing.streams.values():  # what is not here any more cannot be sent again
        any(stream.rewind(Position(number)) for number in range(1, 11))
    assert 0 < outgoing.waiting <= bounds.all_kept
