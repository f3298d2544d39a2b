"""`@agent.on_annotation`: the agent's author hears of reactions and notes that clients put on messages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from antiphon.engine.annotations import Annotation
from antiphon.errors import LocalError

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession


class AnnotationNews(Struct, frozen=True):
    """A client has added an annotation, or removed one of its own."""

    annotation: Annotation
    removed: bool = False


AnnotationHandler = Callable[["AgentSession", AnnotationNews], Coroutine[Any, Any, None]]


class AnnotationHook:
    believes_relays = True
    """Whether a client may name another one as the author of an annotation, as a hub does for its clients."""

    def __init__(self) -> None:
        self._on_annotation: AnnotationHandler | None = None

    def on_annotation(self, handler: AnnotationHandler) -> AnnotationHandler:
        """Run this whenever a client annotates a message or removes an annotation."""
        if self._on_annotation is not None:
            raise LocalError("on_annotation was already set; an Agent has exactly one annotation handler")
        self._on_annotation = handler
        return handler

    def annotated(self, session: AgentSession, annotation: Annotation, *, removed: bool) -> None:
        """An annotation was added to the journal, or removed in it."""
        if self._on_annotation is not None:
            session.soon(self._on_annotation(session, AnnotationNews(annotation, removed)))
