"""Follower: calls a function with every message of a subject, in order and without gaps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import nats.errors

from antiphon.errors import StoreError
from antiphon.stores.jetstream.engine import Engine, end

logger = logging.getLogger("antiphon.stores")
SILENCE = 3.0
"""Seconds without a message or a heartbeat after which the consumer counts as lost."""


class Follower:
    """Follows one subject filter of a stream until it is stopped."""

    def __init__(
        self,
        engine: Engine,
        stream: str,
        subject: str,
        receive: Callable[[int, bytes], None],
        *,
        start: int | None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """`receive` gets the number and the data of each message. `start` is the first number that it wants;
        `None` begins with the last message of each subject. The follower ends once `wanted` says no."""
        self._engine = engine
        self._stream = stream
        self._subject = subject
        self._receive = receive
        self._start = start
        self._wanted = wanted
        self._next: int | None = None
        self._task: asyncio.Task[None] | None = None
        self.is_live = False
        """Whether messages come in now, as far as it knows."""

    def begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End it. The flag is needed besides the cancel, which is lost if a message comes at the same time:
        `asyncio.wait_for` of Python 3.11 returns the message then."""
        task, self._task = self._task, None
        if task is not None:
            await end(task)

    async def _run(self) -> None:
        while self._task is not None and self._wanted():
            try:
                await self._follow()
            except (nats.errors.Error, StoreError, TimeoutError, OSError) as error:
                logger.info(
                    "follower of %s is starting again: %s", self._subject, error or type(error).__name__
                )
            finally:
                self.is_live = False
            await asyncio.sleep(0.1)

    async def _follow(self) -> None:
        """Consume until a message is missing or the server is silent."""
        start = self._start if self._next is None else self._next
        async with self._engine.consumer(
            self._stream, self._subject, start=start, silence=SILENCE
        ) as deliveries:
            self.is_live = True
            delivered = 0
            while self._task is not None:
                message = await deliveries.next_msg(timeout=SILENCE)
                if message.headers and message.headers.get("Status") == "100":
                    if message.reply:
                        await self._engine.acknowledge_flow(message)
                    elif not self._wanted():
                        return
                    continue
                sequence = message.metadata.sequence
                delivered += 1
                if sequence.consumer != delivered:
                    return  # a delivery was lost: start again after the last message that came
                self._next = sequence.stream + 1
                self._receive(sequence.stream, message.data)
