"""TurnClient: the files and terminals that clients let an agent use (v1; FS, TERMV1).

To the client that runs a terminal, a tool call refers to it by the client's own id. In the journal it is one
of the session's terminals, under an id of ours (a client may use an id again, TERMV2-01), with what was read
of it. So other clients see it too, also later.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from antiphon.agent.tool_calls import ToolCallWriter
from antiphon.agent.worker import HandlerWorker
from antiphon.bridge.dialects import V1Writer
from antiphon.connection import Connection
from antiphon.errors import AntiphonError, CallFailed, InvalidResult, LinkLost, LocalError
from antiphon.schema import v1, v2
from antiphon.server.checks import check_path
from antiphon.server.client_calls import Can, create_terminal, reads, runs, send_release, writes
from antiphon.server.connection import ClientConnection
from antiphon.server.ids import new_id

LAST_UPDATES = 2.0
"""Seconds that are waited for the client to have the tool call that shows a terminal, before its release, and
for its answer to that."""
UNKNOWN = v2.TerminalExitStatus()


class ClientOutput(Struct, frozen=True):
    """What a terminal showed when it was asked."""

    text: str
    truncated: bool
    """Whether the start of it was dropped."""
    exit_status: v2.TerminalExitStatus | None = None
    """How its command ended, if it has."""


class ClientTerminal:
    """What `turn.client.terminal(...)` gives."""

    def __init__(
        self,
        connection: Connection,
        session_id: v1.SessionId,
        terminal_id: v1.TerminalId,
        shown: Shown | None,
    ) -> None:
        self._connection = connection
        self._session_id = session_id
        self._terminal_id = terminal_id
        self._shown = shown
        self._released = False

    async def output(self) -> ClientOutput:
        """What it shows now."""
        answer: v1.TerminalOutputResponse = await self._call("terminal/output", v1.TerminalOutputRequest)
        status = None if answer.exit_status is None else _status(answer.exit_status)
        read = ClientOutput(answer.output, answer.truncated, status)
        if self._shown is not None:
            await self._shown.read(read)
        return read

    async def wait(self) -> v2.TerminalExitStatus:
        """Wait until its command has ended, and say how."""
        status = _status(await self._call("terminal/wait_for_exit", v1.WaitForTerminalExitRequest))
        if self._shown is not None:
            await self.output()
            await self._shown.exited(status)
        return status

    async def kill(self) -> None:
        """End its command; what it wrote can still be read."""
        await self._call("terminal/kill", v1.KillTerminalRequest)

    async def _call(self, method: str, request: Callable[..., Any]) -> Any:
        if self._released:
            raise LocalError("this terminal was released")
        params = request(session_id=self._session_id, terminal_id=self._terminal_id)
        return await self._connection.call(method, params)

    async def show_rest(self) -> None:
        """Show the output that was not read yet, before the terminal is gone."""
        if self._shown is not None and not self._shown.complete and not self._released:
            with contextlib.suppress(CallFailed, InvalidResult, LinkLost):
                await self.output()

    async def release(self, *, wait: bool = True) -> None:
        """Release it, once (TERMV1-07); the client kills what it runs. With `wait`, wait for the answer, but
        not for long: nothing depends on it."""
        if self._released:
            return
        self._released = True
        try:
            if self._shown is not None:
                await self._shown.close()
        finally:
            answered = send_release(self._connection, self._session_id, self._terminal_id)
        if wait:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_UPDATES):
                    await answered.wait()


class Shown:
    """A client's terminal as one of the session's, inside a tool call."""

    def __init__(
        self,
        worker: HandlerWorker,
        client: ClientConnection,
        terminal_id: v1.TerminalId,
        tool_call_id: v2.ToolCallId,
    ) -> None:
        self._worker = worker
        self._client = client
        self._call_id = tool_call_id
        self._id = v2.TerminalId(new_id("term"))
        self._text = ""
        self.complete = False
        """Whether its end was shown, and so everything was."""
        voice = client.voices.get(worker.id)
        if voice is not None and isinstance(voice.writer, V1Writer):
            voice.writer.downgrade.tools.note_client_terminal(self._id, terminal_id)

    async def opened(self, command: Sequence[str], cwd: str | None) -> None:
        await self._update(command=shlex.join(command), cwd=cwd or self._worker.cwd)
        shown = v2.Terminal(terminal_id=self._id)
        await self._worker.update(v2.ToolCallContentChunk(tool_call_id=self._call_id, content=shown))

    async def read(self, output: ClientOutput) -> None:
        if not self.complete and output.text != self._text:
            if output.text.startswith(self._text):
                data = _encoded(output.text[len(self._text) :])
                await self._worker.update(v2.TerminalOutputChunk(terminal_id=self._id, data=data))
            else:  # the start of it was dropped
                await self._update(output=v2.TerminalOutput(data=_encoded(output.text)))
            self._text = output.text
        if output.exit_status is not None:
            await self.exited(output.exit_status)

    async def exited(self, status: v2.TerminalExitStatus) -> None:
        if not self.complete:
            self.complete = True
            await self._update(exit_status=status)

    async def close(self) -> None:
        """Show its end, and wait until its client has the tool call that shows it (TOOL-V1-05)."""
        with contextlib.suppress(AntiphonError):  # the session may have ended with its store
            await self.exited(UNKNOWN)
            voice = self._client.voices.get(self._worker.id)
            if voice is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LAST_UPDATES):
                        await voice.caught_up()

    async def _update(self, **fields: Any) -> None:
        await self._worker.update(v2.TerminalUpdate(terminal_id=self._id, **fields))


def _status(status: v1.TerminalExitStatus | v1.WaitForTerminalExitResponse) -> v2.TerminalExitStatus:
    return v2.TerminalExitStatus(exit_code=status.exit_code, signal=status.signal)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode(errors="replace")).decode()


class TurnClient:
    """The client whose prompt opened a turn; where that one cannot do something, or is gone, the first of
    those attached that can. What no client offers raises `LocalError`, what a client refuses `CallFailed`."""

    def __init__(self, worker: HandlerWorker, prompter: ClientConnection | None) -> None:
        self._worker = worker
        self._id = v1.SessionId(worker.id)
        self._prompter = prompter

    @property
    def can_read(self) -> bool:
        return self._find(reads) is not None

    @property
    def can_write(self) -> bool:
        return self._find(writes) is not None

    @property
    def can_run(self) -> bool:
        """Whether `terminal` can be used."""
        return self._find(runs) is not None

    async def read(self, path: str, *, line: int | None = None, limit: int | None = None) -> str:
        """The text of a file, unsaved changes included; or `limit` lines of it from the 1-based `line` on."""
        check_path(path)
        params = v1.ReadTextFileRequest(session_id=self._id, path=path, line=line, limit=limit)
        answer: v1.ReadTextFileResponse = await self._able(reads, "read files").ask(
            "fs/read_text_file", params
        )
        return answer.content

    async def write(self, path: str, text: str) -> None:
        """Write a text to a file, which is created if it does not exist."""
        check_path(path)
        params = v1.WriteTextFileRequest(session_id=self._id, path=path, content=text)
        await self._able(writes, "write files").ask("fs/write_text_file", params)

    @asynccontextmanager
    async def terminal(
        self,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        output_limit: int | None = None,
        call: ToolCallWriter | None = None,
    ) -> AsyncIterator[ClientTerminal]:
        """A command that the client runs, until the end of the block at the latest. With `call`, that tool
        call shows it: as it runs to the client itself, as far as it was read to everyone else."""
        if isinstance(command, str) or not command:
            raise LocalError("a command is a non-empty list of strings")
        check_path(cwd)
        link = self._able(runs, "run commands")
        params = v1.CreateTerminalRequest(
            session_id=self._id,
            command=command[0],
            args=list(command[1:]),
            env=[v1.EnvVariable(name=name, value=value) for name, value in (env or {}).items()],
            cwd=cwd,
            output_byte_limit=output_limit,
        )
        terminal_id = await create_terminal(link.wire, params)
        shown = None if call is None else Shown(self._worker, link, terminal_id, call.tool_call_id)
        terminal = ClientTerminal(link.wire, self._id, terminal_id, shown)
        try:
            if shown is not None:
                await shown.opened(command, cwd)
            yield terminal
            await terminal.show_rest()
        except BaseException:
            await terminal.release(wait=False)
            raise
        await terminal.release()

    def _able(self, can: Can, what: str) -> ClientConnection:
        link = self._find(can)
        if link is None:
            raise LocalError(f"no client of this session lets its agent {what}")  # FS-01, TERMV1-01, FS-05
        return link

    def _find(self, can: Can) -> ClientConnection | None:
        links = self._worker.session.askable()
        if self._prompter in links:
            links = [self._prompter, *links]
        return next((link for link in links if link.v1_client is not None and can(link.v1_client)), None)
