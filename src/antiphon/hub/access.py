"""Who gets in: a token in a file that only its owner can read, and checks that keep strange pages out.

Loopback is no authentication (invariant 11): every page that a browser shows can reach it.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from antiphon.errors import LocalError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
UNAUTHORIZED = 401
FORBIDDEN = 403


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


class Gate:
    """What an upgrade has to show: the token, a `Host` that is ours and, from a browser, an `Origin` too."""

    def __init__(self, token: str, *, hosts: Collection[str] = (), origins: Collection[str] = ()) -> None:
        """`hosts` are names beside those of loopback under which the hub is reached; `origins` are pages
        beside its own that may reach it."""
        self._token = token.encode()
        self._hosts = LOOPBACK | {host.lower().strip("[]") for host in hosts}
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def check(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Why somebody does not get in: an HTTP status and a line; `None` lets them in."""
        host = headers.get("Host", "").lower()
        if _name(f"//{host}") not in self._hosts:  # a name that was made to lead here is not ours
            return FORBIDDEN, "This is not the host you asked for."
        origin = headers.get("Origin", "").lower()
        if origin and origin not in self._origins and urlsplit(origin).netloc != host:
            return FORBIDDEN, "Pages of this origin are not let in."
        kind, _, given = headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
            return UNAUTHORIZED, "A token is needed: Authorization: Bearer TOKEN"
        return None


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
