"""Workspace: files and terminals that a client offers to its v1 agents, confined to a session's folders.

It knows neither a client nor a connection. The caller opens a `SessionWorkspace` for a session, passes it the
requests of the agent, and closes it with the session.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from antiphon.client.workspace.files import ConfinedFiles
from antiphon.client.workspace.terminals import Terminal, TerminalObserver
from antiphon.errors import AntiphonError, RequestError, ResourceNotFound, SpawnFailed
from antiphon.schema import v1

FILE_LIMIT = 8 * 1024 * 1024
OUTPUT_LIMIT = 1024 * 1024
"""How many bytes of a terminal's output are kept if the agent names no limit."""
MOST_OUTPUT = 8 * 1024 * 1024
"""How many bytes of it are kept at most, whatever limit the agent names."""
MOST_TERMINALS = 64

Unsaved = Callable[[str], str | None]
Ask = Callable[[Any], Coroutine[Any, Any, Any]]


class Workspace:
    """Files and terminals for v1 agents. One workspace serves any number of connections and sessions."""

    def __init__(
        self,
        roots: Iterable[str | os.PathLike[str]] | None = None,
        *,
        read: bool = True,
        write: bool = True,
        terminal: bool = True,
        file_limit: int = FILE_LIMIT,
        unsaved: Unsaved | None = None,
    ) -> None:
        """roots: the folders that files and working directories must lie in. Default: the session's own, its
            `cwd` and additional directories.
        read, write: whether the agent may read and write text files.
        terminal: whether the agent may run commands. No folder confines a command.
        file_limit: the size in bytes above which a file is neither read nor written whole.
        unsaved: returns the text of a file that is open in an editor, by its path, or None (FS-02).
        """
        self.roots = None if roots is None else tuple(os.path.abspath(os.fspath(root)) for root in roots)
        self.read = read
        self.write = write
        self.terminal = terminal
        self.file_limit = file_limit
        self.unsaved = unsaved

    @property
    def capabilities(self) -> dict[str, Any]:
        """Its part of a v1 client's capabilities (INIT-18)."""
        return {
            "fs": {"readTextFile": self.read, "writeTextFile": self.write},
            "terminal": self.terminal,
        }

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it serves."""
        files = [name for name, on in ((READ, self.read), (WRITE, self.write)) if on]
        return (*files, *(TERMINALS if self.terminal else ()))

    def open(
        self,
        cwd: str,
        additional_directories: Sequence[str] = (),
        *,
        observer: TerminalObserver | None = None,
    ) -> SessionWorkspace:
        """Open it for one session, in its folders. `observer` observes the terminals."""
        return SessionWorkspace(self, cwd, additional_directories, observer)


READ, WRITE = "fs/read_text_file", "fs/write_text_file"
TERMINALS = (
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
)


class SessionWorkspace:
    """The files and terminals of one session."""

    def __init__(
        self,
        offered: Workspace,
        cwd: str,
        additional_directories: Sequence[str],
        observer: TerminalObserver | None,
    ) -> None:
        self._offered = offered
        self._cwd = cwd
        roots = (cwd, *additional_directories) if offered.roots is None else offered.roots
        self._files = ConfinedFiles(roots, most=offered.file_limit)
        self._observer = observer
        self._order = asyncio.Lock()
        """Serializes file access: a read sees every earlier write."""
        self._terminals: dict[str, Terminal] = {}
        self._running: dict[asyncio.Task[None], Terminal] = {}
        self._closed = False
        self._handlers: dict[str, Ask] = {
            READ: self._read,
            WRITE: self._write,
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait,
            "terminal/kill": self._kill,
            "terminal/release": self._release,
        }

    async def serve(self, method: str, params: Any) -> Any:
        """Handle a request of one of `Workspace.methods`; `params` and result are v1's. Raises the error for
        the agent."""
        if self._closed:
            raise ResourceNotFound("the session has ended")
        return await self._handlers[method](params)

    # --- files -------------------------------------------------------------------------------------

    async def _read(self, params: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
        wanted = {"line": params.line, "limit": params.limit}
        unsaved = None
        if self._offered.unsaved is not None:
            self._files.resolve(params.path)
            unsaved = self._offered.unsaved(params.path)
        if unsaved is not None:
            return v1.ReadTextFileResponse(content=self._files.select(unsaved, **wanted))
        text = await self._in_order(partial(self._files.read_text, params.path, **wanted))
        return v1.ReadTextFileResponse(content=text)

    async def _write(self, params: v1.WriteTextFileRequest) -> v1.WriteTextFileResponse:
        await self._in_order(partial(self._files.write_text, params.path, params.content))
        return v1.WriteTextFileResponse()

    async def _in_order(self, work: Callable[[], Any]) -> Any:
        async with self._order:
            return await asyncio.to_thread(work)

    # --- terminals ---------------------------------------------------------------------------------

    async def _create(self, params: v1.CreateTerminalRequest) -> v1.CreateTerminalResponse:
        if len(self._terminals) >= MOST_TERMINALS:
            raise RequestError(
                AntiphonError.code, f"at most {MOST_TERMINALS} terminals may be open; release some"
            )
        limit = OUTPUT_LIMIT if params.output_byte_limit is None else params.output_byte_limit
        try:
            terminal = Terminal(
                params,
                cwd=self._files.folder(self._cwd if params.cwd is None else params.cwd),
                limit=min(limit, MOST_OUTPUT),
                observer=self._observer,
            )
        except SpawnFailed as error:
            raise RequestError(AntiphonError.code, error.detail) from error
        self._terminals[terminal.id] = terminal
        task = asyncio.get_running_loop().create_task(terminal.run())
        self._running[task] = terminal
        task.add_done_callback(self._running.pop)
        return v1.CreateTerminalResponse(terminal_id=v1.TerminalId(terminal.id))

    async def _output(self, params: v1.TerminalOutputRequest) -> v1.TerminalOutputResponse:
        terminal = self._terminal(params.terminal_id)
        output = terminal.output
        return v1.TerminalOutputResponse(
            output=output.text, truncated=output.truncated, exit_status=terminal.status
        )

    async def _wait(self, params: v1.WaitForTerminalExitRequest) -> v1.WaitForTerminalExitResponse:
        status = await self._terminal(params.terminal_id).ended()
        return v1.WaitForTerminalExitResponse(exit_code=status.exit_code, signal=status.signal)

    async def _kill(self, params: v1.KillTerminalRequest) -> v1.KillTerminalResponse:
        terminal = self._terminal(params.terminal_id)
        terminal.terminate()
        await terminal.ended()
        return v1.KillTerminalResponse()

    async def _release(self, params: v1.ReleaseTerminalRequest) -> v1.ReleaseTerminalResponse:
        self._terminal(params.terminal_id).kill()
        del self._terminals[params.terminal_id]
        return v1.ReleaseTerminalResponse()

    def _terminal(self, terminal_id: str) -> Terminal:
        terminal = self._terminals.get(terminal_id)
        if terminal is None:
            raise ResourceNotFound(
                f"terminal {terminal_id!r} does not exist", data={"terminalId": terminal_id}
            )
        return terminal

    # --- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Kill the terminals: the session has ended."""
        self._closed = True
        self._terminals.clear()
        for terminal in self._running.values():
            terminal.kill()

    async def aclose(self) -> None:
        """Kill the terminals and wait until they are gone."""
        self.close()
        if self._running:
            await asyncio.wait(tuple(self._running))
