"""Engine: requests to JetStream, with the errors of a store.

Everything that knows nats-py is here. Writes are compare-and-set per subject; reads for decisions go to the
leader of a stream, reads of pages to any replica.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from antiphon.errors import StoreBusy, StoreError, StoreFull
from antiphon.stores.jetstream.layout import OLDEST_SERVER, JetStreamOptions, Layout

WRONG_SEQUENCE = (10071, 10164)
"""Error codes of the server: the subject has another last message, or one is being written."""
FULL = (10047, 10023, 10077, 10122)
"""Error codes of the server: no storage, memory or message slots are left."""
NO_PEERS = (10005, 10074)
"""Error codes of the server: fewer servers than replicas."""
REQUEST = 5.0
"""Seconds until a request without an answer is given up."""
logger = logging.getLogger("antiphon.stores")
T = TypeVar("T")


class Message(NamedTuple):
    """One message of a stream."""

    seq: int
    data: bytes


class WrongSequence(Exception):
    """The last message of the subject is not the expected one. Nothing was written."""


class Unconfirmed(Exception):
    """No answer came. The write may have happened, or may still happen."""


class Engine:
    def __init__(self, servers: str, options: JetStreamOptions) -> None:
        self._servers = [address.strip() for address in servers.split(",")]
        scheme = self._servers[0].partition("://")[0]
        self._servers = [each if "://" in each else f"{scheme}://{each}" for each in self._servers]
        self._options = options
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._waits: set[asyncio.Timeout] = set()
        """The deadlines of requests without an answer."""
        self.layout = Layout(options)
        self.patience = options.patience
        self._js: JetStreamContext

    # --- the connection ----------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and create the streams that are missing."""
        async with self._opening:
            if self._client is None:
                client = Client()
                await self._connect(client)
                self._client, self._js = client, client.jetstream(timeout=2 * REQUEST)
                try:
                    await self._prepare()
                except BaseException:
                    self._client = None
                    await client.close()
                    raise

    async def _connect(self, client: Client) -> None:
        async def note(error: Exception) -> None:
            logger.info("NATS connection: %s", error)

        async def disconnected() -> None:
            # The answers to what was asked are lost with the connection.
            for wait in self._waits:
                wait.reschedule(asyncio.get_running_loop().time())

        tls = None
        if self._options.ca is not None or self._servers[0].startswith("tls://"):
            tls = ssl.create_default_context(cafile=self._options.ca)
        try:
            await client.connect(
                servers=self._servers,
                name="antiphon",
                error_cb=note,
                disconnected_cb=disconnected,
                connect_timeout=5,
                reconnect_time_wait=1,
                max_reconnect_attempts=1,
                tls=tls,
                user_credentials=self._options.credentials,
            )
            client.options["max_reconnect_attempts"] = -1  # now that it was connected, for ever
        except (nats.errors.Error, OSError, TimeoutError) as error:
            where = ", ".join(self._servers)
            raise StoreError(
                f"cannot connect to NATS at {where}: {str(error) or type(error).__name__}"
            ) from error
        found = _version(str(client.connected_server_version))
        if found < OLDEST_SERVER:
            await client.close()
            raise StoreError(
                f"NATS server {'.'.join(map(str, found))} is too old: "
                f"{'.'.join(map(str, OLDEST_SERVER))} or newer is needed"
            )

    async def _prepare(self) -> None:
        layout = self.layout
        last_only = {"max_msgs_per_subject": 1, "allow_msg_ttl": True}
        await self._add(layout.index, layout.every_index_subject, **last_only)
        await self._add(layout.claims, layout.every_claim_subject, **last_only)
        for stream, subject in {**layout.streams("journal"), **layout.streams("snapshot")}.items():
            await self._add(stream, subject)

    async def _add(self, stream: str, subject: str, **settings: Any) -> None:
        config = StreamConfig(
            name=stream,
            subjects=[subject],
            storage=StorageType.FILE,
            num_replicas=self._options.replicas,
            allow_direct=True,
            duplicate_window=0,
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
        if client is not None:
            await client.close()

    async def _patiently(self, request: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request while the cluster has no leader, and raise errors of a store."""
        until = asyncio.get_running_loop().time() + self._options.patience
        while True:
            try:
                return await self._answered(request())
            except (NotFoundError, WrongSequence):
                raise
            except APIError as error:
                if not isinstance(error, ServiceUnavailableError) or _code(error) in (*FULL, *NO_PEERS):
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
            ack = await self._answered(self._js.publish(subject, data, headers=headers or None))
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
        except (nats.errors.Error, TimeoutError, NoStreamResponseError) as error:
            raise Unconfirmed(subject) from error
        return int(ack.seq)

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


def _version(text: str) -> tuple[int, int]:
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _code(error: APIError) -> int:
    return int(error.err_code or 0)


def to_store_error(error: Exception) -> StoreError:
    """Return the error of a store for an error of NATS."""
    text = getattr(error, "description", None) or str(error) or type(error).__name__
    code = _code(error) if isinstance(error, APIError) else 0
    if code in FULL:
        return StoreFull(f"NATS has no room left: {text}")
    if code in NO_PEERS:
        return StoreError(f"NATS has fewer servers than the replicas that were asked for: {text}")
    if code:
        return StoreError(f"NATS refused a request: {text} ({code})")
    return StoreBusy(f"NATS did not answer: {text}")
