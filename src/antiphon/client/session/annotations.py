"""Requests for reactions and notes on messages."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from antiphon.engine.annotations import check_value
from antiphon.engine.transcript import Message
from antiphon.errors import LocalError
from antiphon.schema.antiphon.messages import AnnotationKind, MessageRole


class _HasMessageId(Protocol):
    @property
    def message_id(self) -> str | None: ...


AnyMessage: TypeAlias = str | Message | _HasMessageId
"""A message id, a message, or a turn whose prompt is the message."""


def annotate_params(message: AnyMessage, value: str, kind: AnnotationKind) -> dict[str, Any]:
    """Return the fields of an `AnnotateRequest` that name the message and say what to put on it."""
    id = message if isinstance(message, str) else message.message_id
    if id is None:
        raise LocalError("this message has no id yet: its prompt was not accepted")
    try:
        check_value(kind, value)
    except ValueError as error:
        raise LocalError(str(error)) from None
    role = MessageRole(message.role) if isinstance(message, Message) else None
    return {"message_id": id, "role": role, "kind": kind, "value": value}
