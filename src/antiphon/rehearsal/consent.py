"""Permission to change files and run commands: by the mode of the session, or by the user's answer."""

from __future__ import annotations

from antiphon.agent import AgentTurn, ToolCallWriter
from antiphon.rehearsal.skill import Unable, speak
from antiphon.rehearsal.state import memory
from antiphon.schema import v2

ASK, AUTO, READ_ONLY = "ask", "auto", "read_only"
"""The values of the option `mode`."""

_Kind = v2.PermissionOptionKind


def option(id: str, name: str, kind: v2.PermissionOptionKind) -> v2.PermissionOption:
    return v2.PermissionOption(option_id=v2.PermissionOptionId(id), name=name, kind=kind)


CHOICES = (
    option("allow", "Allow once", _Kind.ALLOW_ONCE),
    option("always", "Allow for this session", _Kind.ALLOW_ALWAYS),
    option("reject", "Reject", _Kind.REJECT_ONCE),
)


async def allowed(
    turn: AgentTurn,
    call: ToolCallWriter,
    kind: str,
    *,
    choices: tuple[v2.PermissionOption, ...] = CHOICES,
    rejected: str = "Not allowed, so nothing was changed.",
) -> bool:
    """Return whether a tool call of this kind may proceed. If not, fail the call and say why. Raises `Unable`
    in a read-only session."""
    mode, remembered = turn.session.config.get("mode", ASK), memory(turn.session).always
    if mode == READ_ONLY:
        raise Unable("This session is read-only, so I did nothing. `/mode ask` lets me ask for permission.")
    if mode == AUTO or kind in remembered:
        return True
    chosen = await choose(turn, call, choices)
    if chosen == _Kind.ALLOW_ALWAYS:
        remembered.add(kind)
    if chosen in (_Kind.ALLOW_ONCE, _Kind.ALLOW_ALWAYS):
        return True
    await call.fail()
    await speak(turn, rejected)
    return False


async def choose(
    turn: AgentTurn,
    call: ToolCallWriter,
    choices: tuple[v2.PermissionOption, ...],
    *,
    title: str | None = None,
) -> v2.PermissionOptionKind | None:
    """Ask the user, and return the kind of the chosen option, or `None` without an answer."""
    known = turn.session.fold.tools.get(call.tool_call_id)
    request = v2.RequestPermissionRequest(
        session_id=v2.SessionId(turn.session.id),
        title=title or (known and known.title) or "May I?",
        options=list(choices),
        subject=v2.ToolCallPermissionSubject(tool_call=v2.ToolCallUpdate(tool_call_id=call.tool_call_id)),
        meta=turn.trace or None,
    )
    outcome = await turn.session.ask(request, tool_call_id=call.tool_call_id)
    if not isinstance(outcome, v2.SelectedPermissionOutcome):
        return None
    return next((one.kind for one in choices if one.option_id == outcome.option_id), None)
