"""Many clients of one session at a hub: the same for all, and nobody waits for who does not read."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.asyncio.client import connect as dial

from tests.agent.talk import Talk
from tests.hub.running import AGENT, Served, served

MIB = 2**20
BIG = 50_000
COUNT = 15_000
DEADLINE = 60.0


async def opened(hub: Served, stack: AsyncExitStack) -> tuple[Talk, str]:
    talk = await stack.enter_async_context(hub.talk())
    return talk, (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]


async def joined(hub: Served, stack: AsyncExitStack, session: str, version: int = 2) -> Talk:
    talk = await stack.enter_async_context(hub.talk(version))
    method = "session/load" if version == 1 else "session/resume"
    await talk.call("join", method, sessionId=session, cwd="/", mcpServers=[])
    return talk


def updates(talk: Talk) -> list[Any]:
    return [frame for frame in talk.seen if frame.get("method") == "session/update"]


async def rested(talk: Talk, after: str) -> None:
    """Until a piece has come, and the turn of it has ended."""
    async with asyncio.timeout(DEADLINE):
        await talk.until(lambda frame: after in str(frame))
        await talk.update("state_update", state="idle")


def numbers(talk: Talk) -> list[int]:
    """Those with which the pieces begin, whatever they came as."""
    said = [
        u.get("title") or u.get("content", {}) for u in talk.updates() if "messageId" in u or "title" in u
    ]
    texts = [text if isinstance(text, str) else text["text"] for text in said if isinstance(text, dict | str)]
    return [int(text.split(maxsplit=1)[0]) for text in texts if text[:1].isdigit()]


async def test_every_client_gets_the_same_wherever_it_joined(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with AsyncExitStack() as stack:
            first, session = await opened(hub, stack)
            others = [await joined(hub, stack, session) for _ in range(3)]
            first.prompt("p", session, f"stream {COUNT}")
            await first.update("agent_message_chunk")
            late = await asyncio.gather(*[joined(hub, stack, session) for _ in range(3)])
            first.prompt("q", session, "say done")
            for talk in (first, *others, *late):
                await rested(talk, "heard say done")
            assert numbers(others[0]) == list(range(COUNT))
            assert all(updates(talk) == updates(others[0]) for talk in others)
            for talk in late:
                assert numbers(talk) == list(range(COUNT - len(numbers(talk)), COUNT)), "no gap, no overlap"


@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_that_does_not_read_costs_nothing_and_misses_nothing(
    tmp_path: Path, version: int
) -> None:
    """Invariant 9: what is sent meanwhile is 50 MB, of which the hub keeps next to nothing."""
    count = 1000
    with served(tmp_path, agent=AGENT) as hub:
        async with AsyncExitStack() as stack:
            first, session = await opened(hub, stack)
            deaf = await joined(hub, stack, session, version)
            deaf.transport.pause()
            process = psutil.Process(hub.process.pid)
            before = process.memory_info().rss
            first.prompt("p", session, f"flood {count} {BIG}")
            await rested(first, f"'{count - 1} xxx")
            assert numbers(first) == list(range(count))
            assert process.memory_info().rss - before < 64 * MIB
            deaf.transport.resume()
            async with asyncio.timeout(DEADLINE):
                await deaf.until(lambda frame: f"'{count - 1} xxx" in str(frame)[:1000])
            assert numbers(deaf) == list(range(count)), "every event once, and in order"


async def test_an_update_of_megabytes_reaches_everybody(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with AsyncExitStack() as stack:
            first, session = await opened(hub, stack)
            other = await joined(hub, stack, session, 1)
            first.prompt("p", session, f"stream 3 {3 * MIB}")
            for talk in (first, other):
                async with asyncio.timeout(DEADLINE):
                    await talk.until(lambda frame: "'2 xxx" in str(frame)[:1000])
                assert [len(word) for word in talk.text().split()[1:]] == [3 * MIB + 1] * 2 + [3 * MIB]


async def test_a_client_may_go_at_any_moment_of_a_stream(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with AsyncExitStack() as stack:
            first, session = await opened(hub, stack)
            headers = {"Authorization": f"Bearer {hub.token}"}
            first.prompt("p", session, "stream 20000")
            for _ in range(10):
                async with hub.talk() as leaving:
                    await leaving.call("join", "session/resume", sessionId=session, cwd="/", mcpServers=[])
                idle = await dial(hub.acp, additional_headers=headers, proxy=None)
                idle.transport.abort()
                await idle.wait_closed()
            await rested(first, "'19999 '")
            assert numbers(first) == list(range(20000))
