"""Scenarios about whole v1 turns: order, end, and what a turn's end says."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import is_content, stop_reason
from antiphon.conformance.agent.initialization import NO_SUCH_SESSION
from antiphon.conformance.link import Link
from antiphon.conformance.recording import RecordedFrame, same_id
from antiphon.conformance.scenario import Collection

scenarios = Collection("turns", shares=True)

FINAL = ("completed", "failed")


def words(frames: list[RecordedFrame], message: str = "agent_message") -> str:
    """Return the text of the messages of a kind, without white space: replays may divide it otherwise."""
    text = ""
    for frame in frames:
        if frame.update_kind in (message, f"{message}_chunk"):
            content = frame.update.get("content")
            blocks = content if isinstance(content, list) else [content]
            text += "".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
    return "".join(text.split())


def responses(link: Link, request: RecordedFrame) -> list[RecordedFrame]:
    """Return all responses to a request so far; there should be one."""
    return [frame for frame in link.since(request) if frame.is_response and same_id(frame.id, request.id)]


@scenarios.add("PROMPT-V1-02", "PROMPT-V1-03", "PROMPT-V1-06", "PROMPT-V1-22", versions=(1,))
async def a_turn_ends_with_its_response(case: AgentCase) -> None:
    """All updates of a v1 turn come before the one response to its prompt."""
    agent, session = await case.open_session()
    prompt = agent.prompt(session, case.prompts.plain)
    end = await case.answered("PROMPT-V1-02", agent.link, prompt)
    case.decide.need(end.error is UNSET, "the prompt was answered with an error")
    case.decide.check(
        "PROMPT-V1-02", isinstance(stop_reason(end), str),
        "expected a `stopReason` in the response to the prompt", prompt, end,
    )  # fmt: skip
    await agent.link.barrier()
    late = [frame for frame in agent.updates(session, after=end) if is_content(frame)]
    case.decide.check(
        "PROMPT-V1-03", not late,
        "expected no update of the turn after the response to its prompt", prompt, end, *late,
    )  # fmt: skip
    if stop_reason(end) in ("end_turn", "cancelled"):
        case.decide.check(
            "PROMPT-V1-06", stop_reason(end) == "end_turn",
            "expected `end_turn`, because nobody cancelled the turn", prompt, end,
        )  # fmt: skip
    echoes = [frame for frame in agent.updates(session, after=prompt) if frame.index < end.index]
    case.decide.check(
        "PROMPT-V1-22", "".join(case.prompts.plain.split()) not in words(echoes, "user_message"),
        "expected the agent not to repeat the prompt of the running turn", prompt, *echoes,
    )  # fmt: skip


@scenarios.add("PROMPT-V1-18", versions=(1,))
async def failures_are_errors_of_the_prompt(case: AgentCase) -> None:
    """A prompt that cannot be run is answered with an error."""
    agent, session = await case.open_session()
    content = [{"type": "text", "text": case.prompts.plain}]
    faults: dict[str, dict[str, Any]] = {
        "of an unknown session": {"sessionId": NO_SUCH_SESSION, "prompt": content},
        "without content": {"sessionId": session},
        "whose content is a string": {"sessionId": session, "prompt": case.prompts.plain},
    }
    if case.prompts.failure:
        failure = [{"type": "text", "text": case.prompts.failure}]
        faults["that makes the agent fail"] = {"sessionId": session, "prompt": failure}
    for fault, params in faults.items():
        prompt = agent.link.request("session/prompt", params)
        response = await case.answered("PROMPT-V1-18", agent.link, prompt)
        case.decide.check(
            "PROMPT-V1-18", response.error is not UNSET,
            f"expected an error for a prompt {fault}", prompt, response,
        )  # fmt: skip


@scenarios.add("PROMPT-V1-09", versions=(1,))
async def tool_calls_are_reported_from_beginning_to_end(case: AgentCase) -> None:
    """A tool call is reported before it ends, and has a final status when the turn ends."""
    agent, session = await case.open_session()
    prompt, end = await agent.run_turn(session, case.prompts.tool)
    case.decide.need(end.error is UNSET, "the prompt was answered with an error")
    reports: dict[Any, list[RecordedFrame]] = {}
    for frame in agent.updates(session, after=prompt):
        if frame.index < end.index and frame.update_kind in ("tool_call", "tool_call_update"):
            reports.setdefault(frame.update.get("toolCallId"), []).append(frame)
    case.decide.need(bool(reports), "the prompt led to no tool call; give another with --prompt tool=TEXT")
    for frames in reports.values():
        statuses = [frame.update["status"] for frame in frames if frame.update.get("status") is not None]
        if frames[0].update.get("status") is None:
            statuses.insert(0, "pending")
        early = [status for status in statuses[:-1] if status in FINAL]
        # A tool that runs at once may be in progress when it is first reported.
        case.decide.check(
            "PROMPT-V1-09", statuses[0] not in FINAL and statuses[-1] in FINAL and not early,
            f"expected a report at once and a final status last, got {', '.join(map(str, statuses))}",
            prompt, *frames, end,
        )  # fmt: skip
