"""Exchange: requests and announcements between the stores of one installation.

A small body travels in its message. The sender of a larger one offers it instead, and the receiver fetches it
in pieces: so the receiver decides how much is under way, and NATS never has more of it than that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Literal
from weakref import WeakValueDictionary

from nats.aio.subscription import Subscription

from antiphon.errors import LocalError, NobodyAnswers, StoreBusy, StoreError
from antiphon.stores.jetstream.engine import Engine, end
from antiphon.stores.jetstream.layout import PIECE_BYTES
from antiphon.stores.jetstream.messages import Envelope, PieceRequest, join, new_key, split
from antiphon.stores.shared import MOST_BYTES

INLINE = 64 * 1024
"""The most bytes of a body that travels in its message."""
MOST_OFFERED = 8 * MOST_BYTES
"""The most bytes that a store offers at a time."""
BODIES_AT_ONCE = 4
"""Bodies that a store fetches at a time."""
PIECES_AT_ONCE = 8
"""Pieces of one body that are under way at a time."""
PIECE_WAIT = 5.0
"""Seconds until a piece counts as lost, and its message with it."""
ANNOUNCED = 30.0
"""Seconds for which the body of an announcement is offered."""
logger = logging.getLogger("antiphon.stores")


class Offer:
    """A body that other stores fetch in pieces."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._missing = set(range(_pieces(len(body))))
        self.is_fetched = asyncio.Event()
        """Every piece was fetched once."""

    def piece(self, number: int) -> bytes:
        self._missing.discard(number)
        if not self._missing:
            self.is_fetched.set()
        return self.body[number * PIECE_BYTES : (number + 1) * PIECE_BYTES]


