"""The good agent keeps what it promises: initialization, JSON-RPC, and as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import Json
from tests.conformance.good.stdio import LONGEST_LINE
from tests.conformance.good_agent_client import (
    BOTH,
    Client,
    connect,
)

SCRIPT = Path(__file__).parent / "good" / "agent.py"


# --- initialization and JSON-RPC ---


@pytest.mark.parametrize(("requested", "selected"), [(1, 1), (2, 2), (3, 2), (65535, 2)])
async def test_the_highest_version_that_is_not_above_is_selected(requested: int, selected: int) -> None:
    client = Client(GoodAgent, selected, None)
    info = {"info": {"name": "test", "version": "1"}} if requested == 2 else {}
    answer = await client.call("initialize", protocolVersion=requested, **info)
    assert answer["protocolVersion"] == selected


async def test_initialize_is_checked_and_comes_first() -> None:
    client = Client(GoodAgent, 2, None)
    refusal = await client.call("initialize", protocolVersion=0)
    assert refusal["code"] == -32022
    assert refusal["data"] == {"requested": 0, "supported": [1, 2]}
    assert (await client.call("initialize", protocolVersion=2))["code"] == -32602
    assert (await client.call("initialize", protocolVersion="2"))["code"] == -32602
    assert (await client.call("session/new", cwd="/"))["code"] == -32600
    for _ in range(2):
        await client.call("initialize", protocolVersion=2, info={"name": "test", "version": "1"})
    await client.new_session()
    again = await client.call("initialize", protocolVersion=2, info={"name": "test", "version": "1"})
    assert again["code"] == -32600


LINES = [
    (b"{", -32700, None),
    (b"\xff", -32700, None),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"_x"}', -32700, None),
    (b"[" * 100_000, -32700, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":9,"method":"_x"}]', -32600, None),
    (b'"text"', -32600, None),
    (b"{}", -32600, None),
    (b'{"jsonrpc":"1.0","id":9,"method":"_x"}', -32600, 9),
    (b'{"jsonrpc":"2.0","id":9,"method":7}', -32600, 9),
    (b'{"jsonrpc":"2.0","id":9,"method":"_x"}', -32601, 9),
    (b'{"jsonrpc":"2.0","id":"9","method":"session/update","params":{}}', -32601, "9"),
    (b'{"jsonrpc":"2.0","id":9,"method":"session/new","params":[]}', -32602, 9),
    (b'{"jsonrpc":"2.0","id":null,"method":"_x"}', {1: -32601, 2: -32600}, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"_x"}', {1: -32601, 2: -32600}, {1: 1.5, 2: None}),
    (b'{"jsonrpc":"2.0","id":true,"method":"_x"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":9,"method":"session/load"}', {1: -32602, 2: -32601}, 9),
    (b'{"jsonrpc":"2.0","id":9,"method":"session/set_mode"}', {1: -32602, 2: -32601}, 9),
]


@BOTH
@pytest.mark.parametrize(("line", "code", "id"), LINES)
async def test_a_bad_line_gets_one_error_and_harms_nothing(
    version: int, line: bytes, code: Any, id: Any
) -> None:
    async with connect(version) as client:
        client.agent.receive_line(line)
        expected = {"code": code[version] if isinstance(code, dict) else code}
        answer = client.frames[-1]
        assert answer["id"] == (id[version] if isinstance(id, dict) else id)
        assert expected.items() <= answer["error"].items()
        assert len(client.frames) == 2
        await client.new_session()


SILENT = [
    b"",
    b"  \r",
    b'{"jsonrpc":"2.0","method":"session/prompt","params":{}}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":["x"]}}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":7}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}',
    b'{"jsonrpc":"2.0","method":"_unknown"}',
    b'{"jsonrpc":"2.0","id":77,"result":{}}',
    b'{"jsonrpc":"2.0","id":[],"error":7}',
]


@BOTH
@pytest.mark.parametrize("line", SILENT)
async def test_a_notification_or_response_is_never_answered(version: int, line: bytes) -> None:
    async with connect(version) as client:
        client.agent.receive_line(line)
        assert len(client.frames) == 1


PROMPTS = [
    "text",
    [{"type": "_unknown"}],
    [{"type": "text"}],
    [{"type": "image", "data": "AAAA"}],
    [{"type": "resource", "resource": {"uri": "file:///x"}}],
    ["text"],
    [{"type": ["text"]}],
]


@BOTH
@pytest.mark.parametrize("content", PROMPTS)
async def test_an_invalid_prompt_gets_an_error(version: int, content: Any) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        start = len(client.frames)
        assert (await client.call("session/prompt", sessionId=session, prompt=content))["code"] == -32602
        assert len(client.frames) == start + 1


async def test_v2_wants_content_and_standard_base64() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        broken = {"type": "image", "data": "A-_", "mimeType": "image/png"}
        for content in ([], [broken]):
            answer = await client.call("session/prompt", sessionId=session, prompt=content)
            assert answer["code"] == -32602


# --- as a process ---


def run(lines: list[Json], *arguments: str) -> list[Json]:
    """Run the agent on these frames until it exits, and return what it wrote."""
    return run_bytes(b"\n".join(json.dumps(line).encode() for line in lines), *arguments)


def run_bytes(data: bytes, *arguments: str) -> list[Json]:
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], input=data, capture_output=True, timeout=30, check=True, cwd="/"
    )
    assert done.stderr == b""
    return [json.loads(line) for line in done.stdout.splitlines()]


INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": 1, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip


def test_a_restarted_process_keeps_its_sessions(tmp_path: Path) -> None:
    state = str(tmp_path / "state.json")
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}}
    session = run([INITIALIZE, new], "--state", state)[1]["result"]["sessionId"]
    params = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
    load = {"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params}
    prompt = {
        "jsonrpc": "2.0", "id": 2, "method": "session/prompt",
        "params": {"sessionId": session, "prompt": [{"type": "text", "text": "Count slowly"}]},
    }  # fmt: skip
    written = run([INITIALIZE, load, prompt], "--state", state)
    assert written[-1]["error"]["code"] == -32800  # aborted by the end of input
    replayed = run([INITIALIZE, load], "--state", state)
    assert replayed[1]["params"]["update"]["content"] == {"type": "text", "text": "Count slowly"}


def test_a_line_that_is_too_long_is_refused_and_the_next_one_read() -> None:
    data = b"[" * (LONGEST_LINE + 1) + b"\n" + json.dumps(INITIALIZE).encode()
    refused, answer = run_bytes(data)
    assert refused["error"]["code"] == -32600
    assert answer["result"]["protocolVersion"] == 1


class Nameless(GoodAgent):
    """A broken agent, as the tests of the judge make them."""

    def info(self) -> Json:
        return {**super().info(), "name": ""}


def test_a_broken_agent_is_started_by_its_name() -> None:
    answer = run([INITIALIZE], "--agent", f"{__name__}:Nameless")[0]
    assert answer["result"]["agentInfo"]["name"] == ""
