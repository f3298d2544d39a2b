"""The files and terminals that a v1 agent behind the hub may use: an editor's own, where one is attached that
offers them, since it knows what is not saved yet; otherwise those of the hub's machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any

from msgspec import structs

from antiphon.bridge.dialects import V1Writer
from antiphon.client.workspace import READ, TERMINALS, WRITE, SessionWorkspace, TerminalObserver, Workspace
from antiphon.errors import AntiphonError, CallFailed, LinkLost, MethodNotFound, ResourceNotFound
from antiphon.hub.upstream.errors import to_request_error
from antiphon.schema import v1
from antiphon.server.client_calls import Can, create_terminal, reads, runs, send_release, writes
from antiphon.server.connection import ClientConnection
from antiphon.server.session import ServedSession

CREATE, OUTPUT, WAIT, _, RELEASE = TERMINALS
NEEDED: dict[str, Can] = {READ: reads, WRITE: writes, CREATE: runs}


class Files(StrEnum):
    """Whose files and terminals a hub offers to agents of v1."""

    EDITOR = "editor"
    """An attached editor's, where one offers them; otherwise the hub's."""
    HUB = "hub"
    NONE = "none"
    """The hub offers neither, and the agent uses its own."""


Find = Callable[[str], Awaitable[ServedSession | None]]
"""Returns the hub session of a session at the agent. One that begins is returned once its client follows."""


class EditorWorkspace(Workspace):
    def __init__(self, find: Find) -> None:
        super().__init__()
        self._find = find

    def open(
        self,
        cwd: str,
        additional_directories: Sequence[str] = (),
        *,
        observer: TerminalObserver | None = None,
    ) -> SessionWorkspace:
        return EditorFiles(self, cwd, additional_directories, observer, self._find)


class EditorFiles(SessionWorkspace):
    """The files and terminals of one session at an agent. A terminal stays where it was made."""

    def __init__(
        self,
        offered: Workspace,
        cwd: str,
        additional_directories: Sequence[str],
        observer: TerminalObserver | None,
        find: Find,
    ) -> None:
        super().__init__(offered, cwd, additional_directories, observer)
        self._find = find
        self._theirs: dict[str, EditorTerminal] = {}
        """The terminals that editors run, by the ids that the agent knows."""

    async def serve(self, method: str, params: Any) -> Any:
        terminal = self._theirs.get(getattr(params, "terminal_id", ""))
        if terminal is not None:
            if method == RELEASE:
                del self._theirs[params.terminal_id]
            return await terminal.serve(method, params)
        session = await self._find(params.session_id)
        link = None if session is None or method not in NEEDED else _editor(session, NEEDED[method])
        if session is None or link is None:
            return await super().serve(method, params)
        wanted = structs.replace(params, session_id=v1.SessionId(session.id))
        try:
            if method == CREATE:
                return await self._create_there(session, link, wanted)
            return await link.ask(method, wanted)
        except CallFailed as error:
            if error.error.code != MethodNotFound.code:
                raise to_request_error(error) from None
        except LinkLost:
            pass  # it has left
        return await super().serve(method, params)

    async def _create_there(
        self, session: ServedSession, link: ClientConnection, params: v1.CreateTerminalRequest
    ) -> v1.CreateTerminalResponse:
        theirs = await create_terminal(link.wire, params)
        if not link.policy.is_valid():
            send_release(link.wire, params.session_id, theirs)
            raise LinkLost("its client may not answer any more")
        id = theirs
        while session.fold.terminals.get(id) is not None:  # editors number theirs as they like
            id = v1.TerminalId(f"{id}'")
        voice = link.voices.get(session.id)
        if voice is not None and isinstance(voice.writer, V1Writer):
            voice.writer.downgrade.tools.note_client_terminal(id, theirs)  # it shows it by its own id
        self._theirs[id] = EditorTerminal(
            link, params.session_id, theirs, shown_as=id, observer=self._observer
        )
        if self._observer is not None:
            self._observer.created(id, params)
        return v1.CreateTerminalResponse(terminal_id=id)

    def close(self) -> None:
        super().close()
        while self._theirs:
            self._theirs.popitem()[1].leave()


class EditorTerminal:
    """A terminal that an editor runs, shown to everyone else as far as the agent has read of it."""

    def __init__(
        self,
        link: ClientConnection,
        session_id: v1.SessionId,
        terminal_id: v1.TerminalId,
        *,
        shown_as: str,
        observer: TerminalObserver | None,
    ) -> None:
        self._client = link
        self._session_id = session_id
        self._terminal_id = terminal_id
        self._id = shown_as
        self._observer = observer
        self._text = ""
        self._over = False

    async def serve(self, method: str, params: Any) -> Any:
        wanted = structs.replace(params, session_id=self._session_id, terminal_id=self._terminal_id)
        try:
            if method in (WAIT, RELEASE):
                return await self._last(method, wanted)
            answer = await self._client.ask(method, wanted)
            if method == OUTPUT:
                self._show(answer)
            return answer
        except CallFailed as error:
            raise to_request_error(error) from None
        except LinkLost:
            self._exited(v1.TerminalExitStatus())
            raise ResourceNotFound(
                "the editor that ran this terminal is gone", data={"terminalId": self._id}
            ) from None

    async def _last(self, method: str, params: Any) -> Any:
        """Wait for the exit or release the terminal, after its last output was read for the other clients."""
        answer = await self._client.ask(WAIT, params) if method == WAIT else None
        if not self._over:
            asked = v1.TerminalOutputRequest(session_id=self._session_id, terminal_id=self._terminal_id)
            with suppress(AntiphonError):  # the agent has not asked for it
                self._show(await self._client.ask(OUTPUT, asked))
        if method == RELEASE:
            answer = await self._client.ask(RELEASE, params)
        self._exited(
            answer if isinstance(answer, v1.WaitForTerminalExitResponse) else v1.TerminalExitStatus()
        )
        return answer

    def _show(self, output: v1.TerminalOutputResponse) -> None:
        text, before = output.output, self._text
        if self._observer is not None and text != before and not self._over:
            if text.startswith(before):
                self._observer.wrote(self._id, text[len(before) :].encode())
            else:  # the start of it was dropped
                self._observer.shows(self._id, text.encode())
        self._text = text
        if output.exit_status is not None:
            self._exited(output.exit_status)

    def _exited(self, status: v1.TerminalExitStatus | v1.WaitForTerminalExitResponse) -> None:
        if not self._over and self._observer is not None:
            self._observer.exited(self._id, exit_code=status.exit_code, signal=status.signal)
        self._over = True

    def leave(self) -> None:
        """Release the terminal, because the session has ended at the agent."""
        send_release(self._client.wire, self._session_id, self._terminal_id)


def _editor(session: ServedSession, can: Can) -> ClientConnection | None:
    """Return the client that attached last of those that offer it."""
    links = reversed(session.askable())
    return next((link for link in links if link.v1_client is not None and can(link.v1_client)), None)
