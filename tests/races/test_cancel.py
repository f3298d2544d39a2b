"""A cancelled v1 prompt is a result, whoever cancelled it and whenever; the second cancel changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.hub import Hub
from tests.races.agents import turns
from tests.races.clients import Racer
from tests.races.schedule import Agent as Behaviour
from tests.races.schedule import Dialect, Op, Place
from tests.races.stage import DIALECTS, PLACES, V1, answer, completed, ends, heard, stage, staged, texts

HUBS = pytest.mark.parametrize("place", [Place.HUB_V1, Place.HUB_V2])


def check_cancelled(racer: Racer, id: str | None, given: dict[str, Any]) -> None:
    assert given.get("result", {}).get("stopReason") == "cancelled", given
    wanted = ["cancelled"] if racer.dialect is Dialect.V1_COMPLETE else []
    assert completed(racer.link, id) == wanted


@PLACES
@V1
@pytest.mark.parametrize("by_another", [False, True], ids=["own", "another's"])
async def test_a_cancel_right_behind_a_v1_prompt_is_a_result(
    place: Place, dialect: Dialect, by_another: bool
) -> None:
    """Also where the prompt waits, and where the cancel comes from another client."""
    async with stage(place, Behaviour(late_accept=4, late_end=4)) as made:
        ann = await made.racer(dialect)
        bob = await made.racer(Dialect.V2)
        for gap in range(0, 40, 3):
            ids = [ann.do(Op.PROMPT), ann.do(Op.PROMPT)]
            await turns(gap)
            if by_another:
                await turns(5)  # both have come: what comes later is not meant
            (bob if by_another else ann).do(Op.CANCEL)
            for id in ids:
                check_cancelled(ann, id, await answer(ann.link, id))


@PLACES
@DIALECTS
async def test_repeated_cancels_change_nothing(place: Place, dialect: Dialect) -> None:
    async with stage(place, Behaviour(late_end=20)) as made:
        ann = await made.racer(dialect)
        bob = await made.racer(Dialect.V2)
        id = ann.do(Op.PROMPT)
        await heard(bob.link, "begun")
        for gap in (0, 1, 3, 5, 0):
            for racer in (ann, bob):
                racer.do(Op.CANCEL)
                await turns(gap)
        await bob.link.until(lambda: ends(bob.link))
        assert (ends(bob.link), made.works.cut_short) == (["cancelled"], 0)
        assert texts(bob.link) == ["begun", "late"]
        if dialect.answers_at_the_end:
            check_cancelled(ann, id, await answer(ann.link, id))
        assert (texts(ann.link), len(ann.link.answers(id or ""))) == (["begun", "late"], 1)


@PLACES
@V1
async def test_a_prompt_that_is_taken_back_twice_ends_as_cancelled(place: Place, dialect: Dialect) -> None:
    async with stage(place, Behaviour(late_end=20)) as made:
        ann = await made.racer(dialect)
        id = ann.do(Op.PROMPT)
        await heard(ann.link, "begun")
        for _ in range(3):
            ann.do(Op.TAKE_BACK)
            await turns(4)
        check_cancelled(ann, id, await answer(ann.link, id))
        assert (texts(ann.link), made.works.cut_short) == (["begun", "late"], 0)


@DIALECTS
@pytest.mark.parametrize("refuses", [-32800, -32603])
async def test_a_prompt_that_a_v2_agent_has_not_taken_is_cancelled(dialect: Dialect, refuses: int) -> None:
    async with stage(Place.HUB_V2, Behaviour(late_accept=10_000, refuses=refuses)) as made:
        ann = await made.racer(dialect)
        id = ann.do(Op.PROMPT)
        await turns(60)  # it is sent
        ann.do(Op.CANCEL)
        given = await answer(ann.link, id)
        if dialect.answers_at_the_end:
            check_cancelled(ann, id, given)
        else:
            assert given["error"]["code"] == -32800  # PROMPT-V2-34
        # What interrupts is not held up by a cancel that has found nothing open.
        await answer(ann.link, ann.do(Op.CLOSE))


@HUBS
@DIALECTS
async def test_a_turn_whose_agent_dies_of_the_cancel_ends_as_cancelled(
    place: Place, dialect: Dialect
) -> None:
    async with stage(place, Behaviour(dies=True)) as made:
        ann = await made.racer(dialect)
        bob = await made.racer(Dialect.V2)
        id = ann.do(Op.PROMPT)
        await heard(bob.link, "begun")
        ann.do(Op.CANCEL)
        await bob.link.until(lambda: ends(bob.link))
        assert ends(bob.link) == ["cancelled"]
        if dialect.answers_at_the_end:
            check_cancelled(ann, id, await answer(ann.link, id))
        made.works.finish.set()
        assert "result" in await answer(bob.link, bob.do(Op.PROMPT, text="quick"))


@DIALECTS
async def test_a_v2_agent_that_dies_of_the_cancel_of_what_it_has_not_taken(dialect: Dialect) -> None:
    async with stage(Place.HUB_V2, Behaviour(dies=True, late_accept=10_000)) as made:
        ann = await made.racer(dialect)
        id = ann.do(Op.PROMPT)
        await turns(60)
        ann.do(Op.CANCEL)
        given = await answer(ann.link, id)
        if dialect.answers_at_the_end:
            check_cancelled(ann, id, given)
        else:
            assert given["error"]["code"] == -32800


@DIALECTS
async def test_a_v2_agent_that_has_ignored_a_cancel_is_told_again(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was idle when it read the cancel, and took the prompt behind it."""
    monkeypatch.setattr("antiphon.hub.worker.canceller.CANCEL_AGAIN", 0.01)
    async with stage(Place.HUB_V2, Behaviour(late_accept=60, deaf=True)) as made:
        ann = await made.racer(dialect)
        bob = await made.racer(Dialect.V2)
        id = ann.do(Op.PROMPT)
        await turns(30)
        ann.do(Op.CANCEL)
        await bob.link.until(lambda: ends(bob.link))
        assert (ends(bob.link), texts(bob.link)) == (["cancelled"], ["begun", "late"])
        if dialect.answers_at_the_end:
            check_cancelled(ann, id, await answer(ann.link, id))


