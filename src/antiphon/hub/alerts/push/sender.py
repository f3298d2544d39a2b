"""Sends one push message to the push service of one browser (RFC 8030).

A client chose the service, so little of its answer is read: the head of it, and no body.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence

import h11

from antiphon.errors import InvalidParams
from antiphon.hub.alerts.channel import DeliveryFailed
from antiphon.hub.alerts.push.addresses import ForbiddenAddress, PushAddresses
from antiphon.hub.alerts.push.encryption import check_keys, decode_base64, encrypt
from antiphon.hub.alerts.push.message import PushMessage
from antiphon.hub.alerts.push.vapid import Vapid

SECONDS = 10.0
"""How long one attempt may take."""
PAUSES = (2.0, 15.0)
"""Seconds before each further attempt."""
MOST_READ = 16 * 1024
"""Bytes of an answer that are read."""
GONE = (404, 410)
"""The browser has no such subscription any more."""


class PushSender:
    def __init__(
        self,
        vapid: Vapid,
        addresses: PushAddresses,
        *,
        tls: ssl.SSLContext,
        seconds: float = SECONDS,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        """`tls` trusts push services."""
        self.public_key = vapid.public
        self._vapid = vapid
        self._addresses = addresses
        self._tls = tls
        self._seconds = seconds
        self._pauses = pauses

    def check(self, endpoint: str, point: str, auth: str) -> None:
        """Raise `InvalidParams` for a subscription to which nothing could be sent."""
        try:
            self._addresses.check(endpoint)
            check_keys(decode_base64(point), decode_base64(auth))
        except (ForbiddenAddress, ValueError) as error:
            raise InvalidParams(f"the subscription cannot be used: {error}") from None

    async def send(self, endpoint: str, point: str, auth: str, message: PushMessage) -> bool:
        """Send a message, again if the push service fails. Return whether the browser still has the
        subscription. Raises `DeliveryFailed`."""
        keys = decode_base64(point), decode_base64(auth)
        body = await asyncio.to_thread(encrypt, message.content, *keys)
        for pause in (*self._pauses, None):
            try:
                async with asyncio.timeout(self._seconds):
                    status = await self._post(endpoint, message, body)
            except TimeoutError:
                problem = f"no answer within {self._seconds:g} seconds"
            except ForbiddenAddress as error:
                raise DeliveryFailed(str(error)) from None
            except ssl.SSLCertVerificationError:
                problem = "its certificate is not trusted, or for another name"
            except (OSError, EOFError) as error:
                problem = type(error).__name__  # its text may have the address, which is a secret
            except h11.RemoteProtocolError:
                problem = "the answer is not HTTP, or its head too long"
            else:
                if 200 <= status < 300:
                    return True
                if status in GONE:
                    return False
                problem = f"status {status}"
                if status < 500 and status != 429:
                    raise DeliveryFailed(problem)
            if pause is None:
                raise DeliveryFailed(problem)
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _post(self, endpoint: str, message: PushMessage, body: bytes) -> int:
        """Return the status of one attempt. Redirects are not followed."""
        to = await self._addresses.find(endpoint)
        headers = [
            ("Host", to.host),
            ("TTL", str(message.ttl)),
            ("Urgency", message.urgency),
            ("Topic", message.topic),
            ("Content-Encoding", "aes128gcm"),
            ("Content-Type", "application/octet-stream"),
            ("Content-Length", str(len(body))),
            ("Authorization", self._vapid.authorization(to.origin)),
            ("Connection", "close"),
        ]
        http, request = (
            h11.Connection(h11.CLIENT),
            h11.Request(method="POST", target=to.target, headers=headers),
        )
        written = b"".join(http.send(part) or b"" for part in (request, h11.Data(body), h11.EndOfMessage()))
        tls, name = (self._tls, to.name) if to.secure else (None, None)
        reader, writer = await asyncio.open_connection(to.address, to.port, ssl=tls, server_hostname=name)
        try:
            writer.write(written)
            await writer.drain()
            return await _read_status(reader, http)
        finally:
            writer.transport.abort()


async def _read_status(reader: asyncio.StreamReader, http: h11.Connection) -> int:
    """Read the head of an answer. Raises `RemoteProtocolError` if it is not HTTP, or too long."""
    left = MOST_READ
    while left:
        data = await reader.read(left)
        left -= len(data)
        http.receive_data(data)
        while (event := http.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                return event.status_code
    raise h11.RemoteProtocolError("the head is too long")
