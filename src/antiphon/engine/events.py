"""Event: the numbered facts of a session, and their one form as bytes.

Commands return bodies, which get a number and a time when they are appended. What came from the wire stays
the bytes it was written with, so that journal, replay and fan-out reuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Generic, NewType, TypeAlias, TypeVar, overload

import msgspec
from msgspec import Raw, Struct, field

from antiphon.engine.json_values import CONTENT, UPDATES, describe
from antiphon.engine.json_values import encode as encode_json
from antiphon.engine.who import Named
from antiphon.errors import ErrorObject, EventRefused, LocalError
from antiphon.jsonrpc.frames import UNREADABLE, on_one_line
from antiphon.jsonrpc.structure import EVENT_DEPTH, is_too_deep
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.repair import Malformed
from antiphon.schema.updates import TextChunk
from antiphon.schema.v2.content import ContentBlock
from antiphon.schema.v2.updates import SessionUpdate
from antiphon.schema.wire import Unknown

FORMAT = 1
"""The journal's format, named by its first event. Every format ever released is read for ever."""

Cursor = NewType("Cursor", int)
"""A position in a journal: the number of the last event that was seen. 0 is before the first event."""

NOTHING = Raw(b"null")
"""Means absent JSON: msgspec cannot decode `Raw | None`."""


def present(raw: Raw) -> bytes | None:
    """Return the bytes; `None` if they are absent."""
    return None if raw == NOTHING else bytes(raw)


class UnreadableEvent(LocalError):
    """Bytes that are not an event of any format this version knows."""


class NewerEvent(UnreadableEvent):
    """An event of a kind that this version does not know: a later version wrote it."""


class JournalGap(LocalError):
    """An event that is not the next one: one is missing, or this one was there before."""

    def __init__(self, expected: int, got: int) -> None:
        super().__init__(f"expected event {expected}, got {got}")
        self.expected = expected
        self.got = got


