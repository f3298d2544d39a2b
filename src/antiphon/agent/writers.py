"""Writers: a message, a tool call and a compaction, written piece by piece."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias

from msgspec import UNSET

from antiphon.agent.commands import run_command
from antiphon.agent.edits import as_blocks, replacement
from antiphon.agent.elicitation import SessionChannel, ask, ask_url, can_ask
from antiphon.agent.scope import Scope
from antiphon.agent.worker import HandlerWorker
from antiphon.bridge.diffs import whole_diff
from antiphon.engine.transcript import WHOLE, MessageType
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.version import META_KEY
from antiphon.server.questions import Channel


class _Named(Protocol):
    @property
    def message_id(self) -> str: ...


Referable: TypeAlias = str | _Named
"""The id of a message, or what has one: a prompt, a message, a `MessageWriter`."""


def reference(about: Referable) -> dict[str, Any]:
    """The `_meta` that names this message."""
    id = about if isinstance(about, str) else about.message_id
    return {META_KEY: {"about": {"messageId": str(id)}}}


ALLOW = v2.PermissionOption(
    option_id=v2.PermissionOptionId("allow"), name="Allow", kind=v2.PermissionOptionKind.ALLOW_ONCE
)
REJECT = v2.PermissionOption(
    option_id=v2.PermissionOptionId("reject"), name="Reject", kind=v2.PermissionOptionKind.REJECT_ONCE
)
CANCELLABLE = v2.ToolCallCapabilities(cancel=v2.ToolCallCancelCapabilities())


class MessageWriter:
    """One message: chunks are appended, and the whole can be replaced."""

    def __init__(
        self,
        worker: HandlerWorker,
        *,
        thought: bool,
        message_id: str | None = None,
        about: Referable | None = None,
    ) -> None:
        self._worker = worker
        self._live = worker.live
        self._type = MessageType.THOUGHT if thought else MessageType.AGENT
        self._due = None if about is None else reference(about)
        """The `_meta` that goes before, or with, the first content."""
        self._chunk = v2.AgentThoughtChunk if thought else v2.AgentMessageChunk
        self.message_id = v2.MessageId(message_id or f"msg_{secrets.token_hex(12)}")

    async def write(self, content: str | v2.ContentBlock) -> None:
        """Append a piece."""
        if self._due is not None:
            due, self._due = self._due, None
            await self._worker.update(WHOLE[self._type](message_id=self.message_id, meta=due))
        if isinstance(content, str):
            live = self._live
            live.stream(self._chunk(message_id=self.message_id, content=v2.TextContent(text=content)))
            if live.ahead:
                await live.durable()
        else:
            await self._worker.update(self._chunk(message_id=self.message_id, content=content))

    async def replace(self, *content: str | v2.ContentBlock) -> None:
        """Put this in place of all that was written."""
        due, self._due = self._due, None
        message = self._worker.fold.message(self._type, self.message_id)
        blocks = as_blocks(content)
        await self._worker.update(replacement(message, self._type, self.message_id, blocks, meta=due))


class ToolCallWriter:
    """One tool call."""

    can_ask = can_ask
    ask = ask
    ask_url = ask_url

    def __init__(self, worker: HandlerWorker, *, foreground: bool = False) -> None:
        self._worker = worker
        self._foreground = foreground
        self._cancellable = False
        self.cancelled = False
        """Whether a client has cancelled it, and it ended by that."""
        self._trace = worker.trace  # of the turn that it was made in, whatever is open later
        self.tool_call_id = v2.ToolCallId(f"call_{secrets.token_hex(12)}")
        self._locations: list[v2.ToolCallLocation] = []
        self._ended = False

    def _channel(self) -> Channel:
        return SessionChannel(self._worker, self.tool_call_id, meta=self._trace)

    async def open(
        self,
        title: str,
        *,
        kind: str,
        raw_input: Any,
        name: str | None,
        cancellable: bool = False,
        pending: bool = False,
        about: Referable | None = None,
    ) -> None:
        self._cancellable = cancellable
        await self._patch(
            capabilities=CANCELLABLE if cancellable else UNSET,
            title=title,
            kind=v2.ToolKind(kind),
            status=v2.ToolCallStatus.PENDING if pending else v2.ToolCallStatus.IN_PROGRESS,
            raw_input=UNSET if raw_input is None else raw_input,
            name=UNSET if name is None else name,
            meta=UNSET if about is None else reference(about),
        )

    async def write(self, content: str | v2.ContentBlock) -> None:
        """Append a piece of output."""
        block = v2.TextContent(text=content) if isinstance(content, str) else content
        chunk = v2.ToolCallContentChunk(tool_call_id=self.tool_call_id, content=v2.Content(content=block))
        await self._worker.update(chunk)

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
        shown = whole_diff(path, old, new)
        await self._worker.update(v2.ToolCallContentChunk(tool_call_id=self.tool_call_id, content=shown))

    async def locate(self, path: str | os.PathLike[str], *, line: int | None = None) -> None:
        """Tell which file it is at, and where in it, counted from 1: clients that follow along open it. A
        path that is not absolute is one in the session's folder (RPC-43)."""
        if line is not None and line < 1:
            raise LocalError(f"line must be >= 1, got {line}")  # TOOL-V1-10
        place = v2.ToolCallLocation(path=_absolute(self._worker.cwd, path), line=line)
        if place not in self._locations:
            self._locations.append(place)
            await self._patch(locations=list(self._locations))

    async def set_raw_output(self, output: Any) -> None:
        """What the tool itself returned, as any JSON value, beside what is shown of it."""
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
        ended = await run_command(
            self._worker,
            self.tool_call_id,
            command,
            cwd=cwd,
            env=env,
            size=size,
            cancellable=cancellable,
        )
        if ended.code != 0 and not ended.cancelled:
            await self.fail()
        return ended.code

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
            self._worker.cancels.calls.pop(self.tool_call_id, None)
            withdrawn = None if self._cancellable else UNSET  # TOOL-V2-11
            await self._patch(status=v2.ToolCallStatus(status), capabilities=withdrawn)
            self._worker.questions.call_ended(self.tool_call_id)

    async def _patch(self, **fields: Any) -> None:
        await self._worker.update(v2.SessionToolCallUpdate(tool_call_id=self.tool_call_id, **fields))


