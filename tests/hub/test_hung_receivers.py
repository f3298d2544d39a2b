"""No session slows down because a receiver of alerts hangs."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import httpx

from antiphon.hub import AlertOptions
from antiphon.hub.alerts.channel import QUEUED
from antiphon.hub.alerts.webhook import new_secret
from tests.hub.doors import DEADLINE, Doors, doors
from tests.hub.push_service import Subscriber, hung, until

TURNS = QUEUED + 20


async def alerts_of(door: Doors) -> dict[str, dict[str, int]]:
    """What the metrics say, by channel and result."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {door.hub.token}"}) as http:
        text = (await http.get(f"http://127.0.0.1:{door.hub.port}/metrics")).text
    found: dict[str, dict[str, int]] = {}
    for result, channel, count in re.findall(r'antiphon_alerts_(\w+)_total{channel="(\w+)"} (\d+)', text):
        found.setdefault(channel, {})[result] = int(count)
    return found


async def test_turns_go_on_while_a_command_a_webhook_and_a_push_service_hang(tmp_path: Path) -> None:
    began = tmp_path / "began"
    hangs = f"import pathlib, time; pathlib.Path({str(began)!r}).touch(); time.sleep(1000)"
    async with asyncio.timeout(DEADLINE), hung() as (origin, asked):
        alerts = AlertOptions(
            notify=[sys.executable, "-c", hangs],
            webhook=f"{origin}/hook",
            webhook_secret=new_secret(),
            push=tmp_path,
            push_services=[origin],
        )
        async with doors(tmp_path, alerts=alerts) as door, door.talk() as owner:
            await owner.call("push", "_antiphon/push_subscribe", **Subscriber(f"{origin}/push").params)
            made = await owner.call("new", "session/new", cwd="/", mcpServers=[])
            for number in range(TURNS):
                owner.prompt(f"p{number}", made["sessionId"], "hello")
                await owner.update("state_update", state="idle")
            await asked.wait()
            await until(began.exists)
            counts = await alerts_of(door)
            assert {name: counts[name]["delivered"] for name in counts} == {
                "notify": 0,
                "webhook": 0,
                "push": 0,
            }
            # The newest alerts wait, and the others were dropped.
            assert all(counts[name]["dropped"] > 0 for name in counts)
    # The hub has ended, although each receiver still has an alert.
