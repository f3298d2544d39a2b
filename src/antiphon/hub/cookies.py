"""Cookies: what browsers show that were let in by a link.

Each is kept as a token is, hashed, with a role and an end, under a name by which it can be revoked; so it
outlives the hub's process. But it is good as a cookie alone, and a token is none.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from msgspec import Struct

from antiphon.hub.roles import Role
from antiphon.hub.tokens import Grant, Kept, Tokens, hashed, make_token

SECONDS = 7 * 86400.0
MANY = 200
"""How many browsers may be in at a time; of more, those that came first have to come again."""


class Invitation(Struct, frozen=True, kw_only=True):
    """What whoever follows a link may do."""

    role: Role
    sessions: frozenset[str] | None = None


class Cookies:
    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.time) -> None:
        self._tokens = tokens
        self._clock = clock

    def issue(self, invitation: Invitation) -> tuple[str, Grant]:
        """A cookie's secret, and whom it lets in. Raises where what is kept cannot be trusted or written."""
        now = self._clock()
        with self._tokens.changing() as kept:
            kept[:] = _room([each for each in kept if not (each.cookie and _over(each, now))])
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
        """Make it void: who is in with it is sent away."""
        given = hashed(secret)
        with self._tokens.changing() as kept:
            kept[:] = [
                each for each in kept if not (each.cookie and secrets.compare_digest(each.hash, given))
            ]


def _over(cookie: Kept, now: float) -> bool:
    return cookie.expires is not None and cookie.expires <= now


def _room(kept: list[Kept]) -> list[Kept]:
    """Without the oldest cookies, where there is no room for another."""
    cookies = [each for each in kept if each.cookie]
    old = {each.id for each in cookies[: max(0, len(cookies) - MANY + 1)]}
    return [each for each in kept if each.id not in old]


def _name(kept: list[Kept]) -> str:
    taken = {each.name for each in kept}
    while (name := f"browser-{secrets.token_hex(3)}") in taken:
        pass
    return name
