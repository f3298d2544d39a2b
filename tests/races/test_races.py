"""A part of `make races`: every pair once, and storms; and that the checks see what they are to see."""

from __future__ import annotations

from typing import Any

import pytest

from tests.races.checks import Violation, check_answers, check_completions, check_left, check_states
from tests.races.clients import Link
from tests.races.run import race
from tests.races.schedule import PAIRS, Dialect, Op, Schedule, schedule

PART = 20
"""How many schedules one test runs."""
SESSION = "s"


@pytest.mark.parametrize("first", range(0, 240, PART))
async def test_every_request_is_answered_once_whatever_it_races_with(first: int) -> None:
    for seed in range(first, first + PART):
        await race(schedule(seed))


def test_a_seed_gives_the_same_schedule_again() -> None:
    assert all(str(schedule(seed)) == str(schedule(seed)) for seed in range(50))


def test_the_campaign_has_every_pair_in_every_place() -> None:
    def pair(drawn: Schedule) -> tuple[Op, Op]:
        return (drawn.steps[0].op, drawn.steps[1].op)

    drawn = {(one.place, *pair(one)) for one in map(schedule, range(2000)) if one.is_pair}
    assert len(drawn) == 3 * len(PAIRS)


# --- the checks themselves ----------------------------------------------------------------------------


def link(dialect: Dialect = Dialect.V1, *log: tuple[str, dict[str, Any]], **ops: Op) -> Link:
    made = Link(dialect, None)
    made.log += log
    made.ops |= ops
    return made


def test_a_request_without_an_answer_or_with_two_is_seen() -> None:
    answer = ("<", {"id": "p", "result": {"stopReason": "end_turn"}})
    check_answers(link(Dialect.V1, answer, p=Op.PROMPT))
    for answers in ((), (answer, answer)):
        with pytest.raises(Violation):
            check_answers(link(Dialect.V1, *answers, p=Op.PROMPT))


@pytest.mark.parametrize("code", [-32800, -32603])
def test_a_cancelled_v1_prompt_that_is_an_error_is_seen(code: int) -> None:
    failed = ("<", {"id": "p", "error": {"code": code, "message": "No"}})
    with pytest.raises(Violation):
        check_answers(link(Dialect.V1, failed, p=Op.PROMPT))


def test_a_missing_turn_complete_is_seen() -> None:
    with pytest.raises(Violation):
        check_completions(link(Dialect.V1_COMPLETE, ("<", {"id": "p", "result": {"stopReason": "x"}})))


def test_an_update_behind_a_close_is_seen_unless_the_client_joined_again() -> None:
    update = ("<", _update("agent_message_chunk"))
    closed = ("<", {"id": "c", "result": {}})
    joins = (">", {"id": "l", "method": "session/load"})
    check_left(link(Dialect.V1, closed, joins, update, c=Op.CLOSE, l=Op.LOAD), SESSION)
    with pytest.raises(Violation):
        check_left(link(Dialect.V1, closed, update, c=Op.CLOSE), SESSION)


@pytest.mark.parametrize("states", [("running", "running"), ("running", "idle", "idle")])
def test_a_turn_that_opens_or_ends_twice_is_seen(states: tuple[str, ...]) -> None:
    log = [("<", _update("state_update", state=state, stopReason="end_turn")) for state in states]
    with pytest.raises(Violation):
        check_states(link(Dialect.V2, *log))


def _update(kind: str, **fields: Any) -> dict[str, Any]:
    params = {"sessionId": SESSION, "update": {"sessionUpdate": kind, **fields}}
    return {"method": "session/update", "params": {**params, "_meta": {"antiphon": {"seq": 1}}}}
