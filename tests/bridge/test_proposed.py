"""Readers take both spellings of v2 and go on with the published one (SD-01..05)."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.bridge.proposed import Insertions, as_proposed, normalize
from antiphon.schema import v2
from antiphon.schema.v2.proposed import PromptTaken
from antiphon.schema.wire import Unknown
from tests.bridge.wire import plain, read, update
from tests.requirements.marks import requirement

USAGE = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}


def state(**fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "state_update", "state": "idle", **fields}


@requirement("SD-01")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (state(stopReason="end_turn"), state(stopReason="end_turn")),
        (state(sessionUpdate="state_change", stop_reason="end_turn"), state(stopReason="end_turn")),
        (state(stop_reason="end_turn"), state(stopReason="end_turn")),
        (state(sessionUpdate="state_change", stopReason="end_turn"), state(stopReason="end_turn")),
        (state(stopReason="refusal", stop_reason="end_turn"), state(stopReason="refusal")),
        (
            state(sessionUpdate="state_change", stopReason="refusal", stop_reason="end_turn"),
            state(stopReason="refusal"),
        ),
        (state(sessionUpdate="state_change", usage=USAGE), state(usage=USAGE)),
        (state(sessionUpdate="state_change", usage={}), state()),
        (state(sessionUpdate="state_change", stop_reason=7), state()),
        (state(), state()),
        (
            state(sessionUpdate="state_change", state="_odd", stop_reason="x", more=1),
            state(state="_odd", stopReason="x", more=1),
        ),
        (state(state="_odd", stopReason="x", stop_reason="y"), state(state="_odd", stopReason="x")),
    ],
)
def test_to_03_every_spelling_is_read(given: dict[str, Any], expected: dict[str, Any]) -> None:
    normalized = normalize(read(given))
    assert plain(normalized) == expected
    assert isinstance(normalized, Unknown) is (expected["state"] == "_odd")


@requirement("SD-02")
@pytest.mark.parametrize("reason", [{}, {"stopReason": "refusal"}])
def test_so_is_the_reason_of_a_subagent(reason: dict[str, str]) -> None:
    told = update(
        "subagent_update", sessionId="c", state={"state": "idle", "stop_reason": "refusal", **reason}
    )
    assert plain(normalize(told))["state"] == {"state": "idle", "stopReason": "refusal"}


def test_everything_else_is_left_alone() -> None:
    for other in (update("notice", severity="info", title="t"), update("_odd", stop_reason=1)):
        assert normalize(other) is other
        assert as_proposed(other) is None


@requirement("SD-01")
def test_what_is_written_as_proposed_reads_back_the_same() -> None:
    published = update(
        "state_update", state="idle", stopReason="end_turn", usage=USAGE, background=[], meta={"k": 1}
    )
    written = as_proposed(published)
    assert plain(written)["sessionUpdate"] == "state_change"
    assert normalize(read(plain(written))) == published


TAKEN = PromptTaken()


def named(id: str) -> v2.PromptResponse:
    return v2.PromptResponse(message_id=v2.MessageId(id))


def said(id: str) -> Any:
    return update("user_message_chunk", messageId=id, content={"type": "text", "text": "a"})


@requirement("SD-05")
def test_an_answer_without_an_id_gets_it_from_the_user_message() -> None:
    prompts = Insertions()
    prompts.sent(1)
    assert prompts.answered(1, TAKEN) == []
    assert prompts.update_received(update("state_update", state="running")) == []
    assert prompts.update_received(update("user_message", messageId="m", content=[])) == [(1, named("m"))]
    assert prompts.update_received(said("m")) == []


@requirement("PROMPT-V2-05")
def test_the_user_message_may_come_before_the_answer() -> None:
    prompts = Insertions()
    prompts.sent(1)
    assert prompts.update_received(said("m")) == []
    assert prompts.answered(1, TAKEN) == [(1, named("m"))]


@requirement("PROMPT-V2-32")
def test_prompts_are_inserted_in_their_order() -> None:
    prompts = Insertions()
    for number in (1, 2):
        prompts.sent(number)
        assert prompts.answered(number, TAKEN) == []
    assert prompts.update_received(said("m")) == [(1, named("m"))]
    assert prompts.update_received(said("n")) == [(2, named("n"))]


@requirement("C-01")
def test_an_answer_with_an_id_is_what_it_is_and_takes_its_message() -> None:
    prompts = Insertions()
    prompts.sent(1)
    prompts.sent(2)
    assert prompts.update_received(said("m")) == []
    assert prompts.answered(2, named("m")) == [(2, named("m"))]
    assert prompts.answered(1, TAKEN) == []
    assert prompts.update_received(said("n")) == [(1, named("n"))]


@requirement("SD-05")
def test_a_message_of_before_the_prompt_is_not_its() -> None:
    prompts = Insertions()
    assert prompts.update_received(said("old")) == []
    prompts.sent(1)
    assert prompts.update_received(said("other")) == []
    prompts.refused(1)
    prompts.sent(2)
    assert prompts.answered(2, TAKEN) == []
    assert prompts.update_received(said("old")) == []
    assert prompts.update_received(said("m")) == [(2, named("m"))]
