"""Icons that an agent names: which ones a client may show, and how it gets their images (CONT-05).

An icon is a `data:` address with an image in it, or an `https:` address. It is fetched without credentials of
any kind, and no redirect leads to another origin: an icon must not reveal more of a user than that a client
fetched it.
"""

from __future__ import annotations

import asyncio
import binascii
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote_to_bytes, urljoin, urlsplit

from msgspec import Struct

from antiphon.errors import IconFailed
from antiphon.schema import v2

if TYPE_CHECKING:
    import httpx

LARGEST = 256 * 1024
"""The largest icon in bytes."""

MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)


class IconImage(Struct, frozen=True):
    """The image of an icon."""

    mime_type: str
    data: bytes


def usable_icons(icons: Iterable[v2.Icon] | None) -> list[v2.Icon]:
    """The icons that a client may show: `data:` images, and `https:` addresses without credentials."""
    return [
        icon for icon in icons or () if icon_data(icon) is not None or _https_address(icon.src) is not None
    ]


def icon_data(icon: v2.Icon) -> IconImage | None:
    """The image of a `data:` icon; None if it has none or is too large."""
    scheme, _, rest = icon.src.partition(":")
    about, comma, payload = rest.partition(",")
    if scheme.lower() != "data" or not comma or len(payload) > 3 * LARGEST:
        return None
    mime_type, *parameters = (part.strip().lower() for part in about.split(";"))
    data = unquote_to_bytes(payload)
    if parameters and parameters[-1] == "base64":
        try:
            data = binascii.a2b_base64(data, strict_mode=True)
        except binascii.Error:
            return None
    if not mime_type.startswith("image/") or len(data) > LARGEST:
        return None
    return IconImage(mime_type, data)


async def fetch_icon(
    icon: v2.Icon, *, context: ssl.SSLContext | None = None, timeout: float = 10.0
) -> IconImage:
    """The image of an icon, fetched if necessary: without cookies, logins or a referrer, and only from the
    origin of its address. Raises `IconFailed` if it may not be shown or cannot be fetched."""
    there = icon_data(icon)
    if there is not None:
        return there
    address = _https_address(icon.src)
    if address is None:
        raise IconFailed(f"an icon needs a `data:` image or an `https:` address, got {icon.src[:100]!r}")
    import httpx  # few clients show icons

    asking = {"Accept": "image/*", "Accept-Encoding": "identity", "Connection": "close"}
    verify = context or ssl.create_default_context()
    try:
        async with (
            asyncio.timeout(timeout),
            httpx.AsyncClient(verify=verify, trust_env=False, timeout=None, headers=asking) as client,
        ):
            del client.headers["User-Agent"]
            return await _follow(client, address)
    except TimeoutError as error:
        raise IconFailed(f"the icon did not arrive within {timeout:g} s") from error
    except (OSError, httpx.HTTPError, httpx.InvalidURL) as error:
        raise IconFailed(f"the icon cannot be fetched: {error}") from error


def _https_address(src: str) -> SplitResult | None:
    """The address, if an icon may be fetched from it."""
    try:
        parts = urlsplit(src)
        _ = parts.port
    except ValueError:
        return None
    named = "@" in parts.netloc  # a name and a password are credentials
    return parts if parts.scheme == "https" and parts.hostname and not named else None


async def _follow(client: httpx.AsyncClient, address: SplitResult) -> IconImage:
    for _ in range(MOST_REDIRECTS + 1):
        async with client.stream("GET", address.geturl()) as response:
            client.cookies.clear()
            if response.status_code not in _REDIRECTS:
                return await _image(response)
            following = _https_address(urljoin(address.geturl(), response.headers.get("Location", "")))
        if following is None or _origin(following) != _origin(address):
            raise IconFailed("the icon redirects to another origin")
        address = following
    raise IconFailed(f"the icon redirects more than {MOST_REDIRECTS} times")


def _origin(address: SplitResult) -> tuple[str | None, int]:
    return address.hostname, address.port or 443


async def _image(response: httpx.Response) -> IconImage:
    if response.status_code != 200:
        raise IconFailed(f"the icon cannot be fetched: the server answered {response.status_code}")
    mime_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if not mime_type.startswith("image/"):
        raise IconFailed(f"the icon must be an image, got {mime_type!r}")
    data = b""
    async for part in response.aiter_raw():
        data += part
        if len(data) > LARGEST:
            raise IconFailed(f"the icon is larger than {LARGEST} bytes")
    return IconImage(mime_type, data)
