"""Scenarios about `session/cancel` in v2, at each moment of a turn."""

from __future__ import annotations

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import is_busy, is_idle, stop_reason
from antiphon.conformance.agent.v2.work import (
    CANCELLED,
    REQUEST_CANCELLED,
    Work,
    background,
    begin_blocked,
    begin_slow,
    entity,
    first_option,
    inserted_id,
    is_output,
    is_tool_call,
    run_turn,
)
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame, Role, same_id
from antiphon.conformance.scenario import Collection

scenarios = Collection("v2-cancel", shares=True)


async def decide_end(case: AgentCase, work: Work, cancel: RecordedFrame) -> RecordedFrame:
    """Wait for the end of cancelled work, and decide what it has to say and what may follow.

    Work that waits for the client cannot have ended by itself. Other work may have, until the agent has read
    the cancel; the barrier shows when that was.
    """
    read = await work.agent.link.barrier()
    try:
        end = await work.end(after=cancel)
    except NotSeen as unseen:
        case.decide.check(
            "PROMPT-V2-35", False, f"expected `idle` after a cancel: {unseen}",
            work.prompt, cancel, *work.agent.link.since(cancel)[:6],
        )  # fmt: skip
        raise
    reason = stop_reason(end)
    by_itself = reason != "cancelled" and work.question is None and end.index < read.index
    case.decide.need(
        not by_itself, "the work may have ended by itself before the cancel; see --prompt slow=TEXT"
    )
    failed = reason == "error"
    case.decide.check(
        "PROMPT-V2-36", not failed, "expected cancelled work to end with `cancelled`, not with `error`",
        work.prompt, cancel, end,
    )  # fmt: skip
    case.decide.need(not failed, "the cancelled work ended with `error`")
    case.decide.check(
        "PROMPT-V2-35", reason == "cancelled",
        f"expected cancelled work to end with the stop reason `cancelled`, got {reason!r}",
        work.prompt, cancel, end,
    )  # fmt: skip
    await work.agent.link.barrier()
    mine = work.entities(end) - set(background(end) or ())
    late = [frame for frame in work.agent.updates(work.session, after=end) if entity(frame) in mine]
    case.decide.check(
        "PROMPT-V2-37", not late, "expected the updates of cancelled work before its idle state",
        cancel, end, *late,
    )  # fmt: skip
    return end


@scenarios.add("PROMPT-V2-34", "PROMPT-V2-35", "PROMPT-V2-36", "PROMPT-V2-37", versions=(2,))
async def cancel_before_the_first_update(case: AgentCase) -> None:
    """A prompt that is cancelled at once fails with -32800, or its work ends as cancelled."""
    agent, session = await case.open_session()
    prompt = agent.prompt(session, case.prompts.slow)
    cancel = agent.cancel(session)
    response = await agent.link.response(prompt)
    code = response.error_code
    case.decide.check(
        "PROMPT-V2-34", code in (None, REQUEST_CANCELLED),
        f"expected the cancelled prompt to be inserted or to fail with `-32800`, got {code}",
        prompt, cancel, response,
    )  # fmt: skip
    if code is not None:
        await agent.link.barrier()
        working = any(is_busy(frame) for frame in agent.updates(session, after=prompt))
        case.decide.need(working, "the cancelled prompt was never worked on")
    await decide_end(case, Work(agent, session, prompt), cancel)


@scenarios.add("PROMPT-V2-35", "PROMPT-V2-36", "PROMPT-V2-37", versions=(2,))
async def cancel_while_a_message_streams(case: AgentCase) -> None:
    """Work that is cancelled in the middle of a message ends as cancelled."""
    work = await begin_slow(case)
    await decide_end(case, work, work.agent.cancel(work.session))


@scenarios.add("PROMPT-V2-42", versions=(2,))
async def cancel_with_metadata(case: AgentCase) -> None:
    """A cancel with `_meta` works, and gets no response."""
    work = await begin_slow(case)
    params = {"sessionId": work.session, "_meta": {"antiphon.judge": {"key": "value"}}}
    cancel = work.agent.link.notify("session/cancel", params)
    try:
        end = await work.end(after=cancel)
    except NotSeen as unseen:
        expected = f"expected a cancel with `_meta` to end the work: {unseen}"
        case.decide.check("PROMPT-V2-42", False, expected, work.prompt, cancel)
        return
    await work.agent.link.barrier()
    requests = [frame for frame in work.agent.link.recording.of(Role.CLIENT) if frame.is_request]
    answers = [
        frame for frame in work.agent.link.since(cancel)
        if frame.is_response and not any(same_id(frame.id, request.id) for request in requests)
    ]  # fmt: skip
    case.decide.check(
        "PROMPT-V2-42", not answers, "expected no response to the notification `session/cancel`",
        work.prompt, cancel, end, *answers,
    )  # fmt: skip


