"""Scenarios about permission requests of v2 agents: what is an approval, and the state while they wait."""

from __future__ import annotations

from typing import Any

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import is_busy, is_idle, state
from antiphon.conformance.agent.v2.work import (
    PERMISSION,
    Work,
    begin_blocked,
    first_option,
    is_output,
    is_tool_call,
    statuses,
)
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("v2-permissions", shares=True)
ODD_ANSWERS: dict[str, dict[str, Any]] = {
    "PERM-V2-06": {"outcome": "selected", "optionId": "antiphon-judge-never-offered"},
    "PERM-V2-07": {"outcome": "_antiphon.judge/unknown"},
    "PERM-V2-08": {"outcome": "cancelled"},
}
"""Outcomes that are no approval, by the requirement that says so."""


async def answer(work: Work, outcome: dict[str, Any]) -> tuple[RecordedFrame, RecordedFrame]:
    """Answer the open question and return the answer and the end of the work."""
    assert work.question is not None
    work.agent.link.on_request(PERMISSION, lambda link, asked: link.answer(asked, {"outcome": outcome}))
    sent = work.agent.link.answer(work.question, {"outcome": outcome})
    return sent, await work.end(after=sent)


async def outcome_of(work: Work, outcome: dict[str, Any]) -> tuple[list[str], tuple[RecordedFrame, ...]]:
    """Answer the question of a turn so. Return the last statuses of its tool calls, and the frames."""
    assert work.question is not None
    sent, end = await answer(work, outcome)
    updates = work.agent.updates(work.session, after=work.prompt)
    last = [each[-1] for each in statuses(updates).values()]
    calls = [frame for frame in updates if is_tool_call(frame) and frame.index > sent.index]
    return sorted(last), (work.question, sent, *calls, end)


@scenarios.add(*ODD_ANSWERS, versions=(2,))
async def only_an_offered_option_approves(case: AgentCase) -> None:
    """An answer that is no approval has the effect of a refusal, not of an approval.

    What approval means is read from the agent itself: the tool calls end in one way after an allowing option
    and in another way after a rejecting one.
    """
    work = await begin_blocked(case)
    assert work.question is not None
    options = work.question.get("params", "options")
    by_kind = {  # the first of its kind: an agent may remember the answer to another
        str(option.get("kind")).partition("_")[0]: option.get("optionId")
        for option in reversed(options if isinstance(options, list) else [])
        if isinstance(option, dict)
    }
    case.decide.need("allow" in by_kind and "reject" in by_kind, "the options do not both allow and reject")
    allowed, _ = await outcome_of(work, {"outcome": "selected", "optionId": by_kind["allow"]})
    reject = {"outcome": "selected", "optionId": by_kind["reject"]}
    rejected, _ = await outcome_of(await begin_blocked(case, work.agent), reject)
    case.decide.need(allowed != rejected, "approval and refusal look the same in the tool calls of the agent")
    for requirement, outcome in ODD_ANSWERS.items():
        odd = {**outcome, "optionId": by_kind["allow"]} if requirement == "PERM-V2-07" else outcome
        found, frames = await outcome_of(await begin_blocked(case, work.agent), odd)
        case.decide.check(
            requirement, found != allowed,
            f"expected the outcome {odd} to be no approval, but the tool calls ended as {', '.join(found)}",
            *frames,
        )  # fmt: skip


@scenarios.add("PERM-V2-11", "PROMPT-V2-24", versions=(2,))
async def a_question_that_blocks_the_work_shows_in_the_state(case: AgentCase) -> None:
    """The state is `requires_action` while a permission blocks the work, and `running` when it goes on."""
    work = await begin_blocked(case)
    assert work.question is not None
    for _ in range(2):  # The state may follow the question.
        await work.agent.link.barrier()
    before = work.agent.updates(work.session, after=work.prompt)
    states = [frame for frame in before if state(frame) is not None]
    blocked = bool(states) and state(states[-1]) == "requires_action"
    progress = any(is_output(frame) and frame.index > work.question.index for frame in before)
    case.decide.need(blocked or not progress, "other work goes on while the permission request is open")
    case.decide.check(
        "PERM-V2-11", blocked, "expected `requires_action` while a permission request blocks the work",
        work.prompt, *states, work.question,
    )  # fmt: skip
    case.decide.need(blocked, "the agent did not report `requires_action`")
    sent, end = await answer(work, {"outcome": "selected", "optionId": first_option(work.question)})
    silent = []
    for frame in work.agent.updates(work.session, after=sent):
        if is_busy(frame) or is_idle(frame):
            break
        if is_output(frame) and not is_tool_call(frame):
            silent.append(frame)
    case.decide.check(
        "PROMPT-V2-24", not silent, "expected `running` before the work goes on after `requires_action`",
        states[-1], sent, *silent, end,
    )  # fmt: skip
