"""Clients, and what clients and agents say about themselves in `initialize`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

from antiphon.schema.wire import AntiphonUpdate, Forgiving

ClientId = Annotated[str, Meta(pattern=r"^[!-~]{1,64}\Z")]
"""1 to 64 printable ASCII characters without spaces."""


class Who(Forgiving, frozen=True, kw_only=True):
    """A client by its id and name."""

    client_id: str
    """The id of the client. It stays the same over several connections if the client gives it itself."""
    name: str = ""
    """The name that the client gives itself, as one line."""

    def to_meta(self) -> dict[str, str]:
        """Return it as an object of a `_meta`."""
        return {"clientId": self.client_id, "name": self.name}


class Present(Forgiving, frozen=True, kw_only=True):
    """A client that is attached to a session."""

    client_id: str
    name: str = ""
    """The name that the client gives itself, as one line."""
    version: str | None = None
    joined_at: str | None = None  #: When it attached (RFC 3339).
    you: bool = False  #: Whether it is the receiving client.


class PresenceUpdate(AntiphonUpdate, frozen=True, kw_only=True, tag="_antiphon_presence"):
    """All clients that are attached, the earliest first."""

    clients: list[Present]


class InitializeMeta(Forgiving, frozen=True, kw_only=True):
    """In the params of `initialize`, and in its result."""

    client_id: ClientId | None = None  #: The id of the client; in the result for a client with `presence`.
    dialect: str | None = None  #: `proposed`: v2 as first proposed.
    role: str | None = None  #: The client's role at a hub: `observer`, `controller` or `owner`.
    sessions: list[str] | None = None  #: The sessions that the client's token is for, if not for all.
    cwd: str | None = None  #: The hub's working directory, for a client that may create sessions.


class AgentCapabilitiesMeta(Forgiving, frozen=True, kw_only=True):
    """In the capabilities of an agent, next to the confirmed flags."""

    delivery: list[str] = field(default_factory=list)  #: How a prompt may be delivered.
    inject: dict[str, Any] | None = None  #: The queue: `modes` lists how an entry may be delivered.
    replay_after: bool = False  #: Whether a client can follow a session after a given event number.
    fork_at: bool = False  #: Whether `session/fork` takes a `messageId`.
    operations: list[str] = field(default_factory=list)  #: The requests that take an operation id.
    attach: dict[str, Any] | None = None  #: `historyPolicy` lists the policies.
    keeps: bool = True  #: `false`: the sessions end with the agent's process.
    hub: bool = False  #: Whether it is a hub.
    agents: list[str] = field(default_factory=list)  #: The agents of a hub.
    busy: str | None = None  #: What a plain prompt does at a hub while the session works.
    transcript: dict[str, Any] | None = None  #: `format` lists the formats of a hub's transcripts.
    search_sessions: dict[str, Any] | None = None  #: `{}` if a hub has `_antiphon/search_sessions`.
    timeline: bool = False  #: Whether a hub has `_antiphon/timeline`.
    find_files: dict[str, Any] | None = None  #: A hub has `_antiphon/find_files`.
    push: bool = False  #: Whether a hub has `_antiphon/push_subscribe`.
    link: bool = False  #: Whether a hub has `_antiphon/link`.
    list_folders: dict[str, Any] | None = None  #: `{}`: a hub has `_antiphon/list_folders`.
    list_agents: dict[str, Any] | None = None  #: Announces `_antiphon/list_agents` of a hub.
    add_agent: dict[str, Any] | None = None  #: Announces `_antiphon/add_agent` of a hub.
    hubs: bool = False  #: Whether a hub has `_antiphon/hubs`: it shares its store with other hubs.
