"""Login, logout and auth status."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from antiphon.bridge.authentication import status_v1
from antiphon.bridge.losses import Ledger
from antiphon.bridge.questions import answered, elicit_v1
from antiphon.engine.questions import CREATE_ELICITATION, Elicited, counted
from antiphon.errors import CallFailed, InvalidResult, LinkLost
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.server.connection import ClientConnection
from antiphon.server.questions import CANCEL, Notify
from antiphon.server.request import Request

logger = logging.getLogger("antiphon.server")


async def log_in(request: Request) -> Any:
    client, params = request.client, request.params
    client.authentication.check_has_login(request.inbound.method)
    channel = RequestChannel(client, request.inbound)
    await client.authentication.log_in(params.method_id, params.meta, channel)
    return await _done(request)


async def log_out(request: Request) -> Any:
    client = request.client
    client.authentication.check_has_login(request.inbound.method)
    await client.authentication.log_out()
    return await _done(request)


async def _done(request: Request) -> Any:
    """Answer, then report the new status: a client must not get it before the answer."""
    request.answer({})
    await request.client.report_auth()
    return {}


async def status(request: Request) -> Any:
    authentication = request.client.authentication
    authentication.check_has_status(request.inbound.method)
    now = await authentication.report()
    return status_v1(now) if request.client.v1 else now


class RequestChannel:
    """Asks only the client whose request is being answered (ELIC-04). It ends with the request, and is in no
    journal."""

    def __init__(self, connection: ClientConnection, inbound: Inbound) -> None:
        self._connection = connection
        self.scope: Mapping[str, Any] = {"request_id": inbound.id}

    def takes(self, mode: str) -> bool:
        return mode in self._connection.modes

    async def put(self, request: Elicited) -> tuple[v2.CreateElicitationResponse, Notify | None]:
        params = elicit_v1(request, Ledger(self._connection.losses)) if self._connection.v1 else request
        try:
            response = answered(await self._connection.ask(CREATE_ELICITATION, params))
        except (CallFailed, InvalidResult, LinkLost):
            response = None
        given = None if response is None else counted(request, response)
        return given or CANCEL, self._notify

    async def _notify(self, method: str, params: Any) -> None:
        try:
            await self._connection.wire.notify(method, params)
        except LinkLost:
            logger.debug("notification %s not sent: the client is gone", method)
