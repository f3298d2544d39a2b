"""Offering: a client's workspace on its connection, for the sessions that are open there."""

from __future__ import annotations

import binascii
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from antiphon.client.spoken import SpokenV1
from antiphon.client.workspace import SessionWorkspace, Workspace
from antiphon.errors import ResourceNotFound
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession

Find = Callable[[str], "ClientSession | None"]
Keep = Callable[[str, Callable[[], object]], None]
"""Calls something once the session of this id is there."""


class Folders(NamedTuple):
    """Where the files of a session are."""

    cwd: str
    additional_directories: Sequence[str]


class Offering:
    def __init__(
        self,
        workspace: Workspace | None,
        find: Find,
        *,
        beginning: Callable[[str], Folders | None],
        keep: Keep,
    ) -> None:
        """`beginning` gives the folders of a session that has not been named yet: an agent may need files to
        open it."""
        self._workspace = workspace
        self._find = find
        self._beginning = beginning
        self._keep = keep
        self._open: dict[str, SessionWorkspace] = {}
        self._leaving: list[SessionWorkspace] = []

    @property
    def capabilities(self) -> dict[str, Any]:
        """What is said of it in `initialize`: nothing where nothing is offered."""
        return {} if self._workspace is None else self._workspace.capabilities

    @property
    def handlers(self) -> dict[str, Callable[[Any, Inbound], Awaitable[Any]]]:
        """What answers the agent; what is not offered is no method of this client."""
        offered = () if self._workspace is None else self._workspace.methods
        return {method: self._serving(method) for method in offered}

    def _serving(self, method: str) -> Callable[[Any, Inbound], Awaitable[Any]]:
        async def serve(params: Any, inbound: Inbound) -> Any:
            return await self._of(params.session_id).serve(method, params)

        return serve

    def _of(self, session_id: str) -> SessionWorkspace:
        session = self._find(session_id)
        folders = (
            self._beginning(session_id)
            if session is None
            else Folders(session.cwd, session.additional_directories)
        )
        if folders is None or self._workspace is None:
            raise ResourceNotFound("no such session is open here", data={"sessionId": session_id})
        opened = self._open.get(session_id)
        if opened is None:
            shown = _Shown(session_id, self._find, self._keep)
            opened = self._workspace.open(*folders, watches=shown)
            self._open[session_id] = opened
        return opened

    def left(self, session_id: str) -> None:
        """A session has ended here: its terminals do too."""
        opened = self._open.pop(session_id, None)
        if opened is not None:
            opened.close()
            self._leaving.append(opened)

    def lose(self) -> None:
        """The link has ended, and every session with it."""
        for session_id in tuple(self._open):
            self.left(session_id)

    async def aclose(self) -> None:
        """The client has ended. Returns when nothing is left of what it ran."""
        self.lose()
        while self._leaving:
            await self._leaving.pop().aclose()


class _Shown:
    """Shows a session's terminals in the session: in v2 words they are the agent's own (24.4, TERMV1-08)."""

    def __init__(self, session_id: str, find: Find, keep: Keep) -> None:
        self._session_id = session_id
        self._find = find
        self._keep = keep

    def _tell(self, update: v2.SessionUpdate) -> None:
        session = self._find(self._session_id)
        if session is None:
            self._keep(self._session_id, lambda: self._tell(update))
        else:
            session.tell(update)

    def created(self, terminal_id: str, params: v1.CreateTerminalRequest) -> None:
        session = self._find(self._session_id)
        if session is None:
            self._keep(self._session_id, lambda: self.created(terminal_id, params))
        elif isinstance(session.spoken, SpokenV1):
            session.tell(session.spoken.upgrade.tools.terminal_created(terminal_id, params, cwd=session.cwd))

    def wrote(self, terminal_id: str, data: bytes) -> None:
        self._tell(v2.TerminalOutputChunk(terminal_id=v2.TerminalId(terminal_id), data=_encoded(data)))

    def shows(self, terminal_id: str, output: bytes) -> None:
        whole = v2.TerminalOutput(data=_encoded(output))
        self._tell(v2.TerminalUpdate(terminal_id=v2.TerminalId(terminal_id), output=whole))

    def exited(self, terminal_id: str, *, exit_code: int | None, signal: str | None) -> None:
        status = v2.TerminalExitStatus(exit_code=exit_code, signal=signal)
        self._tell(v2.TerminalUpdate(terminal_id=v2.TerminalId(terminal_id), exit_status=status))


def _encoded(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")
