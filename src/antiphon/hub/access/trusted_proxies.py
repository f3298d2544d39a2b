"""The address of a client behind reverse proxies that the hub's operator trusts.

A proxy connects in the client's place, so the socket has the proxy's address. The proxy writes the address
that it saw into `X-Forwarded-For` or `Forwarded` (RFC 7239), behind what was there before. Everything left of
what a trusted proxy wrote may be the client's own invention. So the client is the right-most hop that is no
trusted proxy, and the headers count only where the socket itself comes from a trusted proxy.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable, Mapping

from antiphon.errors import LocalError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PAIR = re.compile(r"""[ \t]*([-!#$%&'*+.^_`|~\w]+)=("(?:[^"\\]|\\.)*"|[^\s",;]*)[ \t]*""", re.ASCII)
_BLANK = re.compile(r"[ \t]*")
_WITH_PORT = re.compile(r"(?:\[([^\[\]]+)\]|([0-9.]+))(?::[0-9]{1,5})?", re.ASCII)


class UnclearClient(ValueError):
    """A trusted proxy passed on headers that do not say who the client is: they cannot be read, or they
    contradict each other."""


class TrustedProxies:
    def __init__(self, networks: Iterable[str] = ()) -> None:
        """`networks` are addresses or CIDR blocks. Raises `LocalError`."""
        self._networks = [read_network(network) for network in networks]

    def client_of(self, peer: str, headers: Mapping[str, str]) -> str:
        """The client's address. Raises `UnclearClient`."""
        return client_address(peer, headers, self._networks)


def read_network(text: str) -> Network:
    """Read an address or a CIDR block. Raises `LocalError`."""
    try:
        network = ipaddress.ip_network(text.strip())
    except ValueError as error:
        raise LocalError(f"a trusted proxy is an address or a CIDR block: {error}") from error
    if network.prefixlen == 0:
        raise LocalError(f"{network} trusts every address: name the proxies' own addresses")
    return network


def client_address(peer: str, headers: Mapping[str, str], trusted: Collection[Network]) -> str:
    """Find the client of a request that came over a socket from `peer`.

    `headers` has each header once; lines of one name are joined by commas, in their order. Applying this
    twice gives the same address. Raises `UnclearClient`.
    """
    socket = _address(peer.partition("%")[0])
    if socket is None or not _trusts(trusted, socket):
        return peer
    found = {
        _last_untrusted(socket, read(headers[name]), trusted)
        for name, read in _READERS.items()
        if name in headers
    }
    if len(found) > 1:
        # A proxy writes one of them and passes on the other as the client sent it: nobody can say which.
        raise UnclearClient("X-Forwarded-For and Forwarded name different clients")
    return str(next(iter(found), socket))


def _last_untrusted(socket: Address, hops: list[str], trusted: Collection[Network]) -> Address:
    """Walk from the socket towards the client, as far as each hop is vouched for by a trusted proxy."""
    client = socket
    for hop in reversed(hops):
        address = _address(hop)
        if address is None:  # "unknown", a made-up name: the last known hop stands for what is behind it
            break
        client = address
        if not _trusts(trusted, address):
            break
    return client


def _trusts(trusted: Collection[Network], address: Address) -> bool:
    return any(address in network for network in trusted)


def _address(text: str) -> Address | None:
    """An IPv4 or IPv6 address, with or without a port; IPv4 inside IPv6 is IPv4."""
    with_port = _WITH_PORT.fullmatch(text)
    bare = text if with_port is None else with_port[1] or with_port[2]
    if "%" in bare:  # a zone is free text, and means nothing on another machine
        return None
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _x_forwarded_for(value: str) -> list[str]:
    return [hop.strip() for hop in value.split(",")]


def _forwarded(value: str) -> list[str]:
    """The `for` of each element; "unknown" where an element has none. Raises `UnclearClient`: a quote that a
    client left open would swallow what the proxy wrote behind it."""
    hops, pairs, at = [], dict[str, str](), 0
    while True:
        pair = _PAIR.match(value, at)
        if pair is not None:
            name = pair[1].lower()
            if name in pairs:
                raise UnclearClient(f"Forwarded has {name} twice for one hop")
            pairs[name] = _unquoted(pair[2])
            at = pair.end()
        else:
            blank = _BLANK.match(value, at)
            at = at if blank is None else blank.end()
        end = value[at : at + 1]
        if end not in ("", ",", ";"):
            raise UnclearClient("Forwarded cannot be read")
        if end != ";":
            hops.append(pairs.get("for", "unknown"))
            pairs = {}
        if not end:
            return hops
        at += 1


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value


_READERS: Mapping[str, Callable[[str], list[str]]] = {
    "X-Forwarded-For": _x_forwarded_for,
    "Forwarded": _forwarded,
}