@scenarios.add("PROMPT-V2-35", "PROMPT-V2-36", "PROMPT-V2-37", versions=(2,))
async def cancel_during_a_tool_call(case: AgentCase) -> None:
    """Work that is cancelled while a tool runs ends as cancelled, after the last update of the tool call."""
    work = await begin_slow(case, case.prompts.slow_tool, option="slow_tool")
    tool = await work.agent.link.wait(
        lambda frame: frame.session_id == work.session and (is_tool_call(frame) or is_idle(frame)),
        "a tool call", after=work.prompt,
    )  # fmt: skip
    case.decide.need(not is_idle(tool), "the agent used no tool that lasts; see --prompt slow_tool=TEXT")
    await decide_end(case, work, work.agent.cancel(work.session))


@scenarios.add("PROMPT-V2-26", "PROMPT-V2-35", "PROMPT-V2-36", "PROMPT-V2-37", "PROMPT-V2-41", versions=(2,))
async def cancel_during_a_permission(case: AgentCase) -> None:
    """Work that waits for permission ends as cancelled, withdraws its question and ignores a late answer."""
    work = await begin_blocked(case)
    link, question = work.agent.link, work.question
    assert question is not None
    cancel = work.agent.cancel(work.session)

    ended = False
    if case.decide.has("permission-withdrawal"):
        try:
            await work.end(after=cancel)
            ended = True
            await link.barrier()
        except NotSeen:
            pass  # It waits for an answer, which clients of an older revision gave.
        withdrawn = any(
            frame.method == "$/cancel_request" and same_id(frame.get("params", "requestId"), question.id)
            for frame in link.since(cancel)
        )
        case.decide.check(
            "PROMPT-V2-41", ended and withdrawn,
            "expected the agent to stop waiting for permission after a cancel and to send `$/cancel_request`",
            question, cancel, *link.since(cancel)[:4],
        )  # fmt: skip
    if not ended:
        link.answer(question, CANCELLED)
    end = await decide_end(case, work, cancel)
    case.decide.need(ended, "the permission request was answered before the work ended")
    late = link.answer(question, {"outcome": {"outcome": "selected", "optionId": first_option(question)}})
    await link.barrier()
    resumed = [
        frame for frame in work.agent.updates(work.session, after=late) if is_busy(frame) or is_output(frame)
    ]
    case.decide.check(
        "PROMPT-V2-26", not resumed, "expected an answer for work that has ended to be ignored",
        question, cancel, end, late, *resumed,
    )  # fmt: skip


@scenarios.add("PROMPT-V2-34", versions=(2,))
async def cancel_after_the_end(case: AgentCase) -> None:
    """A cancel that comes after the end does not touch the next prompt."""
    agent, session = await case.open_session()
    first, _ = await run_turn(agent, session, case.prompts.plain)
    cancel = agent.cancel(session)
    second = agent.prompt(session, case.prompts.plain)
    await _decide_untouched(case, Work(agent, session, second), first, cancel)


@scenarios.add("PROMPT-V2-34", versions=(2,))
async def cancel_twice_and_prompt_again(case: AgentCase) -> None:
    """A second cancel changes nothing, and a prompt that follows both is worked on."""
    work = await begin_slow(case)
    cancels = [work.agent.cancel(work.session), work.agent.cancel(work.session)]
    second = work.agent.prompt(work.session, case.prompts.plain)
    await _decide_untouched(
        case, Work(work.agent, work.session, second), work.prompt, *cancels, cancelled=True
    )


async def _decide_untouched(
    case: AgentCase, work: Work, *before: RecordedFrame, cancelled: bool = False
) -> None:
    """Decide whether a prompt that was sent after a cancel is inserted, and its work not cancelled.

    `cancelled` says that the end of cancelled work may come before.
    """
    response = await work.agent.link.response(work.prompt)
    expected = "expected a prompt that follows a cancel to be left alone by it"
    untouched = response.error_code != REQUEST_CANCELLED
    case.decide.check("PROMPT-V2-34", untouched, expected, *before, work.prompt, response)
    case.decide.need(response.error is UNSET, "the prompt was refused")
    since = before[-1]
    if cancelled:
        since = await work.end(after=since)
    if not cancelled or stop_reason(since) == "cancelled":
        since = await work.end(after=await work.agent.update(work.session, is_busy, "work", after=since))
    case.decide.check(
        "PROMPT-V2-34", stop_reason(since) != "cancelled", expected, *before, work.prompt, response, since
    )


@scenarios.add("RPC-33", versions=(2,))
async def a_late_cancel_request_is_ignored(case: AgentCase) -> None:
    """`$/cancel_request` for a prompt that was answered does not cancel its work."""
    work = await begin_slow(case)
    await inserted_id(work.agent, work.prompt)
    request = work.agent.link.notify("$/cancel_request", {"requestId": work.prompt.id})
    ends = await work.ends(after=request)
    case.decide.need(
        all(stop_reason(end) == "cancelled" for end in ends),
        "the turn ended by itself; see --prompt slow=TEXT",
    )
    case.decide.check(
        "RPC-33", not ends, "expected the late cancellation of an answered prompt to change nothing",
        work.prompt, request, *ends,
    )  # fmt: skip
    work.agent.cancel(work.session)
