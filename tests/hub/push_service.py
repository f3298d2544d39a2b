"""A push service, and a browser that subscribed to it. They verify what a hub sends, by code of their own."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

DEADLINE = 60.0


def unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def derived(salt: bytes, material: bytes, info: bytes, size: int) -> bytes:
    return HKDF(hashes.SHA256(), length=size, salt=salt, info=info).derive(material)


class Subscriber:
    """The keys of one subscription, as a browser has them."""

    def __init__(self, endpoint: str, key: ec.EllipticCurvePrivateKey | None = None) -> None:
        self.endpoint = endpoint
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)
        self.point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def params(self) -> dict[str, Any]:
        """What a page sends to its hub."""
        keys = {"p256dh": base64url(self.point), "auth": base64url(self.auth)}
        return {"endpoint": self.endpoint, "keys": keys}

    def decrypt(self, body: bytes) -> bytes:
        """Decrypt a message of one record (RFC 8188, RFC 8291)."""
        salt, record, size = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        assert size == 65
        sender, sealed = body[21:86], body[86:]
        assert len(sealed) <= record
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self.key.exchange(ec.ECDH(), public)
        secret = derived(self.auth, shared, b"WebPush: info\0" + self.point + sender, 32)
        key = derived(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        nonce = derived(salt, secret, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert padded.endswith(b"\x02")  # the delimiter of the last record
        return padded[:-1]


def verified(authorization: str, *, audience: str, key: str) -> dict[str, Any]:
    """The claims of a VAPID header that was signed with the key that the browser subscribed with."""
    scheme, _, rest = authorization.partition(" ")
    assert scheme == "vapid"
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    assert fields["k"] == key
    head, claims, signature = fields["t"].split(".")
    assert json.loads(unpadded(head)) == {"typ": "JWT", "alg": "ES256"}
    raw = unpadded(signature)
    assert len(raw) == 64
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unpadded(key))
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    public.verify(encode_dss_signature(r, s), f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    told: dict[str, Any] = json.loads(unpadded(claims))
    assert told["aud"] == audience
    assert time.time() < told["exp"] <= time.time() + 24 * 3600
    assert told["sub"].startswith(("mailto:", "https:"))
    return told


class PushService:
    """Takes messages and hands them to the browser that they are for."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.key = ""
        """The hub's public key, with which browsers subscribe."""
        self.answers: list[int] = []
        """The statuses of the next messages; 201 for all others."""
        self.headers: list[dict[str, str]] = []
        self._taken: set[bytes] = set()
        self._subscribers: dict[str, Subscriber] = {}
        self._messages: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

    def subscriber(self, name: str) -> Subscriber:
        made = Subscriber(f"{self.origin}/push/{name}")
        self._subscribers[name] = made
        return made

    async def take(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        body = await request.read()
        assert request.headers["Content-Encoding"] == "aes128gcm"
        verified(request.headers["Authorization"], audience=self.origin, key=self.key)
        status = self.answers.pop(0) if self.answers else 201
        if status == 201 and body not in self._taken:  # a slow answer is asked for again
            self._taken.add(body)
            self.headers.append({name: request.headers[name] for name in ("TTL", "Urgency", "Topic")})
            self._messages.put_nowait((name, json.loads(self._subscribers[name].decrypt(body))))
        return web.Response(status=status)

    async def next(self) -> tuple[str, dict[str, Any]]:
        """The name of a subscriber, and the next message that it has got."""
        async with asyncio.timeout(DEADLINE):
            return await self._messages.get()

    @property
    def waiting(self) -> int:
        return self._messages.qsize()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process or thread does without a word."""
    async with asyncio.timeout(DEADLINE):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


Answer = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def receiving(answer: Answer, *, path: str = "/{name:.*}", tls: Any = None) -> AsyncIterator[str]:
    """A server of the test; its origin."""
    app = web.Application()
    app.router.add_post(path, answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def push_service() -> AsyncIterator[PushService]:
    service = PushService("")

    async def answer(request: web.Request) -> web.Response:
        return await service.take(request)

    async with receiving(answer, path="/push/{name}") as origin:
        service.origin = origin
        yield service


class _Silent(asyncio.Protocol):
    """Reads and never answers."""

    def __init__(self, asked: asyncio.Event) -> None:
        self._asked = asked

    def data_received(self, data: bytes) -> None:
        self._asked.set()


@asynccontextmanager
async def hung() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A server that takes requests and never answers: its origin, and whether it was asked."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Silent(asked), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
