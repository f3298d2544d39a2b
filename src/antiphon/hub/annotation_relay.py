"""Annotations of a hub's clients on their way to the agent behind it, whose author may listen to them.

The hub's journal is what counts: the agent is told where it runs and takes annotations. It is not started for
them, and nothing depends on its answer.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from antiphon.agent.annotation_methods import annotation_id
from antiphon.engine.annotations import Annotation
from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    from antiphon.hub.session import HubSession

logger = logging.getLogger("antiphon.hub")


def relay_annotation(session: HubSession, annotation: Annotation, *, removed: bool) -> None:
    """Pass an annotation on, or its removal."""
    course = session.standing.course
    if course is not None and course.session.abilities.annotations:
        session.soon(_relay(session, annotation, removed=removed))


async def _relay(session: HubSession, annotation: Annotation, *, removed: bool) -> None:
    course, there = session.standing.course, session.standing.agents_message_id(annotation.message_id)
    if course is None or there is None:
        return
    try:
        if removed:
            await course.session._core.remove_annotation(annotation_id(annotation.id), by=annotation.by)
        else:
            await course.session._core.annotate(
                there,
                annotation.value,
                kind=annotation.kind,
                by=annotation.by,
                operation_id=annotation.id,
            )
    except AntiphonError as error:
        logger.debug("annotation of %s not taken by the agent: %s", session.id, error)
