"""`antiphon` in a process of its own, without the cost of importing it each time.

A Python process that has imported the commands, and has done nothing else, forks once per command. The fork
runs the command with its own arguments, environment, folder and descriptors, exits by itself, and is killed,
signalled and waited for like any process. Importing is most of what the start of `antiphon serve` costs, and
the tests start it hundreds of times. Tests of the start itself use `python -m antiphon`.

It runs as a script too: `python -m tests.warm <descriptor>`.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "antiphon.cli.attach",
    "antiphon.cli.judge.check",
    "antiphon.cli.judge.log",
    "antiphon.cli.transfer",
    "antiphon.cli.prompt",
    "antiphon.cli.output.painted",
    "antiphon.cli.hub.serve",
    "antiphon.cli.sessions",
    "antiphon.cli.hub.tokens",
    "antiphon.hub.http.listener",
)
"""What is imported before the first command runs."""
_STATUS = 16
_forks: _Forks | None = None


class WarmProcess:
    """A running command, with the methods of `subprocess.Popen` that the tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        stdin: int = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        """Start `antiphon` with these arguments. `stdout` and `stderr` may be `PIPE`, nothing, or a file."""
        self.args = ["antiphon", *map(str, arguments)]
        self.returncode: int | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        status, told = os.pipe()
        self._status = status
        opened = [told]
        given = []
        for name, target in (("", stdin), ("stdout", stdout), ("stderr", stderr)):
            if target == subprocess.DEVNULL:
                opened.append(os.open(os.devnull, os.O_RDWR))
                given.append(opened[-1])
            elif target == subprocess.PIPE:
                ours, theirs = os.pipe()
                setattr(self, name, os.fdopen(ours, "rb"))
                opened.append(theirs)
                given.append(theirs)
            else:
                given.append(target if isinstance(target, int) else target.fileno())
        try:
            request = {
                "arguments": self.args[1:],
                "env": dict(os.environ if env is None else env),
                "cwd": os.fspath(cwd or os.getcwd()),
            }
            self.pid = _started().fork(request, [*given, told])
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def poll(self) -> int | None:
        if self.returncode is None:
            self._over(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not self._over(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def _over(self, timeout: float | None) -> bool:
        if not select.select([self._status], [], [], timeout)[0]:
            return False
        self.returncode = int(os.read(self._status, _STATUS))
        os.close(self._status)
        return True

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended. It may end, and be reaped, while we look."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close what is read of the command."""
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def communicate(self, *, timeout: float) -> tuple[None, bytes]:
        """Wait for its end, and return what it wrote to stderr since that was read last."""
        assert self.stderr is not None
        written = bytearray()
        while self.returncode is None or select.select([self.stderr], [], [], 0)[0]:
            ready, _, _ = select.select(
                [self.stderr, *([] if self.returncode is not None else [self._status])], [], [], timeout
            )
            if not ready:
                raise subprocess.TimeoutExpired(self.args, timeout)
            if self.stderr in ready:
                piece = os.read(self.stderr.fileno(), 65536)
                written += piece
                if not piece:
                    self.wait(timeout)
                    break
            else:
                self.poll()
        self.stderr.close()
        return None, bytes(written)


def run(
    arguments: Sequence[str], *, text: str = "", timeout: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `antiphon` to its end with `text` as its stdin."""
    with (
        TemporaryFile() as given,
        TemporaryFile() as out,
        TemporaryFile() as errors,
    ):
        given.write(text.encode())
        given.seek(0)
        process = WarmProcess(arguments, stdin=given.fileno(), stdout=out, stderr=errors, env=env)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        for file in (out, errors):
            file.seek(0)
        return subprocess.CompletedProcess(process.args, code, out.read().decode(), errors.read().decode())


class _Forks:
    """The process that forks, as the tests see it."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    def fork(self, request: object, descriptors: Sequence[int]) -> int:
        with self._one_at_a_time, TemporaryFile() as asked:  # an environment may be larger than one packet
            asked.write(json.dumps(request).encode())
            asked.flush()
            socket.send_fds(self._socket, [b"fork"], [asked.fileno(), *descriptors])
            return int(self._socket.recv(_STATUS))

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


def _started() -> _Forks:
    global _forks
    if _forks is None:
        _forks = _Forks()
    return _forks


# --- in the process that forks ----------------------------------------------------------------------


def serve_forks(asked: socket.socket) -> list[str]:
    """Fork for each request until there are no more. Returns in each fork, with the command's arguments."""
    told: dict[int, tuple[int, int]] = {}
    """By its pidfd: the pid of a fork, and where its status is told."""
    with selectors.DefaultSelector() as selector:
        selector.register(asked, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not asked:
                    selector.unregister(key.fileobj)
                    pid, status = told.pop(key.fd)
                    _, code = os.waitpid(pid, 0)
                    os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
                    os.close(status)
                    os.close(key.fd)
                    continue
                message, descriptors, _, _ = socket.recv_fds(asked, _STATUS, 5)
                if not message:
                    sys.exit()
                request, *standard, status = descriptors
                pid = os.fork()
                if not pid:
                    selector.close()
                    for descriptor in (
                        asked.detach(),
                        status,
                        *told,
                        *(status for _, status in told.values()),
                    ):
                        os.close(descriptor)
                    return _become(request, standard)
                for descriptor in (request, *standard):
                    os.close(descriptor)
                pidfd = os.pidfd_open(pid)
                told[pidfd] = pid, status
                selector.register(pidfd, selectors.EVENT_READ)
                asked.send(str(pid).encode())


def _become(request: int, standard: Sequence[int]) -> list[str]:
    with os.fdopen(request, "rb") as file:
        file.seek(0)
        wanted = json.loads(file.read())
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedReader(io.FileIO(0, closefd=False))
            if number == 0
            else io.BufferedWriter(io.FileIO(number, "w", closefd=False)),
            encoding=old.encoding,
            errors=old.errors,
            line_buffering=number == 2,
        )
        for number, old in enumerate((sys.__stdin__, sys.__stdout__, sys.__stderr__))
        if old is not None
    )
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["cwd"])
    return list(wanted["arguments"])


if __name__ == "__main__":
    import gc
    from importlib import import_module

    for _name in COMMANDS:
        import_module(_name)
    gc.freeze()
    sys.argv = [
        str(ROOT / "src" / "antiphon" / "__main__.py"),
        *serve_forks(socket.socket(fileno=int(sys.argv[1]))),
    ]
    from antiphon.cli import main

    main(prog_name="antiphon")
