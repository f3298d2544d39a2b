"""VAPID (RFC 8292): the hub identifies itself to push services by a key of its own.

A browser subscribes with the public key, so nobody else can send to the subscription.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from antiphon.errors import LocalError
from antiphon.hub.alerts.push.encryption import encode_base64, point_of
from antiphon.private_files import read_private, write_private

SECONDS = 12 * 3600
"""How long a token is valid; RFC 8292 allows 24 hours."""
RENEWED = 3600
"""Seconds before its end at which a token is made anew."""
CONTACT = "mailto:antiphon@example.com"
"""Whom a push service may contact, for a hub without a public address. Some services require a contact and
refuse `localhost`."""
MOST_TOKENS = 100


def load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key in a file, or make one. Raises `LocalError`, or `OSError`."""
    stored = read_private(path)
    if stored is None:
        made = ec.generate_private_key(ec.SECP256R1())
        write_private(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return made
    try:
        key = load_pem_private_key(stored, None)
    except (ValueError, TypeError) as error:
        raise LocalError(f"{path} has no key: remove it, and browsers have to subscribe again") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise LocalError(f"{path} has a key of another kind: remove it")
    return key


class Vapid:
    def __init__(
        self,
        key: ec.EllipticCurvePrivateKey,
        *,
        contact: str = CONTACT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._key = key
        self._contact = contact
        self._clock = clock
        self.public = encode_base64(point_of(key))
        self._tokens: dict[str, tuple[float, str]] = {}
        """By the origin of the push service, with the end of each."""

    def authorization(self, origin: str) -> str:
        """Return the `Authorization` header for a push service."""
        now = self._clock()
        until, token = self._tokens.get(origin, (0.0, ""))
        if until - RENEWED < now:
            until = now + SECONDS
            token = self._token({"aud": origin, "exp": int(until), "sub": self._contact})
            if len(self._tokens) >= MOST_TOKENS:
                self._tokens.clear()
            self._tokens[origin] = until, token
        return f"vapid t={token}, k={self.public}"

    def _token(self, claims: dict[str, Any]) -> str:
        """Return a JSON Web Token with an ES256 signature."""
        parts = ({"typ": "JWT", "alg": "ES256"}, claims)
        signed = ".".join(encode_base64(msgspec.json.encode(part)) for part in parts)
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{encode_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
