"""InboundRequests: the requests of the peer, from the start of their handler to their response.

A handler runs in the lane of its session up to its first `await`, so that part happens in receive order. It
waits outside the lane, and the lane continues.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from antiphon.connection.lanes import Lanes
from antiphon.errors import (
    AntiphonError,
    ErrorObject,
    LocalError,
    RequestCancelled,
    StoreError,
    to_wire_error,
)
from antiphon.jsonrpc.peer import Inbound, Peer

logger = logging.getLogger("antiphon.connection")


class Job(Struct, frozen=True):
    """A request, its session, its handler, and the encoder of its result."""

    inbound: Inbound
    session: str | None
    handler: Callable[[Any, Inbound], Awaitable[Any]]
    params: Any
    encode: Callable[[Any], bytes]
    unbegun: Callable[[Any], Any] | None = None
    """Makes the result if the request is cancelled before its handler begins; `None`: that is an error."""


class InboundRequests:
    """The requests in progress and the tasks of their handlers, which run in `context`."""

    def __init__(
        self,
        peer: Peer,
        lanes: Lanes,
        *,
        send: Callable[[bytes], None],
        context: Callable[[], contextvars.Context],
    ) -> None:
        self._peer = peer
        self._lanes = lanes
        self._send = send
        self._context = context
        self._tasks: dict[Inbound, asyncio.Task[None]] = {}
        self._cancelled: set[Inbound] = set()
        """Requests whose handlers were cancelled on behalf of the peer."""
        self._aborted = False

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return list(self._tasks.values())

    def serve(self, job: Job, size: int) -> None:
        """Run the handler of a request at its place in its lane."""
        if self._lanes.idle(job.session):
            # The lane is empty. Later frames are scheduled after the first step of the handler, because the
            # loop runs ready callbacks in order.
            self._start(job, None)
        else:
            self._lanes.get(job.session).put(size, self._take, (job,))

    def answer(self, inbound: Inbound, result: bytes) -> None:
        """Respond to a request, unless it has a response."""
        if not inbound.answered:
            self._send(self._peer.answer(inbound, result))

    def fail(self, inbound: Inbound, error: ErrorObject) -> None:
        if not inbound.answered:
            self._send(self._peer.fail(inbound, error))

    def cancel(self, inbound: Inbound) -> None:
        """Cancel the handler of a request, because its sender cancelled the request."""
        task = self._tasks.get(inbound)
        if task is not None and inbound not in self._cancelled:
            self._cancelled.add(inbound)  # a second cancel would interrupt the cleanup of the handler
            task.cancel()

    def dismiss(self) -> None:
        """Fail all requests while the link is still open, because this side ends it (RPC-34)."""
        self._aborted = True
        for inbound, task in self._tasks.items():
            self.fail(inbound, RequestCancelled().to_wire())
            task.cancel()

    def drop(self) -> None:
        """Cancel all handlers without a response, because the link is gone."""
        for task in self.tasks:
            task.cancel()

    async def abort(self) -> None:
        """Cancel every running handler (RPC-36), and start no other one."""
        self._aborted = True
        tasks = self.tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _take(self, job: Job) -> None:
        """Start a handler in its lane. The lane continues when the handler reaches its first `await`."""
        if job.inbound.answered:
            return  # its link is gone
        if self._aborted or (job.inbound.cancelled and job.unbegun is None):
            self.fail(job.inbound, RequestCancelled().to_wire())
            return
        if job.inbound.cancelled and job.unbegun is not None:
            try:
                self.answer(job.inbound, job.encode(job.unbegun(job.params)))
            except Exception:
                logger.exception("result of cancelled %s failed", job.inbound.method)
                self.fail(job.inbound, RequestCancelled().to_wire())  # RPC-31: it still gets a response
            return
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = self._start(job, begun)
        await asyncio.wait((begun, task), return_when=asyncio.FIRST_COMPLETED)

    def _start(self, job: Job, begun: asyncio.Future[None] | None) -> asyncio.Task[None]:
        work = self._answer(job, begun)
        task = self._tasks[job.inbound] = asyncio.get_running_loop().create_task(
            work, context=self._context()
        )
        return task

    async def _answer(self, job: Job, begun: asyncio.Future[None] | None) -> None:
        if begun is not None:
            begun.set_result(None)
        inbound = job.inbound
        try:
            result = await job.handler(job.params, inbound)
            encoded = b"{}" if result is None else job.encode(result)
        except asyncio.CancelledError:
            # RPC-31, RPC-34: a request cancelled by its sender or by a shutdown still gets a response.
            self.fail(inbound, RequestCancelled().to_wire())
        except Exception as error:
            if inbound.cancelled:
                # A library may turn the cancellation into another exception.
                self.fail(inbound, RequestCancelled().to_wire())
                return
            if isinstance(error, StoreError):
                # The disk or file is at fault, not the code: a traceback adds nothing.
                logger.warning("store error in %s: %s", inbound.method, error)
            elif not isinstance(error, AntiphonError) or isinstance(error, LocalError):
                logger.exception("handler of %s failed", inbound.method)
            self.fail(inbound, to_wire_error(error))
        else:
            self.answer(inbound, encoded)
        finally:
            del self._tasks[inbound]
            self._cancelled.discard(inbound)
