"""The tables of the prompt queue are total."""

from __future__ import annotations

from itertools import product

import pytest

from antiphon.engine.prompt_states import ACTIONS, TAKING, Action, PromptState, Refusal, When
from antiphon.engine.turn import TurnState
from antiphon.errors import ErrorObject
from antiphon.schema.antiphon.prompts import Delivery


def test_every_action_on_every_state_is_decided() -> None:
    assert set(ACTIONS) == set(product(PromptState, Action))


def test_every_delivery_in_every_state_of_the_turn_is_decided() -> None:
    assert set(TAKING) == set(product(TurnState, Delivery))


def test_nothing_leads_out_of_a_settled_state() -> None:
    settled = {PromptState.ACCEPTED, PromptState.WITHDRAWN, PromptState.REJECTED}
    assert not any(isinstance(ACTIONS[state, action], PromptState) for state in settled for action in Action)


def test_nothing_waits_in_an_idle_session_and_only_interruption_cancels() -> None:
    assert {TAKING[TurnState.IDLE, delivery] for delivery in Delivery} == {When.NOW}
    cancelling = {pair[1] for pair, when in TAKING.items() if when is When.AFTER_CANCEL}
    assert cancelling == {Delivery.INTERRUPT}


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (
            Refusal.ALREADY_DELIVERED,
            ErrorObject(-32010, "Inject precondition failed", {"reason": "already_delivered"}),
        ),
        (
            Refusal.WITH_AGENT,
            ErrorObject(-32010, "Inject precondition failed", {"reason": "already_delivered"}),
        ),
        (
            Refusal.NO_RUNNING_TURN,
            ErrorObject(-32010, "Inject precondition failed", {"reason": "no_running_turn"}),
        ),
        (
            Refusal.UNKNOWN_MESSAGE_ID,
            ErrorObject(-32002, "Resource not found", {"reason": "unknown_message_id"}),
        ),
        (Refusal.EMPTY, ErrorObject(-32602, "Invalid params: a prompt needs at least one block")),
    ],
)
def test_a_refusal_is_told_as_the_draft_has_it(refusal: Refusal, error: ErrorObject) -> None:
    assert refusal.to_wire() == error
