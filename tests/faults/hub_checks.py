"""What has to hold of a hub's story, once all is at rest: of the store, of the clients, and of the agents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from antiphon.engine import events as e
from antiphon.engine.events import Event, decode_event
from antiphon.engine.session import Session
from antiphon.engine.transcript import MessageType
from antiphon.stores import SQLiteStore, Store
from tests.faults.hub_client import Participant
from tests.faults.hub_record import Record
from tests.faults.violation import check

STATES = {"state_update", "state_change"}
LATE = "a late response to an abandoned"
"""Somebody was quicker, or the turn was cancelled meanwhile: no complaint."""
REFUSED = "failed: shutdown"
"""What a prompt comes to that reaches a hub which is about to end."""
UNKNOWN = "failed: owner_unreachable"
"""What a hub tells that got no reply from the owner of the session. The owner may have the prompt."""
CUT_SHORT = ("failed: interrupted", "failed: agent", "cancelled")
"""What a prompt may come to where the hub or the agent was killed, or somebody has cancelled."""


class Kept:
    """A session as the hub has kept it."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.fold = Session().fold(list(events))
        self.updates: dict[int, dict[str, Any]] = {}
        self.queued: Counter[str] = Counter()
        self.rejected: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.ends: dict[str, str] = {}
        opened: Counter[str] = Counter()
        closed: Counter[str] = Counter()
        for at, event in enumerate(events, start=1):
            check(event.seq == at, f"event {event.seq} stands at {at}")
            match event.body:
                case e.Updated(raw=raw):
                    self.updates[event.seq] = json.loads(bytes(raw))
                case e.PromptQueued() as body:
                    text = "".join(block["text"] for block in json.loads(bytes(body.raw_content)))
                    self.queued[text] += 1
                    self.texts[body.message_id] = text
                case e.QuestionOpened(question_id=id):
                    opened[id] += 1
                case e.QuestionClosed(question_id=id):
                    closed[id] += 1
        check(opened == closed, f"asked was {opened}, and over are {closed}")
        check(all(times == 1 for times in closed.values()), f"a question was over twice: {closed}")
        for entry in self.fold.prompts.entries.values():
            self.ends[self.texts[entry.message_id]] = _end(entry)


def _end(entry: Any) -> str:
    if entry.error is not None:
        reason = entry.error.data.get("reason") if isinstance(entry.error.data, dict) else None
        return "cancelled" if entry.error.code == -32800 else f"failed: {reason or entry.error.code}"
    return str(entry.stop_reason or entry.state)


async def read_sessions(path: Path, session_ids: Iterable[str]) -> dict[str, Kept]:
    async with SQLiteStore(path) as store:
        return {session_id: await read_kept(store, session_id) for session_id in session_ids}


async def read_kept(store: Store, session_id: str) -> Kept:
    events: list[Event] = []
    while (page := await store.read(session_id, len(events))).batches:
        events += [decode_event(raw) for batch in page.batches for raw in batch.events]
    return Kept(events)


# --- clients ------------------------------------------------------------------------------------------


def check_record(record: Record, kept: Kept) -> None:
    """It is what the store has, from the join on, in order: nothing is missing and nothing there twice."""
    who = f"{record.client} of {record.session.id}"
    last, seen = (record.joined, -1), []
    for seq, part, update in record.told:
        place = (seq, -1 if part is None else part)
        if seq <= record.joined or _closes(update, kept.updates.get(seq)):
            continue  # the state that ends a resume, or the queue, with the number of what was before it
        if part is not None and place <= last:
            continue  # a piece that came again
        if record.dialect != "v1":
            if seq == last[0] and update["sessionUpdate"] in STATES:
                continue  # it ended a turn, and a resume after it
            check(seq > last[0], f"{who} was told {seq} after {last[0]}: {update}")
            there = kept.updates.get(seq)
            check(_same(update, there), f"{who} was told {update} as {seq}, which is {there}")
        else:
            goes_on = seq > last[0] or (seq == last[0] and last[1] >= 0)
            check(goes_on, f"{who} was told {seq} after {last}: {update}")
        last = place if part is not None else (seq, -1)
        seen.append(seq)
    if record.dialect == "v1":
        return
    upto = max(kept.updates) if record.whole else last[0]
    owed = [seq for seq in kept.updates if record.joined < seq <= upto]
    missing = sorted({*owed} - {*seen})
    check(not missing, f"{who} misses {[(seq, kept.updates[seq]) for seq in missing][:5]}")


def _closes(update: dict[str, Any], there: dict[str, Any] | None) -> bool:
    kind = update["sessionUpdate"]
    return kind.startswith("_antiphon_") or (kind in STATES and not _same(update, there))


