"""The address under which browsers reach a hub: that of the reverse proxy in front of it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from antiphon.errors import LocalError

DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_](?:[-a-z0-9_.]*[a-z0-9_])?|[0-9a-f:.]+", re.ASCII)


def read_public_url(given: str) -> str:
    """The origin of a URL, as browsers write it: `https://hub.example`. Raises `LocalError`."""
    try:
        parts = urlsplit(given)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError:
        scheme, host, port = "", "", None
    if scheme not in DEFAULT_PORTS or not _HOST.fullmatch(host) or not given.isascii() or "@" in given:
        raise LocalError(f"expected a public URL such as https://hub.example, got {given!r}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise LocalError(f"the page works at the root of a host only: {given!r} has more than a host")
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" + ("" if port in (None, DEFAULT_PORTS[scheme]) else f":{port}")


def host_of(origin: str) -> str:
    return urlsplit(origin).hostname or ""
