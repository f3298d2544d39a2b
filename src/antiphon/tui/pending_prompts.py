"""Prompts that the agent has not confirmed yet. Each is sent once, in order, as soon as the link is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count

from antiphon.client import Link
from antiphon.errors import AntiphonError

SHOWN_AFTER = 0.5
"""Seconds without an answer after which a prompt is shown as pending, while the link is there."""
SILENT_AFTER = 3.0
"""Seconds without an answer after which the agent counts as silent."""


class PendingPrompt:
    def __init__(self, id: str, text: str, delivery: str) -> None:
        self.id = id
        self.text = text
        self.delivery = delivery
        self.since = time.monotonic()
        self.sending: asyncio.Task[str | None] | None = None
        """The request, once it was handed to the client; `None` while the prompt waits for the link."""
        self.done: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    @property
    def age(self) -> float:
        return time.monotonic() - self.since

    def finish(self, outcome: str | AntiphonError | None) -> None:
        if self.done.done():
            return
        if isinstance(outcome, AntiphonError):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)


class PendingPrompts:
    """The pending prompts of one session, in the order in which they are sent.

    A prompt that was handed to the client before the link was lost is repeated by the client, under its
    operation id. All others wait here, so that withdrawing them leaves no trace at the agent.
    """

    def __init__(
        self,
        link: Link,
        send: Callable[[str, str], Awaitable[str | None]],
        *,
        idle: Callable[[], bool],
    ) -> None:
        """`send`: sends a text with a delivery, and returns a message for the user or `None`.
        `idle`: whether the session is idle, so that a prompt is confirmed at once."""
        self._link = link
        self._send = send
        self._idle = idle
        self._ids = count(1)
        self._wake = asyncio.Event()
        self.entries: list[PendingPrompt] = []
        self.on_change: Callable[[], None] = lambda: None
        """Called when a prompt was added, sent or withdrawn."""

    @property
    def shown(self) -> list[PendingPrompt]:
        """The prompts that are worth showing: most are confirmed within milliseconds."""
        away = not self._link.up
        return [entry for entry in self.entries if away or entry.age >= SHOWN_AFTER]

    @property
    def silence(self) -> float:
        """Seconds since the oldest prompt was sent that has no answer, 0 below `SILENT_AFTER`."""
        ages = (entry.age for entry in self.entries if entry.sending is not None)
        longest = max(ages, default=0.0)
        return longest if longest >= SILENT_AFTER else 0.0

    def find(self, id: str) -> PendingPrompt | None:
        return next((entry for entry in self.entries if entry.id == id), None)

    async def deliver(self, text: str, delivery: str) -> str | None:
        """Send a prompt when its turn comes; return a message for the user. Raises what `send` raises, and
        `LinkLost` if the link is gone for good."""
        entry = PendingPrompt(f"pending-{next(self._ids)}", text, delivery)
        self.entries.append(entry)
        self._wake.set()
        self.on_change()
        try:
            return await entry.done
        finally:
            if entry in self.entries:
                self.entries.remove(entry)
            self.on_change()

    def withdraw(self, id: str) -> bool:
        """Withdraw a prompt, and return whether it was still pending. The agent is asked to forget one that
        was sent already."""
        entry = self.find(id)
        if entry is None:
            return False
        if entry.sending is not None:
            entry.sending.cancel()
        entry.finish(None)
        self.entries.remove(entry)
        self.on_change()
        return True

    def move(self, id: str, by: int) -> None:
        waiting = [entry for entry in self.entries if entry.sending is None]
        at = next((at for at, entry in enumerate(waiting) if entry.id == id), None)
        if at is not None and 0 <= at + by < len(waiting):
            waiting.insert(at + by, waiting.pop(at))
            self.entries = [entry for entry in self.entries if entry.sending is not None] + waiting
            self.on_change()

    async def run(self) -> None:
        """Send the prompts, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._next()
                try:
                    await self._link.connected()
                except AntiphonError as error:
                    for entry in self._waiting():
                        entry.finish(error)
                    await asyncio.sleep(0)  # `deliver` removes them
                    continue
                waiting = self._waiting()  # some may have been withdrawn or moved meanwhile
                if waiting:
                    first, idle = waiting[0], self._idle()
                    first.sending = group.create_task(self._hand_over(first))
                    if idle:  # confirmed at once, unless the link is frozen: then the next ones wait here
                        await asyncio.wait([first.sending])
                    else:
                        await asyncio.sleep(0)

    def _waiting(self) -> list[PendingPrompt]:
        return [entry for entry in self.entries if entry.sending is None and not entry.done.done()]

    async def _next(self) -> None:
        while not self._waiting():
            self._wake.clear()
            await self._wake.wait()

    async def _hand_over(self, entry: PendingPrompt) -> str | None:
        entry.since = time.monotonic()
        try:
            outcome = await self._send(entry.text, entry.delivery)
        except AntiphonError as error:
            entry.finish(error)
            return None
        entry.finish(outcome)
        return outcome
