"""The life of a turn: its table decides every pair, and a turn ends once."""

from __future__ import annotations

import itertools

import pytest

from antiphon.agent.open_turn import LIFE, OpenTurn, TurnEffect, TurnInput, TurnStage
from antiphon.agent.scope import Scope

LEFT = {stage for stage in TurnStage if stage is not TurnStage.ENDED}


def test_every_pair_of_stage_and_input_is_decided() -> None:
    assert set(LIFE) == set(itertools.product(TurnStage, TurnInput))


def test_the_end_is_reported_from_every_stage_and_only_once() -> None:
    assert {stage for stage in TurnStage if LIFE[stage, TurnInput.END][1] is TurnEffect.REPORT_END} == LEFT
    assert all(LIFE[TurnStage.ENDED, input] == (TurnStage.ENDED, TurnEffect.NOTHING) for input in TurnInput)
    ends = {pair for pair, (stage, _) in LIFE.items() if stage is TurnStage.ENDED}
    assert ends == {(stage, TurnInput.END) for stage in LEFT} | {
        (TurnStage.ENDED, input) for input in TurnInput
    }


def test_a_handler_runs_only_in_a_turn_that_was_just_taken() -> None:
    assert [pair for pair, (_, effect) in LIFE.items() if effect is TurnEffect.RUN] == [
        (TurnStage.TAKEN, TurnInput.BEGIN)
    ]


def test_work_is_cancelled_once_and_only_while_it_runs() -> None:
    cancels = {pair for pair, (_, effect) in LIFE.items() if effect is TurnEffect.CANCEL_WORK}
    assert cancels == {(TurnStage.RUNNING, TurnInput.CANCEL), (TurnStage.RUNNING, TurnInput.INTERRUPT)}


@pytest.mark.parametrize("inputs", list(itertools.permutations(TurnInput)))
def test_a_turn_ends_once_whatever_happens_to_it(inputs: tuple[TurnInput, ...]) -> None:
    turn = OpenTurn()
    turn.work = Scope()
    effects = [turn.step(input) for input in (*inputs, *inputs)]
    assert effects.count(TurnEffect.REPORT_END) == 1
    assert effects.count(TurnEffect.CANCEL_WORK) <= 1
    assert turn.ended.is_set()
