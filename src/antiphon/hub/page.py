"""The hub's page: files for everybody who asks by a name of the hub's. They hold no secrets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from antiphon.transports.http_exchange import Exchange, Handler, Head, Reply
from antiphon.transports.http_routes import not_readable

if TYPE_CHECKING:
    from antiphon.hub.hub import Hub

Page = Mapping[str, tuple[bytes, str]]
"""Files by their paths, each with its content type."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
"""No script but the page's own files, none made of text, and nothing sent or fetched elsewhere."""
SECURITY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",  # who opens the page in a window has no hold on it
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # it may be kept, and is asked for: after an update, the new one is shown
}


class PageRoutes(Mapping[str, Handler]):
    """The page as routes. What a path has is looked up for each request, as it may change."""

    def __init__(self, hub: Hub, page: Page) -> None:
        self._hub = hub
        self._page = page

    def __getitem__(self, path: str) -> Handler:
        return _File(self._hub, *self._page[path])

    def __contains__(self, path: object) -> bool:
        return path in self._page

    def __iter__(self) -> Iterator[str]:
        return iter(self._page)

    def __len__(self) -> int:
        return len(self._page)


class _File:
    def __init__(self, hub: Hub, content: bytes, kind: str) -> None:
        self._keeper = hub.doorkeeper
        self._content = content
        self._kind = kind

    def admit(self, head: Head) -> Reply | None:
        return self._keeper.refusal(head) or not_readable(head)

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        tag = _tag(self._content)
        headers = {"ETag": tag, **SECURITY}
        known = exchange.head.headers.get("If-None-Match", "")
        if tag in [each.strip().removeprefix("W/") for each in known.split(",")]:
            exchange.reply(Reply(304, headers=headers))
        else:
            exchange.reply(Reply(200, self._content, {"Content-Type": self._kind, **headers}))

    def refused(self, head: Head, status: int) -> None: ...


@lru_cache(maxsize=256)
def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'
