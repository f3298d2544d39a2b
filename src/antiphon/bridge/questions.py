"""Permissions and elicitations per dialect: how a client is asked, and what its answer means.

Catalogue: 24.2, 24.5, PERM, ELIC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct, structs

from antiphon.bridge import losses
from antiphon.bridge.content import recast
from antiphon.bridge.downgrade.session import Downgrade
from antiphon.bridge.losses import Ledger, mark
from antiphon.engine.questions import REQUEST_PERMISSION
from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.repair import repair

CANCELLED = v2.CancelledPermissionOutcome()
"""Not approved: cancelled, dismissed, or an answer that is no approval (PERM-V2-06..08)."""

Answered: TypeAlias = v1.RequestPermissionResponse | v2.RequestPermissionResponse
_encode = msgspec.json.Encoder().encode
_KIND = {v2.PermissionOptionKind(kind): kind for kind in v1.PermissionOptionKind}


class Asked(Struct, frozen=True):
    """A question as one client gets it: the updates that go before, and the params of the request."""

    updates: Sequence[bytes]
    params: v1.RequestPermissionRequest | v2.RequestPermissionRequest

    def outcome(self, answer: Answered | None) -> v2.RequestPermissionOutcome:
        """Return the meaning of an answer. `None` is an error instead of an answer, such as `-32800`."""
        if answer is None:
            return CANCELLED
        outcome = answer.outcome
        if isinstance(outcome, v1.SelectedPermissionOutcome | v2.SelectedPermissionOutcome):
            if all(option.option_id != outcome.option_id for option in self.params.options):
                return CANCELLED  # PERM-V2-06
            return v2.SelectedPermissionOutcome(
                option_id=v2.PermissionOptionId(outcome.option_id), meta=outcome.meta
            )
        if isinstance(outcome, v2.CancelledPermissionOutcome):
            return outcome
        return CANCELLED  # PERM-V2-07: also an unknown outcome


def ask_v1(request: v2.RequestPermissionRequest, downgrade: Downgrade, *, question: str) -> Asked | None:
    """Ask a v1 client, which only knows questions about tool calls. Return `None` if the client cannot be
    given a single option: then the question counts as answered with `CANCELLED`.

    question: names it, for a tool call that has to be made up
    """
    options, dropped = [], []
    for option in request.options:
        kind = _KIND.get(option.kind)
        if kind is None:  # a wrong hint could lead to automatic approval
            downgrade.ledger.lose(losses.PERMISSION_OPTION, option)
            dropped.append(option)
        else:
            options.append(recast(option, v1.PermissionOption, kind=kind))
    if not options:
        return None
    updates, call = _subject(request, downgrade, f"perm:{question}")
    words = [text for text in (request.title, request.description) if text]
    if call.title is None:
        call = structs.replace(call, title=request.title)
    if call.title == request.title:
        words = words[1:] if request.title else words
    if words:
        text = v1.Content(content=v1.TextContent(text="\n\n".join(words)))
        call = structs.replace(call, content=[*(call.content or ()), text])
        downgrade.tools.repeat_content(call.tool_call_id)
    params = v1.RequestPermissionRequest(
        session_id=v1.SessionId(request.session_id),
        tool_call=call,
        options=options,
        meta=mark(request.meta, {"options": dropped}) if dropped else request.meta,
    )
    return Asked(updates=[_encode(update) for update in updates], params=params)


def ask_as_written(request: v2.RequestPermissionRequest, origin: bytes | Raw) -> Asked | None:
    """Return a v1 agent's question for a v1 client: as the agent wrote it, under this session's id, and
    without updates that would repeat its tool call. `None` if it shows a terminal, which the client does not
    have (24.4)."""
    try:
        written: v1.RequestPermissionRequest = codec(1).params(Kind.REQUEST, REQUEST_PERMISSION, origin)
    except InvalidParams:
        return None
    if any(isinstance(item, v1.Terminal) for item in written.tool_call.content or ()):
        return None
    return Asked(updates=(), params=structs.replace(written, session_id=v1.SessionId(request.session_id)))


def _subject(
    request: v2.RequestPermissionRequest, downgrade: Downgrade, made_up: str
) -> tuple[Sequence[v1.SessionUpdate], v1.ToolCallUpdate]:
    """Return the subject of a question as a tool call, and the updates that the client needs before it."""
    subject = request.subject
    if isinstance(subject, v2.ToolCallPermissionSubject):
        # PERM-V2-03: the subject is an update of the call, and comes before the question.
        updates = downgrade.tools.update(subject.tool_call, untitled=request.title)
        known = downgrade.tools.snapshot(subject.tool_call.tool_call_id)
        assert known is not None
        return updates, known
    if isinstance(subject, v2.CommandPermissionSubject):
        raw_input: dict[str, Any] = {"command": subject.command, "cwd": subject.cwd}
        id = made_up if subject.tool_call_id is None else subject.tool_call_id
        call = downgrade.tools.snapshot(id) or v1.ToolCallUpdate(tool_call_id=v1.ToolCallId(id))
        return (), structs.replace(
            call,
            title=subject.command if call.title is None else call.title,
            kind=v1.ToolKind.EXECUTE,
            raw_input=raw_input,
            meta={**(call.meta or {}), **(subject.meta or {})} or None,
        )
    call = v1.ToolCallUpdate(tool_call_id=v1.ToolCallId(made_up))
    if subject is not None:
        downgrade.ledger.lose(losses.PERMISSION_SUBJECT, subject)
        call = structs.replace(call, meta=mark(None, {"subject": subject}))
    return (), call


Elicited: TypeAlias = v2.ElicitationFormMode | v2.ElicitationUrlMode


def modes(capabilities: v1.ClientCapabilities | v2.ClientCapabilities | None) -> frozenset[str]:
    """Return the modes that a client takes; an empty object names none (ELIC-01)."""
    able = None if capabilities is None else capabilities.elicitation
    return frozenset(mode for mode in ("form", "url") if getattr(able, mode, None) is not None)


def elicit_v1(request: Elicited, ledger: Ledger) -> v1.CreateElicitationRequest:
    """Return an elicitation for a v1 client; the versions differ only in the formats of texts."""
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
    """Return the meaning of a client's answer, of either version; an unknown action is no consent (ELIC-08).
    `None` is an error instead of an answer."""
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
