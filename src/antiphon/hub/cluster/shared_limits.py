"""SharedLimits: the limits of a token count what it uses at all hubs.

Each hub tells the others about once a second what its tokens used. So a token may exceed a limit by what it
uses at other hubs within that time. The tokens of the hubs' owners are counted at each hub alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from itertools import count

import msgspec
from msgspec import Struct

from antiphon.errors import StoreError
from antiphon.hub.access.admission import Admission
from antiphon.hub.access.limits import Spent
from antiphon.hub.access.tokens import OWNER_NAME
from antiphon.hub.cluster.announcements import decode, encode
from antiphon.hub.quotas import QueuedBytes
from antiphon.stores.shared import SharedStore

logger = logging.getLogger("antiphon.hub")

TOPIC = "usage"
EVERY = 1.0
"""Seconds between two announcements."""
AGAIN = 10
"""After how many of them the queued bytes are told again, for hubs that missed them."""


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What tokens used at one hub, by their names."""

    prompts: dict[str, int] = {}
    """Prompts since the last announcement."""
    bytes: dict[str, int] = {}
    """Bytes of requests since the last announcement."""
    queued: dict[str, int] = {}
    """Bytes of prompts that wait in sessions of this hub now."""


usages = msgspec.json.Decoder(Usage)


class SharedLimits:
    def __init__(self, store: SharedStore, admission: Admission, queued: QueuedBytes, spent: Spent) -> None:
        """`spent`: what `admission` counts here."""
        self._store = store
        self._admission = admission
        self._queued = queued
        self._spent = spent

    async def begin(self) -> None:
        await self._store.listen(TOPIC, self._receive)

    async def run(self) -> None:
        """Tell the other hubs what was used, until this is cancelled."""
        told = Usage()
        for number in count(1):
            await asyncio.sleep(EVERY)
            prompts, size = map(_shared, self._spent.take())
            usage = Usage(prompts=prompts, bytes=size, queued=_shared(self._queued.waiting()))
            changed = prompts or size or usage.queued != told.queued
            if changed or (usage.queued and number % AGAIN == 0):
                told = usage
                try:
                    await self._store.announce(TOPIC, encode(usage))
                except StoreError as error:
                    logger.info("use of limits not told to other hubs: %s", error)

    def _receive(self, hub: str, data: bytes) -> None:
        usage = decode(usages, data, sender=hub)
        if usage is not None:
            for token in usage.prompts.keys() | usage.bytes.keys():
                prompts, size = usage.prompts.get(token, 0), usage.bytes.get(token, 0)
                self._admission.charge(token, prompts=prompts, bytes=size)
            self._queued.set_elsewhere(hub, usage.queued)

    def forget(self, hub: str) -> None:
        """Forget what waits at a hub that is gone."""
        self._queued.set_elsewhere(hub, {})


def _shared(used: Mapping[str, int]) -> dict[str, int]:
    return {token: amount for token, amount in used.items() if token != OWNER_NAME}
