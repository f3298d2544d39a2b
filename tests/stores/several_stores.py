"""Several stores of one installation, and processes that have one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from nats.aio.client import Client

from antiphon.stores import JetStreamOptions, JetStreamStore

DEADLINE = 60.0


@asynccontextmanager
async def stores(
    address: str, options: JetStreamOptions, count: int = 2
) -> AsyncIterator[list[JetStreamStore]]:
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE):
        yield [await stack.enter_async_context(JetStreamStore(address, options)) for _ in range(count)]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask again until something holds."""
    async with asyncio.timeout(DEADLINE):
        while not await holds():  # noqa: ASYNC110 -- another process or server changes it
            await asyncio.sleep(0.05)


@asynccontextmanager
async def plain_client(address: str) -> AsyncIterator[Client]:
    client = Client()
    await client.connect(address)
    try:
        yield client
    finally:
        await client.close()


@contextmanager
def store_process(script: str, address: str, options: JetStreamOptions) -> Iterator[subprocess.Popen[str]]:
    """Run a script. Its arguments are the address of NATS, and the name and the lease of the installation."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, address, options.name, f"{options.lease}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def line(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout is not None
    return (await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), DEADLINE)).strip()
