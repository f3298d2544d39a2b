"""Prompts: additions to a prompt, its cancel and its result, and the queue of prompts."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from antiphon.schema.antiphon.clients import Who
from antiphon.schema.wire import AntiphonUpdate, ClosedEnum, Forgiving, Wire

AttachedSession = str
"""The session, to which the client is attached."""
StoredSession = str
"""The session. It need not be open, and the client need not be attached."""
EntryId = str
"""The id of the entry, and later of the message that it becomes."""
Blocks = list[Any]
"""The content blocks of the prompt."""
OperationId = Annotated[str, Meta(min_length=1, max_length=256)]
"""See Operations."""


class Delivery(ClosedEnum):
    """How a prompt is delivered that comes while the session works."""

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"
    AGENT = "agent"
    """The hub sends it to the upstream agent at once, which decides. Only a hub offers it."""


class OperationMeta(Wire, frozen=True, kw_only=True):
    """In the params of every request that takes an operation id."""

    operation_id: OperationId | None = None


class PromptMeta(Wire, frozen=True, kw_only=True):
    """In the params of `session/prompt`."""

    delivery: Delivery | None = None
    """What happens while the session works: `queue`, `steer` (inserted at the next break point), `interrupt`
    (the turn is cancelled first) or `agent` (a hub hands it to its agent at once, which decides)."""
    operation_id: OperationId | None = None
    """A repeated id gets the first outcome again, and makes no second prompt: see Operations."""


class CancelMeta(Wire, frozen=True, kw_only=True):
    """In the params of `session/cancel`."""

    message_id: str | None = None
    """Cancel only the turn that took this message. The cancel is ignored once that turn has ended."""
    operation_id: OperationId | None = None  #: A repeated id is ignored: it cancels no later turn.


class InjectRequest(Wire, frozen=True, kw_only=True):
    """Queue a prompt."""

    session_id: AttachedSession
    content: Blocks
    mode: Delivery | None = None  #: `queue` (the default), `steer` or `agent`.
    operation_id: OperationId | None = None


class InjectResponse(Wire, frozen=True, kw_only=True):
    message_id: EntryId


class QueuedPromptRequest(Wire, frozen=True, kw_only=True):
    """The base of the requests that change a queued prompt."""

    session_id: AttachedSession
    message_id: EntryId
    operation_id: OperationId | None = None


class ReplaceInjectRequest(QueuedPromptRequest, frozen=True, kw_only=True):
    """Replace the content of a queued prompt."""

    content: Blocks


class RevokeInjectRequest(QueuedPromptRequest, frozen=True, kw_only=True):
    """Remove a queued prompt."""


class MoveInjectRequest(QueuedPromptRequest, frozen=True, kw_only=True):
    """Move a queued prompt."""

    before: str | None = None  #: The entry to insert it before; without it, the end of the queue.


class ListInjectRequest(Wire, frozen=True, kw_only=True):
    """List the queue."""

    session_id: AttachedSession


class QueueEntry(Wire, frozen=True, kw_only=True):
    message_id: EntryId
    mode: str
    content: Any
    sender: Who | None = None


class ListInjectResponse(Wire, frozen=True, kw_only=True):
    entries: list[QueueEntry]
    paused: bool  #: Whether a cancel paused them.


class ResumeQueueRequest(Wire, frozen=True, kw_only=True):
    """Resume a queue that a cancel paused."""

    session_id: AttachedSession
    operation_id: OperationId | None = None


class Done(Wire, frozen=True, kw_only=True):
    """An empty result."""


class QueueUpdate(AntiphonUpdate, frozen=True, kw_only=True, tag="_antiphon_queue"):
    """The whole queue, in order."""

    entries: list[QueueEntry]
    paused: bool  #: Whether a cancel paused them.


class PromptResponseMeta(Forgiving, frozen=True, kw_only=True):
    """In the result of `session/prompt`."""

    message_id: str | None = None  #: The id of the prompt's message, for a client with `promptIds`.
    repeated: bool = False  #: Whether the prompt was accepted before, under the same operation id.
    stop_reason: Any = UNSET  #: Why the turn of a repeated prompt ended, if it is over.
    error: Any = UNSET  #: The error that the turn of a repeated prompt ended with.
