"""One session in v2's words, whichever version its agent speaks."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.client import TurnEnd
from antiphon.client.protocol.dialect import (
    CompletionReceived,
    OtherTurnEnded,
    PromptEnded,
    PromptNamed,
    is_acceptance,
)
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.protocol.dialect_v2 import AgentDialectV2
from antiphon.errors import ErrorObject
from antiphon.schema import v1, v2
from antiphon.schema.v1 import optins
from antiphon.schema.v2.proposed import PromptTaken, StateChange
from antiphon.wire import Agreement, Dialect, OptIns

HI: list[v2.ContentBlock] = [v2.TextContent(text="hi")]
END = v1.PromptResponse(stop_reason=v1.StopReason.END_TURN)
NO = v2.Error(code=v2.ErrorCode.INTERNAL_ERROR, message="no")
NO_V1 = v1.Error(code=v1.ErrorCode.INTERNAL_ERROR, message="no")
PROMISES = v1.AgentCapabilities(session_capabilities=v1.SessionCapabilities(turn_complete={}))


def spoken(able: v1.AgentCapabilities | None = None, **opted: bool) -> AgentDialectV1:
    return AgentDialectV1(Agreement(1, Dialect.V1, OptIns(**opted)), able or v1.AgentCapabilities())


def complete(id: str | None) -> optins.TurnComplete:
    named: dict[str, Any] = {} if id is None else {"prompt_request_id": id}
    return optins.TurnComplete(stop_reason=v1.IdleStopReason.END_TURN, **named)


def states(news: Any) -> list[Any]:
    return [
        str(each.state) if isinstance(each, v2.SessionStateUpdate) else type(each).__name__ for each in news
    ]


def test_a_v1_prompt_is_told_as_a_message_and_a_turn_that_its_answer_ends() -> None:
    v1_agent = spoken()
    assert states(v1_agent.prompt_sent(7, HI)) == ["PromptNamed", "UserMessage", "running"]
    assert states(v1_agent.prompt_answered(7, END)) == ["idle"]


@pytest.mark.parametrize("agreed", [{"turn_complete": True}, {"able": PROMISES}])
def test_the_answer_waits_for_the_turn_complete_of_its_own_prompt(agreed: Any) -> None:
    """By our own opt-in, or by the capability alone (TC-05)."""
    v1_agent = spoken(**agreed)
    v1_agent.prompt_sent(7, HI)
    assert list(v1_agent.prompt_answered(7, END)) == []
    assert list(v1_agent.read_update(complete("8"))) == []
    assert states(v1_agent.read_update(complete("7"))) == ["idle"]


def test_a_turn_complete_before_the_answer_lets_the_answer_end_the_turn() -> None:
    v1_agent = spoken(turn_complete=True)
    v1_agent.prompt_sent(7, HI)
    assert list(v1_agent.read_update(complete("7"))) == [CompletionReceived(7)]
    assert states(v1_agent.prompt_answered(7, END)) == ["idle"]


def test_a_turn_complete_that_nobody_promised_holds_nothing_up() -> None:
    v1_agent = spoken()
    v1_agent.prompt_sent(7, HI)
    assert states(v1_agent.prompt_answered(7, END)) == ["idle"]
    for _ in range(2):
        assert list(v1_agent.read_update(complete("7"))) == []  # it says nothing new


def test_an_error_ends_a_turn_without_a_turn_complete() -> None:
    v1_agent = spoken(turn_complete=True)
    v1_agent.prompt_sent(7, HI)
    assert states(v1_agent.prompt_failed(7, ErrorObject(-32603, "no"))) == ["idle"]


@pytest.mark.parametrize("complete_by", [{"stop_reason": v1.IdleStopReason.END_TURN}, {"error": NO_V1}])
def test_an_error_response_ends_the_turn_whatever_its_turn_complete_said(complete_by: Any) -> None:
    v1_agent = spoken(turn_complete=True)
    v1_agent.prompt_sent(7, HI)
    v1_agent.read_update(optins.TurnComplete(prompt_request_id="7", **complete_by))
    (idle,) = v1_agent.prompt_failed(7, ErrorObject(-32603, "no"))
    assert TurnEnd.from_state(idle) == TurnEnd(stop_reason=v2.StopReason.ERROR, error=NO)
    assert list(v1_agent.read_update(optins.TurnComplete(prompt_request_id="7", **complete_by))) == []


@pytest.mark.parametrize(
    ("complete_by", "end"),
    [
        ({"stop_reason": v1.IdleStopReason.REFUSAL}, TurnEnd(stop_reason=v2.StopReason.REFUSAL)),
        ({"error": NO_V1}, TurnEnd(stop_reason=v2.StopReason.ERROR, error=NO)),
        ({}, TurnEnd(stop_reason=v2.StopReason.END_TURN)),
    ],
)
def test_a_turn_complete_without_a_response_ends_the_turn(complete_by: Any, end: TurnEnd) -> None:
    v1_agent = spoken(turn_complete=True)
    v1_agent.prompt_sent(7, HI)
    assert v1_agent.read_update(optins.TurnComplete(prompt_request_id="7", **complete_by)) == [
        CompletionReceived(7)
    ]
    (idle,) = v1_agent.stop_waiting(7)
    assert TurnEnd.from_state(idle) == end
    v1_agent.prompt_sent(8, HI)
    assert list(v1_agent.prompt_answered(8, END)) == [], "turn_complete is still the barrier"


def test_the_failed_turn_of_another_is_told_while_ours_waits() -> None:
    v1_agent = spoken(turn_complete=True)
    v1_agent.prompt_sent(7, HI)
    told = v1_agent.read_update(optins.TurnComplete(error=NO_V1))
    assert told[-1:] == [OtherTurnEnded(TurnEnd(stop_reason=v2.StopReason.ERROR, error=NO))]


def test_a_broken_promise_is_not_waited_for_again() -> None:
    v1_agent = spoken(turn_complete=True)
    v1_agent.prompt_sent(7, HI)
    assert list(v1_agent.prompt_answered(7, END)) == []
    assert states(v1_agent.stop_waiting(7)) == ["idle"]
    v1_agent.prompt_sent(8, HI)
    assert states(v1_agent.prompt_answered(8, END)) == ["idle"]


def test_of_several_prompts_each_but_the_last_ends_by_itself() -> None:
    v1_agent = spoken()
    for call in (1, 2, 3):
        v1_agent.prompt_sent(call, HI)
    usage = v1.Usage(total_tokens=3, input_tokens=1, output_tokens=2)
    answer = v1.PromptResponse(stop_reason=v1.StopReason.MAX_TOKENS, usage=usage)
    lifted = v2.Usage(total_tokens=3, input_tokens=1, output_tokens=2)
    reason = v2.StopReason.MAX_TOKENS
    assert list(v1_agent.prompt_answered(2, answer)) == [
        PromptEnded(2, TurnEnd(stop_reason=reason, usage=lifted))
    ]
    v1_agent.cancel_sent()
    (cancelled,) = v1_agent.prompt_failed(1, ErrorObject(-32603, "aborted"))
    assert cancelled == PromptEnded(1, TurnEnd(stop_reason=v2.StopReason.CANCELLED))
    assert states(v1_agent.prompt_answered(3, END)) == ["idle"]


def test_the_end_of_another_turn_is_told_while_ours_waits() -> None:
    v1_agent = spoken(turn_complete=True)
    v1_agent.prompt_sent(7, HI)
    assert v1_agent.read_update(complete(None))[-1:] == [
        OtherTurnEnded(TurnEnd(stop_reason=v2.StopReason.END_TURN))
    ]


def test_the_future_flag_is_v2s_lifecycle_in_v1s_words() -> None:
    v1_agent = spoken(prompt_lifecycle=True, turn_complete=True)
    assert (v1_agent.answers_at_end, v1_agent.reports_every_end) == (False, True)
    assert v1_agent.prompt_sent(7, HI) == []
    accepted = optins.PromptAccepted(message_id=v1.MessageId("u1"))
    assert is_acceptance(accepted)
    assert list(v1_agent.prompt_answered(7, accepted)) == [PromptNamed(7, "u1")]


def test_the_proposed_words_are_read_as_the_published_ones() -> None:
    v2_agent = AgentDialectV2()
    v2_agent.prompt_sent(7, HI)
    assert is_acceptance(PromptTaken())
    assert list(v2_agent.prompt_answered(7, PromptTaken())) == []
    shown = v2.UserMessage(message_id=v2.MessageId("u1"), content=HI)
    assert list(v2_agent.read_update(shown)) == [PromptNamed(7, "u1"), shown]
    change = StateChange(state=v2.State.IDLE, stop_reason=v2.StopReason.REFUSAL)
    assert list(v2_agent.read_update(change)) == [
        v2.SessionStateUpdate(state=v2.State.IDLE, stop_reason=v2.StopReason.REFUSAL)
    ]
