"""A terminal that a client runs for the agent, and how the session shows it.

To the client that runs it a tool call refers to it by the client's own id. In the journal it is one of the
session's terminals, under an id of ours (a client's may come again, TERMV2-01), with what was read of it: so
other clients and later ones see it too.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import shlex
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from antiphon.agent.worker import HandlerWorker
from antiphon.bridge.dialects import V1Writer
from antiphon.connection import Connection
from antiphon.errors import AntiphonError, CallFailed, InvalidResult, LinkLost, LocalError
from antiphon.schema import v1, v2
from antiphon.server.client_calls import send_release
from antiphon.server.connection import ClientConnection

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
        params = v1.TerminalOutputRequest(session_id=self._session_id, terminal_id=self._terminal_id)
        answer: v1.TerminalOutputResponse = await self._call("terminal/output", params)
        status = None if answer.exit_status is None else _status(answer.exit_status)
        read = ClientOutput(answer.output, answer.truncated, status)
        if self._shown is not None:
            await self._shown.read(read)
        return read

    async def wait(self) -> v2.TerminalExitStatus:
        """Wait until its command has ended, and say how."""
        params = v1.WaitForTerminalExitRequest(session_id=self._session_id, terminal_id=self._terminal_id)
        status = _status(await self._call("terminal/wait_for_exit", params))
        if self._shown is not None:
            await self.output()
            await self._shown.exited(status)
        return status

    async def kill(self) -> None:
        """End its command; what it wrote can still be read."""
        params = v1.KillTerminalRequest(session_id=self._session_id, terminal_id=self._terminal_id)
        await self._call("terminal/kill", params)

    async def _call(self, method: str, params: Any) -> Any:
        if self._released:
            raise LocalError("this terminal was released")
        return await self._connection.call(method, params)

    async def settle(self) -> None:
        """The block has ended as it should: what was not read yet is shown before it is gone."""
        if self._shown is not None and not self._shown.complete and not self._released:
            with contextlib.suppress(CallFailed, InvalidResult, LinkLost):
                await self.output()

    async def release(self, *, wait: bool = True) -> None:
        """TERMV1-07: always, and only once; whatever it runs is killed. Its answer is waited for, but not for
        long: nothing depends on it."""
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
        self._id = v2.TerminalId(f"term_{secrets.token_hex(12)}")
        self._text = ""
        self.complete = False
        """Whether its end was told, and so everything was."""
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
        """It is about to be released: its client has to have heard of it before (TOOL-V1-05)."""
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
