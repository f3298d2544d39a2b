"""ReplyInbox: one subscription for the replies to all writes of a connection.

`request` of nats-py does the same, and costs twice as much with each: it makes a random inbox and a deadline
of its own for every request. The requests here are numbered, and the caller has a deadline.
"""

from __future__ import annotations

import asyncio
from itertools import count

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg


class ReplyInbox:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._prefix = f"{client.new_inbox()}."
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Msg]] = {}
        """Requests without a reply, by the subjects of their replies."""

    async def begin(self) -> None:
        """Subscribe. The connection renews the subscription when it is restored."""
        await self._client.subscribe(
            f"{self._prefix}*", cb=self._received, pending_msgs_limit=-1, pending_bytes_limit=-1
        )

    async def _received(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def request(self, subject: str, data: bytes, headers: dict[str, str] | None) -> bytes:
        """Publish a message, and return the reply. Raises `NoRespondersError` if nobody receives it."""
        reply = f"{self._prefix}{next(self._numbers)}"
        waiting = self._waiting[reply] = asyncio.get_running_loop().create_future()
        try:
            await self._client.publish(subject, data, reply=reply, headers=headers)
            message = await waiting
        finally:
            del self._waiting[reply]
        if message.headers and message.headers.get("Status") == "503":
            raise nats.errors.NoRespondersError
        return bytes(message.data)
