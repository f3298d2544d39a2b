"""Runs: events that many clients get as the same bytes, which are made once.

Most events are chunks, and a chunk is the same in every dialect: its original bytes, in an envelope that
names the session. What differs between clients (a state, a question, a response) is written to each by
itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from antiphon.engine.content import is_plain
from antiphon.engine.events import Event, Updated, number_text
from antiphon.engine.fold import is_state
from antiphon.engine.transcript import MESSAGE_CHUNKS, MessageChunk
from antiphon.schema import v2
from antiphon.schema.repair import Malformed
from antiphon.schema.updates import TextChunk, TextType, text_chunk
from antiphon.schema.wire import Unknown
from antiphon.transports.base import Framing


class Envelope(NamedTuple):
    """How the updates of one session are framed on connections of one kind."""

    framing: Framing
    start: bytes
    end: bytes
    numbered: bool

    def around(self, events: Sequence[Event]) -> bytes:
        # Joining costs a quarter of formatting.
        start, end, join = self.start, self.end, b"".join
        # A run holds updates only; checking that for mypy would cost time with each event.
        raws: list[Any] = [event.body.raw for event in events]  # type: ignore[union-attr]
        if self.numbered:
            meta, first = b',"_meta":{"antiphon":{"seq":%d}}', events[0].seq
            return self.framing(
                [join((start, raw, meta % seq, end)) for seq, raw in enumerate(raws, start=first)]
            )
        return self.framing([join((start, raw, end)) for raw in raws])


class Run(Struct, eq=False):
    """Consecutive events. If they are the text of one message, or updates of one type, `update` represents
    all of them: a writer that sends it unchanged sends each of them unchanged."""

    events: Sequence[Event]
    update: v2.SessionUpdate | None
    _framed: dict[Envelope, bytes] = {}

    def framed(self, envelope: Envelope) -> bytes:
        """Return its updates, framed for connections of one kind."""
        framed = self._framed.get(envelope)
        if framed is None:
            framed = self._framed[envelope] = envelope.around(self.events)
        return framed


def split(events: Sequence[Event], known: Sequence[Run] = ()) -> list[Run]:
    """Divide events into runs, in their order. Some of the runs may be `known` already."""
    runs: list[Run] = []
    place, first = 0, events[0].seq
    for run in known:
        at = run.events[0].seq - first
        if at > place:
            runs += _split(events[place:at])
        runs.append(run)
        place = at + len(run.events)
    return runs + _split(events[place:]) if place < len(events) else runs


class MessageTexts(NamedTuple):
    """Chunks of one message, and their texts: what is needed to fold them."""

    events: list[Event]
    texts: list[str]


def number_texts(
    chunks: Sequence[TextChunk], *, after: int, at: int
) -> tuple[list[Event], list[Run], list[MessageTexts]]:
    """Number plain texts as the events that follow `after`. Return the events, their runs, and their
    texts."""
    events, runs, parts = number_text(chunks, after=after, at=at), list[Run](), list[MessageTexts]()
    first = 0
    for upto in range(1, len(chunks) + 1):
        chunk = chunks[first]
        if upto < len(chunks) and chunks[upto].follows(chunk):
            continue
        part = MessageTexts(events[first:upto], [each.content.text for each in chunks[first:upto]])
        runs.append(_text_run(part.events, chunk, part.texts))
        parts.append(part)
        first = upto
    return events, runs, parts


_KINDS: dict[TextType, type[v2.AgentMessageChunk | v2.AgentThoughtChunk]] = {
    "agent_message_chunk": v2.AgentMessageChunk,
    "agent_thought_chunk": v2.AgentThoughtChunk,
}


def as_text(chunk: MessageChunk) -> TextChunk | None:
    """Return the same chunk as a `TextChunk`; `None` if it is more than short plain text of an agent."""
    content = chunk.content
    if isinstance(content, v2.TextContent) and is_plain(content) and chunk.meta is None:
        for type_, kind in _KINDS.items():
            if type(chunk) is kind:
                return text_chunk(type_, chunk.message_id, content.text)
    return None


def _text_run(events: Sequence[Event], chunk: TextChunk, texts: Sequence[str]) -> Run:
    """Make the run of the chunks of one message: adjacent plain texts are one text."""
    text = v2.TextContent(text="".join(texts))
    kind = _KINDS[chunk.session_update]
    return Run(events, kind(message_id=v2.MessageId(chunk.message_id or ""), content=text))


def _split(events: Sequence[Event]) -> list[Run]:
    runs: list[Run] = []
    begun = 0
    kind: Any = None
    for at, event in enumerate(events):
        of = _kind_of(event)
        if at > begun and (of != kind or of is ALONE):
            runs.append(_run(events[begun:at], kind))
            begun = at
        kind = of
    runs.append(_run(events[begun:], kind))
    return runs


ALONE = "alone"


def _kind_of(event: Event) -> Any:
    """Return what events of one run have in common; `None` for an event that differs between clients."""
    body = event.body
    if type(body) is not Updated:
        return None
    try:
        update: Any = body.update
    except Malformed:
        return None
    kind = type(update)
    if kind in MESSAGE_CHUNKS:
        return (kind, update.message_id) if is_plain(update.content) else ALONE
    return None if kind is Unknown or is_state(update) else kind


def _run(events: Sequence[Event], kind: Any) -> Run:
    if kind is None:
        return Run(events, None)
    updates: list[Any] = [event.body.update for event in events]  # type: ignore[union-attr]  # updates alone
    update = updates[0]
    if len(updates) > 1 and type(kind) is tuple:  # adjacent plain texts are one text, however they were cut
        text = "".join([each.content.text for each in updates])
        update = kind[0](message_id=update.message_id, content=v2.TextContent(text=text))
    return Run(events, update)
