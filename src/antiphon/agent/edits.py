"""Edits of messages by their ids: replaced, extended, deleted, and the undo and redo of that.

Each change is a published upsert of the message, so every client follows it. The journal holds all versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from antiphon.agent.worker import HandlerWorker
from antiphon.engine.revisions import Revision, Version, VersionSearch, meta_patch, revision_in
from antiphon.engine.session import Session
from antiphon.engine.transcript import CHUNK, WHOLE, Message, MessageType
from antiphon.errors import LocalError
from antiphon.live.session import LiveSession
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


def get_message(fold: Session, message_id: str, role: str | None) -> Message:
    message = _find(fold, message_id, role)
    if message is None:
        raise LocalError(f"this session has no message with the id {message_id!r}")
    return message


def _find(fold: Session, message_id: str, role: str | None) -> Message | None:
    if role is None:
        return fold.transcript.find(message_id)
    return fold.message(MessageType(role), message_id)


async def replace_content(
    worker: HandlerWorker, message_id: str, role: str | None, content: Sequence[str | v2.ContentBlock]
) -> None:
    message = _find(worker.fold, message_id, role)
    type = MessageType(role or MessageType.AGENT) if message is None else message.type
    await worker.update(replacement(message, type, message_id, as_blocks(content)))


async def append_content(
    worker: HandlerWorker, message: Message, content: Sequence[str | v2.ContentBlock]
) -> None:
    meta = meta_patch(message, revision_in(message.meta).next())
    await worker.update(WHOLE[message.type](message_id=message.id, meta=meta))
    for block in as_blocks(content):
        await worker.update(CHUNK[message.type](message_id=message.id, content=block))


async def delete_content(worker: HandlerWorker, message: Message) -> None:
    if not message.deleted:
        await _show(worker, message, revision_in(message.meta).next(), Version([], deleted=True))


async def change_revision(worker: HandlerWorker, message: Message, step: int) -> bool:
    """Undo the last edit of a message (-1), or redo the one that was undone last (1). Return whether there
    was one."""
    while True:
        revision = revision_in(message.meta)
        wanted = Revision(revision.at + step, revision.last)
        if not 0 <= wanted.at <= wanted.last:
            return False
        version = await _read_version(worker.live, message, wanted.at)
        if revision_in(message.meta) != revision:
            continue  # it was edited while the journal was read
        if version is None:
            return False
        await _show(worker, message, wanted, version)
        return True


async def _show(worker: HandlerWorker, message: Message, revision: Revision, version: Version) -> None:
    meta = meta_patch(message, revision, deleted=version.deleted)
    await worker.update(WHOLE[message.type](message_id=message.id, content=version.content, meta=meta))


async def _read_version(live: LiveSession, message: Message, number: int) -> Version | None:
    search = VersionSearch(message.type, message.id, number)
    cursor, last = message.position - 1, live.fold.last_seq
    await live.durable(last)
    while cursor < last:
        events = await live.after(cursor)
        for event in events:
            search.read(event)
        cursor = events[-1].seq
    return search.found
