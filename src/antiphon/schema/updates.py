"""Reads whole `session/update` lines, one or many at once: the hot path of a stream.

Only what is written as every peer we know writes it, and decodes strictly, is read here. Everything else is
`None`: then go the general way, by `frames.decode` and `Codec.params`, which knows repair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.jsonrpc.lines import Received
from antiphon.jsonrpc.structure import FLAT, is_too_complex
from antiphon.schema.methods import Kind, find
from antiphon.schema.wire import Unknown, choose

UPDATE = "session/update"
_START = b'{"jsonrpc":"2.0","method":"session/update","params":'
_PARAMS = slice(len(_START), -1)
_CLOSING_BRACE = ord("}")
_LONG = 16 * 1024
"""From here on a view of the line costs less than a copy of it."""
SHORT_TEXT = 2048
"""How many characters a `TextChunk` may have."""


class PlainText(msgspec.Struct, gc=False, forbid_unknown_fields=True, tag_field="type", tag="text"):
    """Text content with nothing beside the text: no annotations, no `_meta`, no unknown field."""

    text: Annotated[str, msgspec.Meta(max_length=SHORT_TEXT)]


class TextChunk(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A short piece of an agent's message or thought with nothing beside it, which is most of any stream.

    It says the same in v1 and in v2, so nothing is lost if it is written anew from these fields.
    """

    session_update: Literal["agent_message_chunk", "agent_thought_chunk"]
    message_id: str | None = None
    """Where a v1 agent gives none, the bridge sets the one that it has made."""
    content: PlainText

    def follows(self, other: TextChunk) -> bool:
        """Whether both are of one message."""
        return self.message_id == other.message_id and self.session_update == other.session_update


class UpdateReader:
    """The types of every update of one version, and the two ways to read them."""

    __slots__ = ("_decode_lines", "_decode_params", "_decode_text_chunks", "_nameless")

    _decode_params: Callable[[bytes | memoryview], Any]
    _decode_lines: Callable[[bytes], list[Any]]
    _decode_text_chunks: Callable[[bytes], list[_TextChunkLine]]

    def __init__(self, version: int) -> None:
        method = find(Kind.NOTIFICATION, UPDATE, version)
        assert method is not None
        line = msgspec.defstruct(
            "UpdateLine",
            [
                ("jsonrpc", Literal["2.0"]),
                ("method", Literal["session/update"]),
                ("params", method.params),
                ("id", UnsetType, UNSET),  # a request is no notification
            ],
            gc=False,
        )
        self._decode_params = msgspec.json.Decoder(method.params, dec_hook=choose).decode
        self._decode_lines = msgspec.json.Decoder(line, dec_hook=choose).decode_lines
        self._decode_text_chunks = msgspec.json.Decoder(_TextChunkLine).decode_lines
        self._nameless = version == 1
        """Whether a message need not have an id."""

    def read(self, line: bytes) -> Any:
        """The typed params of one line, or `None`.

        The envelope is compared and not parsed, and what it holds has to be one value and nothing more.
        """
        if not line.startswith(_START) or line[-1] != _CLOSING_BRACE or _is_odd(line):
            return None
        try:
            return self._decode_params(line[_PARAMS] if len(line) < _LONG else memoryview(line)[_PARAMS])
        except UNREADABLE:
            return None

    def read_all(self, lines: Sequence[Received]) -> list[Any] | None:
        """The typed params of many lines, in one call, or `None` where one of them is not for us."""
        try:
            joined = b"\n".join(lines)  # type: ignore[arg-type]
            if any(map(_is_odd, lines)):  # type: ignore[arg-type]
                return None
            read = self._decode_lines(joined)
        except (TypeError, *UNREADABLE):  # a TypeError is an `Overlong` among them
            return None
        return [line.params for line in read] if len(read) == len(lines) else None

    def read_text_chunks(self, lines: Sequence[Received]) -> list[tuple[str, list[TextChunk]]] | None:
        """Many lines in one call, as the chunks of each session; `None` where one line is something else."""
        try:
            read = self._decode_text_chunks(b"\n".join(lines))  # type: ignore[arg-type]
        except (TypeError, *UNREADABLE):  # a TypeError is an `Overlong` among them
            return None
        if len(read) != len(lines):
            return None
        runs: list[tuple[str, list[TextChunk]]] = []
        session: str | None = None
        chunks: list[TextChunk] = []
        for line in read:
            params = line.params
            if params.update.message_id is None and not self._nameless:
                return None
            if params.session_id != session:
                session, chunks = params.session_id, []
                runs.append((session, chunks))
            chunks.append(params.update)
        return runs


def _is_odd(line: bytes) -> bool:
    """Whether a line must not be kept as it is: it holds line breaks, or is nested too deep."""
    return b"\n" in line or b"\r" in line or (len(line) > FLAT and is_too_complex(line))


class _TextChunkParams(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    session_id: str = msgspec.field(name="sessionId")
    update: TextChunk


class _TextChunkLine(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: _TextChunkParams


class _Params(msgspec.Struct, gc=False):
    session_id: str = msgspec.field(name="sessionId")
    update: msgspec.Raw


_params = msgspec.json.Decoder(_Params).decode


def written(read: bytes | msgspec.Raw) -> bytes:
    """The update in a line, or in the params of one, as its sender wrote it."""
    return bytes(_params(read[_PARAMS] if isinstance(read, bytes) and is_update(read) else read).update)


class Unread(msgspec.Struct, frozen=True):
    """Params of an update that do not decode: for who passes on what others may know."""

    session_id: str
    update: Unknown
    meta: None = None


def unread(params: msgspec.Raw | None) -> Unread | None:
    try:
        told = _params(params or b"")
        update = msgspec.json.decode(told.update)
    except UNREADABLE:
        return None
    named = isinstance(update, dict) and isinstance(update.get("sessionUpdate"), str)
    return Unread(told.session_id, Unknown(update)) if named else None


def may_be_update(line: Received) -> bool:
    """Whether a line could be an update, however its sender puts spaces: a cheap look at its start."""
    return isinstance(line, bytes) and b'"session/update"' in line[:64]


def is_update(line: Received) -> bool:
    """Whether a line looks like an update; that it is one shows when it is read."""
    return isinstance(line, bytes) and line.startswith(_START)
