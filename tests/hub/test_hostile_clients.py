"""Whatever a client sends, over a WebSocket or by HTTP, the hub goes on and its journals can be read."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.connection import Connection
from antiphon.connection import Role as ConnectionRole
from antiphon.engine.events import decode_event
from antiphon.errors import AntiphonError
from antiphon.stores.memory import MemoryStore
from antiphon.transports.base import Inbox
from antiphon.transports.memory import memory_pair
from tests.hub.doors import DEADLINE, Doors, doors
from tests.hub.test_hostile_frames import VALUES, nested

FRAMES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "prompt": lambda session, value: (
        b'{"jsonrpc":"2.0","id":"h","method":"session/prompt","params":{"sessionId":"%b","_meta":{"x":%b},'
        b'"prompt":[{"type":"text","text":"hostile"}]}}' % (session, value)
    ),
    "content": lambda session, value: (
        b'{"jsonrpc":"2.0","id":"h","method":"session/prompt","params":{"sessionId":"%b",'
        b'"prompt":[{"type":"text","text":"hostile","vendor":%b}]}}' % (session, value)
    ),
    "queue": lambda session, value: (
        b'{"jsonrpc":"2.0","id":"h","method":"_antiphon/inject","params":{"sessionId":"%b","content":[%b]}}'
        % (session, value)
    ),
    "mcp": lambda session, value: (
        b'{"jsonrpc":"2.0","id":"h","method":"session/new","params":{"cwd":"/","mcpServers":[{"name":"m",'
        b'"type":"stdio","command":"/bin/false","args":[],"env":[],"_meta":%b}]}}' % value
    ),
    "extension": lambda session, value: (
        b'{"jsonrpc":"2.0","id":"h","method":"_example.com/echo","params":{"sessionId":"%b","x":%b}}'
        % (session, value)
    ),
    "cancel": lambda session, value: (
        b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}' % value
    ),
    "id": lambda session, value: b'{"jsonrpc":"2.0","id":%b,"method":"session/list","params":{}}' % value,
    "response": lambda session, value: b'{"jsonrpc":"2.0","id":77,"result":%b}' % value,
}


@pytest.mark.parametrize("version", [1, 2])
async def test_no_frame_of_a_client_harms_its_link_or_a_session(
    version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, store=store) as hub,
        hub.talk(version=version) as talk,
    ):
        session = (await talk.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        for number, (make, value) in enumerate(
            (make, value) for make in FRAMES.values() for value in VALUES.values()
        ):
            frame = make(session.encode(), value).replace(b'"id":"h"', b'"id":"h%d"' % number)
            talk.transport.send(frame)
        talk.prompt("p", session, "clean")
        answer = await talk.answer_to("p")
        assert "result" in answer, answer
        if version == 2:
            await talk.until(lambda frame: "heard clean" in json.dumps(frame))
        assert any("heard clean" in json.dumps(frame) for frame in talk.seen)
        refused = [frame for frame in talk.seen if "128 levels" in json.dumps(frame.get("error"))]
        assert {frame["id"] for frame in refused if frame["id"]} >= {"h0", "h3"}, "each has its own answer"
        page = await store.read(session, 0, limit_bytes=1 << 30)
        for batch in page.batches:
            for line in batch.events:
                decode_event(line)
                json.loads(line)
    assert not [record for record in caplog.records if record.exc_info], "a frame led to a traceback"


async def post(hub: Doors, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    """POST a body by hand; the status and the body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.hub.port)
    lines = {
        "Host": f"127.0.0.1:{hub.hub.port}",
        "Authorization": f"Bearer {hub.hub.token}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
    answer = await reader.read()
    writer.close()
    first, _, said = answer.partition(b"\r\n\r\n")
    return int(first.split()[1]), said


@pytest.mark.parametrize("levels", [130, 970, 100_000])
async def test_a_body_that_is_nested_too_deep_is_refused(
    levels: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as hub:
        body = b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":%b}' % nested(levels)
        status, said = await post(hub, "/acp", body)
        error: Any = json.loads(said)
        assert (status, error["id"], error["error"]["code"]) == (400, 7, -32004)
        assert error["error"]["data"]["most"] == 128
        for wrong in (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', b"[" * levels, b"{", b"\xff"):
            assert (await post(hub, "/acp", wrong))[0] == 400
        async with hub.talk() as talk:
            await talk.call("l", "session/list")
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_frame_of_millions_of_values_is_refused_unread(tmp_path: Path) -> None:
    """To decode it would take a minute of which nobody else has anything."""
    wide = b"[" + b"[]," * 10_000_000 + b"0]"
    frame = b'{"jsonrpc":"2.0","id":"w","method":"session/list","params":{"_meta":{"x":%b}}}' % wide
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as hub, hub.talk() as talk, hub.talk() as other:
        before = time.process_time()
        talk.transport.send(frame)
        answer = await talk.answer_to("w")
        assert answer["error"]["data"] == {"reason": "limit", "limit": "values", "most": 500_000}
        status, said = await post(hub, "/acp", frame)
        assert (status, json.loads(said)["error"]) == (400, answer["error"])
        await other.call("l", "session/list")
        assert time.process_time() - before < 4, "client and hub together; 20 s where all values are decoded"


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
async def test_no_value_in_initialize_leaves_either_side_waiting(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A client is answered, and a client that is answered with such a value fails or goes on."""
    params = b'{"protocolVersion":1,"clientCapabilities":{},"agentCapabilities":{},"vendor":%b}' % value
    async with asyncio.timeout(DEADLINE):
        here, there = memory_pair()
        inbox, agent = Inbox(there), Agent("a")
        serving = asyncio.create_task(agent.serve(here))
        there.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":%b}' % params)
        assert await inbox.take()
        await there.aclose()
        await serving
        here, there = memory_pair()
        inbox = Inbox(there)
        async with Connection(here, role=ConnectionRole.CLIENT) as connection:
            calling = asyncio.create_task(connection.initialize({"protocolVersion": 1}))
            await inbox.take()
            there.send(b'{"jsonrpc":"2.0","id":0,"result":%b}' % params)
            if b"\xff" in value or b"\xed\xa0" in value or not value or b"NaN" in value or b"x\ny" in value:
                calling.cancel()  # what is no JSON answers nothing
            await asyncio.wait([calling])
            assert calling.cancelled() or isinstance(calling.exception(), AntiphonError | None)
            await there.aclose()
    assert not [record for record in caplog.records if record.exc_info], "a frame led to a traceback"
