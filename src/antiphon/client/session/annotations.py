"""Requests for reactions and notes on messages."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from antiphon.engine.annotations import Annotation, AnnotationKind, check_value
from antiphon.engine.transcript import Message
from antiphon.errors import InvalidResult, LocalError


class _HasMessageId(Protocol):
    @property
    def message_id(self) -> str | None: ...


AnyMessage: TypeAlias = str | Message | _HasMessageId
"""A message id, a message, or a turn whose prompt is the message."""


def annotate_params(
    message: AnyMessage, value: str, *, kind: AnnotationKind, operation_id: str | None
) -> dict[str, Any]:
    """The params of `_antiphon/annotate`."""
    id = message if isinstance(message, str) else message.message_id
    if id is None:
        raise LocalError("this message has no id yet: its prompt was not accepted")
    try:
        check_value(kind, value)
    except ValueError as error:
        raise LocalError(str(error)) from None
    params: dict[str, Any] = {"messageId": id, "kind": str(kind), "value": value}
    if isinstance(message, Message):
        params["role"] = str(message.role)
    if operation_id is not None:
        params["operationId"] = operation_id
    return params


def annotation_id_in(result: Any) -> str:
    id = result.get("annotationId") if isinstance(result, dict) else None
    if not isinstance(id, str):
        raise InvalidResult(f"_antiphon/annotate: no `annotationId` in {str(result)[:100]!r}")
    return id


def remove_params(annotation: Annotation | str) -> dict[str, Any]:
    """The params of `_antiphon/remove_annotation`."""
    return {"annotationId": annotation if isinstance(annotation, str) else annotation.id}
