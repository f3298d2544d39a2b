"""What is added to messages: their senders, and reactions and notes of clients."""

from __future__ import annotations

from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.prompts import AttachedSession, OperationId
from antiphon.schema.wire import Forgiving, OwnEnum, OwnUpdate, Wire

AnnotationId = str
"""The id of the annotation."""
AnnotatedMessage = str
"""The id of the message."""
AnnotationValue = str
"""The sign or the text."""


class AnnotationKind(OwnEnum):
    """`reaction` or `note`."""

    REACTION = "reaction"
    """A sign, such as an emoji. A client has each sign at most once on a message."""
    NOTE = "note"
    """A text."""


class MessageRole(OwnEnum):
    """The role of the message: `user`, `agent` or `thought`. Ids are unique within one role only."""

    USER = "user"
    AGENT = "agent"
    THOUGHT = "thought"


class AnnotateRequest(Wire, frozen=True, kw_only=True):
    """Put a reaction or a note on a message."""

    session_id: AttachedSession
    message_id: AnnotatedMessage
    role: MessageRole | None = None
    kind: AnnotationKind
    value: AnnotationValue
    operation_id: OperationId | None = None
    by: Who | None = None  #: The author, if a hub passes the annotation on. A hub itself ignores it.


class AnnotateResponse(Wire, frozen=True, kw_only=True):
    annotation_id: AnnotationId


class RemoveAnnotationRequest(Wire, frozen=True, kw_only=True):
    """Remove an annotation of this client."""

    session_id: AttachedSession
    annotation_id: AnnotationId
    operation_id: OperationId | None = None
    by: Who | None = None  #: The author, if a hub passes the removal on. A hub itself ignores it.


class AnnotationUpdate(OwnUpdate, frozen=True, kw_only=True, tag="_antiphon_annotation"):
    """An annotation was added, or is replayed behind its message."""

    annotation_id: AnnotationId
    message_id: AnnotatedMessage
    role: MessageRole
    kind: AnnotationKind
    value: AnnotationValue
    by: Who
    at: str  #: When it was made (RFC 3339).


class AnnotationRemovedUpdate(OwnUpdate, frozen=True, kw_only=True, tag="_antiphon_annotation_removed"):
    """An annotation was removed."""

    annotation_id: AnnotationId
    message_id: AnnotatedMessage
    role: MessageRole


class MessageDeletedUpdate(OwnUpdate, frozen=True, kw_only=True, tag="_antiphon_message_deleted"):
    """The agent has deleted a message."""

    message_id: AnnotatedMessage
    role: MessageRole


class MessageMeta(Forgiving, frozen=True, kw_only=True):
    """In a message or tool call."""

    sender: Who | None = None
    """The client that sent the prompt, on `user_message` in v2, on the first `user_message_chunk` of the
    message in v1."""
