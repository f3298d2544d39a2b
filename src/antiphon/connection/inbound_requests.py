"""InboundRequests: the requests of the other side, from the start of their handler to their answer.

A handler begins in the lane of its session and keeps it up to its first `await`: so much of it happens in
receive order. From there on it waits outside, and the lane goes on.
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
    """A request, the session it belongs to, and what makes its result and writes it."""

    inbound: Inbound
    session: str | None
    handler: Callable[[Any, Inbound], Awaitable[Any]]
    params: Any
    encode: Callable[[Any], bytes]
    unbegun: Callable[[Any], Any] | None = None
    """What answers it where it was cancelled before it began, if that is no error."""


class InboundRequests:
    """Every request being served, and the tasks of their handlers. `context` is what those run in."""

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
        """Those whose handlers were told that their sender cancelled them."""
        self._aborted = False

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return list(self._tasks.values())

    def serve(self, job: Job, size: int) -> None:
        """Let a request take its place in its lane."""
        if self._lanes.idle(job.session):
            # Nothing stands before it. What comes behind it is scheduled behind its first step, for the
            # loop runs what is ready in the order in which it became so.
            self._start(job, None)
        else:
            self._lanes.get(job.session).put(size, self._take, (job,))

    def answer(self, inbound: Inbound, result: bytes) -> None:
        """Answer a request; what was answered before stays as it was."""
        if not inbound.answered:
            self._send(self._peer.answer(inbound, result))

    def fail(self, inbound: Inbound, error: ErrorObject) -> None:
        if not inbound.answered:
            self._send(self._peer.fail(inbound, error))

    def cancel(self, inbound: Inbound) -> None:
        """Its sender no longer wants the answer; a handler at work is told by task cancellation."""
        task = self._tasks.get(inbound)
        if task is not None and inbound not in self._cancelled:
            self._cancelled.add(inbound)  # a second one would cut short what the handler does to end
            task.cancel()

    def dismiss(self) -> None:
        """This side ends the link: whoever waits is told while it can be (RPC-34)."""
        self._aborted = True
        for inbound, task in self._tasks.items():
            self.fail(inbound, RequestCancelled().to_wire())
            task.cancel()

    def drop(self) -> None:
        """The link is gone that these came over: their handlers end, and nobody is told."""
        for task in self.tasks:
            task.cancel()

    async def abort(self) -> None:
        """End every handler that is still at work (RPC-36), and let none begin."""
        self._aborted = True
        tasks = self.tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _take(self, job: Job) -> None:
        """In its lane: the lane goes on when the handler has come to its first `await`."""
        if job.inbound.answered:
            return  # it came over a link that is gone
        if self._aborted or (job.inbound.cancelled and job.unbegun is None):
            self.fail(job.inbound, RequestCancelled().to_wire())
            return
        if job.inbound.cancelled and job.unbegun is not None:
            try:
                self.answer(job.inbound, job.encode(job.unbegun(job.params)))
            except Exception:
                logger.exception("what answers a request that was taken back failed")
                self.fail(job.inbound, RequestCancelled().to_wire())  # RPC-31: it is answered all the same
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
            # RPC-31, RPC-34: cancelled by its sender or by our own ending, it is answered all the same.
            self.fail(inbound, RequestCancelled().to_wire())
        except Exception as error:
            if inbound.cancelled:
                # What a library makes of being cancelled is no error of the request.
                self.fail(inbound, RequestCancelled().to_wire())
                return
            if isinstance(error, StoreError):
                # The disk or the file is at fault, not the code: a traceback adds nothing.
                logger.warning("store error in %s: %s", inbound.method, error)
            elif not isinstance(error, AntiphonError) or isinstance(error, LocalError):
                logger.exception("the handler of %s failed", inbound.method)
            self.fail(inbound, to_wire_error(error))
        else:
            self.answer(inbound, encoded)
        finally:
            del self._tasks[inbound]
            self._cancelled.discard(inbound)
