"""What a WebSocket of a hub is closed for, and what it is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed

from antiphon.remote.websocket_server import websocket_server
from tests.http.raw import DEADLINE, INFO, NEW, Raw
from tests.http.serving import hub_at_hand
from tests.requirements.marks import requirement

PARAMS = {"protocolVersion": 2, "info": INFO, "capabilities": {}}
INITIALIZE = {"id": 0, "method": "initialize", "params": PARAMS}
NEW_SESSION = {"id": 1, "method": "session/new", "params": NEW}
LONG = "x" * 1025


@asynccontextmanager
async def socket_at_hand() -> AsyncIterator[ClientConnection]:
    async with hub_at_hand() as (hub, _, _), asyncio.timeout(DEADLINE):
        headers = {"Authorization": f"Bearer {hub.token}"}
        async with dial(f"ws://127.0.0.1:{hub.port}/acp", additional_headers=headers) as socket:
            yield socket


async def say(socket: ClientConnection, frame: Any) -> None:
    await socket.send(frame if isinstance(frame, str) else json.dumps({"jsonrpc": "2.0", **frame}))


async def ask(socket: ClientConnection, frame: Any) -> Any:
    await say(socket, frame)
    return json.loads(await socket.recv())


async def close_code(socket: ClientConnection) -> int:
    with pytest.raises(ConnectionClosed) as closed:
        await socket.recv()
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


@requirement("WS-03")
@pytest.mark.parametrize(
    "first",
    [
        NEW_SESSION,
        {"method": "session/cancel", "params": {"sessionId": "s"}},
        {**INITIALIZE, "id": None},
        {"method": "initialize", "params": PARAMS},
        {"id": 1, "method": "session/new", "params": [1]},
    ],
)
async def test_what_does_not_begin_with_initialize_is_closed_with_1002(first: Any) -> None:
    async with socket_at_hand() as socket:
        await say(socket, first)
        assert await close_code(socket) == 1002


@requirement("WS-03")
async def test_a_second_initialize_is_refused_and_the_first_one_holds() -> None:
    async with socket_at_hand() as socket:
        assert (await ask(socket, INITIALIZE))["result"]["protocolVersion"] == 2
        for id in (1, "again"):
            again = await ask(socket, {**INITIALIZE, "id": id})
            assert (again["id"], again["error"]["code"]) == (id, -32600)
        assert "sessionId" in (await ask(socket, NEW_SESSION))["result"]


@requirement("WS-03", "INIT-26")
async def test_one_that_failed_may_be_tried_again() -> None:
    async with socket_at_hand() as socket:
        failed = await ask(socket, {"id": 0, "method": "initialize", "params": {"protocolVersion": "two"}})
        assert "error" in failed
        assert "result" in await ask(socket, INITIALIZE)


@requirement("WS-03")
@pytest.mark.parametrize(
    "frame",
    [
        {"id": LONG, "method": "session/list", "params": {}},
        {"id": 1, "method": "session/prompt", "params": {"sessionId": LONG, "prompt": []}},
    ],
)
async def test_an_id_that_is_too_long_is_closed_with_1008(frame: Any) -> None:
    async with socket_at_hand() as socket:
        await ask(socket, INITIALIZE)
        await say(socket, frame)
        assert await close_code(socket) == 1008


@requirement("WS-03")
async def test_what_fails_is_closed_with_1011(caplog: pytest.LogCaptureFixture) -> None:
    async def serve(transport: Any) -> None:
        raise RuntimeError("a mistake of ours")

    async with (
        asyncio.timeout(DEADLINE),
        websocket_server(serve) as server,
        dial(f"ws://127.0.0.1:{server.port}/acp") as socket,
    ):
        assert await close_code(socket) == 1011
    assert "WebSocket handler failed" in caplog.text


@requirement("WS-03")
async def test_a_hub_that_ends_says_so_with_1001() -> None:
    async with hub_at_hand() as (hub, _, _), asyncio.timeout(DEADLINE):
        headers = {"Authorization": f"Bearer {hub.token}"}
        socket = await dial(f"ws://127.0.0.1:{hub.port}/acp", additional_headers=headers)
        await ask(socket, INITIALIZE)
    assert await close_code(socket) == 1001


@requirement("WS-05")
@pytest.mark.parametrize("initialized", [False, True])
@pytest.mark.parametrize(
    ("frame", "code"),
    [("{", -32700), ("not JSON", -32700), ("[]", -32600), ('[{"jsonrpc":"2.0"}]', -32600), ("7", -32600)],
)
async def test_what_is_no_message_is_answered_and_the_socket_stays_open(
    frame: str, code: int, initialized: bool
) -> None:
    async with socket_at_hand() as socket:
        if initialized:
            await ask(socket, INITIALIZE)
        refused = await ask(socket, frame)
        assert (refused["id"], refused["error"]["code"]) == (None, code)
        answered = await ask(socket, NEW_SESSION if initialized else INITIALIZE)
        assert "result" in answered


@requirement("WS-03")
async def test_an_answer_to_nothing_is_nothing_even_at_first() -> None:
    async with socket_at_hand() as socket:
        await say(socket, {"id": 7, "result": {}})
        assert "result" in await ask(socket, INITIALIZE)


async def test_an_upgrade_with_a_header_that_is_not_ascii_is_refused_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with hub_at_hand() as (hub, _, _):
        assert hub.port is not None
        upgrade = {
            "Connection": "Ākeep-alive, Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        raw = Raw(hub.port, hub.token)
        refused = await raw.send(raw.request("GET", headers=upgrade))
        assert (refused.status, b"Connection" in refused.body) == (400, True)
    assert caplog.records == []
