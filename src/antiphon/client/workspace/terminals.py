"""Terminals that a client runs for an agent: a process each, with its last output and its exit status."""

from __future__ import annotations

import asyncio
import codecs
import os
import secrets
import shutil
from collections.abc import Mapping
from typing import Protocol

from antiphon.schema import v1
from antiphon.transports.processes.process import Process, signal_name

SHELL = "/bin/sh"


class Output:
    """The last output of a terminal, as text of at most `limit` bytes, whole characters only
    (TERMV1-03)."""

    __slots__ = ("_decoder", "_kept", "limit", "total", "truncated")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self.truncated = False
        self._kept = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes, *, last: bool = False) -> None:
        self.total += len(data)
        kept = self._kept
        kept += self._decoder.decode(data, last).encode()
        over = len(kept) - self.limit
        if over > 0:
            self.truncated = True
            while over < len(kept) and kept[over] & 0xC0 == 0x80:
                over += 1
            del kept[:over]

    @property
    def kept(self) -> bytes:
        return bytes(self._kept)

    @property
    def text(self) -> str:
        return self._kept.decode()


class TerminalObserver(Protocol):
    """Receives the events of a session's terminals. The bytes that it gets of one terminal are a small
    multiple of the bytes that are kept, however much the command writes."""

    def created(self, terminal_id: str, params: v1.CreateTerminalRequest) -> None: ...
    def wrote(self, terminal_id: str, data: bytes) -> None: ...

    def shows(self, terminal_id: str, output: bytes) -> None:
        """The output that is kept; it replaces everything that was reported before."""

    def exited(self, terminal_id: str, *, exit_code: int | None, signal: str | None) -> None: ...


class Terminal:
    """One terminal. The caller runs `run` in a task, which reads its output until the command ends."""

    def __init__(
        self, params: v1.CreateTerminalRequest, *, cwd: str, limit: int, observer: TerminalObserver | None
    ) -> None:
        """Start the command. Raises `SpawnFailed`."""
        self.id = f"term_{secrets.token_hex(12)}"
        self.output = Output(limit)
        self.status: v1.TerminalExitStatus | None = None
        """The exit status; None while the command runs."""
        self._observer = observer
        self._ended = asyncio.Event()
        self._next_shown = limit
        env = {variable.name: variable.value for variable in params.env}
        self._process = Process(_command(params, env), cwd=cwd, env=env)
        if observer is not None:
            observer.created(self.id, params)

    async def run(self) -> None:
        try:
            while data := await self._process.read():
                self.output.add(data)
                self._report(data)
            self.output.add(b"", last=True)
            await self._process.wait()
        finally:
            await self._process.aclose()
            code = self._process.returncode or 0
            signal = signal_name(code)
            self.status = v1.TerminalExitStatus(exit_code=None if signal else code, signal=signal)
            self._ended.set()
            if self._observer is not None:
                if self.output.truncated:
                    self._observer.shows(self.id, self.output.kept)
                self._observer.exited(self.id, exit_code=self.status.exit_code, signal=signal)

    def _report(self, data: bytes) -> None:
        if self._observer is None:
            return
        if not self.output.truncated:
            self._observer.wrote(self.id, data)
        elif self.output.total >= self._next_shown:
            self._observer.shows(self.id, self.output.kept)
            self._next_shown = 2 * self.output.total

    async def ended(self) -> v1.TerminalExitStatus:
        """Wait until the command has ended and all of its output was read."""
        await self._ended.wait()
        assert self.status is not None
        return self.status

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _command(params: v1.CreateTerminalRequest, env: Mapping[str, str]) -> list[str]:
    """A command without arguments that names no program is a shell line: agents send both."""
    if params.args or shutil.which(params.command, path=env.get("PATH", os.environ.get("PATH"))):
        return [params.command, *params.args]
    return [SHELL, "-c", params.command]
