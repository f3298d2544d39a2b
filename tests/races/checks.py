"""What has to hold after a race, whatever its schedule was."""

from __future__ import annotations

from collections import Counter
from typing import Any

from antiphon.engine.events import Translated, Updated, decode_event
from antiphon.stores.memory import MemoryStore
from tests.races.clients import JOINS, PROMPTS, Link
from tests.races.schedule import Dialect, Op

CANCELLED = -32800
INTERNAL = -32603
LEAVES = (Op.CLOSE, Op.CLOSE_ALL, Op.DETACH)


class Violation(Exception):
    """Something that was promised does not hold."""


def check_answers(link: Link) -> None:
    """Every request is answered once; a link that was cut owes nothing more."""
    counted = Counter(frame.get("id") for way, frame in link.log if way == "<" and "method" not in frame)
    for id in link.ops:
        if counted[id] > 1:
            raise Violation(f"{id!r} was answered {counted[id]} times: {link.answers(id)}")
        if not counted[id] and not link.cut:
            raise Violation(f"{id!r} was not answered")
    for id, op in link.ops.items():
        for answer in link.answers(id):
            _check_answer(link, id, op, answer)


def _check_answer(link: Link, id: str, op: Op, answer: dict[str, Any]) -> None:
    error = answer.get("error")
    if error is None:
        if op in PROMPTS and link.dialect.answers_at_the_end and "stopReason" not in answer["result"]:
            raise Violation(f"{id!r} has no stop reason: {answer}")
        return
    if error["code"] == INTERNAL and "reason" not in (error.get("data") or {}):
        raise Violation(f"{id!r} failed inside: {answer}")
    at_the_end = op in PROMPTS and link.dialect.answers_at_the_end
    if error["code"] == CANCELLED and at_the_end and id not in link.taken_back:
        raise Violation(f"{id!r} of a v1 client was answered as an error by a cancel: {answer}")


def check_completions(link: Link) -> None:
    """TC-01, TC-02: one `turn_complete` before the result of each prompt, where that was asked for."""
    if link.dialect is not Dialect.V1_COMPLETE:
        return
    told: Counter[str] = Counter()
    for way, frame in link.log:
        update = frame.get("params", {}).get("update", {}) if way == "<" else {}
        if update.get("sessionUpdate") == "turn_complete":
            told[update.get("promptRequestId")] += 1
        elif way == "<" and "stopReason" in (frame.get("result") or {}) and told[frame["id"]] != 1:
            raise Violation(f"{told[frame['id']]} turn_complete before the answer to {frame['id']!r}")


def check_left(link: Link, session: str) -> None:
    """SESS-42: behind the answer by which a client leaves nothing comes, unless it joins again."""
    joining: set[str] = set()
    left: str | None = None
    for way, frame in link.log:
        id = frame.get("id")
        op = link.ops.get(id) if isinstance(id, str) else None
        if way == ">" and op in JOINS and isinstance(id, str):
            joining.add(id)
        elif way == "<" and op is not None and isinstance(id, str) and "method" not in frame:
            if op in JOINS:
                joining.discard(id)
                left = None if "result" in frame else left
            elif op in LEAVES and "result" in frame and not joining:
                left = id
        elif way == "<" and left is not None and not joining and _is_update(frame, session):
            raise Violation(f"an update came after {left!r} was answered: {frame}")


def _is_update(frame: dict[str, Any], session: str) -> bool:
    return frame.get("method") == "session/update" and frame["params"]["sessionId"] == session


def check_states(link: Link) -> None:
    """A turn opens and ends once, as somebody sees it who only looks on."""
    open = False
    for params in link.updates():
        update = params["update"]
        if update["sessionUpdate"] != "state_update":
            continue
        running = update["state"] != "idle"
        if running and open and update["state"] == "running":
            raise Violation("a turn was opened twice")
        if not running and not open and update.get("stopReason") is not None and "seq" in _ours(params):
            raise Violation(f"a turn ended twice: {update}")
        open = running


async def check_journal(link: Link, store: MemoryStore, session: str) -> None:
    """Invariant 2: who looks on gets the journal, in its order, with nothing left out."""
    journal: dict[int, Any] = {}
    cursor = 0
    while (page := await store.read(session, cursor)).batches:
        for batch in page.batches:
            for event in map(decode_event, batch.events):
                cursor = event.seq
                if isinstance(event.body, Updated | Translated):
                    journal[event.seq] = event.body.raw
    seen = [params for params in link.updates() if "seq" in _ours(params)]
    numbers = [_ours(params)["seq"] for params in seen]
    joined, *numbers = numbers  # the state that closes its resume
    if numbers != sorted(set(numbers)):
        raise Violation(f"numbers out of order: {numbers}")
    expected = [seq for seq in journal if joined < seq <= (numbers[-1] if numbers else 0)]
    if numbers != expected:
        raise Violation(f"the onlooker got {numbers}, the journal has {expected}")


def _ours(params: dict[str, Any]) -> dict[str, Any]:
    ours = params.get("_meta", {}).get("antiphon", {})
    return ours if isinstance(ours, dict) else {}
