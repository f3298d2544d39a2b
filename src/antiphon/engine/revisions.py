"""Revisions: the versions of a message that its agent edits, as the journal has them.

The `_meta` of a message has the number of the version it shows, and of the last one. An edit makes the next
version and drops all later ones; undo and redo show another version. So the content of a version is what the
message held when it last had that number, and undo needs nothing but the journal.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from antiphon.engine.events import Event, Updated
from antiphon.engine.transcript import TYPE_OF, WHOLE, Message, MessageType
from antiphon.schema.antiphon.messages import MessageMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.content import ContentBlock
from antiphon.schema.version import META_KEY, ours_in

_WHOLE = tuple(WHOLE.values())
_PLAIN = re.compile(r"[A-Za-z0-9_.:~-]+")
"""Ids that no writer of JSON escapes."""


class Revision(Struct, frozen=True):
    """The version that is shown, and the last one, counted from 0."""

    at: int = 0
    last: int = 0

    def next(self) -> Revision:
        """Return the revision after an edit: undone versions cannot be redone then."""
        return Revision(self.at + 1, self.at + 1)


class Version(Struct, frozen=True):
    """The content of a message."""

    content: list[ContentBlock]
    deleted: bool


def revision_in(meta: Any) -> Revision:
    """Return the revision in a `_meta`, or else the first one."""
    given = read_meta(MessageMeta, meta).revision
    return Revision() if given is None or not 0 <= given.at <= given.last else Revision(given.at, given.last)


def meta_patch(message: Message | None, revision: Revision, *, deleted: bool = False) -> dict[str, Any]:
    """Return the `_meta` of an upsert that shows this revision. A patch replaces our key as a whole (MSG-18),
    so its other entries are repeated."""
    kept = {} if message is None else dict(ours_in(message.meta))
    kept.pop("deleted", None)
    kept["revision"] = {"at": revision.at, "last": revision.last}
    if deleted:
        kept["deleted"] = True
    return {META_KEY: kept}


class VersionSearch:
    """Looks for one version of a message in a journal, event by event. Holds no more than that version and
    the message as it grows."""

    def __init__(self, type: MessageType, id: str, wanted: int) -> None:
        self._type = type
        self._id = id
        self._wanted = wanted
        self._named = id.encode() if _PLAIN.fullmatch(id) else b""
        """Bytes that every update of the message contains; empty if the id may be escaped."""
        self._message: Message | None = None
        self.found: Version | None = None
        """The content that the message had with the number, last."""

    def read(self, event: Event) -> None:
        """Take in the next event."""
        body = event.body
        if not isinstance(body, Updated) or self._named not in bytes(body.raw):
            return
        update = _update(body)
        if update is None or TYPE_OF.get(type(update)) is not self._type or update.message_id != self._id:
            return
        if self._message is None:
            self._message = Message(self._type, update.message_id, position=event.seq)
            if isinstance(update, _WHOLE):
                self._message.patch(update)
            else:
                self._message.append(update.content)
            return
        if not isinstance(update, _WHOLE):
            self._message.append(update.content)
            return
        if revision_in(self._message.meta).at == self._wanted:
            self.found = Version(self._message.content, self._message.deleted)
        self._message.patch(update)


def _update(body: Updated) -> Any:
    try:
        return body.update
    except Malformed:
        return None
