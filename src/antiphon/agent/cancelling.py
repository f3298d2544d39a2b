"""What a client may cancel beside the turn: one tool call, one terminal, where the agent offers that (v2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from antiphon.agent.references import Referable
from antiphon.agent.writers import ToolCallWriter
from antiphon.errors import InvalidParams
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.agent.link import Handlers, Link
    from antiphon.agent.session import AgentSession


class Cancels:
    """What can be cancelled in a session just now, and how; by the ids of tool calls and terminals."""

    def __init__(self) -> None:
        self.calls: dict[str, Callable[[], None]] = {}
        self.terminals: dict[str, Callable[[], None]] = {}


class Scope:
    """Some work of a task that is cancelled without the task: as `asyncio.timeout` does it."""

    def __init__(self) -> None:
        self.cancelled = False
        self._task: asyncio.Task[Any] | None = None
        self._before = 0

    def enter(self) -> None:
        """It begins, in the task that runs this; cancelled already, it ends here."""
        if self.cancelled:
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        assert self._task is not None
        self._before = self._task.cancelling()

    def cancel(self) -> None:
        if not self.cancelled:
            self.cancelled = True
            if self._task is not None:
                self._task.cancel()

    def leave(self) -> bool:
        """It has ended; whether nothing else is cancelled that it belongs to."""
        if not self.cancelled or self._task is None:
            return self.cancelled
        return self._task.uncancel() <= self._before

    async def leave_unharmed(self) -> None:
        """It has ended by itself. A cancel that came too late to be raised in it is not raised behind it."""
        if not self.cancelled or self._task is None:
            return
        try:
            await asyncio.sleep(0)  # where the task is told to be cancelled, it is so here
        except asyncio.CancelledError:
            if not self.leave():
                raise  # its task is cancelled, too
        else:
            self.leave()


@asynccontextmanager
async def tool_call(
    session: AgentSession,
    title: str,
    *,
    kind: str,
    raw_input: Any,
    name: str | None,
    cancellable: bool,
    pending: bool,
    about: Referable | None = None,
) -> AsyncIterator[ToolCallWriter]:
    """A tool call of a turn: in progress inside the block, and ended by it."""
    call, scope = ToolCallWriter(session, foreground=True), Scope()
    id = call.tool_call_id
    if cancellable:
        session.cancels.calls[id] = scope.cancel
    scope.enter()
    try:
        await call.open(
            title,
            kind=kind,
            raw_input=raw_input,
            name=name,
            cancellable=cancellable,
            pending=pending,
            about=about,
        )
        session.calling(id, on=not pending)
        yield call
    except asyncio.CancelledError:
        call.cancelled = scope.cancelled
        alone = scope.leave()
        await call.end("cancelled" if call.cancelled else "failed")
        if not alone:
            raise  # the turn is cancelled too
    except BaseException:
        await scope.leave_unharmed()
        await call.end("failed")
        raise
    else:
        await scope.leave_unharmed()  # TOOL-V2-13: it won the race
        await call.end("completed")


def handlers(link: Link) -> Handlers:
    async def cancel_tool_call(params: v2.CancelToolCallRequest, inbound: Inbound) -> Any:
        _, session = link.voice(params.session_id)
        return _cancel(session.cancels.calls, params.tool_call_id)

    async def cancel_terminal(params: v2.CancelTerminalRequest, inbound: Inbound) -> Any:
        _, session = link.voice(params.session_id)
        return _cancel(session.cancels.terminals, params.terminal_id)

    return {"tool_call/cancel": cancel_tool_call, "terminal/cancel": cancel_terminal}


def _cancel(offered: dict[str, Callable[[], None]], id: str) -> dict[str, Any]:
    cancel = offered.get(id)
    if cancel is None:
        # TOOL-V2-14, TERMV2-11: unknown, ended or never offered, it is the client's mistake, not a missing
        # method.
        raise InvalidParams("this cannot be cancelled")
    cancel()
    return {}