def _same(told: dict[str, Any], kept: dict[str, Any] | None) -> bool:
    return kept is not None and _plain(told) == _plain(kept)


def _plain(update: dict[str, Any]) -> dict[str, Any]:
    """In one spelling, and without what is said beside it."""
    spelled = {"stop_reason": "stopReason", "state_change": "state_update"}
    return {
        spelled.get(key, key): spelled.get(value, value) if isinstance(value, str) else value
        for key, value in update.items()
        if key != "_meta" and value is not None
    }


def check_view(record: Record, kept: Kept, own: Participant) -> None:
    """What a client holds is what the session is."""
    who, fold = f"{record.client} of {record.session.id}", record.session.fold
    said = [message.text for message in fold.messages if message.type is not MessageType.USER]
    wanted = [message.text for message in kept.fold.messages if message.type is not MessageType.USER]
    check(said == wanted, f"{who} holds {_difference(said, wanted)}")
    asked = Counter(message.text for message in fold.messages if message.type is MessageType.USER)
    taken = Counter(message.text for message in kept.fold.messages if message.type is MessageType.USER)
    if record.dialect == "v1":  # it shows what it prompted, also where that was not taken
        asked -= Counter([text for text in own.outcomes if not taken[text]])
    check(asked == taken, f"{who} holds the prompts {asked - taken}, and misses {taken - asked}")
    calls = {call.id: _text(call) for call in fold.tools}
    check(
        calls == {call.id: _text(call) for call in kept.fold.tools}, f"{who} holds other tool calls: {calls}"
    )
    check(all(call.final for call in fold.tools), f"{who} holds a tool call that runs")
    check(not fold.questions.open, f"{who} holds open questions: {fold.questions.open}")
    check(record.session.turn is None, f"{who} believes that the session works")


def _text(call: Any) -> str:
    return "".join(part.content.text for part in call.content)


def _difference(said: list[str], wanted: list[str]) -> str:
    for at, (one, other) in enumerate(zip(said, wanted, strict=False)):
        if one != other:
            return f"as message {at} {one!r}, which is {other!r}"
    return f"{len(said)} messages, and there are {len(wanted)}: {said[len(wanted) :]} {wanted[len(said) :]}"


# --- prompts ------------------------------------------------------------------------------------------


def check_counting(kept: Kept) -> None:
    for message in kept.fold.messages:
        if message.type is not MessageType.USER:
            numbers = [int(word) for word in message.text.split()]
            check(numbers == [*range(len(numbers))], f"a message does not count: {message.text!r}")


def check_prompts(participants: Sequence[Participant], kept: Iterable[Kept], notes: Path) -> None:
    """Each was taken once, by the hub and by its agent, and its sender was told the truth about it."""
    queued = sum((one.queued for one in kept), Counter[str]())
    ends = {text: end for one in kept for text, end in one.ends.items()}
    taken = Counter(_lines(notes.with_suffix(".prompts")))
    for text, times in queued.items():
        check(times == 1, f"{text!r} was queued {times} times")
    for text, times in taken.items():
        check(times == 1, f"the agent took {text!r} {times} times")
    for participant in participants:
        for text, outcome in participant.outcomes.items():
            end = ends.get(text)
            what = f"{text!r} of {participant.name} was told as {outcome!r}, and is {end!r}"
            if outcome.startswith("lost") or outcome == "on its way":
                check("closed by this side" in outcome, what)  # only who left knows nothing
                continue
            if outcome == UNKNOWN:
                continue
            if outcome == REFUSED:
                check(not queued[text], f"{text!r} was refused, and queued {queued[text]} times")
                continue
            if outcome == "cancelled" and not queued[text]:
                # It was cancelled before it was committed anywhere; then nobody may have taken it.
                check(not taken[text], f"{text!r} was cancelled uncommitted, and the agent took it")
                continue
            check(queued[text] == 1, f"{text!r} was queued {queued[text]} times, and told as {outcome!r}")
            check(outcome == end or {outcome, end} <= {*CUT_SHORT}, what)
            if outcome == "end_turn":
                check(
                    taken[text] == 1, f"{text!r} came to its end, and the agent took it {taken[text]} times"
                )


def check_agents(notes: Path) -> None:
    answers = Counter(line.rpartition(":")[0] for line in _lines(notes.with_suffix(".answers")))
    twice = [asked for asked, times in answers.items() if times > 1]
    check(not twice, f"answered twice at the agent: {twice}")
    complaints = [line for line in _lines(notes.with_suffix(".complaints")) if LATE not in line]
    check(not complaints, f"the agent complained: {complaints}")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
