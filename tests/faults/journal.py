"""A journal as it lies in the store, put together by hand: the queue, what was taken, and the turns.

The rules that a journal has to keep by itself are checked while it is read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from antiphon.engine import events as e
from antiphon.engine.events import Event
from antiphon.schema import v2
from tests.faults.violation import check

RANK = {e.Delivery.INTERRUPT: 0, e.Delivery.STEER: 1, e.Delivery.QUEUE: 2}


def is_cut(data: object) -> bool:
    """Whether an error says that its turn was cut short."""
    return isinstance(data, dict) and data.get("reason") == "interrupted"


@dataclass
class Turn:
    opened: int
    """The number of the event that opened it, which names it."""
    prompts: list[str]
    to_be_cancelled: bool = False
    """An interrupting prompt came."""
    end: str | None = None
    """Its stop reason, or `interrupted`."""


@dataclass
class Journal:
    last: int = 0
    queue: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """What each prompt says now, or said when it was taken."""
    delivery: dict[str, e.Delivery] = field(default_factory=dict)
    operations: dict[str, str] = field(default_factory=dict)
    accepted: list[str] = field(default_factory=list)
    withdrawn: set[str] = field(default_factory=set)
    edits: Counter[tuple[str, str]] = field(default_factory=Counter)
    moves: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    turns: list[Turn] = field(default_factory=list)
    background: set[str] | None = None
    """The tool calls behind the turns, as last reported."""
    paused: bool = False
    _taken: list[str] = field(default_factory=list)

    @property
    def open(self) -> Turn | None:
        return self.turns[-1] if self.turns and self.turns[-1].end is None else None

    def turn_of(self, message_id: str) -> Turn | None:
        return next((turn for turn in self.turns if message_id in turn.prompts), None)

    def apply(self, event: Event) -> None:
        check(event.seq == self.last + 1, f"event {event.seq} follows event {self.last}")
        self.last = event.seq
        match event.body:
            case e.PromptQueued() as body:
                self._queued(body)
            case e.PromptEdited(message_id=id, raw_content=content):
                check(id in self.queue, f"{id} was edited, and does not wait")
                self.texts[id] = _text(content)
                self.edits[id, self.texts[id]] += 1
            case e.PromptMoved(message_id=id, before=before):
                waiting = {id, before or id} <= {*self.queue}
                check(waiting, f"{id} was moved before {before}, and not both wait")
                self.queue.remove(id)
                self.queue.insert(len(self.queue) if before is None else self.queue.index(before), id)
                self.moves[id, before] += 1
            case e.PromptWithdrawn(message_id=id):
                check(id in self.queue, f"{id} was withdrawn, and did not wait")
                self.queue.remove(id)
                self.withdrawn.add(id)
            case e.PromptAccepted(message_id=id):
                self._accepted(id)
            case e.Updated(update=v2.StateUpdate() as update):
                self._state(update, event.seq)
            case e.QueuePaused():
                check(bool(self.queue) and not self.paused, "the queue was paused, and nothing waited")
                self.paused = True
            case e.QueueResumed():
                check(self.paused, "the queue was resumed, and was not paused")
                self.paused = False
            case e.PromptRejected() | e.PromptSent() as body:
                check(False, f"nobody asked for {body}")

    def _queued(self, body: e.PromptQueued) -> None:
        assert body.operation_id is not None
        check(body.operation_id not in self.operations, f"{body.operation_id!r} was taken in twice")
        self.operations[body.operation_id] = body.message_id
        self.texts[body.message_id] = _text(body.raw_content)
        self.delivery[body.message_id] = body.delivery
        self.queue.append(body.message_id)
        self.paused = False  # whoever prompts wants it to go on
        if body.delivery is e.Delivery.INTERRUPT and self.open is not None:
            self.open.to_be_cancelled = True

    def _accepted(self, id: str) -> None:
        check(id in self.queue, f"{id} was taken, and did not wait: {self.queue}")
        first = min(self.queue, key=lambda waiting: RANK[self.delivery[waiting]])
        check(id == first, f"{id} ({self.delivery[id]}) overtook {first} ({self.delivery[first]})")
        self.queue.remove(id)
        self.accepted.append(id)
        if self.open is None:
            self._taken.append(id)
        else:
            steers = self.delivery[id] is e.Delivery.STEER
            check(steers, f"{id} ({self.delivery[id]}) was taken into an open turn")
            self.open.prompts.append(id)

    def _state(self, update: v2.StateUpdate, seq: int) -> None:
        turn = self.open
        if update.background is not None:
            listed = [work for work in update.background if isinstance(work, v2.BackgroundToolCall)]
            self.background = {work.tool_call_id for work in listed}
        if update.state is not v2.State.IDLE:
            if turn is None:
                self.turns.append(Turn(seq, self._taken))
                self._taken = []
        elif turn is not None:
            cut = update.error is not None and is_cut(update.error.data)
            turn.end = "interrupted" if cut else str(update.stop_reason)
            if turn.to_be_cancelled:
                ended = turn.end in ("cancelled", "interrupted")
                check(ended, f"a prompt interrupted the turn of {turn.prompts}, which ended as {turn.end}")


def _text(content: Raw) -> str:
    return "".join(block["text"] for block in msgspec.json.decode(content))
