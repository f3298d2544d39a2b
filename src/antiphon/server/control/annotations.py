"""Annotations that clients ask for: which one is made, and whether there is room for it."""

from __future__ import annotations

from hashlib import blake2b

from antiphon.engine.annotations import MOST_PER_MESSAGE, MOST_PER_SESSION, Annotation, check_value
from antiphon.engine.session import Session
from antiphon.errors import InvalidParams, RequestError, ResourceNotFound
from antiphon.live.presence import rfc3339
from antiphon.schema.antiphon.messages import AnnotationKind
from antiphon.server.control.operations import Annotate

LIMITED = -32004


def annotation_id(operation_id: str) -> str:
    """The id of the annotation that is made under an operation id: a copy of the request gets the same."""
    return f"ann_{blake2b(operation_id.encode('utf-8', 'surrogatepass'), digest_size=12).hexdigest()}"


def new_annotation(fold: Session, asked: Annotate, id: str, *, at: int) -> Annotation:
    """Return the requested annotation, or the same reaction of this client, if it is there already."""
    kind, by, role = asked.kind, asked.by, asked.role
    try:
        value = check_value(kind, asked.value)
    except ValueError as error:
        raise InvalidParams(str(error)) from None
    find = fold.transcript.find
    message = find(asked.message_id) if role is None else fold.message(role, asked.message_id)
    if message is None:
        raise ResourceNotFound("no such message", data={"reason": "unknown_message_id"})
    if kind is AnnotationKind.REACTION:
        for known in message.annotations:
            if (known.kind, known.value, known.by.client_id) == (kind, value, by.client_id):
                return known
    return Annotation(
        id, message_id=message.id, role=message.type, kind=kind, value=value, by=by, at=rfc3339(at)
    )


def check_room(fold: Session, made: Annotation) -> None:
    """Raise `RequestError` if a message, or the session, has as many annotations as it may have."""
    message = fold.message(made.role, made.message_id)
    of_message = 0 if message is None else len(message.annotated)
    if of_message >= MOST_PER_MESSAGE or len(fold.annotations) >= MOST_PER_SESSION:
        data = {"reason": "limit", "limit": "annotations"}
        raise RequestError(LIMITED, "Too many: annotations", data=data)
