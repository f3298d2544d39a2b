"""Annotations: reactions and notes of clients on messages.

An annotation is an update of our own in the journal, which a reader that does not know it skips. Only clients
that asked for these updates get them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from antiphon.engine.transcript import Message, MessageType, Transcript
from antiphon.engine.who import clean_who
from antiphon.schema.antiphon import messages as wire
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.readers import read_update
from antiphon.schema.v2.identifiers import MessageId
from antiphon.schema.wire import Unknown

ANNOTATION: Final = "_antiphon_annotation"
"""The update that adds an annotation, or replaces one of the same id."""
ANNOTATION_REMOVED: Final = "_antiphon_annotation_removed"
"""The update that removes an annotation."""
ANNOTATION_UPDATES: Final = frozenset({ANNOTATION, ANNOTATION_REMOVED})

LONGEST_REACTION = 64
LONGEST_NOTE = 4096
MOST_PER_MESSAGE = 256
MOST_PER_SESSION = 4096
_JOINERS = {"\u200d": None, **{chr(tag): None for tag in range(0xE0020, 0xE0080)}}
_JOINED = str.maketrans(_JOINERS)
"""Characters that join several signs into one emoji. They are not printable themselves."""


class Annotation(msgspec.Struct, eq=False):
    """One reaction or note on a message. `by` is its client, `at` its time (RFC 3339)."""

    id: str
    message_id: str
    role: MessageType
    """The role of the message: ids are unique within one role only (MSG-08)."""
    kind: wire.AnnotationKind
    value: str
    by: Who
    at: str
    position: int = 0
    key: str = ""

    def __post_init__(self) -> None:
        self.key = f"annotation/{self.id}"

    def materialize(self) -> Unknown:
        added = wire.AnnotationUpdate(
            annotation_id=self.id,
            message_id=self.message_id,
            role=wire.MessageRole(self.role),
            kind=self.kind,
            value=self.value,
            by=self.by,
            at=self.at,
        )
        return Unknown(msgspec.to_builtins(added))

    def removal(self) -> Unknown:
        """The update that removes it."""
        removed = wire.AnnotationRemovedUpdate(
            annotation_id=self.id, message_id=self.message_id, role=wire.MessageRole(self.role)
        )
        return Unknown(msgspec.to_builtins(removed))

    def __eq__(self, other: object) -> bool:
        return self.materialize() == other.materialize() if isinstance(other, Annotation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Annotation({self.kind} {self.value!r} on {self.message_id!r} by {self.by.name!r})"


class Annotations:
    """All annotations of a session, by id. Each is also listed in its message."""

    __slots__ = ("_by_id", "_transcript")

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._by_id: dict[str, Annotation] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, id: str) -> Annotation | None:
        return self._by_id.get(id)

    def add(self, update: Unknown, position: int) -> Annotation | None:
        """Fold `_antiphon_annotation`. Return `None` if it is malformed or names an unknown message."""
        made = read_annotation(update, position=position)
        message = None if made is None else self._message(made)
        if made is None or message is None:
            return None
        known = self._by_id.get(made.id)
        if known is not None:
            if (known.role, known.message_id) != (made.role, made.message_id):
                return None
            made.position = known.position
        self._by_id[made.id] = message.annotated[made.id] = made
        return made

    def remove(self, update: Unknown) -> Annotation | None:
        """Fold `_antiphon_annotation_removed`; return the removed annotation."""
        gone = self._by_id.pop(str(update.get("annotationId")), None)
        message = None if gone is None else self._message(gone)
        if gone is not None and message is not None:
            message.annotated.pop(gone.id, None)
        return gone

    def _message(self, annotation: Annotation) -> Message | None:
        return self._transcript.get(annotation.role, annotation.message_id)


def read_annotation(update: Unknown, *, position: int = 0) -> Annotation | None:
    """Read the annotation in an update; return `None` if it is malformed."""
    added = read_update(wire.AnnotationUpdate, update)
    by = None if added is None else clean_who(added.by)
    if added is None or by is None:
        return None
    longest = LONGEST_NOTE if added.kind is wire.AnnotationKind.NOTE else LONGEST_REACTION
    return Annotation(
        added.annotation_id,
        message_id=MessageId(added.message_id),
        role=MessageType(added.role),
        kind=added.kind,
        value=added.value[:longest],
        by=by,
        at=added.at,
        position=position,
    )


def check_value(kind: wire.AnnotationKind, value: Any) -> str:
    """Read the value of an annotation as a client gave it. Raises `ValueError`, which names what was
    expected."""
    longest = LONGEST_NOTE if kind is wire.AnnotationKind.NOTE else LONGEST_REACTION
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise ValueError(f"`value` of a {kind} must be a string of 1 to {longest} characters")
    if kind is wire.AnnotationKind.REACTION and (
        not value.translate(_JOINED).isprintable() or value != value.strip()
    ):
        raise ValueError("`value` of a reaction must be printable and without spaces around it")
    return value
