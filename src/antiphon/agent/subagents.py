"""Subagents: child sessions that work for another session, announced there (SUB-01, unstable)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import UNSET

from antiphon.agent.open_turn import OpenTurn
from antiphon.agent.worker import HandlerWorker
from antiphon.engine.session import Session
from antiphon.schema import v2
from antiphon.server.subagents import follow


@asynccontextmanager
async def run_subagent(
    parent: HandlerWorker, title: str, *, description: str | None, cancellable: bool, cwd: str | None
) -> AsyncIterator[tuple[HandlerWorker, OpenTurn]]:
    """Run a child inside the block. Cancelled alone, it ends there, and the parent continues.

    The parent announces it before anything names it, and announces its end after its last update.
    """
    registry = parent.registry
    session = await registry.create_subagent(parent.session, cwd or parent.cwd)
    child = session.worker
    assert isinstance(child, HandlerWorker)
    id = v2.SessionId(child.id)
    cancel = v2.SubagentSessionCapabilities(cancel=v2.SessionCancelCapabilities())
    try:
        session.parent, session.cancellable = parent.session, cancellable
        await parent.update(
            v2.SubagentUpdate(
                session_id=id,
                title=title,
                description=UNSET if description is None else description,
                capabilities=cancel if cancellable else UNSET,
                state=v2.StateUpdate(state=v2.State.RUNNING),
                cwd=child.cwd,
            )
        )
        announced = parent.fold.last_seq
        in_background = parent.fold.turn is None
        if in_background:  # PROMPT-V2-44
            parent.report_background(child.id, v2.BackgroundSubagent(session_id=id))
        for client in parent.session.clients():
            follow(registry, client, parent.session, session, announced)
        try:
            async with child.open_turn() as turn:
                yield child, turn
        finally:
            parent.emit_update(v2.SubagentUpdate(session_id=id, state=_end_of(child.fold)))
            if in_background:  # PROMPT-V2-46
                parent.report_background(child.id, None)
    finally:
        registry.retire(session)


def _end_of(fold: Session) -> v2.StateUpdate:
    last = fold.turns.last
    if last is None:
        return v2.StateUpdate(state=v2.State.IDLE)
    return v2.StateUpdate(
        state=v2.State.IDLE, stop_reason=last.stop_reason, error=last.error, usage=last.usage
    )
