"""The files of the hub's page. They hold no secrets, so anybody may read them under a host name of the
hub."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

from antiphon.hub.access.admission import Admission
from antiphon.transports.http.exchange import Exchange, Handler, Head, Reply
from antiphon.transports.http.routes import not_readable

Page = Mapping[str, tuple[bytes, str]]
"""Files by path, each with its content type."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src data: blob:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types antiphon-worker",
    )
)
"""Scripts come from the page's own files only, never from text, and nothing is sent or fetched elsewhere."""
SECURITY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",  # a window that opened the page has no handle on it
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # browsers revalidate, and show a new version
}


class PageRoutes(Mapping[str, Handler]):
    """The page as routes. Each request looks its path up again: the mapping may change."""

    def __init__(self, admission: Admission, page: Page) -> None:
        self._admission = admission
        self._page = page

    def __getitem__(self, path: str) -> Handler:
        return _File(self._admission, *self._page[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self._page)

    def __len__(self) -> int:
        return len(self._page)


class _File:
    def __init__(self, admission: Admission, content: bytes, kind: str) -> None:
        self._admission = admission
        self._content = content
        self._kind = kind

    def admit(self, head: Head) -> Reply | None:
        return self._admission.refusal(head) or not_readable(head)

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        tag = _tag(self._content)
        headers = {"ETag": tag, **SECURITY}
        known = exchange.head.headers.get("If-None-Match", "")
        if tag in [each.strip().removeprefix("W/") for each in known.split(",")]:
            exchange.reply(Reply(304, headers=headers))
        else:
            exchange.reply(Reply(200, self._content, {"Content-Type": self._kind, **headers}))


@lru_cache(maxsize=256)
def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'
