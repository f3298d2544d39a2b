"""AgentStates: how the agents of a hub are, as far as this process has seen it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from antiphon.client.failures import details_of, read_failure
from antiphon.errors import AuthRequired, ErrorObject
from antiphon.hub.upstream.catalogue import wants_login
from antiphon.hub.upstream.errors import AGENT, LOGIN
from antiphon.schema.antiphon.hub import AgentStatus


class AgentState(Struct, frozen=True):
    status: AgentStatus
    detail: str | None = None
    """The agent's own words about its last failure."""
    advice: str | None = None


READY = AgentState(AgentStatus.READY)


class AgentStates:
    def __init__(self) -> None:
        self._states: dict[str, AgentState] = {}

    def get(self, name: str) -> AgentState | None:
        """Return the state of an agent; `None` if it was not started yet."""
        return self._states.get(name)

    def started(self, name: str) -> None:
        """Note that an agent is initialized. It may need a login all the same."""
        known = self._states.get(name)
        if known is None or known.status is not AgentStatus.NEEDS_LOGIN:
            self._states[name] = READY

    def worked(self, name: str) -> None:
        """Note that an agent has ended a turn or taken a login."""
        self._states[name] = READY

    def failed(self, name: str, error: ErrorObject) -> None:
        """Note an error of an agent, if it says that the agent does not start or needs a login."""
        data = error.data if isinstance(error.data, dict) else {}
        status = AgentStatus.NEEDS_LOGIN if _needs_login(error, data) else AgentStatus.FAILED
        if status is AgentStatus.FAILED and data.get("reason") != AGENT:
            return
        told = read_failure(error.message, error.data)
        self._states[name] = AgentState(status, told.message, told.advice or None)


def _needs_login(error: ErrorObject, data: dict[str, Any]) -> bool:
    if int(error.code) == AuthRequired.code or data.get("reason") == LOGIN:
        return True
    return "advice" in data and wants_login(f"{error.message}\n{details_of(data) or ''}")
