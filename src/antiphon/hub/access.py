"""Where a request comes from: checks that keep strange pages out; and the hub's own token, in its file.

Loopback is no authentication (invariant 11): every page that a browser shows can reach it.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path

from antiphon.errors import LocalError
from antiphon.hub.public_url import host_of

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?", re.ASCII)
"""A name or address with or without a port, and nothing else: no user, no path."""


def new_token() -> str:
    return secrets.token_urlsafe(32)


def keep_token(path: Path) -> str:
    """The token in a file, which is made if it is not there: readable for its owner alone."""
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_token(path)
    with os.fdopen(made, "w") as file:
        file.write(token := new_token())
    return token


def _read_token(path: Path) -> str:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise LocalError(f"{path} can be read by others: `chmod 600` it, or remove it to get another token")
    token = path.read_text().strip()
    if not token:
        raise LocalError(f"{path} is empty: remove it to get a token")
    return token


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there. A name that is not known to be so is not."""
    if host.lower() in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Gate:
    """The names by which a hub is reached, and the pages that may reach it."""

    def __init__(
        self, *, hosts: Collection[str] = (), origins: Collection[str] = (), public: str | None = None
    ) -> None:
        """`hosts` are names beside those of loopback under which the hub is reached; `origins` are pages
        beside its own that may reach it. `public` is the origin of its page behind a reverse proxy
        (`read_public_url`)."""
        self._public = public
        self._public_host = None if public is None else host_of(public)
        named = {host.lower().strip("[]") for host in hosts}
        self._hosts = LOOPBACK | named | ({self._public_host} if self._public_host else set())
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def refusal(self, headers: Mapping[str, str]) -> str | None:
        """Why a request is none of ours, by its `Host` and, from a browser, its `Origin`."""
        if _name(headers.get("Host", "").lower()) not in self._hosts:  # a name made to lead here is not ours
            return "This is not the host you asked for."
        origin = headers.get("Origin", "").lower()
        if origin and not self.is_own(headers) and origin not in self._origins:
            return "Pages of this origin are not let in."
        return None

    def is_own(self, headers: Mapping[str, str]) -> bool:
        """Whether a page of the hub itself asks, and says so. At the public name that is the public origin
        to the letter: a page over plain HTTP, or at another port, is somebody else's."""
        origin, host = headers.get("Origin", "").lower(), headers.get("Host", "").lower()
        if self._public is not None and (origin == self._public or _name(host) == self._public_host):
            return origin == self._public
        return origin in (f"http://{host}", f"https://{host}")


def _name(host: str) -> str | None:
    """The name in a `Host` header; `None` where the header is not one."""
    found = _HOST.fullmatch(host)
    return None if found is None else found[1] or found[2]
