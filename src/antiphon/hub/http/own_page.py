"""Actions that only the hub's own page may ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from antiphon.hub.access.admission import Admission
from antiphon.transports.http.exchange import Exchange, Head, Reply, plain


class OwnPageAction:
    """A `POST` that only the hub's own page may send: other pages cannot forge its `Origin`."""

    def __init__(self, admission: Admission, act: Callable[[Head, bytes], Awaitable[Reply]]) -> None:
        self._admission = admission
        self._act = act

    def admit(self, head: Head) -> Reply | None:
        refusal = self._admission.refusal(head)
        if refusal is not None:
            return refusal
        if not self._admission.origins.is_own(head.headers):
            return plain(403, "Only the hub's own page asks for this.")
        return None if head.method == "POST" else plain(405, allow="POST")

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        exchange.reply(await self._act(exchange.head, body))
