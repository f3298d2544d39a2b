"""The stdin and stdout of this process as a transport, for an agent that an editor starts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import Callable
from typing import Self

from antiphon.errors import StdioClosed
from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.transports.base import Receive
from antiphon.transports.pipes import PipeTransport, widen


def take_stdio() -> tuple[int, int]:
    """Move stdin and stdout to other file descriptors, and return those.

    After that, fd 0 is empty and fd 1 is stderr. So a stray `print`, or a child of user code that inherits
    them, can neither read nor write protocol bytes (TRANS-03).
    """
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    try:
        if sys.__stdin__ is None or sys.__stdout__ is None:
            raise OSError("one was closed when the process started")  # its number may be reused by now
        source, sink = os.dup(0), os.dup(1)
    except OSError as error:
        raise StdioClosed(f"stdin and stdout must be open to speak over them: {error}") from error
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(null, 1)
    os.close(null)
    return source, sink


def _is_file(fd: int) -> bool:
    """Whether no event loop can wait for it: a file, or a device such as `/dev/null` (uvloop aborts)."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))


class StdioTransport(PipeTransport):
    """Speaks over the stdin and stdout of this process. Open it once, before anything is printed."""

    _file: int | None = None
    _reading: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, *, bound: int = DEFAULT_BOUND) -> Self:
        self = cls(bound=bound)
        source, sink = take_stdio()
        loop = asyncio.get_running_loop()
        widen(source)
        widen(sink)
        if _is_file(source):
            self._file = source
        else:
            await loop.connect_read_pipe(lambda: self._reader, os.fdopen(source, "rb", 0))
        if _is_file(sink):
            self._writer.use_file(sink)
        else:
            await loop.connect_write_pipe(lambda: self._writer, os.fdopen(sink, "wb", 0))
        return self

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        super().start(receive, ended)
        if self._file is not None:
            self._reading = asyncio.get_running_loop().create_task(self._reader.read_file(self._file))

    def _writing_ended(self) -> None:
        # The client has ended, so the agent has nothing left to do.
        self._reader.finish("the other side closed its input")

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        await super().aclose()
