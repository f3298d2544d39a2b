"""What a hub shows beside `/acp`: whether it is well, and how it is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.hub.doorkeeper import METRICS
from antiphon.hub.metrics import TYPE, metrics
from antiphon.transports.http_exchange import Handler, Reply, plain
from antiphon.transports.http_routes import Readable

if TYPE_CHECKING:
    from antiphon.hub.hub import Hub

OPEN = ("/healthz",)
"""For everybody: that a hub is there can be seen anyway, and who looks after it has no token."""


def pages(hub: Hub) -> dict[str, Handler]:
    async def health() -> Reply:
        return plain(503, "stopping") if hub.stopping else plain(200, "ok")

    async def numbers() -> Reply:
        return Reply(200, metrics(hub), {"Content-Type": TYPE})

    return {"/healthz": Readable(health), METRICS: Readable(numbers)}
