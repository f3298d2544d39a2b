"""Routes: the handlers of a server by path, and the check that comes before them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping
from typing import Any

from msgspec import Struct

from antiphon.transports.http.exchange import Exchange, Handler, Head, Reply, plain, wants_websocket

Check = Callable[[Head], Any]
"""Checks the head of a request. Returns a `Reply` to refuse it, or the identity of the client."""
Refused = Callable[[Head, int], None]
"""Called for a client that passed the check and was refused later, with the status that it got."""

OPEN_BODY = 4096
"""Bytes of the largest body at an open path."""


class Site(Struct, frozen=True, kw_only=True):
    """What a server has besides ACP, and who may use all of it."""

    routes: Mapping[str, Handler] = {}
    """Handlers by path. The mapping may change while the server runs."""
    check: Check | None = None
    """Checks every request first, except at open paths. Without it, every client is admitted."""
    open: Container[str] = ()
    """Paths that every client may use."""
    refused: Refused | None = None


class Routes:
    """Hands each admitted request to the handler of its path. Other clients get only the check's refusal."""

    def __init__(self, path: str, endpoint: Handler, site: Site) -> None:
        """`endpoint` handles requests at `path`; the handlers of `site` those at other paths."""
        self._path = path
        self._endpoint = endpoint
        self._site = site

    def _find(self, path: str) -> Handler | None:
        return self._endpoint if path == self._path else self._site.routes.get(path)

    def admit(self, head: Head) -> Reply | None:
        if head.path in self._site.open:
            head.most = OPEN_BODY
        elif self._site.check is not None:
            head.who = self._site.check(head)
            if isinstance(head.who, Reply):
                return head.who
        handler = self._find(head.path)
        refusal = plain(404, "There is nothing here.") if handler is None else handler.admit(head)
        if refusal is not None:
            self.refused(head, refusal.status)
        return refusal

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        handler = self._find(exchange.head.path)
        if handler is None:
            raise LookupError(f"the route {exchange.head.path} was removed while the request was read")
        await handler.answer(exchange, body)

    def refused(self, head: Head, status: int) -> None:
        if self._site.refused is not None:
            self._site.refused(head, status)


def not_readable(head: Head) -> Reply | None:
    """Return the refusal of a request that is not `GET` or `HEAD`, else `None`."""
    if wants_websocket(head):
        return plain(404, "There is no WebSocket here.")
    return None if head.method in ("GET", "HEAD") else plain(405, allow="GET, HEAD")


class Readable:
    """A resource that clients can only read."""

    def __init__(self, read: Callable[[], Awaitable[Reply]]) -> None:
        self._read = read

    def admit(self, head: Head) -> Reply | None:
        return not_readable(head)

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        exchange.reply(await self._read())
