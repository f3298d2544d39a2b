"""A handler that blocks while 100,000 updates arrive: neither side of the link grows with them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
BOUND = 64 * 1024 * 1024

CLIENT = """
import asyncio, json, sys
from antiphon.wire import Connection, Role
from antiphon.schema import v1
from antiphon.transports.processes.child import ChildTransport

blocked, release = asyncio.Event(), asyncio.Event()
handled = 0

async def on_update(params):
    global handled
    handled += 1
    blocked.set()
    await release.wait()

async def main():
    agent = await ChildTransport.spawn(sys.argv[1:])
    async with Connection(agent, role=Role.CLIENT, notifications={"session/update": on_update}) as connection:
        await connection.initialize({"protocolVersion": 1})
        new = v1.NewSessionRequest(cwd="/", mcp_servers=[])
        session = (await connection.call("session/new", new)).session_id
        prompt = v1.PromptRequest(session_id=session, prompt=[v1.TextContent(text="stream 100000")])
        prompting = asyncio.ensure_future(connection.call("session/prompt", prompt))
        await blocked.wait()
        print(json.dumps({"agent": agent.pid}), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        release.set()
        await prompting
        print(json.dumps({"handled": handled}), flush=True)

asyncio.run(main())
"""


async def settled(agent: psutil.Process) -> None:
    """Wait until the agent is pushed back: it has more to say and no longer works."""
    async with asyncio.timeout(60):
        before = -1.0
        while (now := sum(agent.cpu_times()[:2])) != before:
            before = now
            await asyncio.sleep(0.3)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident sizes are compared on Linux")
async def test_memory_stays_bounded_on_both_sides_and_nothing_is_lost() -> None:
    client = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(CLIENT),
            sys.executable,
            str(ROOT / "examples" / "wire_agent.py"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    with client:
        agent = psutil.Process(json.loads(await asyncio.to_thread(client.stdout.readline))["agent"])
        await settled(agent)
        sizes = {"client": psutil.Process(client.pid).memory_info().rss, "agent": agent.memory_info().rss}
        client.stdin.write(b"\n")
        client.stdin.flush()
        done = json.loads(await asyncio.to_thread(client.stdout.readline))
        client.stdin.close()
        assert client.wait(30) == 0
    assert done == {"handled": 100_000}
    assert max(sizes.values()) < BOUND, sizes
