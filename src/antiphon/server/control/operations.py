"""Operations: what clients ask of a session, as data.

The server that owns a session performs them (`SessionControl`). A server that only follows it sends them to
the owner. An operation that is sent again under the same operation id, or message id, is not done again.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Raw, Struct, structs

from antiphon.engine.configuration import Value
from antiphon.engine.events import NOTHING, RequestId
from antiphon.engine.session import Work
from antiphon.engine.transcript import MessageType
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.messages import AnnotationKind
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.server.ids import new_id


class Submit(Struct, frozen=True, kw_only=True, tag="submit"):
    """Queue a prompt, and take it if that may be now. The result is the id of the prompt: another one than
    `message_id` if the operation id was used before."""

    message_id: str
    content: Raw
    delivery: Delivery
    held: bool = True
    """Whether a request waits for it. Then a queue that was paused goes on."""
    operation_id: str | None = None
    sender: Who | None = None
    meta: dict[str, Any] | None = None
    request_id: RequestId = None


class Abandon(Struct, frozen=True, kw_only=True, tag="abandon"):
    """Withdraw a prompt whose request was cancelled. The result is whether that was possible; otherwise its
    turn is cancelled (PROMPT-V2-33, PROMPT-V1-14)."""

    message_id: str
    cancel_turn: bool
    """Whether its turn is cancelled also if an agent that has the prompt takes it after all."""


class Edit(Struct, frozen=True, kw_only=True, tag="edit"):
    """Replace the content of a queued prompt."""

    message_id: str
    content: Raw
    operation_id: str | None = None


class Move(Struct, frozen=True, kw_only=True, tag="move"):
    """Move a queued prompt before another one, or to the end."""

    message_id: str
    before: str | None = None
    operation_id: str | None = None


class Revoke(Struct, frozen=True, kw_only=True, tag="revoke"):
    """Withdraw a queued prompt, also from an agent that has it and gives it back."""

    message_id: str
    operation_id: str | None = None


class ResumeQueue(Struct, frozen=True, kw_only=True, tag="resume_queue"):
    """Let a paused queue go on."""

    operation_id: str | None = None


class Cancel(Struct, frozen=True, kw_only=True, tag="cancel"):
    """Cancel the open turn or, with a message id, only the turn that took that prompt."""

    message_id: str | None = None
    operation_id: str | None = None
    meta: dict[str, Any] | None = None
    known: Work | None = None
    """What was open when the client asked, as far as its server knew. A cancel that reaches the owner when
    that is over, and other work is open, is ignored."""


class CancelToolCall(Struct, frozen=True, kw_only=True, tag="cancel_tool_call"):
    """Cancel one tool call. The result is whether it could be."""

    tool_call_id: str


class CancelTerminal(Struct, frozen=True, kw_only=True, tag="cancel_terminal"):
    """Cancel one terminal. The result is whether it could be."""

    terminal_id: str


class AnswerQuestion(Struct, frozen=True, kw_only=True, tag="answer_question"):
    """Answer a question by its id. `result` is what its request would have been answered with, in v2's
    words; nothing if the client answered with an error."""

    question_id: str
    result: Raw = NOTHING
    by: Who | None = None
    credential: str | None = None
    operation_id: str | None = None


class Annotate(Struct, frozen=True, kw_only=True, tag="annotate"):
    """Add a reaction or a note to a message. The result is the id of the annotation."""

    message_id: str
    kind: AnnotationKind
    value: str
    by: Who
    role: MessageType | None = None
    operation_id: str | None = None


class RemoveAnnotation(Struct, frozen=True, kw_only=True, tag="remove_annotation"):
    annotation_id: str
    by: Who
    operation_id: str | None = None


class Configure(Struct, frozen=True, kw_only=True, tag="configure"):
    """Set a config option."""

    option_id: str
    value: Value
    meta: dict[str, Any] | None = None


class Rename(Struct, frozen=True, kw_only=True, tag="rename"):
    """Set the title that a client chose."""

    title: str


class Close(Struct, frozen=True, kw_only=True, tag="close"):
    """Close the session for all clients."""


class CallAgent(Struct, frozen=True, kw_only=True, tag="call_agent"):
    """Call an extension method of the session's agent. The result is that of the agent."""

    method: str
    params: Raw
    notify: bool = False
    """Whether it is a notification, which has no result."""


Operation: TypeAlias = (
    Submit
    | Abandon
    | Edit
    | Move
    | Revoke
    | ResumeQueue
    | Cancel
    | CancelToolCall
    | CancelTerminal
    | AnswerQuestion
    | Annotate
    | RemoveAnnotation
    | Configure
    | Rename
    | Close
    | CallAgent
)


def identified(operation: Operation) -> Operation:
    """Give an operation an id, so that it is done once whichever server does it. A prompt has its message
    id."""
    if isinstance(operation, Submit) or getattr(operation, "operation_id", "") is not None:
        return operation
    return structs.replace(operation, operation_id=new_id("op"))
