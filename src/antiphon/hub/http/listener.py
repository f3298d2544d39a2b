"""Listening: a hub at an address, over HTTP and WebSockets, with its admission before it."""

from __future__ import annotations

import asyncio
import ssl
from collections import ChainMap
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, cast

from antiphon.errors import LocalError
from antiphon.hub.access.limits import HubLimits
from antiphon.hub.access.origins import is_loopback
from antiphon.hub.access.tokens import Grant
from antiphon.hub.access_policy import HubPolicy
from antiphon.hub.http.answers import Answering, answer_routes
from antiphon.hub.http.login import BrowserLogin
from antiphon.hub.http.page import Page, PageRoutes
from antiphon.hub.http.status import OPEN, Source, status_routes
from antiphon.remote.http_server import HttpServer, http_server
from antiphon.remote.websocket_server import ServerOptions
from antiphon.server.access import AccessPolicy
from antiphon.transports.http.exchange import DEFAULT_INCOMPLETE, Handler, Limits
from antiphon.transports.http.routes import Site
from antiphon.transports.websocket import WebSocketTransport


class Listening(Answering, Source, Protocol):
    """A hub, as it listens at an address."""

    limits: HubLimits
    browsers: BrowserLogin
    page: Page

    async def serve(self, transport: Any, policy: AccessPolicy | None = None) -> None: ...


def check_address(host: str, *, tls: ssl.SSLContext | None, insecure: bool) -> None:
    """Raise `LocalError` for an address that other machines reach without TLS, unless `insecure`."""
    if tls is None and not insecure and not is_loopback(host):
        raise LocalError(f"{host} is reached from elsewhere: that needs TLS, or to be `insecure`")


@asynccontextmanager
async def listen(
    hub: Listening, host: str, port: int, tls: ssl.SSLContext | None, *, or_any_port: bool
) -> AsyncIterator[HttpServer]:
    admission, own = hub.admission, {**hub.browsers.routes(), **answer_routes(hub)}
    page = PageRoutes(admission, hub.page)

    async def serve(transport: Any) -> None:
        grant = transport.who
        if not isinstance(grant, Grant):
            raise LocalError("nobody knows who this is")
        if isinstance(transport, WebSocketTransport):
            transport.on_oversized = lambda _: admission.note_oversized(grant, transport.peer)
        async with admission.connected(grant, transport) as room:
            if room:
                await hub.serve(transport, HubPolicy(hub, grant, peer=transport.peer))

    server = http_server(
        serve,
        host,
        port,
        tls=tls,
        site=Site(
            check=admission.check,
            routes=ChainMap({**status_routes(hub), **own}, cast(dict[str, Handler], page)),
            open=ChainMap(dict.fromkeys((*OPEN, *own)), cast(dict[str, None], page)),
            refused=admission.note_refused,
        ),
        options=ServerOptions(
            limits=Limits(
                body=hub.limits.frame,
                incomplete=max(2 * hub.limits.frame, DEFAULT_INCOMPLETE),
                head_seconds=hub.limits.head_seconds,
                body_seconds=hub.limits.body_seconds,
            ),
            bound=hub.limits.frame,
            or_any_port=or_any_port,
        ),
    )
    watching = asyncio.get_running_loop().create_task(admission.watch())
    try:
        async with AsyncExitStack() as stack:
            try:
                listens = await stack.enter_async_context(server)
            except OSError as error:
                raise LocalError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
            yield listens
    finally:
        watching.cancel()
        hub.audit.close()
