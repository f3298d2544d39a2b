"""SessionClients: the clients of one session at this server."""

from __future__ import annotations

from collections.abc import Collection

from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.server.connection import ClientConnection


class SessionClients:
    def __init__(self, session_id: str, connections: Collection[ClientConnection]) -> None:
        """`connections`: all clients of the server."""
        self._session_id = session_id
        self._connections = connections
        self.prompters: dict[str, ClientConnection] = {}
        """The clients whose prompts wait to be taken, by the message ids of the prompts."""

    def all(self) -> list[ClientConnection]:
        """Return the clients attached to the session now, the oldest first."""
        attached = (client for client in self._connections if client.follows(self._session_id))
        return sorted(attached, key=lambda client: client.serial)

    def askable(self) -> list[ClientConnection]:
        """Return the clients that the agent of the session may ask, the oldest first: those that are attached
        to it and may act in it. An agent's requests go to these clients only."""
        return [client for client in self.all() if client.policy.serves(self._session_id)]

    def attached(self) -> list[AttachmentWriter]:
        """Return the attachments of the session."""
        return [client.voices[self._session_id] for client in self.all()]
