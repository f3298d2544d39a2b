"""Icons that an agent names: which of them may be shown, and how one is read or fetched (CONT-05).

An icon is a `data:` address with an image in it, or an `https:` address. It is fetched without credentials of
any kind, and no redirect leads to another origin: what an agent names must not make a client tell more of its
user than that it looked.
"""

from __future__ import annotations

import binascii
import ssl
from collections.abc import Iterable
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from msgspec import Struct

from antiphon.errors import IconFailed
from antiphon.schema import v2

LARGEST = 256 * 1024
"""Bytes of an icon that are read; a larger one is none."""


class IconImage(Struct, frozen=True):
    """What an icon shows."""

    mime_type: str
    data: bytes


def usable_icons(icons: Iterable[v2.Icon] | None) -> list[v2.Icon]:
    """Those that may be shown: an image that is in its address, or an `https:` address without credentials.
    No other is to be looked at."""
    return [
        icon for icon in icons or () if icon_data(icon) is not None or https_address(icon.src) is not None
    ]


def icon_data(icon: v2.Icon) -> IconImage | None:
    """The image of a `data:` icon; `None` where it has none, or too large a one."""
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
    """The image of an icon, fetched if need be: without cookies, logins or a referrer, and only from the
    origin that its address names. Raises `IconFailed` where it may not be shown or cannot be had."""
    there = icon_data(icon)
    if there is not None:
        return there
    address = https_address(icon.src)
    if address is None:
        raise IconFailed("an icon is an image in a `data:` address, or an `https:` address")
    from antiphon.client.icon_fetching import fetch  # few clients show icons

    return await fetch(address, context, timeout)


def https_address(src: str) -> SplitResult | None:
    """An address that an icon may be fetched from."""
    try:
        parts = urlsplit(src)
        _ = parts.port
    except ValueError:
        return None
    named = "@" in parts.netloc  # a name and a password are credentials
    return parts if parts.scheme == "https" and parts.hostname and not named else None
