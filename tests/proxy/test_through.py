"""What clients get of a hub through nginx and Caddy: everything, over HTTP/2 where they speak it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from antiphon.client import ClientOptions, connect
from antiphon.jsonrpc.sse import EventDecoder
from antiphon.remote import http_client
from tests.client.cutting import way_to
from tests.proxy.proxies import DEADLINE, NAME, find_program
from tests.proxy.stage import INITIALIZE, Stage, staged


async def test_the_page_comes_over_http2_with_its_policy(stage: Stage) -> None:
    async with stage.client() as client:
        page = await client.get("/")
        assert (page.status_code, page.http_version) == (200, "HTTP/2")
        assert page.text == "<!doctype html>"
        assert "script-src 'self'" in page.headers["Content-Security-Policy"]
        again = await client.get("/", headers={"If-None-Match": page.headers["ETag"]})
        assert again.status_code == 304
        assert (await client.get("/healthz")).text == "ok\n"
        assert (await client.get("/elsewhere")).status_code == 404


async def test_a_client_of_ours_talks_through_http2_and_sees_each_event_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions: list[str] = []

    class Watched(httpx.AsyncClient):
        async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
            response = await super().send(request, **options)
            versions.append(response.http_version)
            return response

    monkeypatch.setattr(http_client.httpx, "AsyncClient", Watched)
    async with (
        asyncio.timeout(DEADLINE),
        connect(stage.proxy.acp, token=stage.hub.token, options=ClientOptions(tls=stage.proxy.tls)) as client,
    ):
        session = await client.new_session("/")
        turn = await session.prompt("wait")
        async for _ in turn.events():
            if turn.text == "waiting":  # while the turn goes on: nothing in between keeps it back
                break
        stage.go.set()
        await turn.drained()
        assert session.messages[-1].text == "went on"
        large = "x" * 3_000_000
        await (await session.prompt(large)).drained()
        assert session.messages[-1].text == f"heard {large}"
    assert set(versions) == {"HTTP/2"}


async def test_a_websocket_is_opened_through_the_proxy(stage: Stage) -> None:
    address = stage.proxy.acp.replace("https:", "wss:")
    async with (
        asyncio.timeout(DEADLINE),
        connect(address, token=stage.hub.token, options=ClientOptions(tls=stage.proxy.tls)) as client,
    ):
        session = await client.new_session("/")
        # The same context serves both kinds of address.
        async with connect(
            stage.proxy.acp, token=stage.hub.token, options=ClientOptions(tls=stage.proxy.tls)
        ) as other:
            await other.new_session("/")
        async with connect(address, token=stage.hub.token, options=ClientOptions(tls=stage.proxy.tls)):
            pass
        await (await session.prompt("stream 200 1000")).drained()
        assert session.messages[-1].text == "".join(f"{number}{'x' * 1000} " for number in range(200))


async def test_a_stream_goes_on_behind_last_event_id(stage: Stage) -> None:
    async with asyncio.timeout(DEADLINE), stage.client() as client:
        opened = await client.post("/acp", json=INITIALIZE)
        assert (opened.status_code, opened.http_version) == (200, "HTTP/2")
        link = {"Acp-Connection-Id": opened.headers["Acp-Connection-Id"], "Accept": "text/event-stream"}
        events: list[Any] = []

        async def read(until: int, headers: dict[str, str]) -> None:
            """Read the stream until there are so many events with data, then let go of it."""
            decoder = EventDecoder()
            async with client.stream("GET", "/acp", headers={**link, **headers}) as stream:
                assert (stream.status_code, stream.http_version) == (200, "HTTP/2")
                async for part in stream.aiter_bytes():
                    events.extend(event for event in decoder.feed(part) if event.data)
                    if len(events) >= until:
                        return

        async def call(id: int, method: str, **params: Any) -> None:
            body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            answer = await client.post("/acp", json=body, headers=link)
            assert answer.status_code == 202

        for number in range(1, 4):
            await call(number, "session/list")
        await read(2, {})
        last = events[1].id
        del events[2:]
        for number in range(4, 6):
            await call(number, "session/list")
        await read(5, {"Last-Event-ID": last})
        assert [b'"id":%d,' % number in event.data for number, event in enumerate(events, 1)] == [True] * 5


async def test_a_cut_link_to_the_proxy_loses_and_doubles_nothing(stage: Stage) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        way_to(f"http://127.0.0.1:{stage.proxy.port}/acp") as way,
        connect(
            way.address.replace("ws://127.0.0.1", f"https://{NAME}"),
            token=stage.hub.token,
            reconnect=False,
            options=ClientOptions(tls=stage.proxy.tls),
        ) as client,
    ):
        session = await client.new_session("/")
        cuts = 0

        def watch(seen: bytes) -> int | None:
            nonlocal cuts
            if len(seen) < 20_000 or cuts:
                return None
            cuts += 1
            return 15_000

        way.watch = watch
        await (await session.prompt("stream 2000 100")).drained()
        assert session.messages[-1].text == "".join(f"{number}{'x' * 100} " for number in range(2000))
        assert cuts == 1


async def test_a_large_message_gets_through_beside_a_quiet_stream(tmp_path: Path) -> None:
    """nginx opens its window step by step when it does not wait for the whole body."""
    if find_program("nginx") is None:
        pytest.skip("needs nginx")
    async with (
        staged("nginx", tmp_path, more="proxy_request_buffering off;\n") as stage,
        asyncio.timeout(DEADLINE),
        connect(stage.proxy.acp, token=stage.hub.token, options=ClientOptions(tls=stage.proxy.tls)) as client,
    ):
        session = await client.new_session("/")
        for size in (100_000, 1_000_000):
            await (await session.prompt("x" * size)).drained()
            assert len(session.messages[-1].text) == len("heard ") + size
