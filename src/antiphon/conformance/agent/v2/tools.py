"""Scenarios about tool calls and terminals of v2 agents: their ids, and cancelling one of them."""

from __future__ import annotations

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.v2.work import (
    FINAL,
    INVALID_PARAMS,
    PERMISSION,
    run_turn,
    statuses,
)
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("v2-tools", shares=True)
BEGINNING = ("pending", "in_progress")


@scenarios.add("TOOL-V1-06", "TOOL-V2-04", "TOOL-V2-14", versions=(2,))
async def tool_calls_have_ids_and_titles(case: AgentCase) -> None:
    """A tool call has an id of its own and begins with a title, and cannot be cancelled after its end."""
    agent, session = await case.open_session()
    prompt, end = await run_turn(agent, session, case.prompts.tool)
    calls = _first_reports(agent.updates(session, after=prompt))
    case.decide.need(bool(calls), "the agent used no tool; see --prompt tool=TEXT")
    for id, first in calls.items():
        title = first.update.get("title")
        asked = any(_is_subject(frame, id) for frame in agent.link.since(prompt) if frame.index < first.index)
        case.decide.check(
            "TOOL-V2-04", asked or (isinstance(title, str) and bool(title)),
            "expected a `title` in the first report of a tool call", first,
        )  # fmt: skip
    ended = [id for id, each in statuses(agent.updates(session, after=prompt)).items() if each[-1] in FINAL]
    case.decide.need(bool(ended), "the agent did not report the end of its tool call")
    request = agent.link.request("tool_call/cancel", {"sessionId": session, "toolCallId": ended[0]})
    response = await agent.link.response(request)
    case.decide.check(
        "TOOL-V2-14", response.error_code == INVALID_PARAMS,
        "expected `-32602` for `tool_call/cancel` of a tool call that has ended",
        calls[ended[0]], end, request, response,
    )  # fmt: skip
    second, _ = await run_turn(agent, session, case.prompts.tool)
    again = [
        frame for frame in agent.updates(session, after=second)
        if frame.update.get("toolCallId") in ended and frame.update.get("status") in BEGINNING
    ]  # fmt: skip
    case.decide.check(
        "TOOL-V1-06", not again, "expected a tool call of the next turn to have another id",
        *(calls[frame.update["toolCallId"]] for frame in again), *again,
    )  # fmt: skip


def _first_reports(updates: list[RecordedFrame]) -> dict[str, RecordedFrame]:
    """Return the first update of every tool call, by id."""
    first: dict[str, RecordedFrame] = {}
    for frame in updates:
        id = frame.update.get("toolCallId")
        if isinstance(id, str):
            first.setdefault(id, frame)
    return first


def _is_subject(frame: RecordedFrame, id: str) -> bool:
    """Whether a frame is a permission request for a tool call: that creates the call, too (PERM-V2-03)."""
    return frame.method == PERMISSION and frame.get("params", "subject", "toolCall", "toolCallId") == id


@scenarios.add("TOOL-V2-14", "TERMV2-11", versions=(2,))
async def unknown_work_cannot_be_cancelled(case: AgentCase) -> None:
    """Cancelling a tool call or a terminal that does not exist fails with -32602, not with -32601."""
    agent, session = await case.open_session()
    for requirement, method, key in (
        ("TOOL-V2-14", "tool_call/cancel", "toolCallId"),
        ("TERMV2-11", "terminal/cancel", "terminalId"),
    ):
        request = agent.link.request(method, {"sessionId": session, key: "antiphon-judge-unknown"})
        response = await agent.link.response(request)
        case.decide.check(
            requirement, response.error_code == INVALID_PARAMS,
            f"expected `-32602` for `{method}` of an unknown one", request, response,
        )  # fmt: skip
