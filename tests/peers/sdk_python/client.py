"""An ACP v1 client over stdio, written with the official Python SDK.

Run it with the Python that holds the SDK:

    <python> client.py [--deadline SECONDS] [--bench stream N | --bench rtt N | --bench spawn] -- AGENT…

Without `--bench` it takes the agent through initialize, a new session and three prompts (one with a
permission, one cancelled) and prints one JSON line per observation. It exits with 1 and a reason if a
step does not end in time (see ../README.md).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from typing import Any

import acp
from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.schema import AllowedOutcome, Implementation, RequestPermissionResponse

SPAWN = {
    "limit": DEFAULT_STDIO_BUFFER_LIMIT_BYTES,  # asyncio's own limit is 64 KiB
    "stderr": None,  # the SDK would pipe it and never read it
    "shutdown_timeout": 5.0,
}


class PeerClient:
    """Records updates and says yes to every permission request."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.first_chunk = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        seen = describe(update)
        self.updates.append(seen)
        if seen["kind"] == "agent_message_chunk":
            self.first_chunk.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        offered = [{"optionId": option.option_id, "kind": option.kind} for option in options]
        report(step="permission", toolCallId=tool_call.tool_call_id, options=offered, selected="yes")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="yes"))


class CountingClient:
    """The least a handler can do; `handled` is set with the last update that was asked for."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.count = 0
        self.handled = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.count += 1
        if self.count == self.wanted:
            self.handled.set()


def describe(update: Any) -> dict[str, Any]:
    seen: dict[str, Any] = {"kind": update.session_update}
    if (content := getattr(update, "content", None)) is not None and hasattr(content, "text"):
        seen["text"] = content.text
    for name, field in (("messageId", "message_id"), ("status", "status")):
        if getattr(update, field, None) is not None:
            seen[name] = getattr(update, field)
    return seen


def report(**observation: Any) -> None:
    print(json.dumps(observation), flush=True)


def spawn(client: Any, command: list[str]) -> Any:
    # The SDK starts agents with six variables of ours; an agent may need others.
    return acp.spawn_agent_process(client, *command, env=dict(os.environ), transport_kwargs=SPAWN)


async def initialize(agent: Any) -> Any:
    info = Implementation(name="sdk-python-client", version="1.0.0")
    return await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_info=info)


async def steps(command: list[str], deadline: float) -> None:
    client = PeerClient()
    async with spawn(client, command) as (agent, process):
        async with step("initialize", deadline):
            answer = await initialize(agent)
        report(
            step="initialize",
            protocolVersion=answer.protocol_version,
            agent=answer.agent_info.name if answer.agent_info else None,
        )
        async with step("new_session", deadline):
            session = await agent.new_session(cwd="/tmp")
        report(step="new_session", sessionId=session.session_id)
        for text in ("hello there", "permission"):
            client.updates.clear()
            async with step(f"prompt {text!r}", deadline):
                answer = await agent.prompt(session.session_id, [acp.text_block(text)])
            report(step="prompt", text=text, updates=client.updates, stopReason=answer.stop_reason)
        client.updates.clear()
        client.first_chunk.clear()
        async with step("prompt 'wait' and cancel", deadline), asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(agent.prompt(session.session_id, [acp.text_block("wait")]))
            await client.first_chunk.wait()
            await agent.cancel(session.session_id)
            answer = await turn
        report(
            step="prompt", text="wait", updates=client.updates, stopReason=answer.stop_reason, cancelled=True
        )
    if process.returncode != 0:
        raise Failed(f"the agent ended with {process.returncode} after its stdin was closed")
    report(step="exit", code=process.returncode)


async def bench_stream(command: list[str], deadline: float, wanted: int) -> None:
    client = CountingClient(wanted)
    async with spawn(client, command) as (agent, _):
        async with step(f"stream {wanted}", deadline):
            await initialize(agent)
            session = await agent.new_session(cwd="/tmp")
            started = time.perf_counter()
            await agent.prompt(session.session_id, [acp.text_block(f"stream {wanted}")])
            await client.handled.wait()
            seconds = time.perf_counter() - started
        report(handled=client.count, seconds=seconds)


async def bench_rtt(command: list[str], deadline: float, wanted: int) -> None:
    took: list[float] = []
    async with spawn(PeerClient(), command) as (agent, _):
        async with step(f"rtt {wanted}", deadline):
            await initialize(agent)
            session = await agent.new_session(cwd="/tmp")
            prompt = [acp.text_block("ping")]
            for _ in range(wanted):
                started = time.perf_counter()
                await agent.prompt(session.session_id, prompt)
                took.append((time.perf_counter() - started) * 1e6)
        tenths = statistics.quantiles(took, n=10, method="inclusive")
        report(p50_us=tenths[4], p90_us=tenths[8])


async def bench_spawn(command: list[str], deadline: float) -> None:
    started = time.perf_counter()
    async with spawn(PeerClient(), command) as (agent, _):
        async with step("spawn", deadline):
            await initialize(agent)
        report(seconds=time.perf_counter() - started)


class Failed(Exception):
    """The run ends with 1, for this reason."""


class step:  # noqa: N801, it reads as a statement
    """Bounds one step in time and names it when it takes too long."""

    def __init__(self, name: str, deadline: float) -> None:
        self.name = name
        self.deadline = deadline

    async def __aenter__(self) -> None:
        self.timeout = asyncio.timeout(self.deadline)
        await self.timeout.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self.timeout.__aexit__(*error)
        except TimeoutError:
            raise Failed(f"{self.name} took longer than {self.deadline:g} s") from None


def arguments() -> tuple[argparse.Namespace, list[str]]:
    argv = sys.argv[1:]
    cut = argv.index("--") if "--" in argv else len(argv)
    parser = argparse.ArgumentParser(usage="client.py [--deadline S] [--bench KIND [N]] -- AGENT…")
    parser.add_argument("--bench", nargs="+", metavar="KIND")
    parser.add_argument("--deadline", type=float)
    options = parser.parse_args(argv[:cut])
    command = argv[cut + 1 :]
    if not command:
        parser.error("the agent's command is missing after --")
    return options, command


def main() -> int:
    options, command = arguments()
    deadline = options.deadline or (300.0 if options.bench else 15.0)
    match options.bench:
        case None:
            run = steps(command, deadline)
        case ["stream", count]:
            run = bench_stream(command, deadline, int(count))
        case ["rtt", count]:
            run = bench_rtt(command, deadline, int(count))
        case ["spawn"]:
            run = bench_spawn(command, deadline)
        case _:
            print("--bench is one of: stream N, rtt N, spawn", file=sys.stderr)
            return 2
    try:
        asyncio.run(run)
    except Exception as error:
        report(step="failed", reason=str(error) if isinstance(error, Failed) else repr(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
