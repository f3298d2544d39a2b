"""Web Push: a client subscribes a browser to the alerts of the hub, with `_antiphon/push_subscribe`."""

from __future__ import annotations

from antiphon.errors import MethodNotFound
from antiphon.schema.antiphon.hub import PushKeyResponse
from antiphon.schema.antiphon.prompts import Done
from antiphon.server.request import Push, Request


async def key(request: Request) -> PushKeyResponse:
    return await _push(request).key()


async def subscribe(request: Request) -> Done:
    client = request.client
    await _push(request).subscribe(client.policy, client.info.who, request.params)
    return Done()


async def unsubscribe(request: Request) -> Done:
    await _push(request).unsubscribe(request.client.policy, request.params)
    return Done()


def _push(request: Request) -> Push:
    push = request.server.push
    if push is None:  # a server that does not offer the method
        raise MethodNotFound(request.inbound.method)
    return push
