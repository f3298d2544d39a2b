"""The models of a session, as v1 had them while they were unstable. Written by hand.

No pinned schema has them any more; config options took their place. Agents still send them, some as their
only choice of a model. There is no update for them: an agent tells the current model only in answers.
"""

from __future__ import annotations

from typing import Any, NewType

from msgspec import field

from antiphon.schema.v1.identifiers import SessionId
from antiphon.schema.wire import Lenient, Wire

ModelId = NewType("ModelId", str)


class ModelInfo(Wire, frozen=True, kw_only=True):
    model_id: ModelId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class SessionModelState(Wire, frozen=True, kw_only=True):
    available_models: list[ModelInfo]
    current_model_id: ModelId
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class SetSessionModelRequest(Wire, frozen=True, kw_only=True):
    """Params of `session/set_model`."""

    session_id: SessionId
    model_id: ModelId
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class SetSessionModelResponse(Wire, frozen=True, kw_only=True):
    """Result of `session/set_model`."""

    meta: dict[str, Any] | None = field(name="_meta", default=None)


LENIENT: dict[type[Wire], dict[str, Lenient]] = {
    ModelInfo: {"description": Lenient.ERROR},
    SessionModelState: {"available_models": Lenient.ERROR | Lenient.SKIP},
}
