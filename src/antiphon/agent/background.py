"""Background: what a session works on outside of its turns.

Work with a tool call of its own is listed on every state update while it runs (PROMPT-V2-40, -44..46). A
cancel of the turn does not touch it; with the session it ends (SESS-39).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from antiphon.agent.cancelling import Scope
from antiphon.agent.writers import ToolCallWriter
from antiphon.errors import LocalError, SessionUnknown, StoreError
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession

logger = logging.getLogger("antiphon.agent")

Work = Callable[[ToolCallWriter], Awaitable[None]]


class Background:
    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._listed: dict[str, v2.BackgroundWork] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def __contains__(self, id: object) -> bool:
        """Whether a tool call or a subagent is listed."""
        return id in self._listed

    async def start(self, title: str, work: Work, *, kind: str, cancellable: bool) -> str:
        """Start work with a tool call; the call's id."""
        session = self._session
        call, scope = ToolCallWriter(session), Scope()
        if cancellable:
            session.cancels.calls[call.tool_call_id] = scope.cancel
        await call.open(title, kind=kind, raw_input=None, name=None, cancellable=cancellable)
        self._listed[call.tool_call_id] = v2.BackgroundToolCall(tool_call_id=call.tool_call_id)
        self._emit()
        self._own(self._work(call, work, scope))
        return call.tool_call_id

    async def _work(self, call: ToolCallWriter, work: Work, scope: Scope) -> None:
        status = "completed"
        try:
            scope.enter()
            await work(call)
        except asyncio.CancelledError:
            status = "cancelled"
            call.cancelled = scope.cancelled
        except Exception:
            logger.exception("background work failed")
            status = "failed"
        # PROMPT-V2-46: its last word comes before the snapshot that drops it.
        await call.end(status)
        del self._listed[call.tool_call_id]
        self._emit()

    def report(self, id: str, work: v2.BackgroundWork | None) -> None:
        """Tell that something works, or with None that it does not any more."""
        if work is None:
            self._listed.pop(id, None)
        else:
            self._listed[id] = work
        try:
            self._emit()
        except (StoreError, SessionUnknown, LocalError):
            return  # the session is being let go, or gone

    def _emit(self) -> None:
        self._session.emit(self._session.fold.report_background(list(self._listed.values())))

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that nobody is told of."""

        async def guarded() -> None:
            try:
                await work
            except Exception:
                logger.exception("work of the session failed")

        task = self._own(guarded())
        task.add_done_callback(lambda _: work.close())  # where it was cancelled before its first step

    def _own(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def end(self) -> None:
        """All of it ends; what does not in the session's grace is not waited for."""
        tasks = tuple(self.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            _, stubborn = await asyncio.wait(tasks, timeout=self._session.grace)
            if stubborn:
                logger.error(
                    "work behind the turns of %s does not end; it is not waited for", self._session.id
                )
