"""What a client of ours says over HTTP, and what it makes of what it is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import connect
from antiphon.errors import CallFailed, LinkLost, LinkRefused
from antiphon.hub import Hub
from antiphon.remote.http_client import HttpClientTransport, connect_http
from antiphon.remote.http_server import http_server
from antiphon.transports.base import Inbox
from antiphon.transports.http.exchange import Exchange, Reply, plain
from tests.http.raw import DEADLINE
from tests.http.scripted import scripted
from tests.http.serving import hub_at_hand, make_agent
from tests.requirements.marks import requirement
from tests.transports.certificates import certificates


class Talking:
    """A transport of ours, spoken to by hand."""

    def __init__(self, transport: HttpClientTransport) -> None:
        self.transport = transport
        self._inbox = Inbox(transport)
        self._ready: list[Any] = []

    def say(self, **frame: Any) -> None:
        self.transport.send(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    async def hear(self) -> Any:
        async with asyncio.timeout(DEADLINE):
            while not self._ready:
                batch = await self._inbox.take()
                if not batch:
                    return None
                self._ready += [json.loads(frame) for frame in batch if isinstance(frame, bytes)]
        return self._ready.pop(0)


async def talking(url: str) -> Talking:
    talk = Talking(await connect_http(url))
    talk.say(id=0, method="initialize", params={"protocolVersion": 2})
    assert (await talk.hear())["id"] == 0
    return talk


def summary(heads: list[Any]) -> list[tuple[str, str | None]]:
    return [(head.method, head.headers.get("Acp-Session-Id")) for head in heads]


@requirement("HTTP-08", "HTTP-09", "HTTP-12", "HTTP-15", "HTTP-21")
@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/prompt"])
async def test_what_goes_with_each_request(method: str) -> None:
    async with scripted() as server:
        talk = await talking(server.url)
        talk.say(id=1, method="session/list", params={})
        talk.say(id=2, method=method, params={"sessionId": "s"})
        talk.say(id=3, method="session/list", params={})
        async with asyncio.timeout(DEADLINE):
            while (await server.opened.get()) != "s":
                pass
        server.tell("s", id="q", method="session/request_permission", params={"sessionId": "s"})
        assert (await talk.hear())["id"] == "q"
        talk.say(id="q", result={"outcome": {"outcome": "cancelled"}})
        await talk.transport.aclose()
        probe, first, *rest = server.heads
        assert (probe.method, first.method) == ("GET", "POST")
        assert "acp-connection-id" not in first.headers
        assert "acp-protocol-version" not in first.headers
        assert {head.headers["Acp-Connection-Id"] for head in rest} == {"c"}
        assert {head.headers["Acp-Protocol-Version"] for head in rest} == {"2"}
        told = [each for each in summary(rest) if each != ("GET", None)]
        assert told == [
            ("POST", None),
            ("GET", "s"),  # before what belongs to it
            ("POST", "s"),
            ("POST", None),
            ("POST", "s"),  # the answer to what was asked in it
            ("DELETE", None),
        ]


@requirement("HTTP-16")
async def test_cookies_are_kept_for_the_connection_and_no_longer() -> None:
    async with scripted() as server:
        server.cookies = {"Set-Cookie": "route=7; Path=/; HttpOnly"}
        for _ in range(2):
            talk = await talking(server.url)
            talk.say(id=1, method="session/list", params={})
            await server.opened.get()
            await talk.transport.aclose()
            probe, first, *rest = server.heads
            assert "cookie" not in probe.headers
            assert "cookie" not in first.headers
            assert {head.headers.get("Cookie") for head in rest} == {"route=7"}
            server.heads.clear()


def refusing(method: str, reply: Reply) -> Any:
    async def answer(exchange: Exchange, frame: Any) -> Reply | None:
        return reply if frame is not None and frame.get("method") == method else None

    return answer


@requirement("HTTP-18")
@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (plain(500, "broken"), "broken\n"),
        (Reply(502, b'{"why": "gateway"}'), {"why": "gateway"}),
        (Reply(429, b"x" * 20_000), "x" * 8192),
        (Reply(400), ""),
    ],
)
async def test_a_request_that_is_refused_fails_alone(reply: Reply, body: Any) -> None:
    async with scripted(refusing("session/list", reply)) as server:
        talk = await talking(server.url)
        talk.say(id=1, method="session/list", params={})
        failed = await talk.hear()
        assert failed["id"] == 1
        assert failed["error"]["code"] == -32603
        assert failed["error"]["data"] == {"status": reply.status, "body": body}
        talk.say(id=2, method="session/new", params={})
        await server.opened.get()
        server.tell(None, id=2, result={})
        assert (await talk.hear())["id"] == 2
        await talk.transport.aclose()


@requirement("HTTP-18")
@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_some_statuses_end_the_connection(status: int) -> None:
    async with scripted(refusing("session/list", plain(status))) as server:
        talk = await talking(server.url)
        talk.say(id=1, method="session/list", params={})
        assert await talk.hear() is None
        assert str(status) in talk.transport.end_reason
        await talk.transport.aclose()


@requirement("HTTP-18")
async def test_a_stream_that_is_taken_fails_its_session_until_it_is_opened_again() -> None:
    taken = True

    async def answer(exchange: Exchange, frame: Any) -> Reply | None:
        of_s = exchange.head.headers.get("Acp-Session-Id") == "s"
        return plain(409) if taken and of_s and exchange.head.method == "GET" else None

    async with scripted(answer) as server:
        talk = await talking(server.url)
        for id in (1, 2):
            talk.say(id=id, method="session/prompt", params={"sessionId": "s"})
            failed = await talk.hear()
            assert (failed["id"], failed["error"]["data"]["status"]) == (id, 409)
        taken = False
        talk.say(id=3, method="session/prompt", params={"sessionId": "s"})
        assert (await talk.hear())["id"] == 3, "it is not tried before it is loaded"
        talk.say(id=4, method="session/load", params={"sessionId": "s"})
        talk.say(id=5, method="session/prompt", params={"sessionId": "s"})
        async with asyncio.timeout(DEADLINE):
            while (await server.opened.get()) != "s":
                pass
        server.tell("s", id=5, result={})
        assert (await talk.hear())["id"] == 5
        await talk.transport.aclose()


@requirement("HTTP-19")
async def test_a_stream_without_ids_that_is_cut_ends_the_link() -> None:
    async with scripted() as server:
        talk = await talking(server.url)
        await server.opened.get()
        server.tell(None, method="x")
        assert (await talk.hear())["method"] == "x"
        server.streams[None].abort()
        assert await talk.hear() is None
        assert "a stream was lost" in talk.transport.end_reason
        await talk.transport.aclose()


async def test_a_stream_with_ids_is_opened_again() -> None:
    async with scripted(ids=True) as server:
        talk = await talking(server.url)
        await server.opened.get()
        server.tell(None, method="x")
        assert (await talk.hear())["method"] == "x"
        for _ in range(3):
            server.streams[None].abort()
            async with asyncio.timeout(DEADLINE):
                await server.opened.get()
            assert server.heads[-1].headers["Last-Event-ID"] == "1"
        server.tell(None, method="y")
        assert (await talk.hear())["method"] == "y"
        await talk.transport.aclose()


@pytest.mark.parametrize("status", [401, 403])
async def test_who_is_not_let_in_is_told_so(status: int) -> None:
    async def answer(exchange: Exchange, frame: Any) -> Reply | None:
        return plain(status, "no")

    async with scripted(answer) as server:
        with pytest.raises(LinkRefused, match=f"{status} no"):
            await connect_http(server.url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/acp", "http://", "https://[::1/acp"])
async def test_who_is_not_there(url: str) -> None:
    with pytest.raises(LinkLost):
        await connect_http(url)


async def test_a_failed_initialize_is_told() -> None:
    async with scripted(refusing("initialize", plain(500, "out of order"))) as server:
        with pytest.raises(LinkLost, match="500 out of order"):
            async with connect(server.url, reconnect=False):
                pass


@requirement("HTTP-02", "HTTP-12")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_is_the_same_over_http(version: int) -> None:
    async with hub_at_hand() as (hub, _, _):
        url = f"http://127.0.0.1:{hub.port}/acp"
        async with connect(url, token=hub.token, version=version) as one:
            session = await one.new_session("/")
            await (await session.prompt("stream 300")).drained()
            async with connect(url, token=hub.token, version=version) as two:
                again = await two.load_session(session.id, "/")
                assert [m.text for m in again.messages] == [m.text for m in session.messages]
                await (await again.prompt("hi")).drained()
                assert again.messages[-1].text == "heard hi"
            with pytest.raises(CallFailed):
                await one.load_session("strange", "/")


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_a_session_that_was_closed_is_not_read_any_more(method: str) -> None:
    async with scripted() as server, asyncio.timeout(DEADLINE):
        talk = await talking(server.url)
        talk.say(id=1, method=method, params={"sessionId": "s"})
        while (await server.opened.get()) != "s":
            pass
        server.tell("s", id=1, result={})
        assert (await talk.hear())["id"] == 1
        assert await server.left.get() == "s"
        await talk.transport.aclose()


async def test_a_session_that_was_closed_can_be_opened_again() -> None:
    async with (
        hub_at_hand() as (hub, _, _),
        connect(f"http://127.0.0.1:{hub.port}/acp", token=hub.token) as client,
    ):
        for _ in range(3):
            session = await client.new_session("/")
            await (await session.prompt("hi")).drained()
            await session.close()
        again = await client.load_session(session.id, "/")
        await (await again.prompt("again")).drained()
        assert [m.text for m in again.messages] == ["hi", "heard hi", "again", "heard again"]


async def test_a_session_that_nobody_spoke_of_is_heard() -> None:
    """A subagent's, for one."""
    frames = [
        {"method": "session/update", "params": {"sessionId": "child ü 1", "update": {"n": n}}}
        for n in range(3)
    ]

    async def serve(transport: Any) -> None:
        inbox = Inbox(transport)
        (first,) = await inbox.take()
        transport.send(json.dumps({"jsonrpc": "2.0", "id": json.loads(first)["id"], "result": {}}).encode())
        for frame in frames:
            transport.send(json.dumps({"jsonrpc": "2.0", **frame}).encode())
        await inbox.take()

    async with http_server(serve) as server:
        talk = await talking(f"http://127.0.0.1:{server.port}/acp")
        heard = [await talk.hear() for _ in frames]
        assert [frame["params"] for frame in heard] == [frame["params"] for frame in frames]
        await talk.transport.aclose()


