"""A hub in this process for the targets that speak to sockets. It serves others, and logs no traceback."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

from antiphon.hub import Access, Hub
from antiphon.hub.access.limits import HubLimits
from tests.fuzz.running import Broken
from tests.http.serving import make_agent

TOKEN = "a-token-for-fuzzing"
LIMITS = HubLimits(frame=1 << 16, sessions=100, head_seconds=2.0, body_seconds=2.0)
QUIET = 0.02
"""Seconds without a byte after which nothing more is expected."""
ANSWER = 5.0
"""Seconds in which others are served."""
EVERY = 25
"""After so many inputs it is seen whether others are served."""

Socket = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Faults(logging.Handler):
    """What is logged as an exception, or as an error."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            logged = logging.Formatter().format(record)
            self.found.append(logged)

    def look(self) -> None:
        if self.found:
            found, self.found = self.found, []
            raise Broken(f"the log has an error: {found[0][-2000:]}")


class FuzzedHub:
    def __init__(self, hub: Hub, runner: asyncio.Runner, faults: Faults) -> None:
        self.hub = hub
        self.runner = runner
        self._faults = faults
        self._count = 0

    @property
    def port(self) -> int:
        assert self.hub.port is not None
        return self.hub.port

    @contextlib.asynccontextmanager
    async def socket(self) -> AsyncIterator[Socket]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def seen(self) -> None:
        """Raise `Broken` where the hub has suffered."""
        self._faults.look()
        self._count += 1
        if self._count % EVERY == 0:
            async with self.socket() as (reader, writer):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                try:
                    async with asyncio.timeout(ANSWER):
                        answer = await reader.read()
                except TimeoutError:
                    raise Broken(f"another client was not served within {ANSWER} s") from None
            if not answer.startswith(b"HTTP/1.1 200") or not answer.endswith(b"ok\n"):
                raise Broken(f"another client got {answer[:200]!r}")


async def read_until_quiet(reader: asyncio.StreamReader, most: int = 1 << 20) -> tuple[bytes, bool]:
    """What the hub sends, and whether it ends the socket."""
    read = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        while len(read) < most:
            async with asyncio.timeout(QUIET):
                part = await reader.read(1 << 16)
            if not part:
                return read, True
            read += part
    return read, False


@contextlib.contextmanager
def fuzzed_hub() -> Iterator[FuzzedHub]:
    faults = Faults()
    loggers = [logging.getLogger(name) for name in ("antiphon", "asyncio", "aiohttp", "websockets")]
    with contextlib.ExitStack() as stack:
        for logger in loggers:
            stack.callback(logger.setLevel, logger.level)
            stack.callback(setattr, logger, "propagate", logger.propagate)
            stack.callback(logger.removeHandler, faults)
            logger.addHandler(faults)
            logger.propagate = False
        runner = stack.enter_context(asyncio.Runner())

        def failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            faults.found.append(f"{context.get('message')}: {context.get('exception')!r}")

        runner.get_loop().set_exception_handler(failed)
        agent, _ = make_agent()
        hub = Hub({"echo": agent}, limits=LIMITS, access=Access(token=TOKEN))
        listening = hub.listening()
        runner.run(_entered(listening))
        stack.callback(lambda: runner.run(_left(listening)))
        yield FuzzedHub(hub, runner, faults)


async def _entered(context: Any) -> None:
    await context.__aenter__()


async def _left(context: Any) -> None:
    await context.__aexit__(None, None, None)
