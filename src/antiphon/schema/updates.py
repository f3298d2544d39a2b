"""Decodes whole `session/update` lines, one or many at once: the hot path of a stream.

It decodes only lines in the spelling of all known peers that decode strictly. For other lines it returns
`None`: use `frames.decode` and `Codec.params`, which can repair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

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
_LF, _CR = b"\n\r"
"""As numbers: to look for a number in bytes takes a fifteenth of the time of looking for bytes."""
_LONG = 16 * 1024
"""The size from which a view of the line is cheaper than a copy."""
SHORT_TEXT = 2048
"""The most characters of a `TextChunk`."""


TextType: TypeAlias = Literal["agent_message_chunk", "agent_thought_chunk"]


class PlainText(msgspec.Struct, gc=False, forbid_unknown_fields=True, tag_field="type", tag="text"):
    """Text content with only text: no annotations, no `_meta`, no unknown field."""

    text: Annotated[str, msgspec.Meta(max_length=SHORT_TEXT)]


class TextChunk(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A short chunk of an agent's message or thought without other fields: most of any stream.

    It means the same in v1 and v2, so it can be encoded from these fields without loss.
    """

    session_update: TextType
    message_id: str | None = None
    """If a v1 agent sends none, the bridge sets the id that it made."""
    content: PlainText

    def follows(self, other: TextChunk) -> bool:
        """Whether both belong to the same message."""
        return self.message_id == other.message_id and self.session_update == other.session_update


def text_chunk(type: TextType, message_id: str, text: str) -> TextChunk | None:
    """Return a chunk of plain text; `None` if the text is long, or cannot be encoded because a string has a
    lone surrogate."""
    if len(text) > SHORT_TEXT:
        return None
    try:
        if not (text.isascii() and message_id.isascii()):
            (text + message_id).encode()
    except UnicodeEncodeError:
        return None
    return TextChunk(session_update=type, message_id=message_id, content=PlainText(text))


class UpdateReader:
    """Decoders for the updates of one version."""

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
                ("id", UnsetType, UNSET),  # refuses a request
            ],
            gc=False,
        )
        self._decode_params = msgspec.json.Decoder(method.params, dec_hook=choose).decode
        self._decode_lines = msgspec.json.Decoder(line, dec_hook=choose).decode_lines
        self._decode_text_chunks = msgspec.json.Decoder(_TextChunkLine).decode_lines
        self._nameless = version == 1
        """Whether message ids are optional."""

    def read(self, line: bytes) -> Any:
        """Return the typed params of one line, or `None`.

        The envelope is compared, not parsed. It must contain the params and nothing else.
        """
        if not line.startswith(_START) or line[-1] != _CLOSING_BRACE:
            return None
        if _LF in line or _CR in line or (len(line) > FLAT and is_too_complex(line)):  # `_is_odd`, inlined
            return None
        try:
            return self._decode_params(line[_PARAMS] if len(line) < _LONG else memoryview(line)[_PARAMS])
        except UNREADABLE:
            return None

    def read_all(self, lines: Sequence[Received]) -> list[Any] | None:
        """Decode many lines in one call. Return their typed params, or `None` if one line does not decode."""
        try:
            joined = b"\n".join(lines)  # type: ignore[arg-type]  # an OversizedFrame raises TypeError
            if any(map(_is_odd, lines)):  # type: ignore[arg-type]  # `join` accepted only bytes
                return None
            read = self._decode_lines(joined)
        except (TypeError, *UNREADABLE):
            return None
        return [line.params for line in read] if len(read) == len(lines) else None

    def read_text_chunks(self, lines: Sequence[Received]) -> list[tuple[str, list[TextChunk]]] | None:
        """Decode many lines in one call, as runs of chunks by session; `None` if one is no text chunk."""
        try:
            read = self._decode_text_chunks(b"\n".join(lines))  # type: ignore[arg-type]  # as in `read_all`
        except (TypeError, *UNREADABLE):
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
    """Whether a line must not be stored unchanged: it has line breaks, or its structure is over a bound."""
    return _LF in line or _CR in line or (len(line) > FLAT and is_too_complex(line))


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
    """Return the update in a line, or in its params, in the bytes of its sender."""
    return bytes(_params(read[_PARAMS] if isinstance(read, bytes) and is_update(read) else read).update)


class Unread(msgspec.Struct, frozen=True):
    """Params of an update that does not decode, for a hub that passes unknown updates on."""

    session_id: str
    update: Unknown
    meta: None = None


def unread(params: msgspec.Raw | None) -> Unread | None:
    """Decode params of an update as an unknown one; `None` if it has no `sessionUpdate`."""
    try:
        decoded = _params(params or b"")
        update = msgspec.json.decode(decoded.update)
    except UNREADABLE:
        return None
    named = isinstance(update, dict) and isinstance(update.get("sessionUpdate"), str)
    return Unread(decoded.session_id, Unknown(update)) if named else None


def may_be_update(line: Received) -> bool:
    """Whether a line may be an update in any spacing, by a cheap look at its start."""
    return isinstance(line, bytes) and b'"session/update"' in line[:64]


def is_update(line: Received) -> bool:
    """Whether a line begins like an update in the usual spelling. It may still not decode."""
    return isinstance(line, bytes) and line.startswith(_START)
