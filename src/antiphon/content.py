"""Content blocks for prompts and updates: text, images, recordings, links and embedded resources.

Blocks made here are valid on the wire (CONT-03, CONT-04): data is base64, URIs are URIs, and numbers are in
range. `fault` says what is wrong with a block that was made elsewhere.
"""

import base64
import binascii
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from antiphon.errors import LocalError
from antiphon.schema import v2

Source = bytes | str | os.PathLike[str]
"""Bytes, or the path of a file."""

# RFC 3986: a scheme, then characters that a URI may contain; all others are escaped.
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*", re.A)
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+\-]+/[\w!#$&^.+\-]+(?:\s*;.*)?", re.A | re.S)
_ICON_SCHEMES = ("https:", "data:")

Block = TypeVar("Block")


def text(text: str, *, annotations: v2.Annotations | None = None) -> v2.TextContent:
    """Make a text block with annotations or `_meta`. For plain text, pass a `str` instead."""
    return checked(v2.TextContent(text=text, annotations=annotations))


def image(
    source: Source,
    mime_type: str | None = None,
    *,
    uri: str | None = None,
    annotations: v2.Annotations | None = None,
) -> v2.ImageContent:
    """Make an image block from bytes or a file. Without `mime_type`, the name of the file decides."""
    data, mime_type = _read(source, mime_type, "image")
    return checked(v2.ImageContent(data=data, mime_type=mime_type, uri=uri, annotations=annotations))


def audio(
    source: Source,
    mime_type: str | None = None,
    *,
    annotations: v2.Annotations | None = None,
) -> v2.AudioContent:
    """Make an audio block from bytes or a file."""
    data, mime_type = _read(source, mime_type, "audio")
    return checked(v2.AudioContent(data=data, mime_type=mime_type, annotations=annotations))


def link(
    uri: str | os.PathLike[str],
    name: str | None = None,
    *,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    icons: Sequence[str | v2.Icon] = (),
    annotations: v2.Annotations | None = None,
) -> v2.ResourceLink:
    """Make a link to a resource that the peer can read itself: a URI, or the path of a file.

    Every agent accepts links (CONT-01). Icons are `https:` or `data:` addresses (CONT-05).
    """
    known = _uri(uri)
    return checked(
        v2.ResourceLink(
            uri=known,
            name=name or unquote(known.rstrip("/").rpartition("/")[2]) or known,
            title=title,
            description=description,
            mime_type=mime_type,
            size=size,
            icons=[v2.Icon(src=icon) if isinstance(icon, str) else icon for icon in icons] or None,
            annotations=annotations,
        )
    )


def embedded(
    uri: str | os.PathLike[str],
    contents: str | bytes,
    *,
    mime_type: str | None = None,
    annotations: v2.Annotations | None = None,
) -> v2.EmbeddedResource:
    """Make a resource block with its contents: text or bytes."""
    known = _uri(uri)
    resource: v2.EmbeddedResourceResource
    if isinstance(contents, str):
        resource = v2.TextResourceContents(uri=known, text=contents, mime_type=mime_type)
    else:
        resource = v2.BlobResourceContents(uri=known, blob=_encoded(contents), mime_type=mime_type)
    return checked(v2.EmbeddedResource(resource=resource, annotations=annotations))


def annotations(
    *,
    audience: Iterable[str] = (),
    priority: float | None = None,
    last_modified: str | None = None,
) -> v2.Annotations:
    """Make annotations: the audience (`user`, `assistant`) and the priority, from 0 to 1."""
    made = v2.Annotations(
        audience=[v2.Role(role) for role in audience] or None,
        priority=priority,
        last_modified=last_modified,
    )
    wrong = _annotation_fault(made)
    if wrong is not None:
        raise LocalError(wrong)
    return made


# --- checks ------------------------------------------------------------------------------------


def fault(block: Any) -> str | None:
    """Return why a block may not be sent, or `None`. Unknown blocks are not checked (CONT-08)."""
    if isinstance(block, dict):
        return None
    wrong = None if block.annotations is None else _annotation_fault(block.annotations)
    if wrong is not None:
        return wrong
    match block:
        case v2.ImageContent():
            return _bytes_fault(block.data, block.mime_type) or _uri_fault(block.uri)
        case v2.AudioContent():
            return _bytes_fault(block.data, block.mime_type)
        case v2.EmbeddedResource(resource=v2.BlobResourceContents() as resource):
            return _bytes_fault(resource.blob, resource.mime_type) or _uri_fault(resource.uri)
        case v2.EmbeddedResource(resource=resource):
            return _uri_fault(resource.uri) or _type_fault(resource.mime_type)
        case v2.ResourceLink():
            return _link_fault(block)
    return None


def check_blocks(blocks: Iterable[Any]) -> None:
    """Check blocks before they are sent. Raises `LocalError`."""
    for block in blocks:
        if type(block) is v2.TextContent and block.annotations is None:
            continue
        wrong = fault(block)
        if wrong is not None:
            raise LocalError(wrong)


def checked(block: Block) -> Block:
    """Return a block that may be sent. Raises `LocalError` for another one."""
    check_blocks((block,))
    return block


def _link_fault(link: v2.ResourceLink) -> str | None:
    if link.size is not None and link.size < 0:
        return f"the size of a resource must be >= 0, got {link.size}"
    for icon in link.icons or ():
        if not icon.src.lower().startswith(_ICON_SCHEMES):
            return f"an icon must be an `https:` or `data:` address, got {_short(icon.src)}"  # CONT-05
        wrong = _uri_fault(icon.src) or _type_fault(icon.mime_type)
        if wrong is not None:
            return wrong
    return _uri_fault(link.uri) or _type_fault(link.mime_type)


def _annotation_fault(given: v2.Annotations) -> str | None:
    if given.priority is not None and not 0 <= given.priority <= 1:
        return f"a priority must be between 0 and 1, got {given.priority}"
    for role in given.audience or ():
        if not role.known and not role.startswith("_"):
            return f"{role!r} is not a known audience; custom ones begin with `_`"  # EXT-06
    return None


def _bytes_fault(data: str, mime_type: str | None) -> str | None:
    try:
        binascii.a2b_base64(data, strict_mode=True)
        whole = len(data) % 4 == 0  # it ignores surplus padding
    except (binascii.Error, ValueError):
        whole = False
    if not whole:
        return f"data must be standard base64, padded and without line ends, got {_short(data)}"
    return _type_fault(mime_type)


def _type_fault(mime_type: str | None) -> str | None:
    if mime_type is None or _MEDIA_TYPE.fullmatch(mime_type):
        return None
    return f"{_short(mime_type)} is not a media type; expected e.g. `image/png`"


def _uri_fault(uri: str | None) -> str | None:
    if uri is None or _URI.fullmatch(uri):
        return None
    return f"{_short(uri)} is not a URI: it needs a scheme, and reserved characters must be escaped"


def _short(value: str) -> str:
    return repr(value if len(value) <= 60 else value[:59] + "…")


# --- construction ------------------------------------------------------------------------------


def _read(source: Source, mime_type: str | None, kind: str) -> tuple[str, str]:
    if isinstance(source, bytes):
        if mime_type is None:
            raise LocalError(f"mime_type is required for bytes, such as `{kind}/…`")
        return _encoded(source), mime_type
    path = Path(source)
    known = mime_type or _guessed(path.name)
    if known is None:
        raise LocalError(f"mime_type is required for {path.name!r}: its name has no known ending")
    try:
        return _encoded(path.read_bytes()), known
    except OSError as error:
        raise LocalError(f"cannot read {path}: {error.strerror}") from error


def _guessed(name: str) -> str | None:
    import mimetypes  # imported on use, because every agent loads this module

    return mimetypes.guess_type(name)[0]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _uri(given: str | os.PathLike[str]) -> str:
    return given if isinstance(given, str) else Path(given).absolute().as_uri()


__all__ = ["annotations", "audio", "embedded", "fault", "image", "link", "text"]
