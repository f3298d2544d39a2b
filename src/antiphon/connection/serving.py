"""Serving: the requests of the other side, from the moment their handler begins until they are answered.

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

from antiphon.connection.lanes import Lane
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
    """Every request being served, and the tasks of their handlers. `context` is what those run in."""

    def __init__(
        self, peer: Peer, *, send: Callable[[bytes], None], context: Callable[[], contextvars.Context]
    ) -> None:
        self._peer = peer
        self._send = send
        self._context = context
        self._tasks: dict[Inbound, asyncio.Task[None]] = {}
        self._unbegun: dict[Inbound, Callable[[], None]] = {}
        self._aborted = False

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return list(self._tasks.values())

    def serve(self, job: Job, size: int) -> None:
        """Let a request take its place in its lane."""
        if job.lane.idle:
            # Nothing stands before it: begin at once, and let what comes behind wait for that.
            job.lane.gated = True
            self._begin(job, job.lane.ungate)
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

    async def abort(self) -> None:
        """End every handler that is still at work (RPC-36)."""
        self._aborted = True
        tasks = self.tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        # Who was cancelled before its first step has not passed its lane on.
        for begun in self._unbegun.values():
            begun()
        self._unbegun.clear()
        self._tasks.clear()

    async def _take(self, job: Job) -> None:
        if job.inbound.cancelled or self._aborted:
            self.fail(job.inbound, RequestCancelled().to_wire())
            return
        begun = asyncio.get_running_loop().create_future()
        self._begin(job, lambda: begun.set_result(None))
        await begun

    def _begin(self, job: Job, begun: Callable[[], None]) -> None:
        """Start the handler. `begun` is called in the step that brings it to its first `await`."""
        self._unbegun[job.inbound] = begun
        task = asyncio.get_running_loop().create_task(self._answer(job), context=self._context())
        self._tasks[job.inbound] = task

    async def _answer(self, job: Job) -> None:
        inbound = job.inbound
        self._unbegun.pop(inbound)()
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
        finally:
            del self._tasks[inbound]
