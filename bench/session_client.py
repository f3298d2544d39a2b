"""Our end of the session benchmark.

python -m bench.session_client stream N | idle N | first SESSION  -- AGENT…

`stream` is one v1 turn of N chunks, and how the agent grew meanwhile; `idle` makes N sessions over one v2
connection, and how the agent grew by each; `first` resumes a session and waits for its first replayed frame.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import psutil

from antiphon.connection import Connection, ConnectionOptions, Role
from antiphon.schema import v1, v2
from antiphon.transports.loop import run
from antiphon.transports.processes.child import ChildTransport

INFO = {"name": "bench", "version": "1"}
DEADLINE = 300.0
WARM_CHUNKS = 5000
WARM_SESSIONS = 20


async def stream(connection: Connection, agent: psutil.Process, handled: list[Any], count: int) -> Any:
    async def turn(chunks: int) -> float:
        new = v1.NewSessionRequest(cwd="/", mcp_servers=[])
        session = (await connection.call("session/new", new)).session_id
        handled.clear()
        prompt = v1.PromptRequest(session_id=session, prompt=[v1.TextContent(text=f"stream {chunks}")])
        began = time.perf_counter()
        await connection.call("session/prompt", prompt)
        seconds = time.perf_counter() - began
        streamed = sum(isinstance(update, v1.AgentMessageChunk) for update in handled)
        if streamed != chunks:
            raise SystemExit(f"{streamed} of {chunks} updates were handled when the turn had ended")
        return seconds

    await turn(WARM_CHUNKS)  # in a session of its own, so that what is allocated once is not counted
    before = agent.memory_info().rss
    seconds = await turn(count)
    return {"seconds": seconds, "grown": agent.memory_info().rss - before}


async def idle(connection: Connection, agent: psutil.Process, count: int) -> Any:
    async def sessions(number: int) -> None:
        for _ in range(number):
            await connection.call("session/new", v2.NewSessionRequest(cwd="/", mcp_servers=[]))

    await sessions(WARM_SESSIONS)
    before = agent.memory_info().rss
    began = time.perf_counter()
    await sessions(count)
    return {"seconds": time.perf_counter() - began, "grown": agent.memory_info().rss - before}


async def first(connection: Connection, came: list[float], arrived: asyncio.Event, session: str) -> Any:
    wanted = v2.ResumeSessionRequest(
        session_id=v2.SessionId(session), cwd="/", mcp_servers=[], replay_from=v2.ReplayFromStart()
    )
    began = time.perf_counter()
    resuming = asyncio.ensure_future(connection.call("session/resume", wanted))
    resuming.add_done_callback(lambda _: arrived.set())  # a refusal ends the wait too
    await arrived.wait()
    if not came:
        raise SystemExit("there was no replay")
    await resuming
    return {"seconds": came[0] - began, "whole": time.perf_counter() - began}


async def main(mode: str, what: str, command: list[str]) -> Any:
    version = 1 if mode == "stream" else 2
    handled: list[Any] = []
    came: list[float] = []
    arrived = asyncio.Event()

    async def on_update(params: Any) -> None:
        handled.append(params.update)
        arrived.set()

    def note(direction: str, frame: bytes) -> None:
        """When the first frame of a replay was here, before anybody has read it."""
        if not came and direction == "in" and b'"session/update"' in frame:
            came.append(time.perf_counter())

    transport = await ChildTransport.spawn(command)
    agent = psutil.Process(transport.pid)
    handlers = {"session/update": on_update}
    tap = note if mode == "first" else None
    async with Connection(
        transport, role=Role.CLIENT, notifications=handlers, options=ConnectionOptions(tap=tap)
    ) as connection:
        await connection.initialize(
            {"protocolVersion": version, "info": INFO, "clientInfo": INFO, "capabilities": {}}
        )
        match mode:
            case "stream":
                return await stream(connection, agent, handled, int(what))
            case "idle":
                return await idle(connection, agent, int(what))
            case _:
                return await first(connection, came, arrived, what)


if __name__ == "__main__":
    at = sys.argv.index("--")
    mode, what = sys.argv[1:at]
    print(json.dumps(run(asyncio.wait_for(main(mode, what, sys.argv[at + 1 :]), DEADLINE))))
