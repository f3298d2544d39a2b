"""Errors of an agent as the hub's clients get them: with its own words, its last lines, and advice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from antiphon.client.failures import details_of, is_generic, last_lines
from antiphon.errors import (
    AntiphonError,
    AuthRequired,
    CallFailed,
    ErrorObject,
    InvalidParams,
    InvalidRequest,
    LinkLost,
    LocalError,
    MethodNotFound,
    ParseError,
    RequestCancelled,
    RequestError,
    SpawnFailed,
)
from antiphon.hub.upstream.catalogue import ON_HUB, find_agent, start_advice, wants_login

AGENT = "agent"
"""The `data.reason` of an error of the agent or of its start."""
LOGIN = "login"
"""The `data.reason` of an error for which somebody has to log in, at the hub's machine."""
ANY_LOGIN = f"log in with the agent's own command{ON_HUB}, then try again"
_ABOUT_THE_REQUEST = frozenset(
    each.code for each in (InvalidParams, InvalidRequest, MethodNotFound, ParseError, RequestCancelled)
)
"""Codes of errors that say what is wrong with a request: no login and no installation mends that."""


class FailedAgent(Struct, frozen=True):
    """The agent that an error is about."""

    name: str
    target: Any
    stderr: tuple[str, ...] = ()
    """Its last lines; empty if it works for other sessions too, which they could be about."""


def to_request_error(error: BaseException, agent: FailedAgent | None = None) -> RequestError:
    """Return the error to answer a client with for an error of the agent or of its start."""
    wire = _wire(error)
    if agent is None:
        return RequestError(wire.code, wire.message, data=wire.data)
    if isinstance(error, SpawnFailed | LinkLost):
        stderr = error.stderr if isinstance(error, LinkLost) else ()
        program = _program(agent.target) if isinstance(error, SpawnFailed) else None
        known = find_agent(agent.name, agent.target)
        advice = start_advice(known, program, stderr, ON_HUB) or _login_advice(agent, "\n".join(stderr))
        wire = _with(wire, {"advice": advice} if advice else {})
    elif isinstance(error, CallFailed | AuthRequired):
        wire = explained(wire, agent)
    return RequestError(wire.code, wire.message, data=wire.data)


def explained(wire: ErrorObject, agent: FailedAgent) -> ErrorObject:
    """Return an error that an agent answered with, together with its words in `details`, its last lines on
    stderr if it said nothing else, and advice."""
    code, data = int(wire.code), wire.data
    if code in _ABOUT_THE_REQUEST:
        return wire
    details = details_of(data)
    added: dict[str, Any] = {} if details is None else {"details": details}
    if details is None and is_generic(wire.message) and agent.stderr:
        added["stderr"] = last_lines(agent.stderr)
    advice = _login_advice(agent, f"{wire.message}\n{details or ''}", needed=code == AuthRequired.code)
    if advice is not None:
        added["advice"] = advice
    return _with(wire, added)


def _login_advice(agent: FailedAgent, said: str, *, needed: bool = False) -> str | None:
    if not (needed or wants_login(said)):
        return None
    known = find_agent(agent.name, agent.target)
    return ANY_LOGIN if known is None else known.login_advice(ON_HUB)


def _with(wire: ErrorObject, added: dict[str, Any]) -> ErrorObject:
    """Return the error with more in its `data`. Advice is the hub's: an agent gives none."""
    data = wire.data
    if isinstance(data, dict):
        kept = {key: value for key, value in data.items() if key != "advice"}
    elif isinstance(data, str) or not data:
        kept = {}
    else:
        return wire  # it has no room for more
    if not added and ("advice" not in data if isinstance(data, dict) else True):
        return wire
    return ErrorObject(wire.code, wire.message, {**kept, **added})


def _wire(error: BaseException) -> ErrorObject:
    if isinstance(error, CallFailed):
        return error.error
    if isinstance(error, RequestError | AuthRequired):
        return error.to_wire()
    if isinstance(error, LinkLost):
        return _ended(error)
    if isinstance(error, LocalError) and not isinstance(error, SpawnFailed):
        return ErrorObject(InvalidParams.code, str(error), {"reason": AGENT})
    return ErrorObject(AntiphonError.code, f"The agent cannot be reached: {error}", {"reason": AGENT})


def _ended(lost: LinkLost) -> ErrorObject:
    """Include the last lines of stderr: they say why an agent does not start."""
    said = f" ({lost.stderr[-1]})" if lost.stderr else ""
    data = {"reason": AGENT, **({"stderr": last_lines(lost.stderr)} if lost.stderr else {})}
    return ErrorObject(AntiphonError.code, f"The agent ended: {lost.reason}{said}", data)


def _program(target: Any) -> str | None:
    """Return the program of a command."""
    words: Sequence[str] = target.split() if isinstance(target, str) else target
    return os.path.basename(words[0]) if isinstance(words, list | tuple) and words else None
