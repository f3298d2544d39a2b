"""Cookies of browsers that a login link let in.

A cookie is stored like a token: hashed, with a role, an expiry, and a name by which it can be revoked. So it
outlives the hub's process. A cookie is not accepted as a token, nor a token as a cookie.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from msgspec import Struct

from antiphon.hub.access.tokens import Grant, Kept, Tokens, hashed, make_token
from antiphon.server.method import Role

SECONDS = 7 * 86400.0
MANY = 200
"""Cookies that are valid at a time. A further one replaces the oldest."""


class Invitation(Struct, frozen=True, kw_only=True):
    """The rights that a login link gives."""

    role: Role
    sessions: frozenset[str] | None = None
    name: str = ""
    """The name that the browser gives its user, unless the user chose one before."""


class Cookies:
    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.time) -> None:
        self._tokens = tokens
        self._clock = clock

    def issue(self, invitation: Invitation) -> tuple[str, Grant]:
        """Store a new cookie and return its secret and grant. Raises `LocalError`, or `OSError` on write."""
        now = self._clock()
        with self._tokens.changing() as kept:
            kept[:] = _room([each for each in kept if not (each.cookie and _is_expired(each, now))])
            secret, made = make_token(
                _name(kept),
                invitation.role,
                sessions=invitation.sessions,
                seconds=SECONDS,
                at=now,
                cookie=True,
            )
            kept.append(made)
        return secret, made.grant

    def find(self, secret: str) -> Grant | None:
        return self._tokens.find(secret, cookie=True)

    def drop(self, secret: str) -> None:
        """Revoke a cookie. The hub disconnects its browsers."""
        given = hashed(secret)
        with self._tokens.changing() as kept:
            kept[:] = [
                each for each in kept if not (each.cookie and secrets.compare_digest(each.hash, given))
            ]


def _is_expired(cookie: Kept, now: float) -> bool:
    return cookie.expires is not None and cookie.expires <= now


def _room(kept: list[Kept]) -> list[Kept]:
    """Drop the oldest cookies until there is room for another."""
    cookies = [each for each in kept if each.cookie]
    old = {each.id for each in cookies[: max(0, len(cookies) - MANY + 1)]}
    return [each for each in kept if each.id not in old]


def _name(kept: list[Kept]) -> str:
    taken = {each.name for each in kept}
    while (name := f"browser-{secrets.token_hex(3)}") in taken:
        pass
    return name
