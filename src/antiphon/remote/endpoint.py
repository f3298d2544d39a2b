"""AcpEndpoint: `/acp` over HTTP. POST brings a frame, GET opens a stream, DELETE ends all of it (HTTP-01).

Each refusal has its status; whoever comes here was let in already (HTTP-22: no id of ours lets anybody in).
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
from antiphon.remote.stream_router import Bounds
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
        self, serve: Serve, start: Callable[[Any], asyncio.Task[None]], bounds: Bounds | None = None
    ) -> None:
        """`start` runs what serves a connection, in a task that somebody owns."""
        self._serve = serve
        self._start = start
        self._bounds = bounds or Bounds()
        self.connections: dict[str, HttpTransport] = {}
        self.on_refused: Refused = lambda head, status: None
        """Hears of those who want somebody else's connection."""

    # --- by the head alone -------------------------------------------------------------------------

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
            found.end("the client has left")
            exchange.reply(Reply(202))

    def refused(self, head: Head, status: int) -> None:
        self.on_refused(head, status)

    def _find(self, head: Head) -> HttpTransport | Reply:
        """The connection that a request belongs to (HTTP-08)."""
        id = head.headers.get(CONNECTION_ID)
        if not id:
            return plain(400, f"Missing {CONNECTION_ID}")
        found = self.connections.get(id)
        if found is not None and found.who != head.who:
            found = None  # HTTP-22: its id is no key to it
            self.refused(head, 404)
        return plain(404, f"Unknown {CONNECTION_ID}") if found is None else found

    # --- streams -----------------------------------------------------------------------------------

    def _get(self, exchange: Exchange, connection: HttpTransport) -> None:
        headers = exchange.head.headers
        session, last = headers.get(SESSION_ID) or None, headers.get("Last-Event-ID")
        position = None if last is None else Position.read(last)
        if last is not None and position is None:
            exchange.reply(plain(400, "Not an id of ours: Last-Event-ID"))
        elif session is not None and len(session) > self._bounds.id_length:
            exchange.reply(plain(400, f"{SESSION_ID} is too long"))
        elif not connection.open_stream(session, exchange, position):
            taken = "This stream has a receiver" if position is None else "It cannot be gone on from there"
            exchange.reply(plain(409, taken))

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
            session = connection.asked_in(about.id)  # the connection knows where it asked
        connection.receive(body, about, session)
        exchange.reply(Reply(202))  # HTTP-05

    def _misplaced(self, about: Outline, session: str | None, connection: HttpTransport) -> Reply | None:
        """Whether a frame belongs to the session that the header names, or to none (HTTP-09)."""
        answers = about.method is None
        belongs = connection.asked_in(about.id) if answers else about.session
        if session is None and not answers and (belongs is not None or about.method in IN_A_SESSION):
            return plain(400, f"Missing {SESSION_ID}")
        if session is not None and belongs is not None and session != belongs:
            return plain(400, f"{SESSION_ID} is another one than that of the message")
        for name, id in ((SESSION_ID, session), ("The request's id", about.id)):
            if isinstance(id, str) and len(id) > self._bounds.id_length:
                return plain(400, f"{name} is too long")
        return None

    async def _initialize(self, exchange: Exchange, body: bytes, id: Any) -> None:
        if exchange.head.headers.get(CONNECTION_ID):
            exchange.reply(plain(400, "This connection is initialized"))
            return
        if id is None or (isinstance(id, str) and len(id) > self._bounds.id_length):
            exchange.reply(plain(400, "`initialize` needs an id"))
            return
        connection = HttpTransport(self._bounds, on_end=self._ended)
        connection.who, connection.peer = exchange.head.who, exchange.head.peer
        self.connections[connection.id] = connection
        exchange.on_gone = lambda: connection.end("the client did not wait")
        answered = connection.initialize(body, id)
        self._start(self._run(connection))
        await asyncio.wait([answered], timeout=self._bounds.initialize)
        if answered.done() and not answered.cancelled():
            exchange.on_gone = lambda: None
            exchange.reply(json(200, answered.result(), {CONNECTION_ID: connection.id}))
        else:
            connection.end("it was not initialized")
            exchange.reply(json(500, encode_failure(id, ErrorObject(-32603, "Initialize failed"))))

    async def _run(self, connection: HttpTransport) -> None:
        try:
            await self._serve(connection)
        except Exception:
            logger.exception("serving an HTTP connection failed")  # the others go on
        finally:
            await connection.aclose()

    def _ended(self, connection: HttpTransport) -> None:
        self.connections.pop(connection.id, None)

    async def aclose(self) -> None:
        await asyncio.gather(*[connection.aclose() for connection in tuple(self.connections.values())])


def _read(body: bytes) -> Outline | Reply:
    """A frame as far as it can be refused here; what else is wrong with it, the connection says (HTTP-17)."""
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
