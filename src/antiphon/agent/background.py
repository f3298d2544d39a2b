"""Background work: a tool call that outlives its turn.

It is listed on every state update while it runs (PROMPT-V2-40, -44..46). A cancel of the turn does not touch
it; it ends with the session (SESS-39).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from antiphon.agent.scope import Scope
from antiphon.agent.worker import HandlerWorker
from antiphon.agent.writers import ToolCallWriter
from antiphon.schema import v2

logger = logging.getLogger("antiphon.agent")

Work = Callable[[ToolCallWriter], Awaitable[None]]


async def start_background(
    worker: HandlerWorker, title: str, work: Work, *, kind: str, cancellable: bool
) -> str:
    """Start work with a tool call; return the call's id."""
    call, scope = ToolCallWriter(worker), Scope()
    if cancellable:
        worker.cancels.calls[call.tool_call_id] = scope.cancel
    await call.open(title, kind=kind, raw_input=None, name=None, cancellable=cancellable)
    worker.background[call.tool_call_id] = v2.BackgroundToolCall(tool_call_id=call.tool_call_id)
    worker.emit_background()
    worker.session.tasks.start_soon(_run(worker, call, work, scope))
    return call.tool_call_id


async def _run(worker: HandlerWorker, call: ToolCallWriter, work: Work, scope: Scope) -> None:
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
    # PROMPT-V2-46: its last update comes before the snapshot that drops it.
    await call.end(status)
    del worker.background[call.tool_call_id]
    worker.emit_background()
