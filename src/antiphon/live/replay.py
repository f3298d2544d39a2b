"""Replay: the session as it was when a client joined, which gets it before anything newer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Self

from msgspec import Struct

from antiphon.bridge.dialects import Writer
from antiphon.engine.events import Updated
from antiphon.engine.items import Item, is_from_v1
from antiphon.engine.json_values import UPDATES, encode
from antiphon.engine.pieces import Frozen, freeze
from antiphon.engine.prompts import Entry, QueuePart
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.snapshot import state_update
from antiphon.engine.turn import Turns
from antiphon.live.feed import SessionFeed
from antiphon.schema import v2
from antiphon.schema.repair import Malformed


class Replay(Struct, frozen=True, weakref=True):
    """Taken in one step with the cursor of its end, and sent later."""

    seq: int
    """Its last event."""
    items: Sequence[tuple[Frozen, bool]]
    """Each with whether it is an unknown update as a v1 agent wrote it."""
    state: bytes
    questions: Sequence[Question]
    queue: QueuePart
    prompts: Sequence[Entry]

    @classmethod
    def take(cls, fold: Session, items: Iterable[Item]) -> Self:
        """Take a replay of some items of a session."""
        return cls(
            seq=fold.last_seq,
            items=[(freeze(item), is_from_v1(item)) for item in items],
            state=state_update(fold),
            questions=fold.questions.open,
            queue=fold.prompts.part(),
            prompts=list(fold.prompts.entries.values()),
        )

    @classmethod
    def whole(cls, feed: SessionFeed) -> Replay:
        """Take a replay of all items. Clients that join at the same event share one."""
        fold = feed.fold
        replay = feed.replays.get(fold.last_seq)
        if not isinstance(replay, cls):
            replay = feed.replays[fold.last_seq] = cls.take(fold, fold.items)
        return replay

    def written(self, writer: Writer) -> Iterator[Sequence[bytes]]:
        """Yield the updates in a client's dialect, a piece at a time."""
        # A generator that waits keeps its variables alive, so none of them holds anything large.
        for item, as_written in self.items:
            yield from map(partial(_write, writer, as_written), item.updates(grows=writer.grows))

    def written_state(self, writer: Writer) -> Sequence[bytes]:
        return writer.write(UPDATES.read(self.state), self.state)


def _write(writer: Writer, as_written: bool, update: Any) -> Sequence[bytes]:
    raw = encode(update)
    return writer.write_translated(update, raw, raw) if as_written else writer.write(update, raw)


class Recall:
    """Gives a writer everything up to an event, without sending it: what it writes to its client depends on
    what it has written before."""

    def __init__(self, writer: Writer, turns: Turns, *, upto: int) -> None:
        self._writer = writer
        self._turns = turns
        self._cursor = 0
        self._upto = upto

    async def run(self, feed: SessionFeed) -> None:
        """Go on to the end. If this is cancelled, it can go on later, also with another feed."""
        while self._cursor < self._upto:
            events = (await feed.after(self._cursor))[: self._upto - self._cursor]
            for event in events:
                if isinstance(event.body, Updated):
                    with contextlib.suppress(Malformed):
                        update = event.body.update
                        self._writer.recall(update, bytes(event.body.raw))
                        if type(update) is v2.SessionStateUpdate:
                            self._turns.apply(update, seq=event.seq, at=event.at)
            self._cursor = events[-1].seq
