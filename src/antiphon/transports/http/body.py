"""Body: the body of a request, read within a bound.

A body over the bound is discarded. Its first and last bytes are kept, so that the refusal can name the id of
the JSON-RPC request in it (RPC-38).
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

from aiohttp.web_protocol import RequestPayloadError
from aiohttp.web_request import BaseRequest

from antiphon.jsonrpc.oversized import DiscardedFrame, OversizedFrame, failure_of
from antiphon.transports.http.exchange import Reply, json, plain

SKIPPED = 4
"""Multiples of the bound that are read and discarded, so that the next request can follow."""
PROGRESS = 256 * 1024
"""Bytes that extend the deadline of a slow body."""


class Body:
    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.size = 0
        self._data = io.BytesIO()
        self._discarded: DiscardedFrame | None = None
        """The ends of a body over the bound."""
        self._extended_at = 0
        """The size at which `take` last returned true."""

    @property
    def over(self) -> bool:
        """Whether the body is larger than the bound."""
        return self.size > self.bound

    @property
    def kept(self) -> int:
        """Bytes in memory."""
        return 0 if self.over else self.size

    def take(self, data: bytes) -> bool:
        """Add bytes. Return whether `PROGRESS` bytes came since this was last true."""
        self.size += len(data)
        if self._discarded is not None:
            self._discarded.add(data)
        elif self.over:
            self._discarded = DiscardedFrame((self._data.getvalue(), data))
            self._data = io.BytesIO()
        else:
            self._data.write(data)
        if self.size - self._extended_at < PROGRESS:
            return False
        self._extended_at = self.size
        return True

    def whole(self) -> bytes:
        return self._data.getvalue()

    def refusal(self, size: int | None = None) -> Reply:
        """Return the response to a body that is too large. `size`: its declared size, if nothing was read."""
        if self._discarded is not None:
            return json(413, failure_of(self._discarded.describe(self.bound)))
        return json(413, failure_of(OversizedFrame(size or self.size, self.bound)))


class BodyRefused(Exception):
    """A body is refused with `reply`. If it was read to its end (`complete`), another request can follow."""

    def __init__(self, reply: Reply, *, complete: bool = False) -> None:
        super().__init__(reply.status)
        self.reply = reply
        self.complete = complete


async def read_body(
    request: BaseRequest, *, bound: int, most: int, seconds: float, resize: Callable[[int], bool]
) -> bytes:
    """Read the body of a request.

    `bound`: bytes of the largest body that is accepted.
    `most`: bytes that are read before the socket is closed.
    `seconds`: deadline of the body, or of the next part of a large one.
    `resize`: counts the bytes that are kept, and returns whether they are within the bound of the token.

    Raises `BodyRefused`, and `ConnectionError` if the client closes the socket.
    """
    body = Body(bound)
    length = request.content_length or 0
    waits = request.headers.get("Expect", "").lower() == "100-continue"
    if length > most or (waits and length > bound):
        raise BodyRefused(body.refusal(length))
    if waits:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # it is not part of the response
    try:
        async with asyncio.timeout(seconds) as patience:
            while data := await request.content.readany():
                if body.take(data):
                    patience.reschedule(asyncio.get_running_loop().time() + seconds)
                within = resize(body.kept)
                if body.size > most:
                    raise BodyRefused(body.refusal())
                if not within:
                    raise BodyRefused(plain(429, "Too much is being sent with this token.", retry_after="5"))
    except TimeoutError:
        raise BodyRefused(body.refusal() if body.over else plain(408)) from None
    except RequestPayloadError:
        raise BodyRefused(plain(400, "The body is not what its headers say.")) from None
    if body.over:
        raise BodyRefused(body.refusal(), complete=True)
    return body.whole()
