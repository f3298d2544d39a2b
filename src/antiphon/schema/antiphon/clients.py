"""Clients as the other clients of a session see them."""

from __future__ import annotations

from antiphon.schema.wire import Forgiving, OwnUpdate


class Who(Forgiving, frozen=True, kw_only=True):
    """A client by its id and name."""

    client_id: str
    """The id of the client. It stays the same over several connections if the client gives it itself."""
    name: str = ""
    """The name that the client gives itself, as one line."""

    def to_meta(self) -> dict[str, str]:
        """Return it as it stands in a `_meta`."""
        return {"clientId": self.client_id, "name": self.name}


class Present(Forgiving, frozen=True, kw_only=True):
    """A client that is attached to a session."""

    client_id: str
    name: str = ""
    """The name that the client gives itself, as one line."""
    version: str | None = None
    joined_at: str | None = None  #: When it attached (RFC 3339).
    you: bool = False  #: Whether it is the client that gets this.


class PresenceUpdate(OwnUpdate, frozen=True, kw_only=True, tag="_antiphon_presence"):
    """All clients that are attached, the earliest first."""

    clients: list[Present]
