"""Serving: the requests of the other side, from the moment their handler begins until they are answered.

A handler begins in the lane of its session and keeps it up to its first `await`: so much of it happens in
receive order. From there on it waits outside, and the lane goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import Struct

from antiphon.connection.lanes import Lane, Lanes
from antiphon.errors import AntiphonError, ErrorObject, LocalError, RequestCancelled, to_wire_error
from antiphon.jsonrpc.peer import Inbound, Peer

logger = logging.getLogger("antiphon.connection")


class Job(Struct, frozen=True):
    """A request, the lane it belongs to, and what makes its result and writes it."""

    inbound: Inbound
    lane: Lane
    handler: Callable[[Any, Inbound], Awaitable[Any]]
    params: Any
    encode: Callable[[Any], bytes]


class Serving:
    def __init__(
        self,
        peer: Peer,
        lanes: Lanes,
        *,
        send: Callable[[bytes], None],
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._peer = peer
        self._lanes = lanes
        self._send = send
        self._start = start
        self._tasks: dict[Inbound, asyncio.Task[None]] = {}

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return list(self._tasks.values())

    def serve(self, job: Job, size: int) -> None:
        """Let a request take its place in its lane."""
        if job.lane.idle:
            # Nothing stands before it: begin at once, and let what comes behind wait for that.
            job.lane.gate = self._begin(job)
        else:
            job.lane.put(size, self._take, (job,))

    def fail(self, inbound: Inbound, error: ErrorObject) -> None:
        frame = self._peer.fail(inbound, error)
        if frame is not None:
            self._send(frame)

    def cancel(self, inbound: Inbound) -> None:
        """Its sender no longer wants the answer; a handler at work is told by task cancellation."""
        task = self._tasks.get(inbound)
        if task is not None:
            task.cancel()

    async def _take(self, job: Job) -> None:
        if job.inbound.cancelled:
            self.fail(job.inbound, RequestCancelled().to_wire())
        else:
            await self._begin(job)

    def _begin(self, job: Job) -> asyncio.Future[None]:
        """Start the handler; the future is done when it has come to its first `await`."""
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def ended(_: asyncio.Task[None]) -> None:
            del self._tasks[job.inbound]
            if not begun.done():  # cancelled before its first step
                self._pass_on(job.lane, begun)

        task = self._tasks[job.inbound] = self._start(self._answer(job, begun))
        task.add_done_callback(ended)
        return begun

    def _pass_on(self, lane: Lane, begun: asyncio.Future[None]) -> None:
        begun.set_result(None)
        if lane.gate is begun:
            lane.gate = None
            self._lanes.emptied(lane)

    async def _answer(self, job: Job, begun: asyncio.Future[None]) -> None:
        # Whoever waits for `begun` wakes after this step, so after the handler's first `await`.
        self._pass_on(job.lane, begun)
        inbound = job.inbound
        try:
            result = await job.handler(job.params, inbound)
            encoded = b"{}" if result is None else job.encode(result)
        except asyncio.CancelledError:
            # RPC-31, RPC-34: cancelled by its sender or by our own ending, it is answered all the same.
            self.fail(inbound, RequestCancelled().to_wire())
            if not inbound.cancelled:
                raise
        except Exception as error:
            if inbound.cancelled:
                # What a library makes of being cancelled is no error of the request.
                self.fail(inbound, RequestCancelled().to_wire())
                return
            if not isinstance(error, AntiphonError) or isinstance(error, LocalError):
                logger.exception("the handler of %s failed", inbound.method)
            self.fail(inbound, to_wire_error(error))
        else:
            frame = self._peer.answer(inbound, encoded)
            if frame is not None:
                self._send(frame)
