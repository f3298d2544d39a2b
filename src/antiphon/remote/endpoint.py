"""AcpEndpoint: `/acp` over HTTP. POST sends a frame, GET opens a stream, DELETE ends both (HTTP-01).

Requests reach the endpoint after the server's check: a connection id does not authenticate (HTTP-22).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET

from antiphon.errors import ErrorObject, InvalidRequest, TooComplex
from antiphon.jsonrpc.frames import UNREADABLE, encode_failure
from antiphon.jsonrpc.oversized import HEAD, TAIL, read_partial
from antiphon.jsonrpc.structure import check_structure
from antiphon.remote.frames import CONNECTION_ID, SESSION_ID, Outline, outline
from antiphon.remote.http_transport import HttpTransport
from antiphon.remote.stream_router import StreamBounds
from antiphon.transports.http.event_stream import Position
from antiphon.transports.http.exchange import EVENTS, Exchange, Head, Reply, json, plain, wants_websocket
from antiphon.transports.http.routes import Refused

logger = logging.getLogger("antiphon.transports")

METHODS = ("DELETE", "GET", "POST")
IN_A_SESSION = frozenset(
    f"session/{verb}"
    for verb in (
        "cancel",
        "close",
        "delete",
        "fork",
        "load",
        "prompt",
        "resume",
        "set_config_option",
        "set_mode",
        "set_model",
    )
)
BATCH = encode_failure(None, ErrorObject(InvalidRequest.code, "batches are not supported"))

Serve = Callable[[HttpTransport], Awaitable[None]]


class AcpEndpoint:
    def __init__(
        self,
        serve: Serve,
        start: Callable[[Any], asyncio.Task[None]],
        bounds: StreamBounds,
        *,
        refused: Refused | None,
    ) -> None:
        """`start` runs `serve` for a connection in a task of the server; `refused` gets refused requests."""
        self._serve = serve
        self._start = start
        self._bounds = bounds
        self.connections: dict[str, HttpTransport] = {}
        self._refused = refused

    def admit(self, head: Head) -> Reply | None:
        if head.method not in METHODS:
            return plain(405, allow=", ".join(METHODS))
        if head.method == "POST":
            kind = head.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            return None if kind == "application/json" else plain(415)  # HTTP-06
        if head.method == "GET" and not wants_websocket(head):
            wanted = head.headers.get("Accept", "").lower()
            return None if EVENTS in wanted else plain(406)  # HTTP-07
        return None

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        if exchange.head.method == "POST":
            await self._post(exchange, body)
            return
        found = self._find(exchange.head)
        if isinstance(found, Reply):
            exchange.reply(found)
        elif exchange.head.method == "GET":
            self._get(exchange, found)
        else:
            found.end("the client sent DELETE")
            exchange.reply(Reply(202))

    def refused(self, head: Head, status: int) -> None:
        if self._refused is not None:
            self._refused(head, status)

    def _find(self, head: Head) -> HttpTransport | Reply:
        """Return the connection that a request belongs to, or the refusal (HTTP-08)."""
        id = head.headers.get(CONNECTION_ID)
        if not id:
            return plain(400, f"Missing {CONNECTION_ID}")
        found = self.connections.get(id)
        if found is not None and found.who != head.who:
            found = None  # HTTP-22: the id does not authenticate
            self.refused(head, 404)
        return plain(404, f"Unknown {CONNECTION_ID}") if found is None else found

    # --- streams -----------------------------------------------------------------------------------

    def _get(self, exchange: Exchange, connection: HttpTransport) -> None:
        headers = exchange.head.headers
        session, last = headers.get(SESSION_ID) or None, headers.get("Last-Event-ID")
        position = None if last is None else Position.read(last)
        if last is not None and position is None:
            exchange.reply(plain(400, "Last-Event-ID is not an id of this server"))
        elif session is not None and len(session) > self._bounds.id_length:
            exchange.reply(plain(400, f"{SESSION_ID} is too long"))
        elif not connection.open_stream(session, exchange, position):
            reason = (
                "Another request reads this stream"
                if position is None
                else "The events after Last-Event-ID are gone"
            )
            exchange.reply(plain(409, reason))

    # --- frames ------------------------------------------------------------------------------------

    async def _post(self, exchange: Exchange, body: bytes) -> None:
        head = exchange.head
        about = _read(body)
        if isinstance(about, Reply):
            self.refused(head, about.status)
            exchange.reply(about)
            return
        if about.method == "initialize" and about.id is not UNSET:
            await self._initialize(exchange, body, about.id)
            return
        connection = self._find(head)
        if isinstance(connection, Reply):
            exchange.reply(connection)
            return
        session = head.headers.get(SESSION_ID) or None
        refused = self._misplaced(about, session, connection)
        if refused is not None:
            exchange.reply(refused)
            return
        await connection.room()
        if exchange.gone:
            return
        if connection.end_reason:
            exchange.reply(plain(404, f"Unknown {CONNECTION_ID}"))
            return
        if session is None and about.method is None:
            session = connection.router.asked_in(about.id)  # the session of the request that it answers
        connection.receive(body, about, session)
        exchange.reply(Reply(202))  # HTTP-05

    def _misplaced(self, about: Outline, session: str | None, connection: HttpTransport) -> Reply | None:
        """Return the refusal of a frame that does not belong to the session of its header (HTTP-09)."""
        answers = about.method is None
        belongs = connection.router.asked_in(about.id) if answers else about.session
        if session is None and not answers and (belongs is not None or about.method in IN_A_SESSION):
            return plain(400, f"Missing {SESSION_ID}")
        if session is not None and belongs is not None and session != belongs:
            return plain(400, f"{SESSION_ID} is not the session of the message")
        for name, id in ((SESSION_ID, session), ("The request's id", about.id)):
            if isinstance(id, str) and len(id) > self._bounds.id_length:
                return plain(400, f"{name} is too long")
        return None

    async def _initialize(self, exchange: Exchange, body: bytes, id: Any) -> None:
        if exchange.head.headers.get(CONNECTION_ID):
            exchange.reply(plain(400, "This connection is already initialized"))
            return
        if id is None or (isinstance(id, str) and len(id) > self._bounds.id_length):
            exchange.reply(plain(400, "`initialize` needs an id"))
            return
        connection = HttpTransport(self._bounds, on_end=self._ended)
        connection.who, connection.peer = exchange.head.who, exchange.head.peer
        self.connections[connection.id] = connection
        exchange.on_gone = lambda: connection.end(
            "the client closed the socket before the response to `initialize`"
        )
        answered = connection.initialize(body, id)
        self._start(self._run(connection))
        await asyncio.wait([answered], timeout=self._bounds.initialize)
        if answered.done() and not answered.cancelled():
            exchange.on_gone = lambda: None
            exchange.reply(json(200, answered.result(), {CONNECTION_ID: connection.id}))
        else:
            connection.end("`initialize` was not answered in time")
            exchange.reply(json(500, encode_failure(id, ErrorObject(-32603, "Initialize failed"))))

    async def _run(self, connection: HttpTransport) -> None:
        try:
            await self._serve(connection)
        except Exception:
            logger.exception(
                "HTTP connection handler failed; closing the connection of %s", connection.peer
            )  # others continue
        finally:
            await connection.aclose()

    def _ended(self, connection: HttpTransport) -> None:
        self.connections.pop(connection.id, None)

    async def aclose(self) -> None:
        await asyncio.gather(*[connection.aclose() for connection in tuple(self.connections.values())])


def _read(body: bytes) -> Outline | Reply:
    """Return the outline of a frame, or its refusal. The connection checks the rest of it (HTTP-17)."""
    try:
        check_structure(body)
        body.decode("utf-8")
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except TooComplex as error:
        id = read_partial(body[:HEAD], body[-TAIL:]).id
        return json(400, encode_failure(None if id is UNSET else id, error.to_wire()))
    except msgspec.ValidationError:
        return json(400, BATCH) if body.lstrip()[:1] == b"[" else plain(400, "Not a JSON-RPC message")
    except UNREADABLE:
        return plain(400, "Invalid JSON")
    return outline(body)
