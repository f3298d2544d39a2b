"""Additions to messages and questions: senders, reactions, notes, and answers by id."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.prompts import AttachedSession, OperationId
from antiphon.schema.wire import AntiphonUpdate, ClosedEnum, Forgiving, Wire

AnnotationId = str
"""The id of the annotation."""
AnnotatedMessage = str
"""The id of the message."""
AnnotationValue = str
"""The sign or the text."""


class AnnotationKind(ClosedEnum):
    """`reaction` or `note`."""

    REACTION = "reaction"
    """A sign, such as an emoji. A client has each sign at most once on a message."""
    NOTE = "note"
    """A text."""


class MessageRole(ClosedEnum):
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


class AnnotationUpdate(AntiphonUpdate, frozen=True, kw_only=True, tag="_antiphon_annotation"):
    """An annotation was added, or is replayed after its message."""

    annotation_id: AnnotationId
    message_id: AnnotatedMessage
    role: MessageRole
    kind: AnnotationKind
    value: AnnotationValue
    by: Who
    at: str  #: When it was made (RFC 3339).


class AnnotationRemovedUpdate(AntiphonUpdate, frozen=True, kw_only=True, tag="_antiphon_annotation_removed"):
    """An annotation was removed."""

    annotation_id: AnnotationId
    message_id: AnnotatedMessage
    role: MessageRole


class MessageDeletedUpdate(AntiphonUpdate, frozen=True, kw_only=True, tag="_antiphon_message_deleted"):
    """The agent has deleted a message."""

    message_id: AnnotatedMessage
    role: MessageRole


class Revision(Wire, frozen=True, kw_only=True):
    """Which version of an edited message this is."""

    at: int  #: The version, from 0.
    last: int  #: The number of the last version.


class About(Wire, frozen=True, kw_only=True):
    """The message that this message or tool call answers or was triggered by."""

    message_id: str


class MessageMeta(Forgiving, frozen=True, kw_only=True):
    """In a message or tool call."""

    sender: Who | None = None
    """The client that sent the prompt, on `user_message` in v2, on the first `user_message_chunk` of the
    message in v1."""
    agent_message_id: str | None = None  #: The agent's own id of a user message that a hub had in its queue.
    deleted: bool = False
    """The agent has deleted the message; its content is `[]`. Content that comes later for the same id makes
    it a message again."""
    revision: Revision | None = None
    about: About | None = None
    role: str | None = None  #: The role of a message, on `message_update` in v1.


class AnswerRequest(Wire, frozen=True, kw_only=True):
    """Answer a question by its id."""

    session_id: str  #: The session. The client need not be attached.
    question_id: str
    outcome: Any = UNSET  #: The outcome of a permission request, as in v2.
    action: Any = UNSET  #: The action of an elicitation, as in v2.
    content: Any = UNSET  #: The content of an elicitation, as in v2.
    operation_id: OperationId | None = None
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)
    """The `_meta` of the answer."""


class QuestionUpdate(AntiphonUpdate, frozen=True, kw_only=True, tag="_antiphon_question"):
    """A question was opened, or has ended."""

    question_id: str
    state: str  #: `opened`, `answered`, `cancelled` or `expired`.
    tool_call_id: str | None = None
    by: Who | None = None  #: The client that answered.
    outcome: str | None = None
    """`selected` or `cancelled` of a permission request; `accept`, `decline` or `cancel` of an
    elicitation."""
    option_id: str | None = None
    option_name: str | None = None
    cause: str | None = None
    """What cut the turn short with which an `expired` question ended: `hub_stopped`, `hub_lost` or
    `agent_lost`. Absent if its time was over."""


class QuestionMeta(Forgiving, frozen=True, kw_only=True):
    """In the params of `session/request_permission` and `elicitation/create`."""

    question_id: str | None = None  #: The same in every copy of the question.
