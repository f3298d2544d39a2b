"""The addresses of NATS servers: how they are given, and how they are shown. Nothing here imports NATS."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from antiphon.errors import StoreError


def read_servers(given: str) -> list[str]:
    """Return the addresses in a list such as `nats://a:4222,b,c`. Raises `StoreError`.

    The first address has the scheme for all that leave it out.
    """
    addresses = [each.strip() for each in given.split(",")]
    scheme, separator, _ = addresses[0].partition("://")
    servers = [each if "://" in each else f"{scheme}{separator}{each}" for each in addresses]
    for address, server in zip(addresses, servers, strict=True):
        if not _is_server(server):
            # A password may be in any part of a list that cannot be read.
            shown = "something else" if "@" in given else repr(address)
            raise StoreError(f"NATS addresses must be like nats://host:4222 or tls://host:4222, got {shown}")
    if len({urlsplit(server).scheme for server in servers}) > 1:
        raise StoreError("all NATS addresses must begin with nats://, or all with tls://")
    return servers


def shown_servers(servers: list[str]) -> str:
    """Return addresses as text for people, without users and passwords."""
    return ", ".join(re.sub(r"//.*@", "//", server) for server in servers)


def _is_server(address: str) -> bool:
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("nats", "tls") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no number, or too large
        return False
    return known and not (parts.path.strip("/") or parts.query or parts.fragment)
