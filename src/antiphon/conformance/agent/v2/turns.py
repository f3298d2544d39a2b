"""Scenarios about v2 turns: when a prompt is answered and shown, and how its work begins and ends."""

from __future__ import annotations

from itertools import takewhile

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import is_busy, is_idle, stop_reason
from antiphon.conformance.agent.v2.work import (
    begin_slow,
    entity,
    inserted_id,
    is_output,
    is_tool_call,
    is_user_message,
    run_turn,
    turn_end,
)
from antiphon.conformance.link import NotSeen, why_unseen
from antiphon.conformance.recording import RecordedFrame, same_id
from antiphon.conformance.scenario import Collection

scenarios = Collection("v2-turns", shares=True)
STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error")


@scenarios.add("PROMPT-V2-02", versions=(2,))
async def a_prompt_is_answered_while_its_work_goes_on(case: AgentCase) -> None:
    """The answer to a prompt does not wait for the end of the work."""
    work = await begin_slow(case)
    link = work.agent.link
    try:
        first = await link.wait(
            lambda frame: (frame.session_id == work.session and is_idle(frame))
            or (frame.is_response and same_id(frame.id, work.prompt.id)),
            "the answer to `session/prompt`", after=work.prompt,
        )  # fmt: skip
        answered, seen = first.is_response, [first]
    except NotSeen:
        answered, seen = False, link.since(work.prompt)[-3:]
    case.decide.check(
        "PROMPT-V2-02", answered,
        "expected the answer to `session/prompt` while the work goes on, it came at the end or not at all",
        work.prompt, *seen,
    )  # fmt: skip
    work.agent.cancel(work.session)


@scenarios.add("PROMPT-V2-03", "PROMPT-V2-04", "PROMPT-V2-06", versions=(2,))
async def an_inserted_prompt_has_an_id_and_is_shown(case: AgentCase) -> None:
    """The answer to a prompt names a message, and the agent shows that message."""
    agent, session = await case.open_session()
    prompt, end = await run_turn(agent, session, case.prompts.plain)
    response = await agent.link.response(prompt)
    id = response.get("result", "messageId")
    fits = isinstance(id, str) and id != "" and response.get("result", "stopReason") is UNSET
    case.decide.check(
        "PROMPT-V2-03", fits,
        "expected the answer to `session/prompt` to have a `messageId` and no `stopReason`", prompt, response,
    )  # fmt: skip
    case.decide.need(isinstance(id, str), "the answer to `session/prompt` has no `messageId`")
    await agent.link.barrier()
    shown = [
        frame for frame in agent.updates(session, after=prompt)
        if is_user_message(frame) and frame.update.get("messageId") == id
    ]  # fmt: skip
    others = [frame for frame in agent.updates(session, after=prompt) if is_user_message(frame)]
    if case.decide.check(
        "PROMPT-V2-04", bool(shown),
        f"expected a user message with the id {id!r} of the answer to `session/prompt`",
        prompt, response, *others, end,
    ):  # fmt: skip
        case.decide.check(
            "PROMPT-V2-06", shown[0].index < end.index,
            "expected the user message before the idle state that ends its work", prompt, end, shown[0],
        )  # fmt: skip


@scenarios.add("PROMPT-V2-10", "PROMPT-V2-11", "PROMPT-V2-12", "PROMPT-V2-15", "TC-11", versions=(2,))
async def work_begins_with_running_and_ends_with_idle(case: AgentCase) -> None:
    """The state is running before the work and idle after it."""
    agent, session = await case.open_session()
    prompt, end = await run_turn(agent, session, case.prompts.plain)
    await agent.link.barrier()
    updates = agent.updates(session, after=prompt)
    busy = next((frame for frame in updates if is_busy(frame) and frame.index < end.index), None)
    case.decide.check(
        "PROMPT-V2-10", busy is not None,
        "expected `running` or `requires_action` before the idle state that ends the work", prompt, end,
    )  # fmt: skip
    if busy is not None:
        # A message that has chunks on both sides of `running` is output of this work, not of something else.
        later = {entity(frame) for frame in updates if frame.index > busy.index and is_output(frame)}
        early = [
            frame for frame in updates
            if frame.index < busy.index and is_output(frame) and entity(frame) in later
        ]  # fmt: skip
        case.decide.check(
            "PROMPT-V2-10", not early, "expected `running` before the first output of the work",
            prompt, *early, busy,
        )  # fmt: skip
    begun = {entity(frame) for frame in updates if frame.index < end.index and _is_streamed(frame)}
    idle = takewhile(lambda frame: not is_busy(frame), agent.updates(session, after=end))
    late = [frame for frame in idle if _is_streamed(frame) and entity(frame) in begun]
    case.decide.check(
        "PROMPT-V2-11", not late, "expected `idle` after the last chunk of the work", prompt, end, *late
    )
    reason = stop_reason(end)
    case.decide.check(
        "PROMPT-V2-12", reason is not None, "expected a `stopReason` on the idle that ends work", prompt, end
    )
    if isinstance(reason, str):
        case.decide.check(
            "PROMPT-V2-15", reason in STOP_REASONS or reason.startswith("_"),
            f"expected one of {', '.join(STOP_REASONS)}, or a reason that begins with `_`, got {reason!r}",
            prompt, end,
        )  # fmt: skip
    complete = [frame for frame in updates if frame.update_kind == "turn_complete"]
    case.decide.check(
        "TC-11", not complete, "expected no `turn_complete` in v2: the idle state has its role", *complete
    )


