"""Upserts: the update that gives a message its content, for the first time or as an edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from antiphon.engine.revisions import meta_patch, revision_in
from antiphon.engine.transcript import WHOLE, Message, MessageType
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
