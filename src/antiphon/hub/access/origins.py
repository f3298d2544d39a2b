"""Origin checks: the host names of a hub, and the pages that may call it.

A loopback address does not authenticate anybody (invariant 11): every page in a browser can reach it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from antiphon.errors import LocalError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST_HEADER = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?", re.ASCII)
"""A name or address with an optional port. User info and paths do not match."""
_HOST_NAME = re.compile(r"[a-z0-9_](?:[-a-z0-9_.]*[a-z0-9_])?|[0-9a-f:.]+", re.ASCII)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches `host`. A name other than `localhost` does not count."""
    if host.lower() in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_public_url(given: str) -> str:
    """Return the origin of a URL as browsers write it, such as `https://hub.example`. Raises `LocalError`."""
    try:
        parts = urlsplit(given)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError:
        scheme, host, port = "", "", None
    if scheme not in DEFAULT_PORTS or not _HOST_NAME.fullmatch(host) or not given.isascii() or "@" in given:
        raise LocalError(f"expected a public URL such as https://hub.example, got {given!r}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise LocalError(f"the page works at the root of a host only: {given!r} has more than a host")
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" + ("" if port in (None, DEFAULT_PORTS[scheme]) else f":{port}")


class OriginPolicy:
    """Checks the `Host` and `Origin` headers of requests."""

    def __init__(
        self, *, hosts: Collection[str] = (), origins: Collection[str] = (), public: str | None = None
    ) -> None:
        """
        hosts: names of the hub in addition to those of loopback.
        origins: origins of other pages that may call the hub.
        public: the origin of the hub's page behind a reverse proxy (`read_public_url`).
        """
        self._public = public
        self._public_host = None if public is None else urlsplit(public).hostname or ""
        named = {host.lower().strip("[]") for host in hosts}
        self._hosts = LOOPBACK | named | ({self._public_host} if self._public_host else set())
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def refusal(self, headers: Mapping[str, str]) -> str | None:
        """Return why a request is refused, by its `Host` and, from a browser, its `Origin`."""
        if _host_name(headers.get("Host", "").lower()) not in self._hosts:  # DNS rebinding
            return "This is not the host you asked for."
        origin = headers.get("Origin", "").lower()
        if origin and not self.is_own(headers) and origin not in self._origins:
            return "Pages of this origin are not let in."
        return None

    def is_own(self, headers: Mapping[str, str]) -> bool:
        """Return whether `Origin` names the hub's own page. At the public host only the exact public origin
        does: a page over plain HTTP or at another port belongs to somebody else."""
        origin, host = headers.get("Origin", "").lower(), headers.get("Host", "").lower()
        if self._public is not None and (origin == self._public or _host_name(host) == self._public_host):
            return origin == self._public
        return origin in (f"http://{host}", f"https://{host}")


def _host_name(header: str) -> str | None:
    """Return the name in a `Host` header, or `None` for a malformed header."""
    found = _HOST_HEADER.fullmatch(header)
    return None if found is None else found[1] or found[2]
