"""The encryption of Web Push messages (RFC 8291): only the browser that subscribed can read them.

One record of `aes128gcm` (RFC 8188), with a key that is made for each message. Pure, but for chance.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import struct

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

RECORD = 4096
"""Bytes of a record. Push services take messages of this size at least (RFC 8030, 7.2)."""
LARGEST = RECORD - 86 - 16 - 1
"""Bytes of the largest message: a record without its header, its tag and its delimiter."""
PADDED = 512
"""Messages are padded to a multiple of this, so that their size tells a push service little."""
AUTH_BYTES = 16
POINT_BYTES = 65
LAST_RECORD = b"\x02"


def encode_base64(data: bytes) -> str:
    """Return base64url without padding, as Web Push writes keys."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64(text: str) -> bytes:
    """Return the bytes of base64url with or without padding. Raises `ValueError`."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64url: {error}") from None


def point_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the public key as an uncompressed point, as Web Push writes it."""
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def check_keys(point: bytes, auth: bytes) -> None:
    """Raise `ValueError` for keys of a subscription that cannot be used."""
    if len(auth) != AUTH_BYTES or len(point) != POINT_BYTES:
        raise ValueError(f"expected a key of {POINT_BYTES} bytes and a secret of {AUTH_BYTES}")
    _public(point)


def _public(point: bytes) -> ec.EllipticCurvePublicKey:
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from None


def encrypt(
    message: bytes,
    point: bytes,
    auth: bytes,
    *,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
    padded: int = PADDED,
) -> bytes:
    """Return the body of a push message.

    point, auth: the public key and the secret of the subscription
    sender, salt: those of the test vectors; by default new ones
    padded: the message is padded to a multiple of it

    Raises `ValueError` for a message that is too large, or a key that is no point of the curve.
    """
    if len(message) > LARGEST:
        raise ValueError(f"a push message has at most {LARGEST} bytes, got {len(message)}")
    sender = sender or ec.generate_private_key(ec.SECP256R1())
    salt = salt or os.urandom(16)
    own, receiver = point_of(sender), _public(point)
    shared = sender.exchange(ec.ECDH(), receiver)
    secret = _derive(auth, shared, b"WebPush: info\0" + point + own, 32)
    key = _derive(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(salt, secret, b"Content-Encoding: nonce\0", 12)
    fill = min(-len(message) % padded, LARGEST - len(message))
    sealed = AESGCM(key).encrypt(nonce, message + LAST_RECORD + b"\0" * fill, None)
    return salt + struct.pack("!IB", RECORD, len(own)) + own + sealed


def _derive(salt: bytes, material: bytes, info: bytes, size: int) -> bytes:
    """HKDF with SHA-256, of one block."""
    key = hmac.digest(salt, material, hashlib.sha256)
    return hmac.digest(key, info + b"\x01", hashlib.sha256)[:size]
