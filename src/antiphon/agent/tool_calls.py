"""ToolCallWriter: a tool call of a turn, or background work that outlives its turn.

Background work is listed on every state update while it runs (PROMPT-V2-40, -44..46). A cancel of the turn
does not touch it; it ends with the session (SESS-39).
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec import UNSET

from antiphon.agent.edits import as_blocks
from antiphon.agent.elicitation import SessionChannel, ask, ask_url, can_ask
from antiphon.agent.scope import Scope
from antiphon.agent.worker import HandlerWorker
from antiphon.agent.writers import Referable, reference
from antiphon.bridge.diffs import whole_diff
from antiphon.errors import LocalError, SpawnFailed
from antiphon.schema import v2
from antiphon.server.checks import check_update
from antiphon.server.ids import new_id
from antiphon.server.questions import Channel
from antiphon.transports.processes.process import Process, signal_name

logger = logging.getLogger("antiphon.agent")

ALLOW = v2.PermissionOption(
    option_id=v2.PermissionOptionId("allow"), name="Allow", kind=v2.PermissionOptionKind.ALLOW_ONCE
)
REJECT = v2.PermissionOption(
    option_id=v2.PermissionOptionId("reject"), name="Reject", kind=v2.PermissionOptionKind.REJECT_ONCE
)
CANCELLABLE = v2.ToolCallCapabilities(cancel=v2.ToolCallCancelCapabilities())
TERMINAL_CANCELLABLE = v2.TerminalCapabilities(cancel=v2.TerminalCancelCapabilities())


class ToolCallWriter:
    """One tool call."""

    can_ask = can_ask
    ask = ask
    ask_url = ask_url

    def __init__(
        self,
        worker: HandlerWorker,
        title: str,
        *,
        kind: str,
        raw_input: Any = None,
        name: str | None = None,
        cancellable: bool = False,
        pending: bool = False,
        about: Referable | None = None,
    ) -> None:
        """Make a tool call that no client sees before `open`."""
        self._worker = worker
        self._cancellable = cancellable
        self._foreground = False
        """Whether it works in a turn, and not in the background."""
        self.cancelled = False
        """Whether a client has cancelled it, and it ended by that."""
        self._trace = worker.trace  # of the turn that it was made in, whatever is open later
        self.tool_call_id = v2.ToolCallId(new_id("call"))
        self._opening = v2.SessionToolCallUpdate(
            tool_call_id=self.tool_call_id,
            capabilities=CANCELLABLE if cancellable else UNSET,
            title=title,
            kind=v2.ToolKind(kind),
            status=v2.ToolCallStatus.PENDING if pending else v2.ToolCallStatus.IN_PROGRESS,
            raw_input=UNSET if raw_input is None else raw_input,
            name=UNSET if name is None else name,
            meta=UNSET if about is None else reference(about),
        )
        self._locations: list[v2.ToolCallLocation] = []
        self._ended = False

    def _channel(self) -> Channel:
        return SessionChannel(self._worker, self.tool_call_id, meta=self._trace)

    async def open(self, scope: Scope, *, foreground: bool) -> None:
        """Show it to clients. If a client may cancel it, a cancel cancels `scope`."""
        self._foreground = foreground
        if self._cancellable:
            self._worker.cancel_calls[self.tool_call_id] = scope.cancel
        await self._worker.update(self._opening)
        if foreground and self._opening.status == v2.ToolCallStatus.IN_PROGRESS:
            self._worker.questions.call_began(self.tool_call_id)

    async def write(self, content: str | v2.ContentBlock) -> None:
        """Append a piece of output."""
        (block,) = as_blocks([content])
        await self._append(v2.Content(content=block))

    async def request_permission(
        self, *, options: Sequence[v2.PermissionOption] = (ALLOW, REJECT), title: str | None = None
    ) -> bool:
        """Ask whether it may be done; True only if an option that allows was chosen."""
        call = self._worker.fold.tools.get(self.tool_call_id)
        known = title or (None if call is None else call.title) or "Permission required"
        request = v2.RequestPermissionRequest(
            session_id=v2.SessionId(self._worker.id),
            title=known,
            options=list(options),
            subject=v2.ToolCallPermissionSubject(tool_call=v2.ToolCallUpdate(tool_call_id=self.tool_call_id)),
            meta=self._trace or None,
        )
        outcome = await self._worker.questions.permission(request, tool_call_id=self.tool_call_id)
        if not isinstance(outcome, v2.SelectedPermissionOutcome):
            return False
        return any(
            option.option_id == outcome.option_id and option.kind.startswith("allow") for option in options
        )

    async def diff(self, path: str, *, old: str | None, new: str) -> None:
        """Show a change to a file; `old` is None for a new one."""
        await self._append(whole_diff(path, old, new))

    async def locate(self, path: str | os.PathLike[str], *, line: int | None = None) -> None:
        """Show which file it works on, and at which line, counted from 1; clients that follow open it. A
        relative path is one in the session's folder (RPC-43)."""
        if line is not None and line < 1:
            raise LocalError(f"line must be >= 1, got {line}")  # TOOL-V1-10
        place = v2.ToolCallLocation(path=_absolute(self._worker.cwd, path), line=line)
        if place not in self._locations:
            self._locations.append(place)
            await self._patch(locations=list(self._locations))

    async def set_raw_output(self, output: Any) -> None:
        """Set what the tool itself returned, as any JSON value. It does not replace what is shown."""
        await self._patch(raw_output=output)

    async def run(
        self,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] | None = None,
        cancellable: bool = False,
    ) -> int:
        """Run a command, its output streamed as a terminal; a code other than 0 makes the call failed.

        With `size`, columns and rows, it writes to a terminal of that size, and otherwise to a pipe. Where it
        is `cancellable`, a client may end it; that alone does not make the call failed (TERMV2-11)."""
        worker, folder = self._worker, cwd or self._worker.cwd
        terminal_id = v2.TerminalId(new_id("term"))
        opened = v2.TerminalUpdate(
            terminal_id=terminal_id,
            command=shlex.join(command),
            cwd=folder,
            size=UNSET if size is None else v2.TerminalSize(cols=size[0], rows=size[1]),
            capabilities=TERMINAL_CANCELLABLE if cancellable else UNSET,
        )

        async def show_exit(*, code: int | None, signal: str | None = None) -> None:
            status = v2.TerminalExitStatus(exit_code=code, signal=signal)
            withdrawn = None if cancellable else UNSET  # TERMV2-12
            update = v2.TerminalUpdate(terminal_id=terminal_id, exit_status=status, capabilities=withdrawn)
            await worker.update(update)

        check_update(opened)  # TERMV2-07: before anything runs
        try:
            process = Process(command, cwd=folder, env=env, size=size)
        except SpawnFailed:
            await worker.update(opened)
            await self._append(v2.Terminal(terminal_id=terminal_id))
            await show_exit(code=127)
            raise
        cancelled = False

        def cancel() -> None:
            nonlocal cancelled
            cancelled = True
            process.terminate()

        if cancellable:
            worker.cancel_terminals[terminal_id] = cancel
        try:
            await worker.update(opened)
            await self._append(v2.Terminal(terminal_id=terminal_id))
            while data := await process.read():
                encoded = base64.b64encode(data).decode()  # TERMV2-05: each chunk is complete by itself
                await worker.update(v2.TerminalOutputChunk(terminal_id=terminal_id, data=encoded))
            await process.wait()
        finally:  # a cancelled run leaves no process behind
            worker.cancel_terminals.pop(terminal_id, None)
            await process.aclose()
            code = await process.wait()
            signal = signal_name(code)
            await show_exit(code=None if signal else code, signal=signal)
        if code != 0 and not cancelled:
            await self.fail()
        return code

    async def pause(self) -> None:
        """It waits for something, and nothing of it runs."""
        await self._set_status(v2.ToolCallStatus.PAUSED, runs=False)

    async def resume(self) -> None:
        """Continue after a pause (TOOL-V2-08), or begin a pending call (PROMPT-V1-09)."""
        await self._set_status(v2.ToolCallStatus.IN_PROGRESS, runs=True)

    async def _set_status(self, status: v2.ToolCallStatus, *, runs: bool) -> None:
        if self._ended:
            raise LocalError("this tool call has ended")
        await self._patch(status=status)
        if self._foreground:
            note = self._worker.questions.call_began if runs else self._worker.questions.call_ended
            note(self.tool_call_id)

    async def fail(self) -> None:
        """End it as failed."""
        await self.end("failed")

    async def end(self, status: str) -> None:
        if not self._ended:
            self._ended = True
            self._worker.cancel_calls.pop(self.tool_call_id, None)
            withdrawn = None if self._cancellable else UNSET  # TOOL-V2-11
            await self._patch(status=v2.ToolCallStatus(status), capabilities=withdrawn)
            self._worker.questions.call_ended(self.tool_call_id)

    async def _append(self, content: v2.ToolCallContent) -> None:
        chunk = v2.ToolCallContentChunk(tool_call_id=self.tool_call_id, content=content)
        await self._worker.update(chunk)

    async def _patch(self, **fields: Any) -> None:
        await self._worker.update(v2.SessionToolCallUpdate(tool_call_id=self.tool_call_id, **fields))


def _absolute(folder: str, path: str | os.PathLike[str]) -> str:
    return os.path.normpath(os.path.join(folder, path))


@asynccontextmanager
async def run_in_turn(call: ToolCallWriter) -> AsyncIterator[ToolCallWriter]:
    """Run the block as the work of a tool call, which ends with it."""
    scope = Scope()
    scope.enter()
    try:
        await call.open(scope, foreground=True)
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


Work = Callable[[ToolCallWriter], Awaitable[None]]


async def start_background(worker: HandlerWorker, call: ToolCallWriter, work: Work) -> None:
    """Start the work of a tool call, which outlives the turn."""
    scope = Scope()
    await call.open(scope, foreground=False)
    worker.background[call.tool_call_id] = v2.BackgroundToolCall(tool_call_id=call.tool_call_id)
    worker.emit_background()
    worker.session.tasks.start_soon(_run_in_background(worker, call, work, scope))


async def _run_in_background(worker: HandlerWorker, call: ToolCallWriter, work: Work, scope: Scope) -> None:
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
