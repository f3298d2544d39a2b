"""KnownAgents: what the agents of a hub reported when they were last started.

An agent may take long to start. Clients that connect meanwhile get what was reported the last time, so that
none has to wait. It is kept in a file of the hub's data folder; a file that cannot be read is ignored.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.errors import InvalidResult
from antiphon.hub.upstream.target import Target
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.private_files import write_private
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.codec import codec
from antiphon.schema.version import V2
from antiphon.server.offer import CONTENT, Offer

logger = logging.getLogger("antiphon.hub")

FORMAT = 1


class KnownAgent(Struct, frozen=True, kw_only=True):
    """What an agent reported about itself. `logins` are its login methods, as in v2."""

    name: str = ""
    version: str = ""
    abilities: Abilities
    inserts: bool = False
    """Whether it takes prompts while it works."""
    logins: list[Any] = []

    def read_logins(self) -> list[v2.AuthMethod]:
        """The ways to log in, in our types. Raises `InvalidResult`."""
        answer = {"protocolVersion": 2, "info": {"name": "a", "version": "1"}, "capabilities": {}}
        read = codec(2).result("initialize", msgspec.json.encode({**answer, "authMethods": self.logins}))
        methods: list[v2.AuthMethod] = read.auth_methods
        return methods


class _Entry(Struct, frozen=True):
    target: str
    """The hash of the command or address: another one under the same name is another agent."""
    agent: KnownAgent


class _File(Struct, frozen=True):
    format: int
    agents: dict[str, _Entry]


def describe(agent: AgentConnection[Any], logins: Sequence[v2.AuthMethod]) -> KnownAgent:
    """Return what an agent said in its answer to `initialize`."""
    info, agreed = agent.info, agent.agreement
    return KnownAgent(
        name="" if info is None else info.name,
        version="" if info is None else info.version,
        abilities=agent.abilities,
        inserts=agreed.version == V2 or agreed.opt_ins.prompt_lifecycle,
        logins=msgspec.json.decode(msgspec.json.encode(logins)),
    )


class KnownAgents:
    """The agents of one hub, by their names; kept in the file at `path`, if there is one."""

    def __init__(self, path: Path | None, targets: Mapping[str, Target]) -> None:
        self._path = path
        self._targets = targets
        self._entries = {} if path is None else _read(path)
        self._current: set[str] = set()

    def get(self, name: str) -> KnownAgent | None:
        """Return what an agent reported to this hub process or an earlier one."""
        entry = self._entries.get(name)
        if entry is None or entry.target != _hash(self._targets.get(name)):
            return None
        return entry.agent

    def is_current(self, name: str) -> bool:
        """Whether this hub process has started the agent."""
        return name in self._current

    def keep(self, name: str, agent: KnownAgent) -> None:
        """Keep what an agent reported when it was started."""
        self._current.add(name)
        entry = _Entry(_hash(self._targets.get(name)), agent)
        if self._entries.get(name) == entry:
            return
        self._entries[name] = entry
        if self._path is None:
            return
        try:
            write_private(self._path, msgspec.json.encode(_File(FORMAT, self._entries)))
        except OSError as error:
            logger.warning("known agents not written to %s: %s", self._path, error)


def _read(path: Path) -> dict[str, _Entry]:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_File)
        if found.format != FORMAT:
            raise ValueError(f"format {found.format} instead of {FORMAT}")
        for entry in found.agents.values():
            entry.agent.read_logins()
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, *UNREADABLE, InvalidResult) as error:
        logger.warning("known agents in %s ignored: %s", path, error)
        return {}
    return found.agents


def _hash(target: Target | None) -> str:
    """Return a hash of the target: a command may hold secrets, and is not kept."""
    words = target if isinstance(target, list | str) else type(target).__qualname__
    return hashlib.sha256(msgspec.json.encode(words)).hexdigest()


def announce(offer: Offer, able: Abilities, *, inserts: bool) -> None:
    """Offer to clients what the hub's first agent can do and the hub passes on, and what the hub does itself.
    Never what attached clients can do: that changes, and nobody is informed again (invariant 10, PROXY-09).
    `inserts`: the agent takes prompts while it works."""
    accepts = [name for name in CONTENT if getattr(able, name)]
    offer.accepts = frozenset(accepts)
    offer.mcp_kinds = able.mcp - {"acp"}
    offer.mcp_over_acp = "acp" in able.mcp
    offer.takes_directories = able.additional_directories
    offer.announces = dict(able.announces)
    decides = [Delivery.AGENT] if offer.busy is Delivery.AGENT and inserts else []
    steers = [Delivery.STEER] if "steer" in able.delivery or decides else []
    # The hub has the queue, and cancels what is interrupted; only the agent takes anything into an open turn.
    delivery = [Delivery.QUEUE, *steers, Delivery.INTERRUPT, *decides]
    offer.ours |= {"delivery": delivery, "inject": {"modes": [Delivery.QUEUE, *steers, *decides]}}
    offer.ours |= {"busy": offer.busy if offer.busy in delivery else Delivery.QUEUE}