@requirement("HTTP-09")
async def test_an_id_with_letters_of_any_kind() -> None:
    async with scripted() as server:
        talk = await talking(server.url)
        talk.say(id=1, method="session/prompt", params={"sessionId": "sitzung-ü"})
        async with asyncio.timeout(DEADLINE):
            while (await server.opened.get()) != "sitzung-ü":
                pass
        server.tell("sitzung-ü", id=1, result={})
        assert (await talk.hear())["id"] == 1
        await talk.transport.aclose()


async def test_a_hub_with_tls_is_spoken_to_over_http_and_websocket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, theirs = certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    agent, _ = make_agent()
    hub = Hub({"echo": agent})
    async with hub.listening(tls=theirs):
        for scheme in ("https", "wss"):
            async with connect(f"{scheme}://127.0.0.1:{hub.port}/acp", token=hub.token) as client:
                one, two = await client.new_session("/"), await client.new_session("/")
                turns = await asyncio.gather(one.prompt("stream 300 100"), two.prompt("stream 300 100"))
                await asyncio.gather(*(turn.drained() for turn in turns))
                assert one.messages[-1].text == two.messages[-1].text
                assert len(one.messages[-1].text.split()) == 300


@pytest.mark.parametrize("number", ["9" * 5000, "٣", "²", "-1"])
async def test_odd_numbers_of_a_server_do_not_end_the_link(number: str) -> None:
    async with scripted() as server:
        talk = await talking(server.url)
        await server.opened.get()
        talk.say(id=1, method="session/load", params={"sessionId": "s", "cwd": "/", "mcpServers": []})
        async with asyncio.timeout(DEADLINE):
            assert await server.opened.get() == "s"
        for session, field in (("s", f"id: {number}"), (None, f"after: {number} s")):
            for data in ({"method": "_one"}, {"method": "_two"}):
                frame = json.dumps({"jsonrpc": "2.0", **data})
                server.streams[session].write(f"{field}\ndata: {frame}\n\n".encode())
                assert (await talk.hear())["method"] == data["method"]
        await talk.transport.aclose()