class Exchange:
    def __init__(self, engine: Engine, store_id: str) -> None:
        self._engine = engine
        self._layout = engine.layout
        self._store_id = store_id
        self._is_serving = False
        self._offers: dict[str, Offer] = {}
        self._offering = asyncio.Lock()
        self._is_offering = False
        self._fetches = asyncio.Semaphore(BODIES_AT_ONCE)
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A lock for each subject and sender, as long as messages are on their way."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscriptions: list[Subscription] = []

    # --- sending -----------------------------------------------------------------------------------

    async def request(self, store_id: str, data: bytes, *, timeout: float) -> bytes:
        try:
            async with asyncio.timeout(timeout), self._packed(data, seconds=timeout) as (message, _):
                reply = await self._engine.ask(self._layout.request(store_id), message, timeout=timeout)
                if reply is None:
                    raise NobodyAnswers(store_id)
                envelope, body = split(Envelope, reply)
                if envelope.offer:
                    body = await self._fetch(envelope)
        except TimeoutError:
            raise TimeoutError(f"store {store_id} sent no reply within {timeout:g} s") from None
        if envelope.failure == "failed":
            raise StoreError(f"store {store_id} failed to handle a request; its log says why")
        if envelope.failure == "closed":
            raise TimeoutError(f"store {store_id} was closed while it handled a request")
        return body

    async def announce(self, topic: str, data: bytes) -> None:
        subject = self._layout.announcement(topic)
        async with AsyncExitStack() as stack:
            message, offer = await stack.enter_async_context(self._packed(data))
            await self._engine.tell(subject, message)
            if offer is not None:
                self._begin(self._hold(stack.pop_all()))

    async def _hold(self, offer: AsyncExitStack) -> None:
        """Keep the offer of an announcement for some time: nobody knows how many stores fetch it."""
        async with offer:
            await asyncio.sleep(ANNOUNCED)

    @asynccontextmanager
    async def _packed(self, body: bytes, *, seconds: float = 0) -> AsyncIterator[tuple[bytes, Offer | None]]:
        """Return a message, and the offer of its body if it does not travel in it, which ends with the
        block. Messages are packed in the order of asking."""
        await self._begin_offering()
        if len(body) <= INLINE:
            yield join(Envelope(self._store_id, seconds=seconds), body), None
            return
        if len(body) > MOST_BYTES:
            raise StoreError(
                f"a message to another store has {len(body)} bytes, at most {MOST_BYTES} are sent"
            )
        if len(body) + sum(len(offer.body) for offer in self._offers.values()) > MOST_OFFERED:
            raise StoreBusy("too many large messages to other stores are under way")
        name, offer = new_key(), Offer(body)
        self._offers[name] = offer
        try:
            yield join(Envelope(self._store_id, offer=name, size=len(body), seconds=seconds)), offer
        finally:
            del self._offers[name]

    async def _begin_offering(self) -> None:
        async with self._offering:
            if not self._is_offering:
                await self._hear(self._layout.piece(self._store_id), self._send_piece)
                self._is_offering = True

    async def _send_piece(self, data: bytes, reply: str) -> None:
        with suppress(StoreError):  # the receiver stops waiting by itself
            wanted, _ = split(PieceRequest, data)
            offer = self._offers.get(wanted.offer)
            await self._engine.tell(reply, b"" if offer is None else offer.piece(wanted.piece))

    # --- receiving ---------------------------------------------------------------------------------

    async def serve(self, handle: Callable[[bytes], Awaitable[bytes]]) -> None:
        if self._is_serving:
            raise LocalError("serve was already called; a store has one handler of requests")
        self._is_serving = True

        async def answer(body: bytes, envelope: Envelope, reply: str) -> None:
            try:
                await self._reply(await handle(body), reply, seconds=envelope.seconds)
            except asyncio.CancelledError:
                await self._refuse(reply, "closed")
                raise
            except Exception:
                logger.exception("request of store %s failed", envelope.sender)
                await self._refuse(reply, "failed")

        await self._receive(self._layout.request(self._store_id), answer)

    async def _reply(self, data: bytes, reply: str, *, seconds: float) -> None:
        """Reply to a request. A large reply is offered until it is fetched, for as long as it is awaited."""
        async with self._packed(data) as (message, offer):
            await self._engine.tell(reply, message)
            if offer is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await offer.is_fetched.wait()

    async def _refuse(self, reply: str, failure: Literal["failed", "closed"]) -> None:
        with suppress(StoreError):  # then the sender waits until its time is over
            await self._engine.tell(reply, join(Envelope(self._store_id, failure=failure)))

    async def listen(self, topic: str, receive: Callable[[str, bytes], None]) -> None:
        async def pass_on(body: bytes, envelope: Envelope, _: str) -> None:
            try:
                receive(envelope.sender, body)
            except Exception:
                logger.exception("announcement of store %s about %s failed", envelope.sender, topic)

        await self._receive(self._layout.announcement(topic), pass_on)

    async def _receive(self, subject: str, use: Callable[[bytes, Envelope, str], Awaitable[None]]) -> None:
        """Use each message of a subject in a task. Those of one sender begin in the order of arrival."""

        async def received(data: bytes, reply: str) -> None:
            try:
                envelope, body = split(Envelope, data)
            except StoreError as error:
                logger.warning("message to %s ignored: %s", subject, error)
                return
            if reply or envelope.sender != self._store_id:  # its own announcements are not for it
                self._begin(in_order(envelope, body, reply))

        async def in_order(envelope: Envelope, body: bytes, reply: str) -> None:
            line = f"{subject} {envelope.sender}"
            # Tasks begin in the order in which they were made, and get the lock in the order of asking.
            async with self._order.get(line) or self._order.setdefault(line, asyncio.Lock()):
                if envelope.offer:
                    try:
                        body = await self._fetch(envelope)
                    except (TimeoutError, StoreError) as error:
                        logger.info("message of store %s lost: %s", envelope.sender, error)
                        return
            await use(body, envelope, reply)

        await self._hear(subject, received)

    async def _fetch(self, envelope: Envelope) -> bytes:
        """Fetch the body that a message offers. Raises `TimeoutError` if the sender does not have it."""
        if not 0 < envelope.size <= MOST_BYTES:
            raise TimeoutError(f"its body has {envelope.size} bytes, at most {MOST_BYTES} are fetched")
        count = _pieces(envelope.size)
        pieces: list[bytes] = []
        async with self._fetches:
            for at in range(0, count, PIECES_AT_ONCE):
                wanted = range(at, min(count, at + PIECES_AT_ONCE))
                pieces += await asyncio.gather(*(self._fetch_piece(envelope, number) for number in wanted))
        return b"".join(pieces)

    async def _fetch_piece(self, envelope: Envelope, number: int) -> bytes:
        request = join(PieceRequest(envelope.offer, number))
        piece = await self._engine.ask(self._layout.piece(envelope.sender), request, timeout=PIECE_WAIT)
        if not piece:
            raise TimeoutError("its sender has given it up")
        return piece

    # --- tasks -------------------------------------------------------------------------------------

    async def _hear(self, subject: str, receive: Callable[[bytes, str], Awaitable[None]]) -> None:
        self._subscriptions.append(await self._engine.hear(subject, receive))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Receive nothing more, and end everything that is under way."""
        await self._engine.ignore(self._subscriptions)
        await end(*self._tasks)


def _pieces(size: int) -> int:
    return -(-size // PIECE_BYTES)
