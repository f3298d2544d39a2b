"""Processes: a command in a group of its own, its output read as it comes, and nothing of it left behind.

Standard output and standard error are one stream. On Linux the kernel kills the command when this process
dies, however that happens; when the command itself ends, whatever it left in its group is killed too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import warnings
from collections.abc import Mapping, Sequence

from antiphon.errors import SpawnFailed
from antiphon.transports.processes.environment import child_environment
from antiphon.transports.processes.groups import die_with_us, living, signal_group

GRACE = 2.0
"""Seconds a command gets to end after being asked to."""
LAST_WORDS = 0.5
"""Seconds after its end in which the rest of its output is waited for: a stranger may hold the pipe open."""
READ_SIZE = 32 * 1024
MOST_AFTER_END = 1024 * 1024
"""How much is read after that; a pipe holds no more of what the command itself wrote."""


class Process:
    """A command at work. Whoever starts one reads it to its end, or kills it and waits."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Start it, inside a running loop. `env` is added to what it inherits (`child_environment`). With
        `size` (columns and rows) it writes to a terminal of that size, otherwise to a pipe. Raises
        `SpawnFailed`."""
        if isinstance(command, str | bytes) or not command:
            raise SpawnFailed("a command is a non-empty list of strings")
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._reading: asyncio.Future[None] | None = None
        self._left: int | None = None
        """How much may still be read, once that is bounded."""
        self._fd, theirs = os.pipe() if size is None else _open_terminal(*size)
        try:
            with warnings.catch_warnings():
                # Forking beside threads is safe here: the child calls prctl and nothing else.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._process = subprocess.Popen(
                    list(command),
                    cwd=cwd,
                    env=child_environment(env),
                    stdin=subprocess.DEVNULL,
                    stdout=theirs,
                    stderr=theirs,
                    start_new_session=True,
                    preexec_fn=die_with_us(),
                )
        except (OSError, ValueError) as error:
            os.close(self._fd)
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise SpawnFailed(f"cannot start {command[0]!r}: {reason}") from error
        finally:
            os.close(theirs)
        os.set_blocking(self._fd, False)
        living.add(self.pid)
        self._watch()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As of a process that has ended: its exit code, or its signal below zero."""
        return self._process.returncode

    # --- output ------------------------------------------------------------------------------------

    async def read(self) -> bytes:
        """What it wrote next; nothing once all of it was read."""
        while self._fd >= 0:
            if self._left is None:
                await self._readable()  # also where something is there: others have their turn first
            try:
                data = os.read(self._fd, READ_SIZE)
            except BlockingIOError:
                if self._left is None:
                    continue
                break
            except OSError:
                break  # a terminal whose other side is closed
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
        """Wait for its end, and say how it ended."""
        await self._exited.wait()
        assert self._process.returncode is not None
        return self._process.returncode

    def terminate(self, *, grace: float = GRACE) -> None:
        """Ask its group to end, and kill what is left of it after a while."""
        if self._exited.is_set():
            return
        signal_group(self.pid, signal.SIGTERM)
        self._loop.call_later(grace, self.kill)

    def kill(self) -> None:
        """Kill its group, at once."""
        if not self._exited.is_set():
            signal_group(self.pid, signal.SIGKILL)

    async def aclose(self) -> None:
        """Kill it, wait until it is gone, and read no more of it."""
        self.kill()
        try:
            await self._exited.wait()
        finally:
            self._wake()
            self._stop_reading()

    def _watch(self) -> None:
        """Notice its end: by its pidfd where there are such, else from a thread."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):

            def wait() -> None:
                self._process.wait()
                with contextlib.suppress(RuntimeError):  # the loop is gone, and so is whoever waited
                    self._loop.call_soon_threadsafe(self._on_exit)

            threading.Thread(target=wait, name=f"wait-{self.pid}", daemon=True).start()
            return

        def readable() -> None:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
            self._on_exit()

        self._loop.add_reader(pidfd, readable)

    def _on_exit(self) -> None:
        # Its group first: until it is waited for, its number cannot be given to another.
        signal_group(self.pid, signal.SIGKILL)
        self._process.wait()
        living.discard(self.pid)
        self._exited.set()
        self._loop.call_later(LAST_WORDS, self._bound_reading)

    def _bound_reading(self) -> None:
        self._left = MOST_AFTER_END
        self._wake()


def signal_name(code: int) -> str | None:
    """The signal that ended a process, by its return code."""
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
