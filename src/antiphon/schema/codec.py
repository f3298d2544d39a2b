"""Decodes and encodes by method and version: strictly in one pass, then with repair if that fails.

A codec knows types, not frames. `updates` reads whole lines, on the hot path.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from antiphon.errors import InvalidParams, InvalidResult, MethodNotFound, UnsupportedVersion
from antiphon.jsonrpc.frames import UNREADABLE, is_null
from antiphon.schema.methods import VERSIONS, Kind, find, resolve
from antiphon.schema.repair import QUIRKS, Malformed, is_struct, repair
from antiphon.schema.updates import UpdateReader
from antiphon.schema.wire import choose

INITIALIZE = "initialize"
_encoder = msgspec.json.Encoder()
_builtins = msgspec.json.Decoder()


class _Reader:
    """Decodes one type: strictly, then with repair if that fails."""

    __slots__ = ("_decode", "_version", "type")

    def __init__(self, type: Any, version: int) -> None:
        self.type = type
        self._version = version
        self._decode = msgspec.json.Decoder(type, dec_hook=choose).decode

    def read(self, raw: bytes | Raw) -> Any:
        try:
            return self._decode(raw)
        except msgspec.ValidationError:
            return repair(self._version).build(self.type, _plain(raw))
        except UNREADABLE as error:
            raise Malformed(str(error)) from None


class Codec:
    """The codec of one protocol version. Get it with `codec(version)`."""

    __slots__ = ("_readers", "_results", "_updates", "encode", "version")

    encode: Callable[[Any], bytes]
    """Encodes any wire type or plain JSON value."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.encode = _encoder.encode
        self._readers: dict[tuple[Kind, str], _Reader] = {}
        self._results: dict[str, _Reader] = {}
        self._updates: UpdateReader | None = None

    def params(self, kind: Kind, name: str, raw: bytes | Raw | None) -> Any:
        """Decode the params of a method. Missing params and `null` count as `{}`; params of an extension
        (EXT-01) are plain JSON values. Raises `MethodNotFound`, `InvalidParams`."""
        if raw is None or is_null(raw):
            raw = b"{}"
        reader = self._readers.get((kind, name))
        if reader is None:
            method = find(kind, name, self.version)
            if method is not None:
                # Only existing methods are cached: names come from peers, who could fill the table.
                reader = self._readers[kind, name] = _Reader(method.params, self.version)
        try:
            return self._extension(name, raw) if reader is None else reader.read(raw)
        except Malformed as error:
            reason = getattr(getattr(reader, "type", None), "REASONS", {}).get(error.path)
            data = UNSET if reason is None else {"reason": reason}
            raise InvalidParams(str(error), data=data) from None

    def result(self, name: str, raw: bytes | Raw) -> Any:
        """Decode the result of a call. Raises `MethodNotFound`, `InvalidResult`."""
        reader = self._results.get(name)
        if reader is None:
            method = find(Kind.REQUEST, name, self.version)
            if method is not None:
                reader = self._results[name] = _Reader(method.result, self.version)
        try:
            if reader is None:
                return self._extension(name, raw)
            if is_null(raw) and QUIRKS[self.version].null_is_empty and _needs_nothing(reader.type):
                return reader.type()
            return reader.read(raw)
        except Malformed as error:
            incomplete = self._incomplete_result(name, raw)
            if incomplete is None:
                raise InvalidResult(f"{name}: {error}") from None
            return incomplete

    @property
    def updates(self) -> UpdateReader:
        """The reader of updates. The first use loads the types of all updates, which only sessions need."""
        if self._updates is None:
            self._updates = UpdateReader(self.version)
        return self._updates

    def initialize_params(self, params: dict[str, Any], *, exact: bool) -> Any:
        """Decode the params of `initialize`. Unless they are for `exact`ly this version, malformed ones are
        dropped (INIT-09). Raises `InvalidParams`."""
        try:
            return self.params(Kind.REQUEST, INITIALIZE, self.encode(params))
        except InvalidParams:
            if exact:
                raise
        kept = {key: value for key, value in params.items() if key in ("protocolVersion", "info")}
        for key, value in params.items():
            with suppress(InvalidParams):
                self.params(Kind.REQUEST, INITIALIZE, self.encode({**kept, key: value}))
                kept[key] = value
        return self.params(Kind.REQUEST, INITIALIZE, self.encode(kept))

    def _extension(self, name: str, raw: bytes | Raw) -> Any:
        if not name.startswith("_"):
            raise MethodNotFound(name)
        return _plain(raw)

    def _incomplete_result(self, name: str, raw: bytes | Raw) -> Any:
        """Decode a result without the key that `Quirks` allow it to lack; else `None`."""
        key, type_name = QUIRKS[self.version].results_without.get(name, ("", ""))
        if not key:
            return None
        try:
            answer = _plain(raw)
            if not isinstance(answer, dict) or key in answer:
                return None
            return repair(self.version).build(resolve(f"v{self.version}", type_name), answer)
        except Malformed:
            return None


def _plain(raw: bytes | Raw) -> Any:
    try:
        return _builtins.decode(raw)
    except UNREADABLE as error:
        raise Malformed(str(error)) from None


@cache
def _needs_nothing(type: Any) -> bool:
    return is_struct(type) and not any(field.required for field in msgspec.structs.fields(type))


@cache
def codec(version: int) -> Codec:
    """Return the only codec of a version. Raises `UnsupportedVersion`."""
    if version not in VERSIONS:
        raise UnsupportedVersion(version, VERSIONS)
    return Codec(version)