@asynccontextmanager
async def tool_call(
    worker: HandlerWorker,
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
    call, scope = ToolCallWriter(worker, foreground=True), Scope()
    id = call.tool_call_id
    if cancellable:
        worker.cancels.calls[id] = scope.cancel
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
        if not pending:
            worker.questions.call_began(id)
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


def _absolute(folder: str, path: str | os.PathLike[str]) -> str:
    return os.path.normpath(os.path.join(folder, path))


FAILED = "The compaction failed"
"""What a client gets for an exception, whose own text may be private."""


class CompactionWriter:
    def __init__(self, worker: HandlerWorker) -> None:
        self._worker = worker
        self.compaction_id = v2.CompactionId(f"compaction_{secrets.token_hex(12)}")
        self._running = False

    async def write(self, content: str | v2.ContentBlock) -> None:
        """Append a piece of the summary."""
        if not self._running:
            raise LocalError("the compaction has ended")
        block = v2.TextContent(text=content) if isinstance(content, str) else content
        await self._worker.update(v2.CompactionSummaryChunk(compaction_id=self.compaction_id, content=block))

    async def fail(self, error: str = FAILED) -> None:
        """End it as failed, for a reason that users may read."""
        await self._end(v2.CompactionStatus.FAILED, error=error)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._running = True
        in_progress = v2.CompactionStatus.IN_PROGRESS
        try:
            await self._worker.update(
                v2.CompactionUpdate(compaction_id=self.compaction_id, status=in_progress)
            )
            yield
        except (asyncio.CancelledError, GeneratorExit):
            await self._end(v2.CompactionStatus.CANCELLED)
            raise
        except BaseException:
            await self.fail()
            raise
        await self._end(v2.CompactionStatus.COMPLETED)

    async def _end(self, status: v2.CompactionStatus, *, error: str | None = None) -> None:
        if not self._running:
            return
        self._running = False
        if status == v2.CompactionStatus.COMPLETED:
            ended = v2.CompactionUpdate(compaction_id=self.compaction_id, status=status)
        elif error is None:
            # An incomplete summary is taken back: only a complete one counts.
            ended = v2.CompactionUpdate(compaction_id=self.compaction_id, status=status, summary=None)
        else:
            ended = v2.CompactionUpdate(
                compaction_id=self.compaction_id, status=status, summary=None, error=error
            )
        await self._worker.update(ended)
