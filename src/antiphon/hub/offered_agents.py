"""OfferedAgents: the agents that a hub offers to its clients, how each of them is, and how one is added."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, MutableMapping
from typing import Any

from antiphon.errors import InvalidParams
from antiphon.hub.upstream.agent_states import AgentState, AgentStates
from antiphon.hub.upstream.catalogue import ON_HUB, CatalogueAgent, catalogue, find_agent
from antiphon.hub.upstream.target import read_target
from antiphon.schema.antiphon.hub import (
    AddAgentRequest,
    AddAgentResponse,
    AgentInfo,
    AgentStatus,
    ListAgentsResponse,
)
from antiphon.transports.base import ADDRESSES

MOST = 64
"""Agents that a hub offers."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
INSTALLED = AgentState(AgentStatus.INSTALLED)


class OfferedAgents:
    def __init__(
        self,
        targets: MutableMapping[str, Any],
        names: list[str],
        states: AgentStates,
        *,
        offer_installed: bool,
    ) -> None:
        """Offer the agents of a hub.

        targets: the agents by name, the default first; one that is added goes there
        names: what clients that connect later are told
        offer_installed: also offer every known agent that is installed
        """
        self._targets = targets
        self._names = names
        self._states = states
        self._offers_installed = offer_installed
        self._add_installed()

    def list(self) -> ListAgentsResponse:
        """Answer `_antiphon/list_agents`: the hub's agents, then the known ones that could be installed."""
        self._add_installed()
        infos = [self._info(name, target) for name, target in self._targets.items()]
        return ListAgentsResponse(agents=[*infos, *self._not_installed()])

    def add(self, params: AddAgentRequest) -> AddAgentResponse:
        """Answer `_antiphon/add_agent`."""
        name = params.name
        if not _NAME.fullmatch(name):
            raise InvalidParams(
                f"{name!r} is not a name for an agent: expected a letter or digit, then letters, digits, "
                ". _ or -"
            )
        if name in self._targets:
            raise InvalidParams(f"the hub already has an agent {name!r}")
        if len(self._targets) >= MOST:
            raise InvalidParams(f"the hub has {MOST} agents already, which is the most it takes")
        target = _command_of(name) if params.command is None else _checked(params.command)
        self._add(name, target)
        return AddAgentResponse(agent=self._info(name, target))

    def _add(self, name: str, target: Any) -> None:
        self._targets[name] = target
        self._names.append(name)

    def _add_installed(self) -> None:
        """Offer the known agents that are installed by now, unless their command is offered already."""
        if not self._offers_installed:
            return
        offered = {known.name for known in self._known()}
        for known in catalogue().values():
            taken = known.name in self._targets or known.name in offered
            if not taken and len(self._targets) < MOST and known.installed:
                self._add(known.name, list(known.command))

    def _known(self) -> Iterator[CatalogueAgent]:
        for name, target in self._targets.items():
            known = find_agent(name, target)
            if known is not None:
                yield known

    def _not_installed(self) -> Iterator[AgentInfo]:
        if self._offers_installed:
            offered = {known.name for known in self._known()}
            for known in catalogue().values():
                if known.name not in offered and not known.installed:
                    yield _missing(known.name, known)

    def _info(self, name: str, target: Any) -> AgentInfo:
        known = find_agent(name, target)
        if not _is_installed(target):
            return _missing(name, known)
        state = self._states.get(name) or INSTALLED
        return AgentInfo(
            name=name,
            title=None if known is None else known.title,
            status=state.status,
            detail=state.detail,
            advice=state.advice,
        )


def _missing(name: str, known: CatalogueAgent | None) -> AgentInfo:
    return AgentInfo(
        name=name,
        title=None if known is None else known.title,
        status=AgentStatus.MISSING,
        advice=None if known is None else known.install_advice(ON_HUB),
    )


def _is_installed(target: Any) -> bool:
    """Whether the program of a command is there; what is no command counts as installed."""
    words = read_target(target)
    return not (isinstance(words, list) and words) or shutil.which(words[0]) is not None


def _command_of(name: str) -> list[str]:
    known = catalogue().get(name)
    if known is None:
        names = ", ".join(catalogue())
        raise InvalidParams(f"there is no known agent {name!r}, only {names}: give its command")
    if not known.installed:
        raise InvalidParams(f"{name} is not installed: {known.install_advice(ON_HUB)}")
    return list(known.command)


def _checked(command: list[str]) -> Any:
    """Return the target for a command: an address, or the words of a command that is there."""
    if len(command) == 1 and command[0].startswith(ADDRESSES):
        return command[0]
    if any("\0" in word for word in command):
        raise InvalidParams("a command cannot contain NUL")
    if shutil.which(command[0]) is None:
        exists = os.path.isfile(command[0]) and os.sep in command[0]
        why = "is not executable" if exists else "was not found"
        raise InvalidParams(f"the command {command[0]!r} {why}{ON_HUB}")
    return list(command)
