"""Reactions and notes that this client puts on messages, where the agent offers that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from antiphon.engine.annotations import Annotation, AnnotationKind, check_value
from antiphon.engine.transcript import Message
from antiphon.engine.who import Who
from antiphon.errors import InvalidResult, LocalError

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession


class _Named(Protocol):
    @property
    def message_id(self) -> str | None: ...


AnyMessage: TypeAlias = str | Message | _Named
"""The id of a message, the message, or a turn whose prompt it is."""


async def annotate(
    session: ClientSession,
    message: AnyMessage,
    value: str,
    *,
    kind: AnnotationKind,
    by: Who | None = None,
    operation_id: str | None = None,
) -> str:
    """Put a reaction or a note on a message; gives the id of the annotation. `by` is for a hub, which names
    the client that it passes the annotation on for."""
    if not session.abilities.annotations:
        raise LocalError("this agent takes no annotations of messages")
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
    if by is not None:
        params["by"] = by.to_meta()
    if operation_id is not None:
        params["operationId"] = operation_id
    result = await session.extension("annotate", **params)
    made = result.get("annotationId") if isinstance(result, dict) else None
    if not isinstance(made, str):
        raise InvalidResult("the agent did not name the annotation")
    return made


async def remove_annotation(
    session: ClientSession, annotation: Annotation | str, *, by: Who | None = None
) -> None:
    """Remove an annotation that this client made."""
    if not session.abilities.annotations:
        raise LocalError("this agent takes no annotations of messages")
    id = annotation if isinstance(annotation, str) else annotation.id
    named = {} if by is None else {"by": by.to_meta()}
    await session.extension("remove_annotation", annotationId=id, **named)
