"""Fetching an icon: one GET that says nothing of who asks, redirected within one origin alone (CONT-05)."""

from __future__ import annotations

import asyncio
import contextlib
import io
import ssl
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.parse import SplitResult, urljoin

from antiphon.client.icons import LARGEST, IconImage, https_address
from antiphon.errors import IconFailed

MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_READ = 2 * LARGEST + 64 * 1024
"""Bytes that are taken of an answer: its head, and a body that may come in small chunks."""


async def fetch(address: SplitResult, context: ssl.SSLContext | None, timeout: float) -> IconImage:
    try:
        async with asyncio.timeout(timeout):
            return await _follow(address, context or ssl.create_default_context())
    except TimeoutError as error:
        raise IconFailed("the icon did not come in time") from error
    except (OSError, HTTPException, ValueError) as error:
        raise IconFailed(f"the icon cannot be fetched: {error}") from error


async def _follow(address: SplitResult, context: ssl.SSLContext) -> IconImage:
    for _ in range(MOST_REDIRECTS + 1):
        response = await _get(address, context)
        if response.status not in _REDIRECTS:
            return _image(response)
        following = https_address(urljoin(address.geturl(), response.headers.get("Location", "")))
        if following is None or _origin(following) != _origin(address):
            raise IconFailed("the icon redirects to another origin, and is not followed there")
        address = following
    raise IconFailed("the icon redirects too often")


def _origin(address: SplitResult) -> tuple[str | None, int]:
    return address.hostname, address.port or 443


async def _get(address: SplitResult, context: ssl.SSLContext) -> HTTPResponse:
    host, port = _origin(address)
    target = (address.path or "/") + (f"?{address.query}" if address.query else "")
    head = [
        f"GET {target} HTTP/1.1",
        f"Host: {address.netloc}",
        "Accept: image/*",
        "Accept-Encoding: identity",
        "Connection: close",
    ]
    if any(character <= " " or character == "\x7f" for character in target + address.netloc):
        raise IconFailed("the address of the icon is no URI")
    reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=_READ)
    try:
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode("ascii"))
        answer = b""
        while part := await reader.read(64 * 1024):
            answer += part
            if len(answer) > _READ:
                raise IconFailed(f"the icon is larger than {LARGEST} bytes")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    received: Any = _Received(answer)
    response = HTTPResponse(received)
    response.begin()
    return response


class _Received:
    """What came, in the place of the socket that it came from."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any) -> io.BytesIO:
        return io.BytesIO(self._data)


def _image(response: HTTPResponse) -> IconImage:
    if response.status != 200:
        raise IconFailed(f"the icon cannot be fetched: the server answered {response.status}")
    mime_type = response.headers.get_content_type()
    if not mime_type.startswith("image/"):
        raise IconFailed(f"the icon is no image but {mime_type}")
    data = response.read()
    if len(data) > LARGEST:
        raise IconFailed(f"the icon is larger than {LARGEST} bytes")
    return IconImage(mime_type, data)
