"""Options of `Hub`, in groups. `HubLimits` is one more, in `hub.access.limits`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from antiphon.errors import LocalError

Busy: TypeAlias = Literal["queue", "steer", "interrupt", "agent"]
FilesOf: TypeAlias = Literal["editor", "hub", "none"]
Asked: TypeAlias = Literal["first", "owner", "designated"]
Unattended: TypeAlias = Literal["wait", "reject", "allow-read"]


class AlertOptions(Struct, frozen=True, kw_only=True):
    """Where a hub sends alerts: that an agent asks, or that a turn has ended."""

    notify: Sequence[str] = ()
    """A command that is run for each alert a person should look at; by default none."""
    webhook: str | None = None
    """An address that gets every alert by `POST`; by default none."""
    webhook_secret: str = ""
    """The secret that signs these requests: `whsec_` and at least 24 bytes in base64."""
    push: Path | None = None
    """The folder of the key and the subscriptions of Web Push. Without it, or without the package
    `cryptography`, the hub offers no Web Push."""
    push_services: Collection[str] = ()
    """Origins of push services that may have private addresses, such as `https://push.home.example`."""


class HubOptions(Struct, frozen=True, kw_only=True):
    """How a hub works with its agents."""

    busy: Busy = "queue"
    """What a plain prompt does while the session works: wait in the queue, steer the turn, or interrupt it.
    With "agent" the hub sends it at once, and an agent that takes prompts while it works decides."""
    turn_complete: bool = False
    """Whether every v1 client gets `turn_complete`, also one that does not ask for it."""
    files: FilesOf = "editor"
    """Whose files and terminals v1 agents use: those of an attached editor that offers them, otherwise the
    hub's; always the hub's; or none: then the agent uses its own."""
    offer_installed: bool = False
    """Whether the hub also offers every known agent that is installed, after its own ones."""
    add_agents: bool = False
    """Whether owners may add agents to the running hub: known ones by name, and with the hub's own token any
    command."""
    share: bool = False
    """Whether all sessions of an agent share one process; by default each session has its own."""
    idle: float = 15 * 60.0
    """Seconds of rest after which the hub stops an agent that can restore its session; 0: never."""
    start: float = 30.0
    """Seconds that an agent may take to start."""
    grace: float = 10.0
    """Seconds that running turns get to end when the hub stops."""
    mark: str | None = None
    """Names this hub across restarts, and no other one that runs. At its start it ends the processes that an
    earlier run left behind and, on a shared store, the lease of that run."""
    known_agents: Path | None = None
    """The file in which the hub stores what its agents can do, for clients that connect before an agent was
    started."""
    label: str = ""
    """The place of this hub. Hubs with the same label on one shared store see the same working directories;
    by default the name of the host."""
    alerts: AlertOptions = AlertOptions()
    movable: bool = False
    """Whether all hubs on a shared store see the working directories of the sessions that begin here."""

    def __post_init__(self) -> None:
        _check("busy", self.busy, Busy)
        _check("files", self.files, FilesOf)


class QuestionOptions(Struct, frozen=True, kw_only=True):
    """Who answers the questions of agents."""

    asked: Asked = "first"
    """Whom a hub asks: every client that may answer, and the first answer counts; owners only; or the client
    that sent the prompt, and everybody if that client is not attached."""
    unattended: Unattended = "wait"
    """What happens to a question that no attached client may answer: it waits; it is rejected; or it is
    approved once if its tool call only reads, and waits otherwise."""
    expiry: float | None = None
    """Seconds after which a question ends without an answer; by default never."""

    def __post_init__(self) -> None:
        _check("asked", self.asked, Asked)
        _check("unattended", self.unattended, Unattended)


class Access(Struct, frozen=True, kw_only=True):
    """Who may connect to a hub, and from where."""

    token: str | None = None
    """The token of the owner; by default a new one (`hub.token`)."""
    tokens: Path | None = None
    """The file of further tokens (`create_token`); by default they stay in memory."""
    audit: Path | None = None
    """The file of the audit log; by default there is none."""
    hosts: Collection[str] = ()
    """Further host names under which clients may reach the hub."""
    origins: Collection[str] = ()
    """Origins of further pages that may connect, such as `https://page.example`."""
    public_url: str | None = None
    """The address of the hub's page behind a reverse proxy."""
    trusted_proxies: Collection[str] = ()
    """Addresses or CIDR blocks of proxies that name their clients (`X-Forwarded-For` or `Forwarded`)."""


def _check(name: str, value: str, allowed: Any) -> None:
    if value not in get_args(allowed):
        raise LocalError(f"{name} must be one of {', '.join(get_args(allowed))}, got {value!r}")
