"""Edits of messages by their ids: replaced, extended, deleted, and the undo and redo of that.

Each change is a published upsert of the message, so every client follows it. The journal holds all versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from antiphon.agent.worker import HandlerWorker
from antiphon.engine.annotations import Annotation
from antiphon.engine.revisions import Revision, Version, VersionSearch, meta_patch, revision_in
from antiphon.engine.transcript import WHOLE, Message, MessageType
from antiphon.errors import LocalError
from antiphon.schema import v2


def replacement(
    message: Message | None,
    type: MessageType,
    message_id: str,
    blocks: Sequence[v2.ContentBlock],
    *,
    meta: dict[str, Any] | None = None,
) -> v2.UserMessage | v2.AgentMessage | v2.AgentThought:
    """The upsert that gives a message new content. It is an edit where the message had some, or was deleted.
    `meta` goes with the first content."""
    fresh = message is None or (not message.content and not message.deleted)
    patch: dict[str, Any] | UnsetType = meta or UNSET
    if message is not None and not fresh:
        patch = meta_patch(message, revision_in(message.meta).next())
    return WHOLE[type](message_id=v2.MessageId(message_id), content=list(blocks), meta=patch)


def as_blocks(content: Sequence[str | v2.ContentBlock]) -> list[v2.ContentBlock]:
    return [v2.TextContent(text=one) if isinstance(one, str) else one for one in content]


_CHUNK: dict[MessageType, type[v2.UserMessageChunk | v2.AgentMessageChunk | v2.AgentThoughtChunk]] = {
    MessageType.USER: v2.UserMessageChunk,
    MessageType.AGENT: v2.AgentMessageChunk,
    MessageType.THOUGHT: v2.AgentThoughtChunk,
}


class MessageEdits:
    """Changes messages of a session by their ids.

    `role` tells messages apart that share an id: `user`, `agent` or `thought`. Without it the agent's message
    is meant, then the user's, then the thought."""

    def __init__(self, worker: HandlerWorker) -> None:
        self._worker = worker

    async def replace(
        self, message_id: str, *content: str | v2.ContentBlock, role: str | None = None
    ) -> None:
        """Replace the content of a message that was sent before, in whatever turn. An id that is not known is
        that of a new message of the agent's."""
        message = self._find(message_id, role)
        type = MessageType(role or MessageType.AGENT) if message is None else message.type
        await self._worker.update(replacement(message, type, message_id, as_blocks(content)))

    async def append(self, message_id: str, *content: str | v2.ContentBlock, role: str | None = None) -> None:
        """Append to a message that was sent before, as one edit that can be undone."""
        message = self._get(message_id, role)
        meta = meta_patch(message, revision_in(message.meta).next())
        await self._worker.update(WHOLE[message.type](message_id=message.id, meta=meta))
        for block in as_blocks(content):
            await self._worker.update(_CHUNK[message.type](message_id=message.id, content=block))

    async def delete(self, message_id: str, *, role: str | None = None) -> None:
        """Delete a message: its content is gone for every client, and a mark stays in its place."""
        message = self._get(message_id, role)
        if not message.deleted:
            await self._show(message, revision_in(message.meta).next(), Version([], deleted=True))

    async def undo(self, message_id: str, *, role: str | None = None) -> bool:
        """Undo the last edit of a message, also a deletion; whether there was one. The version before it is
        read from the journal. A fork has no versions older than itself."""
        return await self._go(message_id, role, -1)

    async def redo(self, message_id: str, *, role: str | None = None) -> bool:
        """Redo the edit that was undone last, unless the message was edited since; whether there was one."""
        return await self._go(message_id, role, 1)

    def annotations(self, message_id: str, *, role: str | None = None) -> list[Annotation]:
        """The reactions and notes that clients have put on a message."""
        return self._get(message_id, role).annotations

    # --- how it is done ----------------------------------------------------------------------------

    async def _go(self, message_id: str, role: str | None, step: int) -> bool:
        message = self._get(message_id, role)
        while True:
            revision = revision_in(message.meta)
            wanted = Revision(revision.at + step, revision.last)
            if not 0 <= wanted.at <= wanted.last:
                return False
            version = await self._version(message, wanted.at)
            if revision_in(message.meta) != revision:
                continue  # it was edited while the journal was read
            if version is None:
                return False
            await self._show(message, wanted, version)
            return True

    async def _version(self, message: Message, number: int) -> Version | None:
        search = VersionSearch(message.type, message.id, number)
        cursor, last = message.position - 1, self._worker.fold.last_seq
        await self._worker.live.durable(last)
        while cursor < last:
            events = await self._worker.live.after(cursor)
            for event in events:
                search.read(event)
            cursor = events[-1].seq
        return search.found

    async def _show(self, message: Message, revision: Revision, version: Version) -> None:
        meta = meta_patch(message, revision, deleted=version.deleted)
        upsert = WHOLE[message.type](message_id=message.id, content=version.content, meta=meta)
        await self._worker.update(upsert)

    def _find(self, message_id: str, role: str | None) -> Message | None:
        if role is None:
            return self._worker.fold.transcript.find(message_id)
        return self._worker.fold.message(MessageType(role), message_id)

    def _get(self, message_id: str, role: str | None) -> Message:
        message = self._find(message_id, role)
        if message is None:
            raise LocalError(f"this session has no message with the id {message_id!r}")
        return message