# --- turns that the agent opens by itself ------------------------------------------------------------


class Opener:
    """An agent that opens a turn of its own behind a prompt, and goes on behind that turn."""

    def __init__(self, *, swift: bool = False) -> None:
        self.agent = Agent("opener")
        self.log: list[str] = []
        self.over = asyncio.Event()
        self._swift = swift
        self.agent.on_prompt(self._answer)

    async def _answer(self, turn: AgentTurn) -> None:
        turn.session.soon(self._later(turn.session))

    async def _later(self, session: AgentSession) -> None:
        await session.idle()
        async with session.turn() as turn:
            await turn.say("by itself")
            if self._swift:
                session._worker.cancel()  # the block ends before its task can be told
            else:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    await turns(20)
                    await turn.say("late")
                    raise
        await turns(20)
        task = asyncio.current_task()
        assert task is not None
        self.log.append(f"goes on, {task.cancelling()} cancels left")
        self.over.set()


@DIALECTS
@pytest.mark.parametrize("behind", [None, 1, 2], ids=["agent", "hub-v1", "hub-v2"])
async def test_a_turn_of_the_agents_own_is_cancelled_and_what_opened_it_goes_on(
    dialect: Dialect, behind: int | None
) -> None:
    opener = Opener()
    made_of = opener.agent if behind is None else Hub({"opener": opener.agent}, version=behind)
    async with staged(made_of) as made:
        ann = await made.racer(dialect)
        assert "result" in await answer(ann.link, ann.do(Op.PROMPT))
        await heard(ann.link, "by itself")
        for gap in (1, 3, 0):
            ann.do(Op.CANCEL)
            await turns(gap)
        await heard(ann.link, "late")
        await opener.over.wait()
        assert opener.log == ["goes on, 0 cancels left"]


async def test_a_cancel_that_comes_as_the_block_ends_does_not_reach_what_follows() -> None:
    opener = Opener(swift=True)
    async with staged(opener.agent) as made:
        ann = await made.racer(Dialect.V2)
        ann.do(Op.PROMPT)
        await opener.over.wait()
        assert opener.log == ["goes on, 0 cancels left"]
        await ann.link.until(lambda: ends(ann.link) == ["end_turn", "cancelled"])


@HUBS
@DIALECTS
async def test_an_agent_that_works_outside_of_a_turn_receives_the_cancel(
    place: Place, dialect: Dialect
) -> None:
    async with stage(place) as made:
        ann = await made.racer(dialect)
        ann.do(Op.CANCEL)
        assert made.hand is not None
        await made.hand.cancelled.wait()


# --- the end of the process --------------------------------------------------------------------------


async def test_the_end_of_the_agent_does_not_cut_short_what_a_cancel_began() -> None:
    async with stage(Place.AGENT, Behaviour(late_end=50)) as made:
        ann = await made.racer(Dialect.V2)
        ann.do(Op.PROMPT)
        await heard(ann.link, "begun")
        ann.do(Op.CANCEL)
        await turns(5)
    assert made.works.cut_short == 0
