"""Errors of an agent as the hub's clients get them."""

from __future__ import annotations

from antiphon.errors import (
    AntiphonError,
    AuthRequired,
    CallFailed,
    InvalidParams,
    LinkLost,
    LocalError,
    RequestError,
    SpawnFailed,
)

AGENT = "agent"
"""The `data.reason` of an error of the agent or of its start."""


def to_request_error(error: BaseException) -> RequestError:
    """Return the error to answer a client with for an error of the agent or of its start."""
    if isinstance(error, CallFailed):
        return RequestError(error.error.code, error.error.message, data=error.error.data)
    if isinstance(error, RequestError):
        return error
    if isinstance(error, AuthRequired):
        wire = error.to_wire()
        return RequestError(wire.code, wire.message, data=wire.data)
    if isinstance(error, LinkLost):
        return _ended(error)
    if isinstance(error, LocalError) and not isinstance(error, SpawnFailed):
        return RequestError(InvalidParams.code, str(error), data={"reason": AGENT})
    return RequestError(AntiphonError.code, f"The agent cannot be reached: {error}", data={"reason": AGENT})


def _ended(lost: LinkLost) -> RequestError:
    """Include the last lines of stderr: they say why an agent does not start."""
    said = f" ({lost.stderr[-1]})" if lost.stderr else ""
    data = {"reason": AGENT, **({"stderr": list(lost.stderr)} if lost.stderr else {})}
    return RequestError(AntiphonError.code, f"The agent ended: {lost.reason}{said}", data=data)
