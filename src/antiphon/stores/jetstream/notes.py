"""Notes: small values that all stores of an installation share, by topic and key."""

from __future__ import annotations

import asyncio

from antiphon.stores.jetstream.engine import Engine, Message, Unconfirmed, WrongSequence


class Notes:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._layout = engine.layout

    async def add(self, topic: str, key: str, data: bytes, *, seconds: float | None) -> None:
        """Write a note, unless there is one with this key."""
        subject = self._layout.note(topic, key)
        while True:
            try:
                await self._engine.publish(subject, data, expected=0, ttl=seconds)
                return
            except WrongSequence:
                return
            except Unconfirmed:
                await asyncio.sleep(0)  # try again: if it was written, that is seen

    async def replace(self, topic: str, key: str, data: bytes, *, seconds: float | None) -> None:
        await self._engine.put(self._layout.note(topic, key), data, ttl=seconds)

    async def all(self, topic: str) -> list[bytes]:
        """Return the notes of a topic, as any replica has them."""
        found: list[Message] = []
        while page := await self._engine.page(
            self._layout.notes,
            self._layout.note(topic, "*"),
            found[-1].seq + 1 if found else 1,
            limit_bytes=1 << 20,
        ):
            found += page
        return [message.data for message in found]
