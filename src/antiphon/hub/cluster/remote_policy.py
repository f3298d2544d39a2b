"""RemotePolicy: what a client of another hub may do. That hub has checked its token."""

from __future__ import annotations

from antiphon.hub.access.tokens import OWNER_NAME
from antiphon.hub.quotas import QueuedBytes
from antiphon.server.access import AccessPolicy, PolicySession


class RemotePolicy(AccessPolicy):
    def __init__(self, credential: str | None, queued_bytes: QueuedBytes) -> None:
        self.credential = credential
        self._queued_bytes = queued_bytes

    def queues(self, session: PolicySession, message_id: str, size: int) -> None:
        self._queued_bytes.take(self.credential or OWNER_NAME, session, message_id, size)
