"""WebSocket frames: raw bytes behind a real handshake. The hub goes on, and serves others meanwhile.

An input that begins with `{` is a message per line; any other is frames as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.fuzz.hub import TOKEN, FuzzedHub, fuzzed_hub, read_until_quiet
from tests.fuzz.mutation import seeds
from tests.fuzz.running import Broken, Check
from tests.http.raw import read_head

SEEDS = seeds("websocket")
WORDS = (
    b"\x81\x80\0\0\0\0",
    b"\x01\x80\0\0\0\0",
    b"\x80\x80\0\0\0\0",
    b"\x88\x82\0\0\0\0\x03\xe8",
    b"\x89\x80\0\0\0\0",
    b"\x8a\x80\0\0\0\0",
    b"\x82\x80\0\0\0\0",
    b"\x81\xfe\xff\xff\0\0\0\0",
    b"\x81\xff" + b"\x7f" * 8,
    b"\xc1\x80\0\0\0\0",
    b'"sessionId":',
    b'{"jsonrpc":"2.0","id":9,"method":"session/list","params":{}}',
    b"[" * 1200,
    b"\xff",
)
HANDSHAKE = (
    "GET /acp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    f"Authorization: Bearer {TOKEN}\r\n\r\n"
).encode()
CLOSE = 0x88


@contextlib.contextmanager
def opened() -> Iterator[Check]:
    with fuzzed_hub() as hub:
        yield lambda data: hub.runner.run(check(hub, data))


def masked(payload: bytes, first: int = 0x81) -> bytes:
    """A frame of a client; a mask of zeros changes nothing."""
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    else:
        length = b"\xfe" + size.to_bytes(2) if size < 1 << 16 else b"\xff" + size.to_bytes(8)
    return bytes([first]) + length + bytes(4) + payload


async def check(hub: FuzzedHub, data: bytes) -> str:
    if data.startswith(b"{"):
        data = b"".join(masked(line) for line in data.split(b"\n") if line)
    async with hub.socket() as (reader, writer):
        writer.write(HANDSHAKE)
        status, _ = await read_head(reader)
        if status in (429, 503):
            return str(status)
        if status != 101:
            raise Broken(f"a good handshake was answered with {status}")
        for part in (data[: len(data) // 3], data[len(data) // 3 :]):
            writer.write(part)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        answer, ended = await read_until_quiet(reader)
    await hub.seen()
    codes = [code for code in _close_codes(answer) if code == 1011]
    if codes:
        raise Broken("the hub closed a link over a mistake of its own")
    told = next(_close_codes(answer), None)
    return f"{min(answer.count(b'jsonrpc'), 5)} answers, close {told}{' and ended' if ended else ''}"


def _close_codes(answer: bytes) -> Iterator[int]:
    at = 0
    while at + 2 <= len(answer):
        size, start = answer[at + 1] & 0x7F, at + 2
        if size > 125:
            start += 2 if size == 126 else 8
            size = int.from_bytes(answer[at + 2 : start])
        if answer[at] == CLOSE and size >= 2:
            yield int.from_bytes(answer[start : start + 2])
        at = start + size
