"""Process: a command in its own process group, whose output is read as one stream.

Standard output and standard error are one stream. On Linux the kernel kills the command when this process
dies for any reason. When the command ends, the remaining processes of its group are killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from antiphon.transports.processes.groups import signal_group, start_process, watch_exit

GRACE = 2.0
"""Seconds that a command gets to end after SIGTERM."""
EXIT_SECONDS = 0.5
"""Seconds to wait for the rest of the output after the exit: another process may hold the pipe open."""
READ_SIZE = 32 * 1024
MOST_AFTER_END = 1024 * 1024
"""Bytes that are read after that; a pipe holds no more output of the command."""


class Process:
    """A running command. Its owner reads it to its end, or kills it and waits."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Start it, inside a running loop. Raises `SpawnFailed`.

        `env` is added to the inherited environment (`child_environment`).
        `size`: columns and rows of the terminal that the command writes to; without it, a pipe.
        """
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._reading: asyncio.Future[None] | None = None
        self._left: int | None = None
        """Bytes that may still be read; `None` while that is not bounded."""
        self._fd, theirs = os.pipe() if size is None else _open_terminal(*size)
        try:
            self._process = start_process(
                command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
            )
        except BaseException:
            os.close(self._fd)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(self._fd, False)
        watch_exit(self._process, self._on_exit)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code of an ended process, or its negative signal number; `None` while it runs."""
        return self._process.returncode

    # --- output ------------------------------------------------------------------------------------

    async def read(self) -> bytes:
        """Return the next output; empty once all of it was read."""
        while self._fd >= 0:
            if self._left is None:
                await self._readable()  # even if there is output: other tasks get their turn first
            try:
                data = os.read(self._fd, READ_SIZE)
            except BlockingIOError:
                if self._left is None:
                    continue
                break
            except OSError:
                break  # the other side of the terminal is closed
            if self._left is not None:
                self._left -= len(data)
            if not data or (self._left is not None and self._left < 0):
                break
            return data
        self._stop_reading()
        return b""

    async def _readable(self) -> None:
        self._reading = self._loop.create_future()
        self._loop.add_reader(self._fd, self._wake)
        try:
            await self._reading
        finally:
            if self._fd >= 0:
                self._loop.remove_reader(self._fd)
            self._reading = None

    def _wake(self) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    def _stop_reading(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._loop.remove_reader(fd)
            os.close(fd)

    # --- its end -----------------------------------------------------------------------------------

    async def wait(self) -> int:
        """Wait for its end, and return the `returncode`."""
        await self._exited.wait()
        assert self._process.returncode is not None
        return self._process.returncode

    def terminate(self, *, grace: float = GRACE) -> None:
        """Send SIGTERM to its group, and kill what is left after `grace` seconds."""
        if self._exited.is_set():
            return
        signal_group(self.pid, signal.SIGTERM)
        self._loop.call_later(grace, self.kill)

    def kill(self) -> None:
        """Kill its group at once."""
        if not self._exited.is_set():
            signal_group(self.pid, signal.SIGKILL)

    async def aclose(self) -> None:
        """Kill it, wait for its end, and stop reading."""
        self.kill()
        try:
            await self._exited.wait()
        finally:
            self._wake()
            self._stop_reading()

    def _on_exit(self) -> None:
        self._exited.set()
        self._loop.call_later(EXIT_SECONDS, self._bound_reading)

    def _bound_reading(self) -> None:
        self._left = MOST_AFTER_END
        self._wake()


def signal_name(code: int) -> str | None:
    """Return the name of the signal that ended a process; `None` if none did."""
    if code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _open_terminal(columns: int, rows: int) -> tuple[int, int]:
    import fcntl
    import struct
    import termios

    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return ours, theirs
