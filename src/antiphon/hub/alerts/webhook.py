"""Webhooks: `POST` each alert to an address of the operator (`antiphon serve --webhook`).

Requests are signed as Standard Webhooks has it: an HMAC-SHA256 over id, time and body. The id of an alert is
the same for each attempt, so a receiver can drop what it has already. Redirects are not followed: the address
may be a secret, and the body is for its owner alone.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
import ssl
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpx

from antiphon.errors import LocalError
from antiphon.hub.access.origins import is_loopback
from antiphon.hub.alerts.alert import Alert
from antiphon.hub.alerts.channel import DeliveryFailed

PREFIX = "whsec_"
SECRET_BYTES = 32
SECONDS = 10.0
"""How long one attempt may take."""
PAUSES = (1.0, 5.0, 20.0)
"""Seconds before each further attempt."""
PASSING = frozenset({408, 425, 429})
"""Statuses, besides those from 500, after which another attempt may succeed."""


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def read_secret(given: str) -> bytes:
    """Return the key of a secret as it is written (`whsec_…`). Raises `LocalError`."""
    encoded = given.strip().removeprefix(PREFIX)
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < 24:
        raise LocalError(f"a webhook secret is {PREFIX} and at least 24 bytes in base64")
    return key


def check_url(url: str) -> str:
    """Return the host of a webhook. Raises `LocalError` for an address that cannot be one. The message does
    not repeat the address, which may be a secret."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise LocalError("expected a webhook address such as https://example.com/hook")
    if parts.scheme == "http" and not is_loopback(host):
        raise LocalError(f"a webhook at {host} needs https: others on the way could read what it gets")
    return host


def signature(key: bytes, id: str, at: int, body: bytes) -> str:
    signed = hmac.digest(key, f"{id}.{at}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(signed).decode()


class Webhook:
    def __init__(
        self,
        url: str,
        secret: str,
        *,
        seconds: float = SECONDS,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        """Raises `LocalError` for an address or a secret that cannot be used."""
        self.host = check_url(url)
        self._url = url
        self._key = read_secret(secret)
        self._seconds = seconds
        self._pauses = pauses
        self._tls: ssl.SSLContext | bool = not url.startswith("http:")

    async def deliver(self, alert: Alert) -> None:
        """Send an alert, again if the receiver fails. Raises `DeliveryFailed`."""
        if self._tls is True:  # made once, in a thread: it reads all certificates of the system
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        body = alert.to_json()
        for pause in (*self._pauses, None):
            problem, passing = await self._post(alert.id, body)
            if not problem:
                return
            if not passing or pause is None:
                raise DeliveryFailed(f"{self.host}: {problem}")
            await asyncio.sleep(pause)

    async def _post(self, id: str, body: bytes) -> tuple[str, bool]:
        """Return the problem of one attempt, if it had one, and whether another attempt may help."""
        at = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "antiphon",
            "webhook-id": id,
            "webhook-timestamp": str(at),
            "webhook-signature": signature(self._key, id, at, body),
        }
        try:
            async with (
                asyncio.timeout(self._seconds),
                httpx.AsyncClient(timeout=None, verify=self._tls) as client,
                client.stream("POST", self._url, content=body, headers=headers) as response,
            ):
                status = response.status_code  # the body is not read
        except TimeoutError:
            return f"no answer within {self._seconds:g} seconds", True
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return type(error).__name__, True  # its text may have the address
        if 200 <= status < 300:
            return "", False
        return f"status {status}", status >= 500 or status in PASSING
