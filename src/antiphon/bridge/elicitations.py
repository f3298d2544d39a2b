"""Elicitations per dialect: what a client takes, how it is asked, and what its answer means (24.2, ELIC)."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import structs

from antiphon.bridge import losses
from antiphon.bridge.losses import Ledger, mark
from antiphon.schema import v1, v2
from antiphon.schema.repair import repair

Elicited: TypeAlias = v2.ElicitationFormMode | v2.ElicitationUrlMode


def modes(capabilities: v1.ClientCapabilities | v2.ClientCapabilities | None) -> frozenset[str]:
    """The modes that a client said it takes; an empty object names none (ELIC-01)."""
    able = None if capabilities is None else capabilities.elicitation
    return frozenset(mode for mode in ("form", "url") if getattr(able, mode, None) is not None)


def elicit_v1(request: Elicited, ledger: Ledger) -> v1.CreateElicitationRequest:
    """An elicitation for a v1 client; but for the formats of texts the two versions are alike."""
    if isinstance(request, v2.ElicitationFormMode):
        properties = {
            name: _without_format(property, ledger)
            for name, property in request.requested_schema.properties.items()
        }
        schema = structs.replace(request.requested_schema, properties=properties)
        request = structs.replace(request, requested_schema=schema)
    asked: v1.CreateElicitationRequest = repair(1).build(
        v1.CreateElicitationRequest, msgspec.to_builtins(request)
    )
    return asked


def _without_format(property: v2.ElicitationPropertySchema, ledger: Ledger) -> v2.ElicitationPropertySchema:
    if not isinstance(property, v2.StringPropertySchema) or property.format is None or property.format.known:
        return property
    # v1's set is closed (EXT-10): the whole request would be refused. A format is only a hint (ELIC-19).
    ledger.lose(losses.ELICITATION_FORMAT, property)
    return structs.replace(property, format=None, meta=mark(property.meta, {"format": property.format}))


def answered(answer: Any) -> v2.CreateElicitationResponse | None:
    """What a client's answer means, of whichever version; what is not known is no consent (ELIC-08). `None`:
    there was an error instead."""
    match answer:
        case None:
            return None
        case v1.ElicitationAcceptAction() | v2.ElicitationAcceptAction():
            return v2.ElicitationAcceptAction(content=answer.content, meta=answer.meta)
        case v1.ElicitationDeclineAction() | v2.ElicitationDeclineAction():
            return v2.ElicitationDeclineAction(meta=answer.meta)
        case v1.ElicitationCancelAction() | v2.ElicitationCancelAction():
            return v2.ElicitationCancelAction(meta=answer.meta)
    return v2.ElicitationCancelAction()
