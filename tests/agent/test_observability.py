"""Observability (section 21): trace context reaches the handler and goes on from it; nothing private is
logged, and nothing but the protocol is on stdout."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any

import pytest

from antiphon.agent import Agent, AgentOptions, AgentTurn
from antiphon.client import AcpServer, McpRequest, Permissions
from tests.agent.talk import session
from tests.client.driving import WAYS, driven
from tests.requirements.marks import requirement

TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "vendor=value",
    "baggage": "who=me",
    "requestId": "r-1",
}
SECRET = "Xyzzy-the-secret"


@requirement("OBS-01")
@pytest.mark.parametrize("way", WAYS)
async def test_what_a_client_puts_beside_a_prompt_reaches_the_handler(way: str) -> None:
    agent, got = Agent("traced"), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        got.append((turn.prompt.meta, turn.trace))

    async with driven(agent, way) as opened:
        for meta in ({**TRACE, "vendor.example/x": {"deep": [1, {"y": None}]}}, None):
            await (await opened.prompt("hi", meta=meta)).drained()
    assert got == [({**TRACE, "vendor.example/x": {"deep": [1, {"y": None}]}}, TRACE), ({}, {})]


@requirement("OBS-01")
async def test_a_steering_prompt_has_its_own_and_ours_stays_beside_it() -> None:
    agent, got, come = Agent("traced"), [], asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await come.wait()
        got.extend(prompt.meta for prompt in turn.steered())

    async with driven(agent) as opened:
        events = opened.events()
        first = await opened.prompt("hi")
        steering = asyncio.ensure_future(
            opened.prompt("left", delivery="steer", operation_id="o", meta={"traceparent": "t"})
        )
        while not opened.queue.entries:
            await anext(events)
        come.set()
        await steering
        await first.drained()
    assert got == [{"traceparent": "t"}]


@requirement("OBS-01")
@pytest.mark.parametrize("version", [1, 2])
async def test_an_elicitation_carries_the_trace_of_its_prompt(version: int) -> None:
    agent = Agent("traced")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.ask("Which?", {"type": "object", "properties": {"a": {"type": "string"}}})

    able = {"elicitation": {"form": {}}}
    shape = {"clientCapabilities": able} if version == 1 else {"capabilities": able}
    async with agent.serving(), session(agent, version, **shape) as (talk, id):
        prompt = [{"type": "text", "text": "go"}]
        talk.send(id=1, method="session/prompt", params={"sessionId": id, "prompt": prompt, "_meta": TRACE})
        asked = await talk.request("elicitation/create")
        assert TRACE.items() <= asked["params"]["_meta"].items()
        talk.send(id=asked["id"], result={"action": "decline"})


@requirement("OBS-01", "OBS-02")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_permission_request_carries_the_trace_of_its_prompt(version: int) -> None:
    agent = Agent("traced")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.tool_call("Act") as call:
            await call.request_permission()

    async with agent.serving(), session(agent, version) as (talk, id):
        prompt = [{"type": "text", "text": "go"}]
        talk.send(id=1, method="session/prompt", params={"sessionId": id, "prompt": prompt, "_meta": TRACE})
        asked = await talk.request("session/request_permission")
        assert TRACE.items() <= asked["params"]["_meta"].items()
        talk.send(id=asked["id"], result={"outcome": {"outcome": "cancelled"}})


@requirement("OBS-01")
@pytest.mark.parametrize("way", ["v1", "v2"])
async def test_a_call_of_a_clients_mcp_server_carries_the_trace(way: str) -> None:
    agent, got = Agent("traced", options=AgentOptions(mcp_over_acp=True)), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.session.mcp("ours") as server:
            await server.call("x", meta={"more": 1})

    async def handler(request: McpRequest) -> Any:
        got.append(request.meta)

    async with driven(agent, way) as opened:
        traced = await opened.client.new_session("/", mcp_servers=[AcpServer("ours", handler)])
        await (await traced.prompt("go", meta=TRACE)).drained()
    assert got == [{**TRACE, "more": 1}]


@requirement("OBS-06")
@pytest.mark.parametrize("way", ["v1", "v2"])
async def test_nothing_that_was_said_is_logged_unless_asked_for(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    agent = Agent("quiet", accepts=["image"])

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.message() as message:
            await message.write(SECRET)
        async with turn.tool_call("Act", raw_input={"token": SECRET}) as call:
            await call.write(SECRET)
            await call.request_permission()
        raise ValueError("the handler broke")

    async with driven(agent, way, answers=Permissions(allow="all")) as opened:
        await (await opened.prompt(SECRET, meta={"k": SECRET})).drained()
    assert SECRET not in caplog.text
    assert "prompt handler failed" in caplog.text


@requirement("OBS-06")
async def test_a_malformed_frame_is_reported_without_what_it_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    agent = Agent("quiet")
    async with agent.serving(), session(agent) as (talk, id):
        for line in (
            f'{{"jsonrpc":"2.0","method":"session/prompt","text":"{SECRET}"',
            f'["{SECRET}"]',
            f'{{"id":{{"x":"{SECRET}"}},"method":7}}',
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 9,
                    "method": "session/prompt",
                    "params": {"sessionId": id, "prompt": [{"type": "text", "text": {"x": SECRET}}]},
                }
            ),
            json.dumps({"jsonrpc": "2.0", "id": 99, "result": SECRET}),
            json.dumps({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": [SECRET]}}),
        ):
            talk.transport.send(line.encode())
        await talk.call(10, "session/list")
    assert SECRET not in caplog.text
    assert caplog.records


@requirement("OBS-05")
async def test_only_the_protocol_is_on_stdout() -> None:
    code = """
import logging, os, subprocess, sys
from antiphon import Agent
agent = Agent("loud")

@agent.on_prompt
async def answer(turn):
    print("printed")
    sys.stdout.write("written")
    os.write(1, b"raw")
    subprocess.run(["echo", "from a child"])
    logging.getLogger("x").warning("logged")
    await turn.say("said")

agent.run()
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    async def call(id: int, method: str, **params: Any) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        frame = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        process.stdin.write(json.dumps(frame).encode() + b"\n")
        while True:
            line = json.loads(await process.stdout.readline())
            assert line["jsonrpc"] == "2.0"
            if line.get("id") == id:
                return dict(line["result"])

    async with asyncio.timeout(20):
        await call(1, "initialize", protocolVersion=1)
        opened = await call(2, "session/new", cwd="/", mcpServers=[])
        prompt = [{"type": "text", "text": "go"}]
        await call(3, "session/prompt", sessionId=opened["sessionId"], prompt=prompt)
        process.stdin.close()
        rest = await process.stdout.read()
        assert process.stderr is not None
        said = (await process.stderr.read()).decode()
        await process.wait()
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    for word in ("printed", "written", "raw", "from a child", "logged"):
        assert word in said
