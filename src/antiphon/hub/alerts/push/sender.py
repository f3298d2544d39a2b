"""Sends one push message to the push service of one browser (RFC 8030).

A client chose the service, so no more of its answer is read than the first line.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import Sequence

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
FIRST_LINE = 4096
"""Bytes."""
_STATUS = re.compile(rb"HTTP/1\.[01] ([2-5]\d\d)(?: |\r)")
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
            except (ValueError, asyncio.LimitOverrunError):
                problem = "the answer is not HTTP"
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
        """Return the status of one attempt. Redirects are not followed. Raises `ValueError` for an answer
        that is none."""
        to = await self._addresses.find(endpoint)
        headers = {
            "Host": to.host,
            "TTL": str(message.ttl),
            "Urgency": message.urgency,
            "Topic": message.topic,
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "Content-Length": str(len(body)),
            "Authorization": self._vapid.authorization(to.origin),
            "Connection": "close",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        tls, name = (self._tls, to.name) if to.secure else (None, None)
        reader, writer = await asyncio.open_connection(
            to.address, to.port, limit=FIRST_LINE, ssl=tls, server_hostname=name
        )
        try:
            writer.write(f"POST {to.target} HTTP/1.1\r\n{head}\r\n".encode("ascii") + body)
            await writer.drain()
            found = _STATUS.match(await reader.readuntil(b"\r\n"))
        finally:
            with contextlib.suppress(OSError):
                writer.transport.abort()
        if found is None:
            raise ValueError("expected the status of an answer")
        return int(found[1])
