"""Scenarios about cancelling a v1 turn, at each moment of it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation, is_content, stop_reason
from antiphon.conformance.agent.turns import FINAL, responses, words
from antiphon.conformance.link import Condition, Link, NotSeen
from antiphon.conformance.recording import RecordedFrame, same_id
from antiphon.conformance.scenario import Collection

scenarios = Collection("cancel", shares=True)

PERMISSION = "session/request_permission"
CANCELLED = ("PROMPT-V1-03", "PROMPT-V1-14", "PROMPT-V1-15")


async def under_way(
    agent: Conversation, prompt: RecordedFrame, condition: Condition, what: str, *, option: str
) -> RecordedFrame:
    """Wait for a frame of a turn, then until the agent has answered another request, and return the frame.

    Raises `NotSeen` if the turn ends before: an agent that works fast has ended it before it reads a cancel.
    """
    advice = f"give another prompt with --prompt {option}=TEXT"

    def ends(frame: RecordedFrame) -> bool:
        return frame.is_response and same_id(frame.id, prompt.id)

    seen = await agent.link.wait(lambda frame: condition(frame) or ends(frame), what, after=prompt)
    if ends(seen):
        raise NotSeen(f"the turn ended without {what}; {advice}")
    await agent.link.barrier()
    if responses(agent.link, prompt):
        raise NotSeen(f"the turn ended too soon; {advice}")
    return seen


async def long_turn(case: AgentCase, agent: Conversation, session: str) -> RecordedFrame:
    """Begin a turn that streams until it is cancelled. Return its prompt."""
    prompt = agent.prompt(session, case.prompts.slow)
    await under_way(agent, prompt, partial(is_content_of, session), "an update", option="slow")
    await more_work(agent, prompt)
    return prompt


async def more_work(agent: Conversation, prompt: RecordedFrame) -> None:
    """Wait for an update of a turn that is sent after the agent has answered another request."""
    answered = await agent.link.barrier()

    def is_new(frame: RecordedFrame) -> bool:
        return frame.index > answered.index and is_content_of(prompt.session_id, frame)

    await under_way(agent, prompt, is_new, "another update", option="slow")


def is_content_of(session: str, frame: RecordedFrame) -> bool:
    return frame.session_id == session and is_content(frame)


def is_question(session: str, frame: RecordedFrame) -> bool:
    return frame.session_id == session and frame.method == PERMISSION


def answer_cancelled(link: Link, request: RecordedFrame) -> None:
    link.answer(request, {"outcome": {"outcome": "cancelled"}})


async def check_cancelled(
    case: AgentCase, agent: Conversation, prompt: RecordedFrame, cancel: RecordedFrame, *frames: RecordedFrame
) -> None:
    """Check that a cancelled turn ends as cancelled, after its last update. `frames` are more evidence."""
    await check_end(case, agent, prompt, cancel, *frames, requirement="PROMPT-V1-14")
    await agent.link.barrier()
    end = await agent.link.response(prompt)
    late = [frame for frame in agent.updates(prompt.session_id, after=end) if is_content(frame)]
    case.decide.check(
        "PROMPT-V1-03", not late,
        "expected no update of a cancelled turn after the response to its prompt",
        prompt, *frames, cancel, end, *late,
    )  # fmt: skip


async def check_end(
    case: AgentCase, agent: Conversation, prompt: RecordedFrame, cancel: RecordedFrame,
    *frames: RecordedFrame, requirement: str,
) -> None:  # fmt: skip
    """Check the end of a turn after the request or notification that cancels it.

    `requirement` is broken if the prompt is not answered at all.
    """
    read = cancel
    with suppress(NotSeen):
        read = await agent.link.barrier()
    end = await case.answered(requirement, agent.link, prompt)
    evidence = (prompt, *frames, cancel, end)
    case.decide.check(
        "PROMPT-V1-15", end.error is UNSET,
        "expected the result `cancelled` for a cancelled turn, not an error", *evidence,
    )  # fmt: skip
    if end.error is not UNSET:
        return
    reason = stop_reason(end)
    worked_on = any(is_content(frame) for frame in agent.updates(prompt.session_id, after=read))
    if reason != "cancelled" and not worked_on and await is_complete(case, agent, prompt, end):
        raise NotSeen("the turn may have ended before the agent read the cancel; give a slower prompt")
    case.decide.check(
        "PROMPT-V1-14", reason == "cancelled",
        f"expected `cancelled` for a cancelled turn, got {reason!r}", *evidence,
    )  # fmt: skip


async def is_complete(
    case: AgentCase, agent: Conversation, prompt: RecordedFrame, end: RecordedFrame
) -> bool:
    """Whether a turn has about as much text as the same prompt has in time without a cancel."""
    turn = [frame for frame in agent.updates(prompt.session_id, after=prompt) if frame.index < end.index]
    again = agent.link.request("session/prompt", {**prompt.params, "sessionId": await agent.new_session()})
    with suppress(NotSeen):
        await agent.link.response(again)
    return 2 * len(words(turn)) >= len(words(agent.updates(again.session_id, after=again)))


@scenarios.add(*CANCELLED, versions=(1,))
async def during_a_message(case: AgentCase) -> None:
    """A turn that is cancelled while it streams a message ends as cancelled."""
    agent, session = await case.open_session()
    prompt = await long_turn(case, agent, session)
    await check_cancelled(case, agent, prompt, agent.cancel(session))


@scenarios.add(*CANCELLED, versions=(1,))
async def before_the_first_update(case: AgentCase) -> None:
    """A turn that is cancelled at once ends as cancelled."""
    agent, session = await case.open_session()
    prompt = await long_turn(case, agent, session)
    agent.cancel(session)
    await agent.link.response(prompt)
    prompt = agent.prompt(session, case.prompts.slow)
    await check_cancelled(case, agent, prompt, agent.cancel(session))


@scenarios.add(*CANCELLED, "PROMPT-V1-06", versions=(1,))
async def twice_and_after_the_end(case: AgentCase) -> None:
    """A second cancel changes nothing, and one after the end does not touch the next prompt."""
    agent, session = await case.open_session()
    prompt = await long_turn(case, agent, session)
    agent.cancel(session)
    await check_cancelled(case, agent, prompt, agent.cancel(session))
    late = agent.cancel(session)
    await agent.link.barrier()
    prompt, end = await agent.run_turn(session, case.prompts.plain)
    case.decide.need(end.error is UNSET, "a prompt after a cancel was answered with an error")
    case.decide.check(
        "PROMPT-V1-06", stop_reason(end) != "cancelled",
        "expected a cancel between two turns not to cancel the second", late, prompt, end,
    )  # fmt: skip


@scenarios.add(*CANCELLED, versions=(1,))
async def during_a_tool_call(case: AgentCase) -> None:
    """A turn that is cancelled while a tool runs ends as cancelled."""
    agent, session = await case.open_session()
    prompt = agent.prompt(session, case.prompts.slow_tool)

    def is_call(frame: RecordedFrame) -> bool:
        return frame.session_id == session and str(frame.update_kind).startswith("tool_call")

    call = await under_way(agent, prompt, is_call, "a tool call", option="slow_tool")
    ended = [frame for frame in agent.updates(session) if frame.update.get("status") in FINAL]
    case.decide.need(
        not ended, "the tool call ended too soon; give another prompt with --prompt slow_tool=TEXT"
    )
    await check_cancelled(case, agent, prompt, agent.cancel(session), call)


@scenarios.add(*CANCELLED, versions=(1,))
async def during_a_permission_request(case: AgentCase) -> None:
    """A turn that is cancelled while it waits for permission ends as cancelled."""
    agent, session = await case.open_session()
    agent.link.on_request(PERMISSION, None)
    prompt = agent.prompt(session, case.prompts.permission)
    await under_way(agent, prompt, partial(is_question, session), "a permission request", option="permission")
    cancel = agent.cancel(session)
    agent.link.on_request(PERMISSION, answer_cancelled)
    questions = [frame for frame in agent.link.since(prompt) if is_question(session, frame)]
    for question in questions:
        answer_cancelled(agent.link, question)
    await check_cancelled(case, agent, prompt, cancel, *questions)
