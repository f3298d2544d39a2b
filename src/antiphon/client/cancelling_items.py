"""Cancelling one tool call or one terminal, where the agent offers that (v2)."""

from __future__ import annotations

from antiphon.client.view import View
from antiphon.connection import Connection
from antiphon.errors import LocalError
from antiphon.schema import v2


class CancellingItems:
    """Asks the agent. That it has happened is told by an update: a final status, an exit status. The state of
    the session does not change by it (TOOL-V2-15)."""

    def __init__(self, session_id: str, connection: Connection, view: View) -> None:
        self._session_id = v2.SessionId(session_id)
        self._connection = connection
        self._view = view

    async def tool_call(self, tool_call_id: str) -> None:
        call = self._view.fold.tools.get(tool_call_id)
        if call is None or call.final or call.capabilities is None or call.capabilities.cancel is None:
            raise LocalError("the agent does not offer to cancel this tool call")  # TOOL-V2-12
        params = v2.CancelToolCallRequest(session_id=self._session_id, tool_call_id=call.id)
        await self._connection.call("tool_call/cancel", params)

    async def terminal(self, terminal_id: str) -> None:
        shown = self._view.fold.terminals.get(terminal_id)
        if shown is None or shown.exited or shown.capabilities is None or shown.capabilities.cancel is None:
            raise LocalError("the agent does not offer to cancel this terminal")  # TERMV2-10
        params = v2.CancelTerminalRequest(session_id=self._session_id, terminal_id=shown.id)
        await self._connection.call("terminal/cancel", params)
