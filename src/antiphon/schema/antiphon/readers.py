"""Decodes objects of Antiphon's protocol from plain JSON: from a `_meta`, params or an update."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from antiphon.errors import InvalidParams
from antiphon.schema.repair import Malformed, repair
from antiphon.schema.version import META_KEY, ours_in
from antiphon.schema.wire import Wire

T = TypeVar("T", bound=Wire)


def read_meta(type: type[T], meta: Any) -> T:
    """Decode the `antiphon` object of a `_meta`. Raises `InvalidParams`, unless `type` is forgiving."""
    ours = ours_in(meta)
    return read_params(type, ours, at=f"._meta.{META_KEY}") if ours else type()


def read_params(type: type[T], value: Any, *, at: str) -> T:
    """Decode an object of Antiphon's protocol in params. Raises `InvalidParams`."""
    try:
        return _read(type, value)
    except Malformed as error:
        raise InvalidParams(str(error.under(at))) from None


def read_update(type: type[T], update: Any) -> T | None:
    """Decode an update of Antiphon's protocol; `None` if it is malformed."""
    try:
        return _read(type, update)
    except Malformed:
        return None


def _read(type: type[T], value: Any) -> T:
    try:
        return msgspec.convert(value, type)
    except msgspec.ValidationError:
        repaired: T = repair(2).build(type, value)
        return repaired
