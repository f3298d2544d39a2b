"""Http2Exchange: one request of HTTP/2 and its answer, on a stream of a socket that has others too.

What an answer writes goes out as far as the other side has room for that stream; the rest waits here, and the
answer is told that it is congested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes
from h2.exceptions import StreamClosedError

from antiphon.transports.base import OUTBOX_HIGH, OUTBOX_LOW
from antiphon.transports.http_body import Body
from antiphon.transports.http_exchange import Exchange, Head, Reply, plain

if TYPE_CHECKING:
    from antiphon.transports.http2 import Http2Protocol


class Http2Exchange(Exchange):
    def __init__(self, head: Head, protocol: Http2Protocol, stream_id: int) -> None:
        super().__init__(head)
        self._protocol = protocol
        self._id = stream_id
        self.received = Body(0)
        self._whole = False
        """Whether the request was read to its end."""
        self._out = bytearray()
        self._ending = False
        self._left = False
        self._full = False
        self._timer: asyncio.TimerHandle | None = None

    # --- the request -------------------------------------------------------------------------------

    def expect(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        late = None if seconds is None else loop.call_later(seconds, self._protocol.refuse, self, plain(408))
        self._timer = late

    def body(self) -> bytes:
        self._whole = True
        return self.received.whole()

    # --- the answer --------------------------------------------------------------------------------

    def reply(self, reply: Reply) -> None:
        self._head(reply.status, reply.measured)
        self.write(b"" if self.head.method == "HEAD" else reply.body)
        self.end()

    def begin(self, headers: Mapping[str, str]) -> None:
        self._head(200, headers)
        self._protocol.send()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        if not self._left:
            named = [(name.lower(), value) for name, value in headers.items()]
            self._protocol.h2.send_headers(self._id, [(":status", str(status)), *named])
            self._protocol.tally.add(self.head.method, status)

    def write(self, data: bytes) -> None:
        if not self._left:
            self._out += data
            self.flush()
            self._protocol.send()

    def end(self) -> None:
        self._ending = True
        self.flush()
        self._protocol.send()

    def abort(self) -> None:
        if not self._left:
            self._protocol.h2.reset_stream(self._id, ErrorCodes.INTERNAL_ERROR)
            self._protocol.send()
            self.leave()
            self.lose()

    @property
    def congested(self) -> bool:
        return self._full or self._protocol.paused

    def flush(self) -> None:
        """Write as much as there is room for."""
        if self._left or self._protocol.paused:
            return
        h2 = self._protocol.h2
        while self._out:
            room = min(h2.local_flow_control_window(self._id), h2.max_outbound_frame_size)
            if room <= 0:
                break
            h2.send_data(self._id, bytes(self._out[:room]))
            del self._out[:room]
        self._full = len(self._out) > (OUTBOX_LOW if self._full else OUTBOX_HIGH)
        if self._ending and not self._out:
            h2.end_stream(self._id)
            if not self._whole:  # nobody reads the rest of what was asked
                with suppress(StreamClosedError):
                    h2.reset_stream(self._id, ErrorCodes.NO_ERROR)
            self.leave()

    def leave(self) -> None:
        """Nothing is read or written any more."""
        self.expect(None)
        self._left = True
        self._out.clear()
        self._protocol.forget(self._id)
