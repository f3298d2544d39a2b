"""Engine: requests to JetStream, with the errors of a store.

What knows nats-py is here and in `connect`. Writes are compare-and-set per subject; reads for decisions go to
the leader of a stream, reads of pages to any replica.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import nats.errors
from msgspec import Struct
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StorageType, StreamConfig, StreamInfo
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from antiphon.errors import StoreBusy, StoreError, StoreFull
from antiphon.stores.jetstream.addresses import read_servers, shown_servers
from antiphon.stores.jetstream.connect import connect, disconnect
from antiphon.stores.jetstream.kept_cancels import kept_cancels
from antiphon.stores.jetstream.layout import JetStreamOptions, Layout
from antiphon.stores.jetstream.reply_inbox import ReplyInbox
from antiphon.stores.shared import StreamStatus

WRONG_SEQUENCE = (10071, 10164)
"""Error codes of the server: the subject has another last message, or one is being written."""
FULL = (10047, 10023, 10077, 10122)
"""Error codes of the server: no storage, memory or message slots are left."""
NO_PEERS = (10005, 10074)
"""Error codes of the server: fewer servers than replicas."""
MOST_CONSUMERS = 1_000_000
"""Consumers that a stream may have: one for each session that a hub follows. A server of version 2.15 takes
1,000 unless the stream says more."""
REQUEST = 5.0
"""Seconds until a request without an answer is given up."""
logger = logging.getLogger("antiphon.stores")
T = TypeVar("T")


class Message(NamedTuple):
    """One message of a stream."""

    seq: int
    data: bytes


class Ack(Struct):
    """The reply of a server to a message for a stream."""

    seq: int = 0
    error: dict[str, Any] | None = None


_decode_ack = msgspec.json.Decoder(Ack).decode


class WrongSequence(Exception):
    """The last message of the subject is not the expected one. Nothing was written."""


class Unconfirmed(Exception):
    """No answer came. The write may have happened, or may still happen."""


class Engine:
    def __init__(self, servers: str, options: JetStreamOptions) -> None:
        self._servers = read_servers(servers)
        self.servers = shown_servers(self._servers)
        self.replicas = 0
        self._options = options
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._waits: set[asyncio.Timeout] = set()
        """The deadlines of requests to JetStream without an answer."""
        self._asked: set[asyncio.Timeout] = set()
        """The deadlines of requests to other stores without a reply."""
        self.layout = Layout(options)
        self.patience = options.patience
        self._js: JetStreamContext
        self._replies: ReplyInbox

    # --- the connection ----------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and create the streams that are missing."""
        async with self._opening:
            if self._client is None:
                client = await connect(self._servers, self._options, disconnected=self._disconnected)
                self._client, self._js = client, client.jetstream(timeout=2 * REQUEST)
                self._replies = ReplyInbox(client)
                try:
                    await self._replies.begin()
                    await self._prepare()
                except BaseException:
                    self._client = None
                    await disconnect(client)
                    raise

    async def _disconnected(self) -> None:
        _pass_now(self._waits)  # the answers to what was asked are lost with the connection

    async def _prepare(self) -> None:
        layout = self.layout
        if self._options.create:
            last_only = {"max_msgs_per_subject": 1, "allow_msg_ttl": True}
            await self._add(layout.index, layout.every_index_subject, **last_only)
            await self._add(layout.claims, layout.every_claim_subject, **last_only)
            await self._add(layout.notes, layout.every_note, **last_only)
            for stream, subject in {**layout.streams("journal"), **layout.streams("snapshot")}.items():
                await self._add(stream, subject)
        await self._check_made(layout.index)

    async def _check_made(self, stream: str) -> None:
        """Look how the streams were made, and by which number of servers they are kept."""
        try:
            found = await self._patiently(lambda: self._js.stream_info(stream))
        except NotFoundError:
            raise StoreError(
                f"there are no sessions under the name {self._options.name!r} at NATS {self.servers}: "
                "a hub that starts with this store makes its streams"
            ) from None
        self.replicas = found.config.num_replicas or 1
        if self.replicas < self._options.replicas:
            logger.warning(
                "streams of %s exist with replicas: %d, asked for: %d; `nats stream edit` adds replicas",
                self._options.name,
                self.replicas,
                self._options.replicas,
            )

    async def _add(self, stream: str, subject: str, **settings: Any) -> None:
        config = StreamConfig(
            name=stream,
            subjects=[subject],
            storage=StorageType.FILE,
            num_replicas=self._options.replicas,
            allow_direct=True,
            duplicate_window=0,
            max_consumers=MOST_CONSUMERS,
            **settings,
        )
        try:
            await self._patiently(lambda: self._js.add_stream(config))
        except StoreError as error:
            cause = error.__cause__
            if isinstance(cause, APIError) and cause.err_code == 10058:
                return  # it exists with other settings, which an operator has chosen
            raise

    async def close(self) -> None:
        client, self._client = self._client, None
        _pass_now(self._asked)
        if client is not None:
            await disconnect(client)

    async def _patiently(self, request: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request while the cluster has no leader or starts, and raise errors of a store."""
        until = asyncio.get_running_loop().time() + self._options.patience
        while True:
            try:
                return await self._answered(request())
            except (NotFoundError, WrongSequence):
                raise
            except APIError as error:
                if not _passes(error):
                    raise to_store_error(error) from error
                last: Exception = error
            except (nats.errors.Error, TimeoutError, NoStreamResponseError) as error:
                last = error
            if self._client is None:
                raise StoreError("the store is closed")
            if asyncio.get_running_loop().time() > until:
                raise to_store_error(last) from last
            await asyncio.sleep(0.1)

    async def _answered(self, request: Awaitable[T]) -> T:
        """Wait for the answer to a request. Raises `TimeoutError` also if the connection is lost."""
        async with asyncio.timeout(REQUEST) as wait:
            self._waits.add(wait)
            try:
                with kept_cancels():
                    return await request
            finally:
                self._waits.discard(wait)

    # --- writing -----------------------------------------------------------------------------------

    async def publish(
        self, subject: str, data: bytes, *, expected: int | None = None, ttl: float | None = None
    ) -> int:
        """Write a message, and return its number in its stream.

        expected: the number of the last message of this subject, 0 for none; otherwise `WrongSequence`.
        ttl: seconds after which the server removes the message.
        """
        headers = {}
        if expected is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(expected)
        if ttl is not None:
            headers["Nats-TTL"] = f"{max(1, round(ttl))}s"
        try:
            ack = _decode_ack(await self._answered(self._replies.request(subject, data, headers or None)))
            if ack.error is not None:
                raise APIError.from_error(ack.error)
        except APIError as error:
            if _code(error) in WRONG_SEQUENCE:
                raise WrongSequence(subject) from error
            if isinstance(error, ServiceUnavailableError) and _code(error) not in (*FULL, *NO_PEERS):
                raise Unconfirmed(subject) from error
            raise to_store_error(error) from error
        except nats.errors.MaxPayloadError as error:
            raise StoreError(
                f"the NATS servers refuse messages of {len(data)} bytes: set max_payload to 1MB or more"
            ) from error
        except (nats.errors.Error, TimeoutError, msgspec.DecodeError) as error:
            raise Unconfirmed(subject) from error
        return ack.seq

    async def put(self, subject: str, data: bytes, *, ttl: float | None = None) -> int:
        """Write a message that may be there twice, until it is confirmed."""

        async def write() -> int:
            try:
                return await self.publish(subject, data, ttl=ttl)
            except Unconfirmed as error:
                raise TimeoutError from error

        return await self._patiently(write)

    async def purge(self, stream: str, subject: str, *, before: int | None = None) -> None:
        """Remove the messages of a subject, or those before a number."""
        await self._patiently(lambda: self._js.purge_stream(stream, subject=subject, seq=before))

    async def remove(self, stream: str, seq: int) -> None:
        """Remove one message, if it is still there."""
        try:
            await self._patiently(lambda: self._js.delete_msg(stream, seq))
        except (NotFoundError, StoreError):
            return

    # --- reading -----------------------------------------------------------------------------------

    async def last(self, stream: str, subject: str) -> Message | None:
        """Return the last message of a subject, as the leader has it."""
        try:
            found = await self._patiently(lambda: self._js.get_last_msg(stream, subject))
        except NotFoundError:
            return None
        return Message(int(found.seq or 0), found.data or b"")

    async def get(self, stream: str, seq: int) -> Message | None:
        """Return one message by its number."""
        try:
            found = await self._patiently(lambda: self._js.get_msg(stream, seq))
        except NotFoundError:
            return None
        return Message(int(found.seq or 0), found.data or b"")

    async def following(self, stream: str, subject: str, seq: int) -> Message | None:
        """Return the first message of a subject from a number on, as the leader has it."""
        try:
            found = await self._patiently(
                lambda: self._js.get_msg(stream, max(1, seq), subject=subject, next=True)
            )
        except NotFoundError:
            return None
        return Message(int(found.seq or 0), found.data or b"")

    async def page(
        self, stream: str, subject: str, seq: int, *, limit_bytes: int, count: int = 1000
    ) -> list[Message]:
        """Return the messages of a subject from a number on, from any replica, which may lag."""
        request = {"seq": max(1, seq), "next_by_subj": subject, "batch": count, "max_bytes": limit_bytes}
        return await self._patiently(lambda: self._page(stream, json.dumps(request).encode()))

    async def full_page(self, stream: str, subject: str, seq: int, *, limit_bytes: int) -> list[Message]:
        """Return messages as `page` does. If a replica has none because it lags, ask the leader for one."""
        found = await self.page(stream, subject, seq, limit_bytes=limit_bytes)
        if found:
            return found
        following = await self.following(stream, subject, seq)
        return [] if following is None else [following]

    async def _page(self, stream: str, request: bytes) -> list[Message]:
        client = self._connected()
        inbox = client.new_inbox()
        answers = await client.subscribe(inbox, pending_msgs_limit=-1, pending_bytes_limit=-1)
        try:
            await client.publish(f"$JS.API.DIRECT.GET.{stream}", request, reply=inbox)
            found: list[Message] = []
            while True:
                answer = await answers.next_msg(timeout=REQUEST)
                headers = answer.headers or {}
                status = headers.get("Status")
                if status == "404" or (status == "204" and not answer.data):
                    return found
                if status is not None:
                    raise nats.errors.Error(f"direct get of {stream} failed with status {status}")
                found.append(Message(int(headers["Nats-Sequence"]), answer.data))
        finally:
            await answers.unsubscribe()

    def _connected(self) -> Client:
        if self._client is None:
            raise StoreError("the store is closed")
        return self._client

    # --- following ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def consumer(
        self, stream: str, subject: str, *, start: int | None, silence: float
    ) -> AsyncIterator[Subscription]:
        """Deliver the messages of a subject from a number on (`None`: the last one of each subject, then all
        that follow) to a subscription, with a heartbeat while there is nothing to deliver."""
        client = self._connected()
        inbox = client.new_inbox()
        deliveries = await client.subscribe(inbox, pending_msgs_limit=-1, pending_bytes_limit=-1)
        name = ""
        try:
            config = ConsumerConfig(
                deliver_subject=inbox,
                filter_subject=subject,
                ack_policy=AckPolicy.NONE,
                deliver_policy=DeliverPolicy.LAST_PER_SUBJECT
                if start is None
                else DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=None if start is None else max(1, start),
                flow_control=True,
                idle_heartbeat=silence / 3,
                inactive_threshold=30.0,
                max_deliver=1,
                num_replicas=1,
                mem_storage=True,
            )
            name = (await self._patiently(lambda: self._js.add_consumer(stream, config))).name
            yield deliveries
        finally:
            if not client.is_closed:
                await deliveries.unsubscribe()
                if name:
                    await client.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{name}", b"")

    async def acknowledge_flow(self, message: Msg) -> None:
        """Answer a flow control message, so that the server sends more."""
        await self._connected().publish(message.reply, b"")

    # --- messages that no stream keeps -------------------------------------------------------------

    async def ask(self, subject: str, data: bytes, *, timeout: float) -> bytes | None:
        """Send a request, and return the reply; `None` if nobody receives requests of this subject. Raises
        `TimeoutError`."""
        try:
            async with asyncio.timeout(timeout) as wait:
                self._asked.add(wait)
                try:
                    with kept_cancels():
                        return (await self._connected().request(subject, data, timeout=timeout)).data
                finally:
                    self._asked.discard(wait)
        except nats.errors.NoRespondersError:
            return None
        except TimeoutError:
            self._connected()
            raise
        except nats.errors.Error as error:
            raise to_store_error(error) from error

    async def tell(self, subject: str, data: bytes) -> None:
        """Send a message to whoever receives messages of this subject now."""
        try:
            await self._connected().publish(subject, data)
        except nats.errors.Error as error:
            raise to_store_error(error) from error

    async def hear(self, subject: str, receive: Callable[[bytes, str], Awaitable[None]]) -> Subscription:
        """Receive the messages of a subject from now on, one after the other. `receive` gets the data of each
        and the subject for its reply; it does not raise."""

        async def received(message: Msg) -> None:
            await receive(message.data, message.reply)

        client = self._connected()
        try:
            subscription = await client.subscribe(subject, cb=received)
            await _settle(client)
            return subscription
        except nats.errors.Error as error:
            raise to_store_error(error) from error

    async def ignore(self, subscriptions: Iterable[Subscription]) -> None:
        """Receive what is on its way, and no more messages of these subscriptions."""
        client = self._client
        if client is not None and client.is_connected:
            with suppress(nats.errors.Error, TimeoutError):  # the connection is lost
                async with asyncio.timeout(REQUEST):
                    await asyncio.gather(*(each.drain() for each in subscriptions))  # type: ignore[no-untyped-call]
                    await _settle(client)

    # --- for operators -----------------------------------------------------------------------------

    async def status(self) -> list[StreamStatus]:
        found: list[StreamInfo] = []
        while page := await self._patiently(partial(self._js.streams_info, offset=len(found))):
            found += page
        own = (info for info in found if self.layout.owns(info.config.name or ""))
        return sorted(map(_status, own), key=lambda status: status.name)


async def _settle(client: Client) -> None:
    """Wait until the server has processed all commands. nats-py sends the ping of a flush before the commands
    that it still has; it has sent them when the first ping is answered."""
    await client.flush()
    await client.flush()


async def end(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks until they have ended: nats-py drops a cancellation that comes while it sends."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=0.1)


def _pass_now(waits: Iterable[asyncio.Timeout]) -> None:
    """Let deadlines pass now."""
    now = asyncio.get_running_loop().time()
    for wait in waits:
        if not wait.expired():
            wait.reschedule(now)


def _status(info: StreamInfo) -> StreamStatus:
    cluster = info.cluster
    return StreamStatus(
        name=info.config.name or "",
        messages=info.state.messages,
        bytes=info.state.bytes,
        replicas=info.config.num_replicas or 1,
        leader=cluster.leader if cluster is not None else None,
        lag=max((replica.lag or 0 for replica in cluster.replicas or ()), default=0) if cluster else 0,
    )


def _code(error: APIError) -> int:
    return int(error.err_code or 0)


def _passes(error: APIError) -> bool:
    """Return whether a refusal of the server is one that passes by itself."""
    code = _code(error)
    if code in NO_PEERS:
        return "offline" in (error.description or "")  # a server of the cluster that has just started
    return isinstance(error, ServiceUnavailableError) and code not in FULL


def to_store_error(error: Exception) -> StoreError:
    """Return the error of a store for an error of NATS."""
    text = getattr(error, "description", None) or str(error) or type(error).__name__
    code = _code(error) if isinstance(error, APIError) else 0
    if code in FULL:
        return StoreFull(f"NATS has no room left: {text}; raise the limits of JetStream or delete sessions")
    if code in NO_PEERS:
        return StoreError(
            f"NATS has fewer servers than the replicas that were asked for: {text}; "
            "start more servers, or ask for fewer replicas"
        )
    if code:
        return StoreError(f"NATS refused a request: {text} ({code})")
    if isinstance(error, (ServiceUnavailableError, NoStreamResponseError)):
        text = "JetStream is not enabled on the servers, or the cluster has no leader"
    return StoreBusy(f"NATS did not answer: {text}")
