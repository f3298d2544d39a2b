"""Body: the body of a request as it arrives, within a bound.

What is over the bound is thrown away. Its first and last bytes are kept, so that the refusal can name the
request that was in it (RPC-38).
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Hashable

from aiohttp.web_protocol import RequestPayloadError
from aiohttp.web_request import BaseRequest

from antiphon.jsonrpc.oversized import HEAD, TAIL, failure_of, overlong
from antiphon.transports.http.exchange import Reply, json, plain
from antiphon.transports.http.held_bytes import HeldBytes

SKIPPED = 4
"""How many times the bound is read and thrown away, so that the next request can follow."""
PROGRESS = 256 * 1024
"""Bytes with which a slow body earns more time."""


class Body:
    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.size = 0
        self._data = io.BytesIO()
        self._head = self._tail = b""
        self._paid = 0

    @property
    def over(self) -> bool:
        """Whether it is larger than the bound."""
        return self.size > self.bound

    @property
    def held(self) -> int:
        return 0 if self.over else self.size

    def take(self, data: bytes) -> bool:
        """Take the next bytes; whether enough came since this was last true to wait for more."""
        was_over = self.over
        self.size += len(data)
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
        if not self.over:
            self._data.write(data)
        else:
            if not was_over:
                self._tail = self._data.getvalue()[-TAIL:]
                self._data = io.BytesIO()
            self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        if self.size - self._paid < PROGRESS:
            return False
        self._paid = self.size
        return True

    def whole(self) -> bytes:
        return self._data.getvalue()

    def refusal(self, size: int | None = None) -> Reply:
        """How a request is answered whose body is too large; `size` where it is known before all was read."""
        found = overlong(self._head, self._tail, size=size or self.size, bound=self.bound)
        return json(413, failure_of(found))


class BodyRefused(Exception):
    """A body is not accepted; `reply` is the answer. Where it is `complete`, another request can follow."""

    def __init__(self, reply: Reply, *, complete: bool = False) -> None:
        super().__init__(reply.status)
        self.reply = reply
        self.complete = complete


async def read_body(
    request: BaseRequest, *, bound: int, most: int, seconds: float, who: Hashable, held: HeldBytes
) -> bytes:
    """Read the body of a request.

    `bound`: bytes of the largest body that is accepted.
    `most`: bytes that are read at all, so that the next request can follow.
    `seconds`: until the whole body, or the next part of a large one, has to be there.
    `held`: counts what is kept for `who` meanwhile.

    Raises `BodyRefused` where it is not accepted, and `ConnectionError` where the client is gone.
    """
    body = Body(bound)
    length = request.content_length or 0
    waits = request.headers.get("Expect", "").lower() == "100-continue"
    if length > most or (waits and length > bound):
        raise BodyRefused(body.refusal(length))
    if waits:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # it is not part of the response
    counted = 0
    try:
        async with asyncio.timeout(seconds) as patience:
            while data := await request.content.readany():
                if body.take(data):
                    patience.reschedule(asyncio.get_running_loop().time() + seconds)
                within, counted = held.change(who, counted, body.held), body.held
                if body.size > most:
                    raise BodyRefused(body.refusal())
                if not within:
                    raise BodyRefused(plain(429, "Too much is being sent with this token.", retry_after="5"))
    except TimeoutError:
        raise BodyRefused(body.refusal() if body.over else plain(408)) from None
    except RequestPayloadError:
        raise BodyRefused(plain(400, "The body is not what its headers say.")) from None
    finally:
        held.change(who, counted, 0)
    if body.over:
        raise BodyRefused(body.refusal(), complete=True)
    return body.whole()
