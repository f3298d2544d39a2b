"""CompactionWriter: one compaction of a session's context, from its start to its one end (COMP-05)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from antiphon.agent.worker import HandlerWorker
from antiphon.errors import LocalError
from antiphon.schema import v2

FAILED = "The compaction failed"
"""All that a client is told of an exception: what is in it may be private."""


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
            # What was written of a summary that nobody will get is taken back: only a complete one counts.
            ended = v2.CompactionUpdate(compaction_id=self.compaction_id, status=status, summary=None)
        else:
            ended = v2.CompactionUpdate(
                compaction_id=self.compaction_id, status=status, summary=None, error=error
            )
        await self._worker.update(ended)