def _is_streamed(frame: RecordedFrame) -> bool:
    """Whether a frame is a piece of a message or thought. Tool calls may go on in the background."""
    return (frame.update_kind or "").endswith("_chunk") and is_output(frame) and not is_tool_call(frame)


@scenarios.add("PROMPT-V2-11", versions=(2,))
async def a_turn_with_a_tool_ends(case: AgentCase) -> None:
    """A turn that uses a tool ends with an idle state."""
    agent, session = await case.open_session()
    prompt = agent.prompt(session, case.prompts.tool)
    await inserted_id(agent, prompt)
    busy = await agent.update(session, is_busy, "a running state", after=prompt)
    try:
        last = await turn_end(agent, prompt)
    except NotSeen:
        last = agent.updates(session, after=prompt)[-1]
        # An agent that still sends something may only need longer.
        silent = await why_unseen(agent.update(session, lambda frame: True, "an update", after=last))
        case.decide.need(bool(silent), "the turn lasts longer than the timeout")
    case.decide.check(
        "PROMPT-V2-11", is_idle(last), "expected `idle` at the end of the work, but nothing came any more",
        prompt, busy, last,
    )  # fmt: skip


@scenarios.add("PROMPT-V2-08", "PROMPT-V2-54", versions=(2,))
async def an_idle_session_takes_the_next_prompt(case: AgentCase) -> None:
    """Two prompts one after the other are both inserted, under different ids."""
    agent, session = await case.open_session()
    first, end = await run_turn(agent, session, case.prompts.plain)
    second = agent.prompt(session, case.prompts.plain)
    response = await agent.link.response(second)
    case.decide.check(
        "PROMPT-V2-54", response.error is UNSET, "expected an idle session to accept the next prompt",
        first, end, second, response,
    )  # fmt: skip
    ids = [await inserted_id(agent, prompt) for prompt in (first, second)]
    answer = await agent.link.response(first)
    case.decide.check(
        "PROMPT-V2-08", ids[0] != ids[1], f"expected two ids for two prompts, got {ids[0]!r} twice",
        first, answer, second, response,
    )  # fmt: skip


@scenarios.add("PROMPT-V2-07", versions=(2,))
async def the_agent_makes_the_message_ids(case: AgentCase) -> None:
    """An agent does not take over a message id that the client sends."""
    agent, session = await case.open_session()
    theirs = f"judge-{case.random.getrandbits(64):x}"
    prompt = agent.prompt(session, case.prompts.plain, messageId=theirs)
    id = await inserted_id(agent, prompt)
    response = await agent.link.response(prompt)
    case.decide.check(
        "PROMPT-V2-07", id != theirs,
        "expected an id that the agent made, got the unknown property `messageId` of the prompt",
        prompt, response,
    )  # fmt: skip


@scenarios.add("PROMPT-V2-16", "PROMPT-V2-17", versions=(2,))
async def a_failure_shows_on_the_idle_state(case: AgentCase) -> None:
    """Work that fails after its prompt was inserted keeps the answer and ends with an error."""
    case.decide.need(bool(case.prompts.failure), "no prompt makes the work fail; see --prompt failure=TEXT")
    agent, session = await case.open_session()
    prompt = agent.prompt(session, case.prompts.failure)
    response = await agent.link.response(prompt)
    if response.error is not UNSET:
        await agent.link.barrier()
        updates = agent.updates(session, after=prompt)
        shown = [frame for frame in updates if is_user_message(frame)]
        case.decide.check(
            "PROMPT-V2-17", not shown, "expected no error in answer to a prompt that was inserted and shown",
            prompt, *shown, response,
        )  # fmt: skip
        case.decide.not_tested("PROMPT-V2-16", "the prompt was refused")
        return
    end = await turn_end(agent, prompt)
    case.decide.need(
        stop_reason(end) == "error", "the work did not end with `error`; see --prompt failure=TEXT"
    )
    case.decide.check("PROMPT-V2-17", True, "expected the failure on the idle state", prompt, response, end)
    error = end.update.get("error")
    case.decide.check(
        "PROMPT-V2-16", isinstance(error, dict) and "code" in error and "message" in error,
        "expected an `error` with `code` and `message` beside the stop reason `error`", prompt, end,
    )  # fmt: skip
