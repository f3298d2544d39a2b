"""Our end of the wire benchmark: the same arguments and the same output as the SDKs' clients.

python -m bench.wire_client [--v1] stream N | rtt N | spawn  -- AGENT…
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from typing import Any

from antiphon.connection import Connection, Role
from antiphon.schema import v1, v2
from antiphon.transports.loop import run
from antiphon.transports.processes.child import ChildTransport

INFO = {"name": "bench", "version": "1"}
DEADLINE = 300.0


async def main(version: int, mode: str, count: int, command: list[str]) -> dict[str, Any]:
    types = v1 if version == 1 else v2
    handled = 0
    idle = asyncio.Event()

    async def on_update(params: Any) -> None:
        nonlocal handled
        if isinstance(params.update, types.AgentMessageChunk):
            handled += 1
        elif version == 2 and isinstance(params.update, v2.StateUpdate) and params.update.state == "idle":
            idle.set()

    began = time.perf_counter()
    transport = await ChildTransport.spawn(command)
    handlers = {"session/update": on_update}
    async with Connection(transport, role=Role.CLIENT, notifications=handlers) as connection:
        await connection.initialize(
            {"protocolVersion": version, "info": INFO, "clientInfo": INFO, "capabilities": {}}
        )
        if mode == "spawn":
            return {"seconds": time.perf_counter() - began}
        session = await connection.call("session/new", types.NewSessionRequest(cwd="/", mcp_servers=[]))

        async def turn(text: str) -> None:
            idle.clear()
            prompt = types.PromptRequest(session_id=session.session_id, prompt=[types.TextContent(text=text)])
            await connection.call("session/prompt", prompt)
            if version == 2:
                await idle.wait()

        if mode == "rtt":
            times = []
            for _ in range(count):
                began = time.perf_counter()
                await turn("ping")
                times.append(time.perf_counter() - began)
            return {"p50_us": statistics.median(times) * 1e6}
        began = time.perf_counter()
        await turn(f"stream {count}")
        seconds = time.perf_counter() - began
        if handled != count:
            raise SystemExit(f"{handled} of {count} updates were handled when the turn had ended")
        return {"handled": handled, "seconds": seconds}


if __name__ == "__main__":
    arguments, command = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    version = 1 if "--v1" in arguments else 2
    mode, *rest = [argument for argument in arguments if argument != "--v1"]
    print(
        json.dumps(run(asyncio.wait_for(main(version, mode, int(rest[0]) if rest else 0, command), DEADLINE)))
    )
