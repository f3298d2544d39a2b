"""Running a command for a tool call: a real process, its output streamed as a terminal, never left behind."""

from __future__ import annotations

import base64
import secrets
import shlex
from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct

from antiphon.agent.worker import HandlerWorker
from antiphon.errors import SpawnFailed
from antiphon.schema import v2
from antiphon.server.checks import check_update
from antiphon.transports.processes.process import Process, signal_name

CANCELLABLE = v2.TerminalCapabilities(cancel=v2.TerminalCancelCapabilities())


class Ended(Struct, frozen=True):
    """How a command ended: its code, below zero for a signal, and whether a client cancelled it."""

    code: int
    cancelled: bool = False


async def run_command(
    worker: HandlerWorker,
    tool_call_id: v2.ToolCallId,
    command: Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
    size: tuple[int, int] | None,
    cancellable: bool,
) -> Ended:
    """Run it to its end. Cancelled, its whole process group is killed first."""
    terminal_id = v2.TerminalId(f"term_{secrets.token_hex(12)}")
    opened = v2.TerminalUpdate(
        terminal_id=terminal_id,
        command=shlex.join(command),
        cwd=cwd or worker.cwd,
        size=UNSET if size is None else v2.TerminalSize(cols=size[0], rows=size[1]),
        capabilities=v2.TerminalCapabilities(cancel=v2.TerminalCancelCapabilities())
        if cancellable
        else UNSET,
    )
    shown = v2.ToolCallContentChunk(tool_call_id=tool_call_id, content=v2.Terminal(terminal_id=terminal_id))
    check_update(opened)  # TERMV2-07: before anything runs
    try:
        process = Process(command, cwd=cwd or worker.cwd, env=env, size=size)
    except SpawnFailed:
        gone = v2.TerminalExitStatus(exit_code=127)
        for update in (opened, shown, _exited(terminal_id, gone, cancellable=cancellable)):
            await worker.update(update)
        raise
    cancelled = False

    def cancel() -> None:
        nonlocal cancelled
        cancelled = True
        process.terminate()

    if cancellable:
        worker.cancels.terminals[terminal_id] = cancel
    try:
        await worker.update(opened)
        await worker.update(shown)
        while data := await process.read():
            encoded = base64.b64encode(data).decode()  # TERMV2-05: each chunk stands on its own
            await worker.update(v2.TerminalOutputChunk(terminal_id=terminal_id, data=encoded))
        await process.wait()
    finally:
        worker.cancels.terminals.pop(terminal_id, None)
        await process.aclose()
        code = await process.wait()
        await worker.update(_exited(terminal_id, _status(code), cancellable=cancellable))
    return Ended(code, cancelled)


def _exited(
    terminal_id: v2.TerminalId, status: v2.TerminalExitStatus, *, cancellable: bool
) -> v2.TerminalUpdate:
    withdrawn = None if cancellable else UNSET  # TERMV2-12
    return v2.TerminalUpdate(terminal_id=terminal_id, exit_status=status, capabilities=withdrawn)


def _status(code: int) -> v2.TerminalExitStatus:
    signal = signal_name(code)
    return v2.TerminalExitStatus(exit_code=None if signal else code, signal=signal)
