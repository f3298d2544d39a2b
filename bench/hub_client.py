"""Our client library at the other end of the agent's pipe, without a hub: what reading a stream costs it.

python -m bench.hub_client N -- AGENT…

Prints as JSON how many chunks came and the CPU seconds that this process spent on their turn.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from antiphon.client import connect
from antiphon.schema import v2
from antiphon.transports.loop import run

DEADLINE = 300.0


async def read(count: int, command: list[str]) -> dict[str, Any]:
    async with connect(command) as agent:
        session = await agent.new_session(cwd="/")
        before = time.process_time()
        turn = await session.prompt(str(count))
        chunks = 0
        async for event in turn.events():
            chunks += isinstance(event.update, v2.AgentMessageChunk)
        await turn.drained()
        return {"chunks": chunks, "cpu": time.process_time() - before}


if __name__ == "__main__":
    at = sys.argv.index("--")
    print(json.dumps(run(asyncio.wait_for(read(int(sys.argv[1]), sys.argv[at + 1 :]), DEADLINE))))
