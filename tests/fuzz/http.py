"""The HTTP endpoint: raw bytes to a real hub's socket. It answers with a proper status or ends the socket,
never with a 5xx of a mistake, and serves others meanwhile.

`TOKEN` and `LENGTH` in an input stand for a good token and the length of what follows the head.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from tests.fuzz.hub import TOKEN, FuzzedHub, fuzzed_hub, read_until_quiet
from tests.fuzz.mutation import seeds
from tests.fuzz.running import Broken, Check

SEEDS = seeds("http")
WORDS = (
    b"\r\n",
    b"\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Host: evil@localhost\r\n",
    b"Origin: http://[x\r\n",
    b"Connection: close\r\n",
    b"Expect: 100-continue\r\n",
    b"Upgrade: h2c\r\n",
    b"\0",
    b"HTTP/1.0",
    b"OPTIONS ",
    b"0\r\n\r\n",
    b"X-A: \xff\xfe\r\n",
    b"[" * 1200,
    b"Acp-Session-Id: s\r\n",
    b"a" * 9000,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"Authorization: Bearer \xe9\r\n",
    b"%00",
    b"/../",
    b"Cookie: a=\r\n",
)
MEANT = (b"501", b"503", b"505")
"""A way of transfer, or a version, that is not there; and too many connections."""
STATUS = re.compile(rb"HTTP/[01]\.[019] ([1-5][0-9]{2}) ")


@contextlib.contextmanager
def opened() -> Iterator[Check]:
    with fuzzed_hub() as hub:
        yield lambda data: hub.runner.run(check(hub, data))


async def check(hub: FuzzedHub, data: bytes) -> str:
    _, _, body = data.partition(b"\r\n\r\n")
    data = data.replace(b"LENGTH", b"%d" % len(body)).replace(b"TOKEN", TOKEN.encode())
    async with hub.socket() as (reader, writer):
        for part in (data[: len(data) // 2], data[len(data) // 2 :]):
            writer.write(part)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        answer, ended = await read_until_quiet(reader)
    await hub.seen()
    status = STATUS.match(answer)
    if answer and status is None:
        raise Broken(f"this is no answer: {answer[:200]!r}")
    if status is not None and status[1].startswith(b"5") and status[1] not in MEANT:
        raise Broken(f"a request was answered with {answer[:300]!r}")
    return f"{status[1].decode() if status else 'nothing'}{' and closed' if ended else ''}"
