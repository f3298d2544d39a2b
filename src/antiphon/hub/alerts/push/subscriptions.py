"""Subscriptions: the browsers that get Web Push, each with the token that it subscribed with.

They are kept in a private file, because an address of a push service is a secret, too. A subscription ends
with its token, and when the push service says that the browser has none any more.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import LocalError
from antiphon.hub.access.limits import limited
from antiphon.hub.access.tokens import Grant, Tokens
from antiphon.private_files import read_private, write_private
from antiphon.schema.antiphon.clients import Who

logger = logging.getLogger("antiphon.hub.alerts")

EACH = 10
"""Subscriptions of one token. A further one replaces the oldest."""
ALL = 200


class Subscription(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    endpoint: str
    """The address at the push service."""
    point: str
    """The public key of the browser, base64url."""
    auth: str
    """The secret of the browser, base64url."""
    token: str
    """The `Tokens.identity` of the token."""
    who: Who
    """The client that subscribed, which answers from a notification."""
    turns: bool
    """Whether it also wants to hear of turns that ended."""


class Subscriptions:
    def __init__(self, path: Path, tokens: Tokens) -> None:
        self._path = path
        self._tokens = tokens
        self._kept: dict[str, Subscription] = {}
        """By id, the oldest first."""
        self._writing = asyncio.Lock()
        self._load()

    def _load(self) -> None:
        try:
            stored = read_private(self._path)
            found = [] if stored is None else msgspec.json.decode(stored, type=list[Subscription])
        except (OSError, LocalError, msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("push subscriptions not read: %s: %s", self._path.name, error)
            return
        self._kept = {each.id: each for each in found[:ALL]}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, id: str) -> tuple[Subscription, Grant] | None:
        """Return a subscription and the grant of its token, if both are valid."""
        kept = self._kept.get(id)
        grant = None if kept is None else self._tokens.holder(kept.token)
        return None if kept is None or grant is None else (kept, grant)

    def valid(self) -> list[tuple[Subscription, Grant]]:
        """Return the subscriptions whose tokens are valid, each with the grant of its token."""
        kept = self._kept.values()
        grants = {token: self._tokens.holder(token) for token in {each.token for each in kept}}
        return [(each, grant) for each in kept if (grant := grants[each.token]) is not None]

    def _forget_ended(self) -> None:
        """Forget the subscriptions whose tokens have ended, unless the token file cannot be read just now."""
        if self._tokens.stored() is not None:
            self._kept = {each.id: each for each, _ in self.valid()}

    async def add(self, new: Subscription) -> None:
        """Keep a subscription instead of an earlier one of the same browser, whose id it gets if the token is
        the same: the buttons of notifications that are shown stay good. Raises `RequestError` if there are
        too many."""
        self._forget_ended()
        for known in self._kept.values():
            if (known.endpoint, known.token) == (new.endpoint, new.token):
                new = replace(new, id=known.id)
        kept = [each for each in self._kept.values() if each.endpoint != new.endpoint]
        own = [each.id for each in kept if each.token == new.token]
        surplus = set(own[: max(0, len(own) + 1 - EACH)])
        kept = [each for each in kept if each.id not in surplus]
        if len(kept) >= ALL:
            raise limited("push_subscriptions", "Too many: browsers that get notifications")
        self._kept = {each.id: each for each in (*kept, new)}
        await self._save()

    async def remove(self, endpoint: str, token: str) -> None:
        """Forget the subscription of a browser, if the token is the one that it subscribed with."""
        self._kept = {
            id: each for id, each in self._kept.items() if (each.endpoint, each.token) != (endpoint, token)
        }
        await self._save()

    async def drop(self, id: str) -> None:
        """Forget a subscription that the push service does not know any more."""
        if self._kept.pop(id, None) is not None:
            await self._save()

    async def _save(self) -> None:
        async with self._writing:
            content = msgspec.json.encode(list(self._kept.values()))
            try:
                await asyncio.to_thread(write_private, self._path, content)
            except OSError as error:
                logger.warning("push subscriptions not written: %s", error.strerror)
