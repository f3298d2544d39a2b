"""Terminals that are run for an agent: a real process each, its last output kept, its end known."""

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
    """The last of what a terminal wrote, as text of at most `limit` bytes, whole characters only
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


class Watches(Protocol):
    """Who is told of the terminals of a session. What is told of one together is a small multiple of what is
    kept of it, however much it writes."""

    def created(self, terminal_id: str, params: v1.CreateTerminalRequest) -> None: ...
    def wrote(self, terminal_id: str, data: bytes) -> None: ...

    def shows(self, terminal_id: str, output: bytes) -> None:
        """All that is left of its output; it stands for everything that was told before."""

    def exited(self, terminal_id: str, *, exit_code: int | None, signal: str | None) -> None: ...


class Terminal:
    """One terminal. It is read until it ends; `run` is that, for a task that somebody owns."""

    def __init__(
        self, params: v1.CreateTerminalRequest, *, cwd: str, limit: int, watches: Watches | None
    ) -> None:
        """Start its command; raises `SpawnFailed`."""
        self.id = f"term_{secrets.token_hex(12)}"
        self.output = Output(limit)
        self.status: v1.TerminalExitStatus | None = None
        """How its command ended, once it has."""
        self._watches = watches
        self._ended = asyncio.Event()
        self._next_shown = limit
        env = {variable.name: variable.value for variable in params.env}
        self._process = Process(_command(params, env), cwd=cwd, env=env)
        if watches is not None:
            watches.created(self.id, params)

    async def run(self) -> None:
        try:
            while data := await self._process.read():
                self.output.add(data)
                self._tell(data)
            self.output.add(b"", last=True)
            await self._process.wait()
        finally:
            await self._process.aclose()
            code = self._process.returncode or 0
            signal = signal_name(code)
            self.status = v1.TerminalExitStatus(exit_code=None if signal else code, signal=signal)
            self._ended.set()
            if self._watches is not None:
                if self.output.truncated:
                    self._watches.shows(self.id, self.output.kept)
                self._watches.exited(self.id, exit_code=self.status.exit_code, signal=signal)

    def _tell(self, data: bytes) -> None:
        if self._watches is None:
            return
        if not self.output.truncated:
            self._watches.wrote(self.id, data)
        elif self.output.total >= self._next_shown:
            self._watches.shows(self.id, self.output.kept)
            self._next_shown = 2 * self.output.total

    async def ended(self) -> v1.TerminalExitStatus:
        """Wait until its command has ended and all of its output was read."""
        await self._ended.wait()
        assert self.status is not None
        return self.status

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _command(params: v1.CreateTerminalRequest, env: Mapping[str, str]) -> list[str]:
    """A command without arguments that is no program is a line for the shell: agents send both."""
    if params.args or shutil.which(params.command, path=env.get("PATH", os.environ.get("PATH"))):
        return [params.command, *params.args]
    return [SHELL, "-c", params.command]
