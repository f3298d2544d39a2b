"""The tap: sits between a client and an agent on stdio, passes every byte, and records both directions.

Two threads copy bytes with blocking reads and writes, so that a slow reader slows its writer as it would
without the tap, and so that stdin may be anything: a pipe, a file or a terminal. Standard error is inherited:
it never passes the tap.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from antiphon.conformance.recording import Role
from antiphon.transports.processes.groups import living, signal_group, start_process

SIZE = 64 * 1024
LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one recorded line. A longer one is recorded in pieces."""
FORWARDED = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip

Record = Callable[[Role, bytes, float], None]
"""Takes one line without its newline, its sender, and the seconds since the tap began."""


class TappedLines:
    """The lines of both directions, recorded before their last byte is passed on.

    So a request is in the recording before the answer to it, whichever thread runs first.
    """

    def __init__(self, record: Record, failed: Callable[[OSError], None]) -> None:
        self._record = record
        self._failed = failed
        self._began = time.monotonic()
        self._begun: dict[Role, list[bytes]] = {Role.CLIENT: [], Role.AGENT: []}
        """The pieces of the line that each side has not ended yet."""
        self._size = dict.fromkeys(Role, 0)
        """Their bytes."""
        self._lock = threading.Lock()
        self._off = False

    def add(self, sender: Role, data: bytes) -> None:
        first, *rest = data.split(b"\n")
        begun = self._begun[sender]
        begun.append(first)
        self._size[sender] += len(first)
        for piece in rest:
            self._write(sender, b"".join(begun))
            begun[:] = [piece]
            self._size[sender] = len(piece)
        if self._size[sender] > LONGEST_LINE:
            self.end(sender)

    def end(self, sender: Role) -> None:
        """Record a line that was not ended."""
        begun = self._begun[sender]
        line = b"".join(begun)
        begun.clear()
        self._size[sender] = 0
        self._write(sender, line)

    def _write(self, sender: Role, line: bytes) -> None:
        if not line.strip():  # a blank line is no frame (TRANS-07)
            return
        with self._lock:
            if self._off:
                return
            try:
                self._record(sender, line, time.monotonic() - self._began)
            except OSError as error:  # the disk is full: the conversation goes on all the same
                self._off = True
                self._failed(error)


def run_tap(command: Sequence[str], record: Record, *, failed: Callable[[OSError], None]) -> int:
    """Run an agent between our stdin and stdout until it ends. Return its exit code, negative for a signal.

    `record` gets each line. `failed` is called once if it raises; nothing is recorded from then on. Signals
    that end a process are passed on to the agent. Whatever it leaves behind in its process group is killed.
    Raises `SpawnFailed`.
    """
    process, to_agent, from_agent = _start(command)
    lines = TappedLines(record, failed)
    exited, announce_exit = os.pipe()
    copies = (
        threading.Thread(target=_copy, args=(0, to_agent, Role.CLIENT, lines, None), daemon=True),
        threading.Thread(target=_copy, args=(from_agent, 1, Role.AGENT, lines, exited), daemon=True),
    )  # daemons: a read of stdin may never return, and must not keep this process
    ended = threading.Event()

    def forward(number: int, frame: object) -> None:
        if ended.is_set():  # its number may be another process's by now
            end_like(-number)
        os.kill(process.pid, number)

    def finish() -> None:
        """Wait for the agent's exit, end what it leaves behind, and wait for the end of its output."""
        _wait_for_exit(process)
        signal_group(process.pid, signal.SIGKILL)
        ended.set()
        process.wait()
        living.discard(process.pid)
        os.close(announce_exit)
        copies[1].join()

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        for copy in copies:
            copy.start()
        _handle_signals_during(finish)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return process.returncode


def _handle_signals_during(work: Callable[[], None]) -> None:
    """Run blocking work in a thread. Meanwhile this thread, the main one, waits for signals.

    A signal that comes just before a blocking call, or to another thread, does not interrupt the call: its
    handler would run when the call is over. So this thread waits for a byte that each signal writes.
    """
    finished, announce = os.pipe()
    signalled, wakeup = os.pipe()
    os.set_blocking(signalled, False)
    os.set_blocking(wakeup, False)

    def run() -> None:
        try:
            work()
        finally:
            os.close(announce)

    before = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    try:
        threading.Thread(target=run, daemon=True).start()
        while finished not in select.select([finished, signalled], [], [])[0]:
            os.read(signalled, SIZE)
    finally:
        signal.set_wakeup_fd(before)
        for fd in (finished, signalled, wakeup):
            os.close(fd)


def end_like(code: int) -> int:
    """End this process by the signal that a negative exit code names; return any other code."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _start(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start the agent. Return it and the descriptors of its stdin and stdout, which the copies close."""
    pipe = subprocess.PIPE
    # The whole environment: the agent may be a command of ours that needs the token of its hub.
    process = start_process(command, cwd=None, env=os.environ, stdin=pipe, stdout=pipe, stderr=2)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin as stdin, process.stdout as stdout:
        return process, os.dup(stdin.fileno()), os.dup(stdout.fileno())


def _wait_for_exit(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has ended; where the system can do that, leave its number taken."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()


def _copy(source: int, target: int, sender: Role, lines: TappedLines, stop: int | None) -> None:
    """Copy bytes until one side ends, then close both: each side learns that the other is gone.

    Once `stop` is readable, the copy ends as soon as nothing is left to read: another process may hold the
    source open for ever.
    """
    with contextlib.suppress(OSError):
        while data := _read(source, stop):
            lines.add(sender, data)
            _write(target, data)
    lines.end(sender)
    for each in (source, target):
        _close(each)


def _read(source: int, stop: int | None) -> bytes:
    while True:
        ready, _, _ = select.select([source] if stop is None else [source, stop], [], [])
        if source not in ready:
            return b""
        with contextlib.suppress(BlockingIOError):
            return os.read(source, SIZE)


def _write(target: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except BlockingIOError:  # the other side has made the pipe non-blocking
            select.select([], [target], [])


def _close(fd: int) -> None:
    """Close a descriptor. The standard ones stay open, on the null device, for what may still print."""
    if fd > 2:
        os.close(fd)
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)
