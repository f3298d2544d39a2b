"""Annotations of a hub's clients on their way to the agent behind it, whose author may listen to them.

The hub's journal is what counts: the agent is told where it runs and takes annotations. It is not started for
them, and nothing depends on its answer.
"""

from __future__ import annotations

import logging

from antiphon.engine.annotations import Annotation
from antiphon.errors import AntiphonError
from antiphon.hub.work import UpstreamWork
from antiphon.server.methods.annotations import annotation_id

logger = logging.getLogger("antiphon.hub")


def relay_annotation(work: UpstreamWork, annotation: Annotation, *, removed: bool) -> None:
    """Pass an annotation on, or its removal."""
    feed = work.binding.feed
    if feed is not None and feed.session.abilities.annotations:
        work.session.tasks.start_soon(_relay(work, annotation, removed=removed))


async def _relay(work: UpstreamWork, annotation: Annotation, *, removed: bool) -> None:
    feed, there = work.binding.feed, work.agents_message_id(annotation.message_id)
    if feed is None or there is None:
        return
    try:
        if removed:
            await feed.session._core.remove_annotation(annotation_id(annotation.id), by=annotation.by)
        else:
            await feed.session._core.annotate(
                there,
                annotation.value,
                kind=annotation.kind,
                by=annotation.by,
                operation_id=annotation.id,
            )
    except AntiphonError as error:
        logger.debug("annotation of %s not taken by the agent: %s", work.id, error)
