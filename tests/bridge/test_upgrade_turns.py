"""The turn of v1 agents, as states (24.3): it opens with a prompt and ends with the last response."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.errors import ErrorObject
from antiphon.schema import v1
from antiphon.schema.v1.optins import PromptAccepted
from antiphon.schema.version import OptIns
from tests.bridge.wire import Up, text, v1_update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"
USAGE = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
BOOM = ErrorObject(-32603, "Boom", {"k": 1})
SAID = v1_update("agent_message_chunk", content=text("a"))


def state(name: str, **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "state_update", "state": name, **fields}


def waiting(*questions: str) -> dict[str, Any]:
    return state("requires_action", _meta={"antiphon": {"waitingFor": list(questions)}})


def call(id: str, status: str) -> Any:
    return v1_update("tool_call_update", toolCallId=id, status=status)


def states(sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in sent if each["sessionUpdate"] == "state_update"]


def failed(up: Up, request: Any, error: ErrorObject = BOOM) -> list[dict[str, Any]]:
    return up.told(up.machine.failed(request, error))


def test_24_3_a_prompt_is_a_user_message_and_running_and_its_response_idle() -> None:
    up = Up()
    assert up.prompted(1, "hello") == [
        {"sessionUpdate": "user_message", "messageId": "b:user:1", "content": [text("hello")]},
        state("running"),
    ]
    up.feed(SAID)
    assert up.responded(1, usage=USAGE, _meta={"k": 1}) == [
        state("idle", stopReason="end_turn", usage=USAGE, _meta={"k": 1})
    ]
    assert up.lost == []


def test_24_3_the_message_of_a_prompt_may_be_given_its_id() -> None:
    message, _ = Up().prompted(1, message_id="m", meta={"k": 1})
    assert (message["messageId"], message["_meta"]) == ("m", {"k": 1})


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
def test_24_3_stop_reasons_are_the_same(reason: str) -> None:
    up = Up()
    up.prompted(1)
    assert up.responded(1, reason) == [state("idle", stopReason=reason)]


def test_inv_4_a_turn_ends_once() -> None:
    up = Up()
    up.prompted(1)
    up.responded(1)
    assert up.responded(1) == failed(up, 1) == up.told(up.machine.interrupted()) == []
    assert up.responded("never") == []


@requirement("PROMPT-V2-17")
def test_an_error_ends_the_turn_and_the_insertion_stands() -> None:
    up = Up()
    up.prompted(1)
    error = {"code": -32603, "message": "Boom", "data": {"k": 1}}
    assert failed(up, 1) == [state("idle", stopReason="error", error=error)]


@requirement("RPC-23")
def test_an_error_code_of_any_size_is_survived() -> None:
    up = Up()
    up.prompted(1)
    (idle,) = failed(up, 1, ErrorObject(2**40, "Odd"))
    assert idle["error"] == {"code": -32603, "message": "Odd"}
    assert idle["_meta"] == {ORIGINAL: {"code": 2**40}}
    assert up.lost == ["error_code"]


@requirement("PROMPT-V2-35")
def test_a_cancelled_prompt_is_cancelled_however_it_ends() -> None:
    up = Up()
    up.prompted(1)
    up.machine.cancelled()
    (idle,) = failed(up, 1)
    assert idle["stopReason"] == "cancelled"
    assert idle["_meta"][ORIGINAL]["error"]["message"] == "Boom"
    assert up.lost == ["cancel_failed"]
    up.prompted(2)
    assert failed(up, 2)[0]["stopReason"] == "error"


@requirement("PROMPT-V2-34")
def test_a_cancel_does_not_touch_a_prompt_sent_after_it() -> None:
    up = Up()
    up.prompted(1)
    up.machine.cancelled()
    up.prompted(2)
    up.responded(1, "cancelled")
    assert failed(up, 2)[0]["stopReason"] == "error"


@requirement("RPC-31")
def test_a_prompt_answered_as_cancelled_is_cancelled() -> None:
    up = Up()
    up.prompted(1)
    assert failed(up, 1, ErrorObject(-32800, "Request cancelled")) == [state("idle", stopReason="cancelled")]
    assert up.lost == []


def test_24_3_with_several_prompts_the_turn_ends_with_the_last() -> None:
    up = Up()
    assert states(up.prompted(1)) == [state("running")]
    assert states(up.prompted("1")) == []  # PROMPT-V2-22; the ids 1 and "1" are two
    assert states(up.prompted(2)) == []
    assert failed(up, 2) == up.responded(1, "max_tokens", usage=USAGE) == []
    assert up.responded("1", _meta={"k": 1}) == [
        state(
            "idle",
            stopReason="end_turn",
            _meta={
                "k": 1,
                ORIGINAL: {
                    "prompts": [
                        {
                            "messageId": "b:user:3",
                            "stopReason": "error",
                            "error": {"code": -32603, "message": "Boom", "data": {"k": 1}},
                        },
                        {"messageId": "b:user:1", "stopReason": "max_tokens", "usage": USAGE},
                    ]
                },
            },
        )
    ]
    assert up.lost == ["prompt_end", "prompt_end"]
    up.prompted(4)
    assert up.responded(4) == [state("idle", stopReason="end_turn")]


def test_two_originals_travel_together() -> None:
    up = Up()
    up.prompted(1)
    up.prompted(2)
    up.machine.cancelled()
    up.responded(1, "cancelled")
    (idle,) = failed(up, 2)
    assert idle["_meta"][ORIGINAL].keys() == {"error", "prompts"}


def test_24_3_updates_outside_a_turn_leave_the_state_alone() -> None:
    up = Up()
    work = [SAID, call("t", "in_progress"), v1_update("plan", entries=[])]
    assert states(up.feed(*work)) == []
    up.prompted(1)
    up.responded(1)
    assert states(up.feed(*work)) == []  # late ones belong to the session


def test_inv_4_a_turn_without_its_agent_was_interrupted() -> None:
    up = Up()
    up.prompted(1)
    (idle,) = up.told(up.machine.interrupted())
    assert (idle["stopReason"], idle["error"]["data"]) == ("error", {"reason": "interrupted"})
    assert up.responded(1) == []


def test_24_3_a_question_blocks_the_turn_until_it_is_answered() -> None:
    up = Up()
    up.prompted(1)
    assert up.told(up.machine.asked("q", "t")) == [waiting("q")]
    assert up.feed(call("t", "pending")) == [
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "pending"}
    ]
    assert up.told(up.machine.answered("q")) == [state("running")]
    assert up.told(up.machine.answered("q")) == []


@requirement("PROMPT-V2-25")
def test_one_of_several_answers_does_not_mean_running() -> None:
    up = Up()
    up.prompted(1)
    up.machine.asked("p", "t")
    assert up.told(up.machine.asked("q", "u")) == []
    assert up.told(up.machine.answered("p")) == []
    assert up.told(up.machine.answered("q")) == [state("running")]


@requirement("PROMPT-V2-25")
def test_a_question_blocks_nothing_while_another_call_runs() -> None:
    up = Up()
    up.prompted(1)
    up.feed(call("other", "in_progress"), call("t", "in_progress"))
    assert up.told(up.machine.asked("q", "t")) == []
    assert states(up.feed(call("other", "completed"))) == [waiting("q")]
    assert states(up.feed(call("third", "in_progress"))) == [state("running")]
    assert states(up.feed(call("third", "failed"))) == [waiting("q")]
    assert states(up.responded(1)) == [state("idle", stopReason="end_turn")]
    assert up.told(up.machine.answered("q")) == []  # PROMPT-V2-26


@requirement("PROMPT-V2-25")
def test_work_of_an_earlier_turn_is_none_of_this_one() -> None:
    up = Up()
    up.prompted(1)
    up.feed(call("background", "in_progress"))
    up.responded(1)
    up.feed(call("background", "in_progress"))
    up.prompted(2)
    assert up.told(up.machine.asked("q", "t")) == [waiting("q")]


@requirement("PROMPT-V2-26")
def test_a_question_that_was_never_answered_ends_with_its_turn() -> None:
    up = Up()
    up.prompted(1)
    up.machine.asked("q", "t")
    up.responded(1)
    up.prompted(2)
    assert states(up.feed(call("t", "pending"))) == []


@requirement("PROMPT-V2-25")
def test_a_question_outside_a_turn_changes_no_state() -> None:
    up = Up()
    assert up.told(up.machine.asked("q", "t")) == up.told(up.machine.answered("q")) == []


def complete(**fields: Any) -> Any:
    return v1_update("turn_complete", stopReason="end_turn", **fields)


@requirement("TC-08")
@pytest.mark.parametrize("request_id", [2, "2"])
def test_the_response_follows_the_turn_s_completion_and_ends_it(request_id: Any) -> None:
    up = Up(OptIns(turn_complete=True))
    up.prompted(request_id)
    assert up.feed(complete(promptRequestId="2")) == []
    assert up.responded(request_id) == [state("idle", stopReason="end_turn")]
    assert up.lost == []


@requirement("TC-08")
def test_a_completion_after_the_response_ends_nothing_more() -> None:
    up = Up(OptIns(turn_complete=True))
    up.prompted(2)
    up.responded(2)
    for _ in range(2):
        assert up.feed(complete(promptRequestId="2")) == []
    up.prompted(3)
    assert up.feed(complete(promptRequestId="2")) == []
    assert up.responded(3) == [state("idle", stopReason="end_turn")]
    assert up.lost == []


@requirement("TC-01")
def test_the_end_of_another_s_turn_is_told_unless_ours_is_open() -> None:
    up = Up(OptIns(turn_complete=True))
    assert up.feed(complete(meta={"k": 1})) == [state("idle", stopReason="end_turn", _meta={"k": 1})]
    up.prompted(1)
    assert up.feed(complete()) == []
    assert up.lost == ["other_turn"]


@requirement("TC-09")
@pytest.mark.parametrize("reason", [{}, {"stopReason": "error"}])
def test_a_completion_with_an_error_ends_another_s_turn_by_it(reason: Any) -> None:
    up = Up(OptIns(turn_complete=True))
    error = {"code": -32001, "message": "no\nmore", "data": {"k": 1}}
    told = {"code": -32001, "message": "no more", "data": {"k": 1}}
    assert up.feed(v1_update("turn_complete", error=error, **reason)) == [
        state("idle", stopReason="error", error=told)
    ]
    assert up.feed(v1_update("turn_complete")) == [state("idle")]


def test_the_future_flag_leaves_message_and_state_to_the_agent() -> None:
    up = Up(OptIns(prompt_lifecycle=True))
    assert up.prompted(1) == []
    accepted = PromptAccepted(message_id="m")  # type: ignore[arg-type]
    assert up.told(up.machine.responded(1, accepted)) == []
    background = [{"type": "terminal", "terminalId": "x"}, {"type": "_odd", "x": 1}]
    assert up.feed(
        v1_update("user_message", messageId="m", content=[text("go")]),
        v1_update("state_update", state="running"),
    )[1:] == [state("running")]
    assert up.told(up.machine.asked("q", "t")) == []
    idle = {"stopReason": "error", "error": {"code": 7, "message": "x"}, "usage": USAGE}
    (lifted,) = up.machine.update(v1_update("state_update", state="idle", background=background, **idle))
    assert [*map(dict, lifted.background[1:])] == background[1:]  # type: ignore[union-attr]
    assert up.feed(v1_update("state_update", state="idle", **idle)) == [state("idle", **idle)]
    assert up.prompted(2) == failed(up, 2) == []  # PROMPT-V2-55
    assert up.lost == []


@requirement("SD-02")
@pytest.mark.parametrize("keys", [{}, {"stopReason": "refusal"}])
def test_either_key_of_the_reason_is_read(keys: dict[str, str]) -> None:
    up = Up(OptIns(prompt_lifecycle=True))
    told = v1_update("state_update", state="idle", **{"stop_reason": "refusal", **keys})
    assert up.feed(told) == [state("idle", stopReason="refusal")]


@requirement("SESS-21")
def test_a_session_opened_again_tells_its_state() -> None:
    up = Up()
    up.machine.reopening()
    _, before = up.machine.reopened(v1.LoadSessionResponse())
    assert up.told(before) == [state("idle")]
    up.prompted(1)
    up.machine.reopening()
    _, before = up.machine.reopened(v1.ResumeSessionResponse())
    assert up.told(before) == [state("running")]


def test_inv_4_a_turn_that_was_cancelled_ends_as_that_without_its_agent() -> None:
    up = Up()
    up.prompted(1)
    up.machine.cancelled()
    (idle,) = up.told(up.machine.interrupted())
    assert (idle["stopReason"], idle.get("error")) == ("cancelled", None)
    up.prompted(2)
    up.machine.cancelled()
    up.prompted(3)  # this one was not cancelled, and is cut short
    (idle,) = up.told(up.machine.interrupted())
    assert idle["stopReason"] == "error"
