"""Running a command for a tool call: a real process, its output streamed as a terminal, never left behind."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import secrets
import shlex
import signal
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from antiphon.errors import SpawnFailed
from antiphon.schema import v2
from antiphon.transports.orphans import die_with_us

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession

READ_SIZE = 32 * 1024


async def run_command(
    session: AgentSession,
    tool_call_id: v2.ToolCallId,
    command: Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
) -> int:
    """Run it and return its exit code. Cancelled, its whole process group is killed first."""
    terminal_id = v2.TerminalId(f"term_{secrets.token_hex(12)}")
    shown = v2.Terminal(terminal_id=terminal_id)
    await session.update(
        v2.TerminalUpdate(terminal_id=terminal_id, command=shlex.join(command), cwd=cwd or session.cwd)
    )
    await session.update(v2.ToolCallContentChunk(tool_call_id=tool_call_id, content=shown))
    try:
        with warnings.catch_warnings():
            # Forking beside threads is safe here: the child calls prctl and nothing else.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd or session.cwd,
                env=None if env is None else {**os.environ, **env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_us(),
            )
    except OSError as error:
        gone = v2.TerminalExitStatus(exit_code=127)
        await session.update(v2.TerminalUpdate(terminal_id=terminal_id, exit_status=gone))
        raise SpawnFailed(f"cannot start {command[0]!r}: {error.strerror or error}") from error
    assert process.stdout is not None
    try:
        while data := await process.stdout.read(READ_SIZE):
            encoded = base64.b64encode(data).decode()  # TERMV2-05: each chunk stands on its own
            await session.update(v2.TerminalOutputChunk(terminal_id=terminal_id, data=encoded))
        code = await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = await process.wait()
        await session.update(v2.TerminalUpdate(terminal_id=terminal_id, exit_status=_status(code)))
    return code


def _status(code: int) -> v2.TerminalExitStatus:
    if code >= 0:
        return v2.TerminalExitStatus(exit_code=code)
    return v2.TerminalExitStatus(signal=signal.Signals(-code).name)
