"""Routes: what is behind which path, and who gets as far as there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping
from typing import Any

from antiphon.transports.http.exchange import Exchange, Handler, Head, Reply, plain, wants_websocket

Check = Callable[[Head], Any]
"""Looks at the head of a request: a `Reply` refuses it, and anything else is whose it is."""
Refused = Callable[[Head, int], None]
"""Hears of those who passed the check and asked for what is not there, sent too much, or took too long: the
status that they got."""

OPEN_BODY = 4096
"""Bytes of a body that are taken from whoever comes."""


class Routes:
    """Nobody gets an answer, of whatever kind, who is not let in; but at the paths that are `open` to all."""

    def __init__(
        self,
        routes: Mapping[str, Handler],
        *,
        check: Check | None = None,
        open: Container[str] = (),
        refused: Refused | None = None,
    ) -> None:
        self._routes = routes
        self._check = check
        self._open = open
        self._refused = refused

    def admit(self, head: Head) -> Reply | None:
        if head.path in self._open:
            head.most = OPEN_BODY
        elif self._check is not None:
            head.who = self._check(head)
            if isinstance(head.who, Reply):
                return head.who
        handler = self._routes.get(head.path)
        refusal = plain(404, "There is nothing here.") if handler is None else handler.admit(head)
        if refusal is not None:
            self.refused(head, refusal.status)
        return refusal

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        await self._routes[exchange.head.path].answer(exchange, body)

    def refused(self, head: Head, status: int) -> None:
        if self._refused is not None:
            self._refused(head, status)


def not_readable(head: Head) -> Reply | None:
    """How a request is refused that is for something else than reading."""
    if wants_websocket(head):
        return plain(404, "There is no WebSocket here.")
    return None if head.method in ("GET", "HEAD") else plain(405, allow="GET, HEAD")


class Readable:
    """Something to be read at a path: `GET`, and nothing else."""

    def __init__(self, read: Callable[[], Awaitable[Reply]]) -> None:
        self._read = read

    def admit(self, head: Head) -> Reply | None:
        return not_readable(head)

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        exchange.reply(await self._read())

    def refused(self, head: Head, status: int) -> None: ...
