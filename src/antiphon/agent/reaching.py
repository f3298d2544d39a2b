"""What the clients of a session let an agent use of their machine: files and terminals (v1; FS, TERMV1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from antiphon.agent.client_terminals import ClientTerminal, Shown
from antiphon.agent.worker import HandlerWorker
from antiphon.agent.writers import ToolCallWriter
from antiphon.errors import LocalError
from antiphon.schema import v1
from antiphon.server.checks import check_path
from antiphon.server.client_calls import Can, create_terminal, reads, runs, writes
from antiphon.server.connection import ClientConnection


class TurnClient:
    """The client whose prompt opened a turn; where that one cannot do something, or is gone, the first of
    those attached that can. What nobody offers raises `LocalError`, what a client refuses `CallFailed`."""

    def __init__(self, worker: HandlerWorker, prompter: ClientConnection | None) -> None:
        self._worker = worker
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
        answer: v1.ReadTextFileResponse = await self._call(reads, "read files", "fs/read_text_file", params)
        return answer.content

    async def write(self, path: str, text: str) -> None:
        """Put a text into a file; a new one is made where there is none."""
        check_path(path)
        params = v1.WriteTextFileRequest(session_id=self._id, path=path, content=text)
        await self._call(writes, "write files", "fs/write_text_file", params)

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
            await terminal.settle()
        except BaseException:
            await terminal.release(wait=False)
            raise
        await terminal.release()

    @property
    def _id(self) -> v1.SessionId:
        return v1.SessionId(self._worker.id)

    async def _call(self, can: Can, what: str, method: str, params: Any) -> Any:
        return await self._able(can, what).ask(method, params)

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
