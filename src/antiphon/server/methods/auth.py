"""Login, logout and auth status."""

from __future__ import annotations

from typing import Any

from antiphon.bridge.authentication import status_v1
from antiphon.server.channels import RequestChannel
from antiphon.server.request import Request


async def log_in(request: Request) -> Any:
    client, params = request.client, request.params
    client.authentication.check_has_login(request.inbound.method)
    channel = RequestChannel(client, request.inbound)
    await client.authentication.log_in(params.method_id, params.meta, channel)
    request.answer({})
    await client.report_auth()
    return {}


async def log_out(request: Request) -> Any:
    client = request.client
    client.authentication.check_has_login(request.inbound.method)
    await client.authentication.log_out()
    request.answer({})
    await client.report_auth()
    return {}


async def status(request: Request) -> Any:
    authentication = request.client.authentication
    authentication.check_has_status(request.inbound.method)
    now = await authentication.report()
    return status_v1(now) if request.client.v1 else now
