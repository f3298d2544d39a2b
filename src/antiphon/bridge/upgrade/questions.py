"""Questions of a v1 agent, permissions and elicitations: as v2 asks them, and how the answer goes back
(24.2, 24.5, PERM, ELIC)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from antiphon.bridge.content import recast, twin
from antiphon.bridge.upgrade.session import Upgrade
from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.repair import Malformed, repair
from antiphon.schema.wire import Unknown

UNTITLED: Final = "Permission required"
"""The title of a question whose tool call has none."""


class Permission(Struct, frozen=True):
    """A permission request of a v1 agent, as v2 has it."""

    params: v2.RequestPermissionRequest | None
    """`None` if it offers nothing to choose: then `answer(None)` answers it at once (24.5)."""
    updates: Sequence[v2.SessionUpdate] = ()
    """The updates of its tool call, if there are no params that contain it."""

    def answer(self, answer: v2.RequestPermissionResponse | None) -> v1.RequestPermissionResponse:
        """Return the answer for the agent. `None`: there was an error instead, or none will come."""
        offered = () if self.params is None else self.params.options
        outcome = None if answer is None else answer.outcome
        meta = None if answer is None else answer.meta
        if isinstance(outcome, v2.SelectedPermissionOutcome) and any(
            option.option_id == outcome.option_id for option in offered
        ):
            chosen = v1.SelectedPermissionOutcome(
                option_id=v1.PermissionOptionId(outcome.option_id), meta=outcome.meta
            )
            return v1.RequestPermissionResponse(outcome=chosen, meta=meta)
        if isinstance(outcome, v2.CancelledPermissionOutcome) and outcome.meta:
            meta = {**outcome.meta, **(meta or {})}  # v1's outcome has no place for it
        return v1.RequestPermissionResponse(  # PERM-V2-06..08
            outcome=v1.CancelledPermissionOutcome(), meta=meta
        )


def permission(request: v1.RequestPermissionRequest, upgrade: Upgrade) -> Permission:
    """Upgrade a permission request; the tool call it is about counts as sent (PERM-V2-03)."""
    call = upgrade.subject(request.tool_call)
    if not request.options:
        return Permission(None, [recast(call, v2.SessionToolCallUpdate)])
    title = upgrade.tools.title(call.tool_call_id)
    return Permission(
        v2.RequestPermissionRequest(
            session_id=v2.SessionId(request.session_id),
            title=UNTITLED if title is None else title,
            subject=v2.ToolCallPermissionSubject(tool_call=call),
            options=[
                recast(option, v2.PermissionOption, kind=v2.PermissionOptionKind(option.kind))
                for option in request.options
            ],
            meta=request.meta,
        )
    )


def elicitation(request: v1.CreateElicitationRequest) -> v2.CreateElicitationRequest:
    """Upgrade an elicitation. Raises `InvalidParams` if v2 cannot express it, as with two scopes (ELIC-04).
    The caller maps the ids of requests."""
    raw = dict(msgspec.to_builtins(request))
    if isinstance(request, v1.ElicitationFormMode):
        raw["requestedSchema"] = {"type": "object", "properties": {}, **raw["requestedSchema"]}
    try:
        upgraded: v2.CreateElicitationRequest = repair(2).build(v2.CreateElicitationRequest, raw)
    except Malformed as error:
        raise InvalidParams(str(error)) from None
    return upgraded


def elicitation_answer(answer: v2.CreateElicitationResponse | None) -> v1.CreateElicitationResponse:
    """Downgrade the answer to an elicitation. `None`: there was an error instead, or none will come."""
    if answer is None or isinstance(answer, Unknown):
        return v1.ElicitationCancelAction()  # ELIC-08: an unknown action is no consent
    downgraded: v1.CreateElicitationResponse = twin(answer, v1)
    return downgraded
