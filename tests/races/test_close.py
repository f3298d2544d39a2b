"""A session is closed or left: every prompt is answered, once, and nothing goes on behind a close.

In every dialect, with an agent made with the library and with agents of both versions behind a hub.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.races.agents import turns
from tests.races.clients import Racer
from tests.races.schedule import Agent as Behaviour
from tests.races.schedule import Dialect, Op, Place
from tests.races.stage import DIALECTS, PLACES, Stage, answer, completed, ends, heard, stage

DETACHED = {"code": -32603, "message": "The session was left", "data": {"reason": "detached"}}
LEAVING = pytest.mark.parametrize("leaving", [Op.CLOSE, Op.DETACH])


async def at_work(made: Stage, racer: Racer) -> str | None:
    """A prompt that is worked on."""
    id = racer.do(Op.PROMPT)
    await heard(racer.link, "begun")
    return id


def check_cancelled(racer: Racer, id: str | None, given: dict[str, Any], *, taken: bool) -> None:
    """How a prompt is answered that ends by the closing of its session."""
    if racer.dialect.answers_at_the_end:
        assert given["result"]["stopReason"] == "cancelled"
        wanted = ["cancelled"] if racer.dialect is Dialect.V1_COMPLETE else []
        assert completed(racer.link, id) == wanted
    elif taken:
        assert "result" in given  # at its insertion
    else:
        assert given["error"]["code"] == -32800  # SESS-41


@PLACES
@DIALECTS
@LEAVING
async def test_who_leaves_gets_its_answers_and_the_work_goes_on(
    place: Place, dialect: Dialect, leaving: Op
) -> None:
    async with stage(place) as made:
        ann = await made.racer(dialect)
        bob = await made.racer(Dialect.V2)
        working = await at_work(made, ann)
        waiting = ann.do(Op.PROMPT)
        left = ann.do(leaving)
        assert "result" in await answer(ann.link, left)
        first, second = await answer(ann.link, working), await answer(ann.link, waiting)
        if dialect.answers_at_the_end:
            assert first["error"] == DETACHED
        else:
            assert "result" in first
        assert second["error"] == DETACHED
        assert len(made.works.open) == 1
        listed = await bob.link.call("list", "_antiphon/list_inject", sessionId=made.session)
        assert len(listed["entries"]) == 1  # who leaves withdraws nothing
        made.works.finish.set()
        await bob.link.until(lambda: len(ends(bob.link)) == 2)  # it is worked on, too
        assert ends(bob.link) == ["end_turn", "end_turn"]


@PLACES
@DIALECTS
@pytest.mark.parametrize("closes", [True, False], ids=["agent-closes", "agent-cannot-close"])
async def test_the_last_to_close_gets_its_prompts_back_as_cancelled(
    place: Place, dialect: Dialect, closes: bool
) -> None:
    async with stage(place, Behaviour(late_end=3, closes=closes)) as made:
        ann = await made.racer(dialect)
        working = await at_work(made, ann)
        waiting = ann.do(Op.PROMPT)
        closed = ann.do(Op.CLOSE)
        assert (await answer(ann.link, closed))["result"] == {}
        assert not made.works.open
        for id, taken in ((working, True), (waiting, False)):
            check_cancelled(ann, id, await answer(ann.link, id), taken=taken)


@PLACES
@DIALECTS
async def test_a_close_for_all_answers_everybody(place: Place, dialect: Dialect) -> None:
    async with stage(place, Behaviour(late_end=3)) as made:
        ann = await made.racer(dialect)
        bob = await made.racer(Dialect.V2)
        working = await at_work(made, ann)
        waiting = ann.do(Op.PROMPT)
        await answer(bob.link, bob.do(Op.CLOSE_ALL))
        assert not made.works.open
        for id, taken in ((working, True), (waiting, False)):
            check_cancelled(ann, id, await answer(ann.link, id), taken=taken)


@PLACES
@DIALECTS
@pytest.mark.parametrize("gap", [0, 1, 2, 5, 10, 20])
async def test_a_prompt_that_meets_the_closing_of_its_session_is_answered(
    place: Place, dialect: Dialect, gap: int
) -> None:
    async with stage(place, Behaviour(late_end=8)) as made:
        ann = await made.racer(dialect)
        bob = await made.racer(Dialect.V2)
        await at_work(made, bob)
        closed = bob.do(Op.CLOSE_ALL)
        await turns(gap)
        met = ann.do(Op.PROMPT)
        given = await answer(ann.link, met)
        await answer(bob.link, closed)
        if "error" not in given or given["error"]["code"] != -32002:  # it may be closed already
            check_cancelled(ann, met, given, taken=False)
        assert not made.works.open


@PLACES
@DIALECTS
@pytest.mark.parametrize("method", ["session/delete", "session/archive"])
async def test_deleting_and_archiving_answer_everybody(place: Place, dialect: Dialect, method: str) -> None:
    async with stage(place) as made:
        ann = await made.racer(dialect)
        bob = await made.racer(Dialect.V2)
        working = await at_work(made, ann)
        await bob.link.call("gone", method, sessionId=made.session)
        assert not made.works.open
        check_cancelled(ann, working, await answer(ann.link, working), taken=True)


@PLACES
async def test_a_close_is_finished_although_its_client_is_gone(place: Place) -> None:
    async with stage(place, Behaviour(late_end=20)) as made:
        ann = await made.racer(Dialect.V2)
        await at_work(made, ann)
        ann.do(Op.CLOSE)
        await turns(3)
        await ann.link.transport.aclose()
        bob = await made.racer(Dialect.V2)
        assert not made.works.open
        made.works.finish.set()
        assert "result" in await answer(bob.link, bob.do(Op.PROMPT, text="quick"))


@PLACES
async def test_two_who_close_for_all_at_once_are_both_answered(place: Place) -> None:
    async with stage(place, Behaviour(late_end=8)) as made:
        ann = await made.racer(Dialect.V1)
        bob = await made.racer(Dialect.V2)
        await at_work(made, ann)
        closes = [(racer, racer.do(Op.CLOSE_ALL)) for racer in (ann, bob)]
        for racer, id in closes:
            assert (await answer(racer.link, id))["result"] == {}
        assert not made.works.open
