"""Writers: a message and the summary of a compaction, written piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias

from antiphon.agent.edits import as_blocks, replacement
from antiphon.agent.worker import HandlerWorker
from antiphon.engine.transcript import CHUNK, WHOLE, MessageType
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.updates import TextType, text_chunk
from antiphon.schema.version import META_KEY
from antiphon.server.ids import new_id


class _Named(Protocol):
    @property
    def message_id(self) -> str: ...


Referable: TypeAlias = str | _Named
"""The id of a message, or what has one: a prompt, a message, a `MessageWriter`."""


def reference(about: Referable) -> dict[str, Any]:
    """The `_meta` that names this message."""
    id = about if isinstance(about, str) else about.message_id
    return {META_KEY: {"about": {"messageId": str(id)}}}


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
        self._chunk = CHUNK[self._type]
        self._text_type: TextType = "agent_thought_chunk" if thought else "agent_message_chunk"
        self.message_id = v2.MessageId(message_id or new_id("msg"))

    async def write(self, content: str | v2.ContentBlock) -> None:
        """Append a piece."""
        if self._due is not None:
            due, self._due = self._due, None
            await self._worker.update(WHOLE[self._type](message_id=self.message_id, meta=due))
        live = self._live
        if isinstance(content, str):
            text = text_chunk(self._text_type, self.message_id, content)
            if text is not None:
                live.stream_text((text,))
                if live.ahead:
                    await live.durable()
                return
            content = v2.TextContent(text=content)
        await self._worker.update(self._chunk(message_id=self.message_id, content=content))

    async def replace(self, *content: str | v2.ContentBlock) -> None:
        """Replace everything that was written."""
        due, self._due = self._due, None
        message = self._worker.fold.message(self._type, self.message_id)
        blocks = as_blocks(content)
        await self._worker.update(replacement(message, self._type, self.message_id, blocks, meta=due))


FAILED = "The compaction failed"
"""What a client gets for an exception, whose own text may be private."""


class CompactionWriter:
    def __init__(self, worker: HandlerWorker) -> None:
        self._worker = worker
        self.compaction_id = v2.CompactionId(new_id("compaction"))
        self._running = False

    async def write(self, content: str | v2.ContentBlock) -> None:
        """Append a piece of the summary."""
        if not self._running:
            raise LocalError("the compaction has ended")
        (block,) = as_blocks([content])
        await self._worker.update(v2.CompactionSummaryChunk(compaction_id=self.compaction_id, content=block))

    async def fail(self, error: str = FAILED) -> None:
        """End it as failed, for a reason that users may read."""
        # An incomplete summary is taken back: only a complete one counts.
        await self._end(v2.CompactionStatus.FAILED, summary=None, error=error)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[CompactionWriter]:
        self._running = True
        try:
            await self._update(v2.CompactionStatus.IN_PROGRESS)
            yield self
        except (asyncio.CancelledError, GeneratorExit):
            await self._end(v2.CompactionStatus.CANCELLED, summary=None)
            raise
        except BaseException:
            await self.fail()
            raise
        await self._end(v2.CompactionStatus.COMPLETED)

    async def _end(self, status: v2.CompactionStatus, **fields: Any) -> None:
        if self._running:
            self._running = False
            await self._update(status, **fields)

    async def _update(self, status: v2.CompactionStatus, **fields: Any) -> None:
        update = v2.CompactionUpdate(compaction_id=self.compaction_id, status=status, **fields)
        await self._worker.update(update)