T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801
    """`functools.cached_property` without its lock, which costs more than reading an update."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: Any) -> lazy[T]: ...
    @overload
    def __get__(self, owner: object, kind: Any) -> T: ...
    def __get__(self, owner: object | None, kind: Any) -> lazy[T] | T:
        if owner is None:
            return self
        made = owner.__dict__[self._name] = self._make(owner)
        return made


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """A fact without a number yet. The tag is its name in the journal and never changes."""


class SessionCreated(Body, frozen=True, kw_only=True, omit_defaults=False, tag="session_created"):
    """The first event; it names the format of the journal, so nothing is left out of it."""

    session_id: str
    cwd: str
    additional_directories: tuple[str, ...] = ()
    meta: dict[str, Any] = {}
    format: int = FORMAT


class SessionReopened(Body, frozen=True, kw_only=True, tag="session_reopened"):
    """A closed session is opened again; its additional directories may have changed."""

    additional_directories: tuple[str, ...] | None = None


class SessionClosed(Body, frozen=True, kw_only=True, tag="session_closed"):
    pass


class Updated(Body, frozen=True, kw_only=True, dict=True, tag="update"):
    """A v2 session update, as the bytes that it was written with."""

    raw: Raw = field(name="update")

    @classmethod
    def of(cls, update: SessionUpdate, *, raw: bytes | Raw | None = None) -> Updated:
        """Make the body of an update. It is encoded now, unless the bytes of its sender are given."""
        if raw is None:
            raw = encode_json(update)
        body = cls(raw=raw if type(raw) is Raw else Raw(raw))
        body.__dict__["update"] = update  # read once already: `lazy` finds it here
        return body

    @lazy
    def update(self) -> SessionUpdate:
        """The typed update; an unknown one is kept whole. Raises `Malformed`."""
        return UPDATES.read(self.raw)


class Translated(Updated, frozen=True, kw_only=True, dict=True, tag="translated"):
    """An update of an agent with additions (invariant 8). It is a separate type, so that an update without
    additions, which is nearly every one, costs nothing more.

    origin: the update as a v1 agent wrote it; v1 clients get that, because a downgrade would not restore it
    meta: the `_meta` of the notification
    """

    origin: Raw = NOTHING
    meta: Raw = NOTHING

    @classmethod
    def make(
        cls, update: SessionUpdate, *, origin: bytes | None = None, meta: dict[str, Any] | None = None
    ) -> Translated:
        body = cls(
            raw=Raw(encode_json(update)),
            origin=NOTHING if origin is None else Raw(origin),
            meta=NOTHING if meta is None else Raw(encode_json(meta)),
        )
        body.__dict__["update"] = update
        return body


RequestId: TypeAlias = str | int | float | None
"""The JSON-RPC id of a request. `2` and `"2"` are two ids."""


class PromptQueued(Body, frozen=True, kw_only=True, dict=True, tag="prompt_queued"):
    """A prompt was queued. `held`: a `session/prompt` request waits for it; an injected prompt outlives its
    request. `request_id` is the JSON-RPC id of that `session/prompt`, as the sender wrote it."""

    message_id: str
    raw_content: Raw = field(name="content")
    delivery: Delivery = Delivery.QUEUE
    held: bool = False
    operation_id: str | None = None
    sender: Named | None = None
    meta: dict[str, Any] | None = None
    request_id: RequestId = None

    @lazy
    def content(self) -> list[ContentBlock]:
        return CONTENT.read(self.raw_content)


class PromptEdited(Body, frozen=True, kw_only=True, tag="prompt_edited"):
    message_id: str
    raw_content: Raw = field(name="content")


class PromptMoved(Body, frozen=True, kw_only=True, tag="prompt_moved"):
    """Moved before another queued prompt, or to the end."""

    message_id: str
    before: str | None = None


class PromptWithdrawn(Body, frozen=True, kw_only=True, tag="prompt_withdrawn"):
    message_id: str


class PromptRejected(Body, frozen=True, kw_only=True, tag="prompt_rejected"):
    message_id: str
    error: ErrorObject


class PromptSent(Body, frozen=True, kw_only=True, tag="prompt_sent"):
    """Committed before it is written to an upstream agent, and never written again."""

    message_id: str


class PromptAccepted(Body, frozen=True, kw_only=True, tag="prompt_accepted"):
    """A prompt was inserted into the conversation, which answers its request.

    became: the id that an upstream agent gave it, if clients see that id
    agent_id: the same, if clients see `message_id`, because they knew that id before
    """

    message_id: str
    became: str | None = None
    agent_id: str | None = None


class QueuePaused(Body, frozen=True, kw_only=True, tag="queue_paused"):
    pass


class QueueResumed(Body, frozen=True, kw_only=True, tag="queue_resumed"):
    pass


class OperationDone(Body, frozen=True, kw_only=True, tag="operation_done"):
    """A cancel or a change of the queue was asked for under this id, and done; it is not done again."""

    operation_id: str


class QuestionOpened(Body, frozen=True, kw_only=True, tag="question_opened"):
    """The agent asks. It belongs to the open turn, or to the background work that is named."""

    question_id: str
    method: str
    params: Raw
    tool_call_id: str | None = None
    terminal_id: str | None = None
    origin: Raw = NOTHING
    """The params as a v1 agent wrote them, for v1 clients (invariant 8)."""


class QuestionEnd(StrEnum):
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


NO_RESULT = NOTHING


class QuestionClosed(Body, frozen=True, kw_only=True, tag="question_closed"):
    """The end of a question. `result` is the answer as it was written, `by` the client that gave it,
    `operation_id` the operation that gave it. `cause` is what cut the turn short with which it expired
    (`Cause`)."""

    question_id: str
    end: QuestionEnd
    result: Raw = NO_RESULT
    by: Named | None = None
    operation_id: str | None = None
    cause: str | None = None


AnyBody: TypeAlias = (
    SessionCreated
    | SessionReopened
    | SessionClosed
    | Updated
    | Translated
    | PromptQueued
    | PromptEdited
    | PromptMoved
    | PromptWithdrawn
    | PromptRejected
    | PromptSent
    | PromptAccepted
    | QueuePaused
    | QueueResumed
    | OperationDone
    | QuestionOpened
    | QuestionClosed
)


class Event(Struct, frozen=True, gc=False):
    """One immutable, numbered fact about a session. `at` is in milliseconds since 1970."""

    seq: int
    at: int
    body: AnyBody


_decoder = msgspec.json.Decoder(Event)
_bodies: msgspec.json.Decoder[AnyBody] = msgspec.json.Decoder(AnyBody)
_encode_lines = msgspec.json.Encoder().encode_lines


def number_text(chunks: Sequence[TextChunk], *, after: int, at: int) -> list[Event]:
    """Number plain text as the events that follow `after`. Their updates are decoded when they are read: most
    are only appended to a message and sent on as bytes."""
    lines = _encode_lines(chunks).split(b"\n")
    del lines[-1]
    return [Event(seq, at, Updated(raw=Raw(line))) for seq, line in enumerate(lines, start=after + 1)]


def readable(body: AnyBody) -> AnyBody:
    """Return the body as the journal will give it back, so that the same is folded now and on reading.

    The result shares nothing with the argument. Raises `EventRefused` for a body that cannot be read back. A
    malformed update that a peer wrote is kept: the fold skips it, now and later.
    """
    if isinstance(body, Updated):
        return _readable_update(body)
    line = bytes(_readable(encode_json(body), body))
    try:
        return _bodies.decode(line)
    except UNREADABLE as error:
        raise EventRefused(f"{_tag(body)} could not be read back from the journal: {error}") from None


def _readable_update(body: Updated) -> Updated:
    raw = _readable(body.raw, body)
    made = Updated(raw=raw)
    if isinstance(body, Translated):
        made = Translated(raw=raw, origin=_readable(body.origin, body), meta=_readable(body.meta, body))
    typed = body.__dict__.get("update")
    if typed is not None and type(typed) is not Unknown:
        try:
            made.update  # noqa: B018  # read once, and kept for the fold
        except Malformed as error:
            raise EventRefused(f"{describe(typed)} does not fit the protocol: {error}") from None
    return made


def _readable(raw: bytes | Raw, body: AnyBody) -> Raw:
    """Return a part of an event, which is JSON already, on one line. Raises `EventRefused`."""
    data = on_one_line(bytes(raw))
    if len(data) > 2 * EVENT_DEPTH and is_too_deep(data, bound=EVENT_DEPTH):
        raise EventRefused(f"{_tag(body)} is nested deeper than the bound of {EVENT_DEPTH} levels")
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise EventRefused(f"{_tag(body)} is not UTF-8: {error}") from None
    return Raw(data)


def _tag(body: AnyBody) -> str:
    return f"an event of type {body.__struct_config__.tag!r}"


def encode_event(event: Event) -> bytes:
    """One JSON object, without a newline in it. Raises `EventRefused`."""
    # A peer may have written an update over several lines, if its transport allows that.
    return on_one_line(encode_json(event))


def decode_event(line: bytes | Raw | memoryview) -> Event:
    """Raises `UnreadableEvent`."""
    try:
        return _decoder.decode(line)
    except UNREADABLE as error:
        raise _refusal(line, error) from None


_KINDS = frozenset(kind.__struct_config__.tag for kind in AnyBody.__args__)


class _Kind(Struct):
    type: str


class _Envelope(Struct):
    """The fields that every event of every version has."""

    seq: int
    at: int
    body: _Kind


_envelope = msgspec.json.Decoder(_Envelope)


def _refusal(line: bytes | Raw | memoryview, error: Exception) -> UnreadableEvent:
    """Distinguish an event of a later version from bytes that are no event."""
    try:
        kind = _envelope.decode(line).body.type
    except UNREADABLE:
        return UnreadableEvent(str(error))
    if kind in _KINDS:
        return UnreadableEvent(str(error))
    return NewerEvent(f"an event of the kind {kind[:64]!r}, which this version does not know")
