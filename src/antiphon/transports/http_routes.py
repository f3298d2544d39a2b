"""Routes: what is behind which path, and who gets as far as there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from antiphon.transports.http_exchange import Exchange, Handler, Head, Reply, plain

Check = Callable[[Head], Any]
"""Looks at the head of a request: a `Reply` refuses it, and anything else is whose it is."""
Refused = Callable[[Head | None, int], None]
"""Hears of those who were let in and sent too much, or took too long: the status that they got."""


class Routes:
    """Nobody gets an answer, of whatever kind, who is not let in; but at the paths that are `open` to all."""

    def __init__(
        self,
        routes: Mapping[str, Handler],
        *,
        check: Check | None = None,
        open: Collection[str] = (),
        refused: Refused | None = None,
    ) -> None:
        self._routes = routes
        self._check = check
        self._open = frozenset(open)
        self._refused = refused

    def admit(self, head: Head) -> Reply | None:
        if self._check is not None and head.path not in self._open:
            head.who = self._check(head)
            if isinstance(head.who, Reply):
                return head.who
        handler = self._routes.get(head.path)
        return plain(404, "There is nothing here.") if handler is None else handler.admit(head)

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        await self._routes[exchange.head.path].answer(exchange, body)

    def refused(self, head: Head | None, status: int) -> None:
        if self._refused is not None:
            self._refused(head, status)


class Readable:
    """Something to be read at a path: `GET`, and nothing else."""

    def __init__(self, read: Callable[[], Awaitable[Reply]]) -> None:
        self._read = read

    def admit(self, head: Head) -> Reply | None:
        return None if head.method in ("GET", "HEAD") else plain(405, allow="GET, HEAD")

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        exchange.reply(await self._read())

    def refused(self, head: Head | None, status: int) -> None: ...
