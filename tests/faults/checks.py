"""What has to hold after a kill: of the store, of what is replayed, and of what clients were told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from antiphon.engine.events import decode_event
from antiphon.engine.session import Session
from antiphon.engine.snapshot import parts
from antiphon.engine.turn import TurnState
from antiphon.live.session import LiveSession
from antiphon.stores import SQLiteStore
from tests.faults.client import Client
from tests.faults.journal import Journal, is_cut
from tests.faults.ledger import DELIVERED, NO_TURN, UNKNOWN, Change, ChangeKind, Ledger, Prompt
from tests.faults.transcript import FINAL, Transcript
from tests.faults.violation import check


async def read_store(path: Path, session_id: str) -> Journal:
    """The journal, untouched since the kill; the snapshot with the rest of it is what the whole of it is."""
    journal, whole = Journal(), Session()
    async with SQLiteStore(path) as store:
        fold = (await LiveSession.open(store, session_id, clock=lambda: 0)).fold
        while (page := await store.read(session_id, whole.last_seq)).batches:
            for event in (decode_event(raw) for batch in page.batches for raw in batch.events):
                journal.apply(event)
                whole.apply(event)
    check(whole.last_seq == fold.last_seq, "the snapshot and the rest do not reach the journal's end")
    check(parts(whole) == parts(fold), "the snapshot and the rest are not what the journal is")
    idle = fold.state is TurnState.IDLE
    check(idle is (journal.open is None), f"the state is {fold.state}, and the turn {journal.open}")
    queue = [entry.message_id for entry in fold.queue]
    check(queue == journal.queue, f"the queue should hold {journal.queue} and holds {queue}")
    return journal


# --- what was answered is so, and nothing is that was not asked ------------------------------------


def check_ledger(ledger: Ledger, journal: Journal) -> None:
    for prompt in ledger.prompts.values():
        _check_prompt(prompt, journal)
    for change in ledger.changes:
        _check_change(change, journal)
    for sent in ledger.sendings:
        there = [prompt.operation in journal.operations for prompt in sent if prompt.certain]
        check(
            there == sorted(there, reverse=True),
            f"one prompt is in the journal, and one sent before it is not: {there} of {sent}",
        )
    _check_asked(ledger, journal)


def _check_prompt(prompt: Prompt, journal: Journal) -> None:
    id = journal.operations.get(prompt.operation)
    what = f"{prompt.operation!r} ({prompt.delivery}{', injected' * prompt.injected})"
    if not prompt.answered:
        return
    if prompt.refused == "interrupted":  # v1: it was taken, and its turn was cut
        turn = None if id is None else journal.turn_of(id)
        check(turn is not None and turn.end == "interrupted", f"{what} was told to be cut, and is {turn}")
        return
    if prompt.refused is not None:
        check(not prompt.certain and prompt.refused == NO_TURN, f"{what} was refused: {prompt.refused}")
        check(id is None, f"{what} was refused, and is in the journal")
        return
    check(id is not None, f"{what} was answered, and is not in the journal")
    if prompt.end is not None:
        turn = None if id is None else journal.turn_of(id)
        check(turn is not None and turn.end == prompt.end, f"{what} was told to end as {prompt.end}: {turn}")
        return
    check(id == prompt.message_id, f"{what} was answered as {prompt.message_id}, and is {id}")
    taken = prompt.injected or id in journal.accepted
    check(taken, f"{what} was answered, and was not taken")


def _check_change(change: Change, journal: Journal) -> None:
    id, named = change.message_id, {change.message_id, change.before}
    if not change.answered:
        return
    if change.refused is not None:
        reasons = {DELIVERED: {*journal.accepted}, UNKNOWN: journal.withdrawn}
        true = reasons.get(change.refused, set()) & named
        check(true, f"{change} was refused, and it is not so: {journal}")
        return
    done = {
        ChangeKind.REPLACE: journal.edits[id, change.text] == 1,
        ChangeKind.MOVE: journal.moves[id, change.before] > 0,
        ChangeKind.REVOKE: id in journal.withdrawn,
    }
    check(done[change.kind], f"{change} was answered, and it is not so")


def _check_asked(ledger: Ledger, journal: Journal) -> None:
    """Nothing happened to the queue that nobody asked for, or more often than it was asked for."""
    asked = [change for change in ledger.changes if change.refused is None]
    edits = Counter((one.message_id, one.text) for one in asked if one.kind is ChangeKind.REPLACE)
    moves = Counter((one.message_id, one.before) for one in asked if one.kind is ChangeKind.MOVE)
    revoked = {one.message_id for one in asked if one.kind is ChangeKind.REVOKE}
    check(journal.operations.keys() <= ledger.prompts.keys(), f"nobody sent one of {journal.operations}")
    check(journal.edits <= edits, f"edited was {journal.edits}, and asked for {edits}")
    check(journal.moves <= moves, f"moved was {journal.moves}, and asked for {moves}")
    check(journal.withdrawn <= revoked, f"withdrawn was {journal.withdrawn}, and asked for {revoked}")


def check_cuts(journal: Journal, cuts: Iterable[int]) -> None:
    """A turn that was open at a kill ends as interrupted, once it ends; no other does."""
    told = {turn.opened for turn in journal.turns if turn.end == "interrupted"}
    still = {turn.opened for turn in journal.turns if turn.end is None}
    check(told <= {*cuts}, f"turns {told} are told as interrupted, and cut were {cuts}")
    check({*cuts} <= told | still, f"turns {cuts} were cut, and told as interrupted are {told}")


# --- what was seen stays ---------------------------------------------------------------------------


def check_seen(client: Client, journal: Journal) -> None:
    """Nobody saw a prompt that is not taken, or that says something else."""
    for (kind, id), text in client.seen.texts.items():
        if kind == "user":
            check(id in journal.accepted, f"{client.name} saw {text!r}, and it was not taken")
            taken = journal.texts[id]
            check(text == taken, f"{client.name} saw {text!r}, and taken was {taken!r}")


def check_replay(client: Client, replayed: Transcript) -> None:
    """What is replayed is everything that was seen, once, and perhaps more."""
    seen, who = client.seen, client.name
    twice = [key for key, times in replayed.told.items() if times > 1]
    check(not twice, f"replayed twice to {who}: {twice}")
    # A v1 client does not see its own prompts until they are replayed.
    kinds = {"agent", "thought", "tool"} | ({"user"} if client.version == 2 else set())
    was = [key for key in seen.texts if key[0] in kinds]
    now = [key for key in replayed.texts if key[0] in kinds]
    check(now[: len(was)] == was, f"{who} saw {was}, and is replayed {now}")
    for key, text in seen.texts.items():
        back = replayed.texts.get(key, "")
        check(back.startswith(text), f"{who} saw {key} as {text!r}, and is replayed {back!r}")
    for id, call in seen.calls.items():
        back_call = replayed.calls[id]
        check(back_call.get("title") == call.get("title"), f"the call {call} became {back_call}")
        ended = call.get("status") in FINAL
        same = back_call.get("status") == call.get("status")
        check(same or not ended, f"the call {call} became {back_call}")
    check(replayed.plans.keys() >= seen.plans.keys(), f"{who} misses a plan")
    replayed.check_counting()


def check_reopened(replayed: Transcript, journal: Journal) -> None:
    """How a session that was killed presents itself to a v2 client: idle, and how its last turn ended."""
    state = replayed.state
    check(state.get("state") == "idle", f"after a restart the state is {state}")
    behind: list[str] | None = None if journal.background is None else []
    check(state.get("background") == behind, f"behind the turns were {journal.background}; told is {state}")
    if not journal.turns:
        return
    end = journal.turns[-1].end or "interrupted"
    data = (state.get("error") or {}).get("data")
    told = "interrupted" if is_cut(data) and state.get("stopReason") == "error" else state.get("stopReason")
    check(told == end, f"the last turn ended as {end}, and the state is {state}")


# --- at the end ------------------------------------------------------------------------------------


def check_end(ledger: Ledger, journal: Journal, clients: Iterable[Client]) -> None:
    """Every prompt was taken once, says what was last asked, and all clients hold the same."""
    check(not journal.queue and journal.open is None, f"left over: {journal.queue}, {journal.open}")
    for prompt in ledger.prompts.values():
        check(prompt.answered, f"{prompt} was never answered")
    wanted = {("user", id): journal.texts[id] for id in journal.accepted}
    for client in clients:
        said = {key: text for key, text in client.seen.texts.items() if key[0] == "user"}
        check(said == wanted, f"the user said {wanted}, and {client.name} holds {said}")
        client.seen.check_counting()
