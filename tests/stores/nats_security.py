"""Certificates, keys and accounts for NATS servers, made anew for each test."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import nkeys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority, with its certificate in the file `ca`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.ca = folder / f"{name}.pem"
        self.ca.write_bytes(certificate)

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType
    ) -> bytes:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=1))
            .not_valid_after(now + timedelta(days=1))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def server_settings(self, address: str = "127.0.0.1") -> str:
        """Return the settings of a server with a certificate for an address."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nats")]),
            key,
            x509.BasicConstraints(ca=False, path_length=None),
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]),
        )
        (self._folder / "server.pem").write_bytes(certificate)
        (self._folder / "server.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return (
            f'tls {{ cert_file: "{self._folder / "server.pem"}", key_file: "{self._folder / "server.key"}" }}'
        )


class Key:
    """An NKEY: of an operator, an account or a user."""

    def __init__(self, prefix: int) -> None:
        self.seed = nkeys.encode_seed(os.urandom(32), prefix).decode()
        self._pair = nkeys.from_seed(bytearray(self.seed.encode()))
        self.public: str = self._pair.public_key.decode()

    def token(self, subject: str, name: str, claims: dict[str, Any]) -> str:
        """Return a JWT about a subject, signed with this key, as nsc makes them."""
        body = {"iss": self.public, "sub": subject, "name": name, "iat": 1_700_000_000, "nats": claims}
        digest = hashlib.sha256(json.dumps(body).encode()).digest()
        body["jti"] = base64.b32encode(digest).decode().rstrip("=")
        parts = [_encoded(json.dumps(each)) for each in ({"typ": "JWT", "alg": "ed25519-nkey"}, body)]
        signature = self._pair.sign(".".join(parts).encode())
        return ".".join((*parts, _encoded(signature)))


def _encoded(data: str | bytes) -> str:
    raw = data.encode() if isinstance(data, str) else data
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def user_key() -> Key:
    return Key(nkeys.PREFIX_BYTE_USER)


class Operator:
    """An operator with one account that may use JetStream."""

    def __init__(self) -> None:
        self._operator = Key(nkeys.PREFIX_BYTE_OPERATOR)
        self._account = Key(nkeys.PREFIX_BYTE_ACCOUNT)
        self._system = Key(nkeys.PREFIX_BYTE_ACCOUNT)

    def _account_token(self, key: Key, **limits: int) -> str:
        unlimited = {"subs": -1, "data": -1, "payload": -1, "conn": -1, "imports": -1, "exports": -1}
        claims = {"type": "account", "version": 2, "limits": {**unlimited, "wildcards": True, **limits}}
        return self._operator.token(key.public, "account", claims)

    def server_settings(self) -> str:
        operator = self._operator.token(self._operator.public, "operator", {"type": "operator", "version": 2})
        account = self._account_token(self._account, mem_storage=-1, disk_storage=-1, streams=-1, consumer=-1)
        return (
            f"operator: {operator}\nsystem_account: {self._system.public}\nresolver: MEMORY\n"
            f"resolver_preload: {{ {self._account.public}: {account}\n"
            f"{self._system.public}: {self._account_token(self._system)} }}"
        )

    def credentials(self) -> str:
        """Return the credentials file of a new user of the account."""
        user = user_key()
        claims = {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}
        token = self._account.token(user.public, "user", claims)
        return (
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )
