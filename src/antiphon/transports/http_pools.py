"""SeparatePosts: what goes out by POST has connections of its own, apart from the streams that come in."""

from __future__ import annotations

import httpx


class SeparatePosts(httpx.AsyncBaseTransport):
    """Over one HTTP/2 connection a large POST can stop for good beside a stream.

    The POST waits for the server to widen its window. httpcore lets whichever request reads the socket take
    that in: where the stream read it, the POST goes on to wait for the next bytes of the server, and a quiet
    stream has none. Our POSTs go one by one, so over a connection of their own they read for themselves.
    """

    def __init__(self, posts: httpx.AsyncBaseTransport, others: httpx.AsyncBaseTransport) -> None:
        self._posts = posts
        self._others = others

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        taken = self._posts if request.method == "POST" else self._others
        return await taken.handle_async_request(request)

    async def aclose(self) -> None:
        await self._posts.aclose()
        await self._others.aclose()
