"""The addresses of push services. Clients choose them, so the hub must not be led into its own network.

A name is resolved once, every address that it has must be public, and the request goes to one of these: a
name that resolves to another address a moment later gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from antiphon.errors import LocalError
from antiphon.hub.access.origins import DEFAULT_PORTS, is_loopback

LONGEST = 1000
"""Characters of an endpoint."""


class ForbiddenAddress(LocalError):
    """An endpoint to which the hub sends nothing."""


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a name. Raises `OSError`."""


async def resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Endpoint(NamedTuple):
    """Where a push message goes."""

    address: str
    """The IP address."""
    port: int
    secure: bool
    target: str
    """The path and the query."""
    host: str
    """The `Host` header."""
    name: str
    """The name that the certificate has to be for."""
    origin: str


class PushAddresses:
    """Checks endpoints."""

    def __init__(self, allowed: Collection[str] = (), *, resolve: Resolve = resolve) -> None:
        """`allowed`: origins of push services on private addresses. A loopback one may be without TLS. Raises
        `LocalError` for others."""
        self._resolve = resolve
        self._allowed = frozenset(_allowed(each) for each in allowed)

    def check(self, endpoint: str) -> str:
        """Return the origin of an endpoint. Raises `ForbiddenAddress` for one that is wrong by itself."""
        parts = _split(endpoint)
        origin = _origin(parts)
        if origin not in self._allowed:
            if parts.scheme != "https":
                raise ForbiddenAddress("the address of a push service needs https")
            if _is_address(parts.hostname or "") and not _is_public(parts.hostname or ""):
                raise ForbiddenAddress("a push service needs a public address")
        return origin

    async def find(self, endpoint: str) -> Endpoint:
        """Return where to send. Raises `ForbiddenAddress`, or `OSError` if the name is unknown."""
        origin, parts = self.check(endpoint), _split(endpoint)
        name, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
        addresses = [name] if _is_address(name) else await self._resolve(name, port)
        if not addresses:
            raise OSError("the name has no address")
        if origin not in self._allowed and not all(map(_is_public, addresses)):
            raise ForbiddenAddress("a push service needs a public address")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        chosen = addresses[0].partition("%")[0]
        return Endpoint(chosen, port, parts.scheme == "https", target, parts.netloc, name, origin)


def _split(endpoint: str) -> SplitResult:
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")  # what cannot be written so cannot be resolved
    except ValueError:
        raise ForbiddenAddress("the address of a push service cannot be read") from None
    if (
        not host
        or port == 0
        or parts.scheme not in DEFAULT_PORTS
        or "@" in parts.netloc
        or len(endpoint) > LONGEST
        or not endpoint.isascii()
        or not endpoint.isprintable()
        or " " in endpoint
    ):
        raise ForbiddenAddress("the address of a push service cannot be read")
    return parts


def _origin(parts: SplitResult) -> str:
    name = parts.hostname or ""
    port = "" if parts.port in (None, DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}{port}"


def _allowed(given: str) -> str:
    try:
        parts = _split(given)
    except ForbiddenAddress:
        raise LocalError(f"expected a push service such as https://push.example, got {given!r}") from None
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise LocalError(f"expected only the host of a push service, got {given!r}")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise LocalError(f"the push service {given} needs https")
    return _origin(parts)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        # An IPv4 address may be hidden in one of IPv6.
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public(str(inner))
        # All other public addresses are of this network. Python takes those that nobody has for public, and
        # some of them lead into networks: of sites (fec0::), of a gateway of one's own (64:ff9b:1::).
        if found not in _UNICAST:
            return False
    return found.is_global and not found.is_multicast and found not in _PROTOCOLS


_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""Addresses that a gateway translates to IPv4."""
_UNICAST = ipaddress.IPv6Network("2000::/3")
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
