"""What an operator sees of a hub: its metrics, the processes of its agents, and what its store keeps."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from antiphon.client import Client
from antiphon.hub import Hub
from antiphon.hub.process import MARK
from antiphon.hub.records import HUB
from tests.hub.running import DEADLINE

IDLE = 0.2
"""A short `idle` for hubs whose agents are to be stopped. A session that works is never idle."""


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a state that no client is notified of."""
    async with asyncio.timeout(DEADLINE):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.01)


async def metrics(hub: Hub) -> dict[str, float]:
    """The numbers that a listening hub reports."""
    bearer = {"Authorization": f"Bearer {hub.token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{hub.port}", headers=bearer) as http:
        answer = await http.get("/metrics")
    assert answer.status_code == 200
    pairs = [line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


async def running_agents(hub: Hub, name: str = "agent") -> int:
    """How many agents of a name have started and run."""
    return int((await metrics(hub))[f'antiphon_agents{{agent="{name}"}}'])


async def open_sessions(hub: Hub) -> int:
    found = await metrics(hub)
    return int(sum(number for name, number in found.items() if name.startswith("antiphon_sessions{")))


async def is_open(client: Client, session_id: str) -> bool:
    """Whether the hub has a session open, which it has also for other clients."""
    return (await client.session_status(session_id)).status == "open"


async def is_saved(client: Client, session_id: str) -> bool:
    """Whether the hub has a session in its store only."""
    return (await client.session_status(session_id)).status == "saved"


async def sessions_at_agent(hub: Hub, session_id: str) -> list[str]:
    """The ids that a session of the hub has had at its agent, the latest last."""
    record = await hub.store.get(session_id)
    assert record is not None
    return list(record.meta[HUB]["sessions"])


def processes(mark: str, named: str = "") -> list[int]:
    """The processes that a hub with this mark has started, and those that have this in their command."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if process.name.isdigit() and wanted in (process / "environ").read_bytes().split(b"\0"):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found += [int(process.name)] if named in command else []
    return found


def kill_processes(mark: str) -> int:
    """Kill the agents of the hub with this mark; return how many there were."""
    found = processes(mark)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return len(found)


async def lose_agent(hub: Hub, mark: str) -> None:
    """Kill the agent of a hub with this mark, and wait until the hub has noticed."""
    assert kill_processes(mark) == 1

    async def is_lost() -> bool:
        return await running_agents(hub) == 0

    await until(is_lost)
