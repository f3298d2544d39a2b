"""Scenarios about the background work of v2 agents: listed, kept by a cancel, ended by a close."""

from __future__ import annotations

from msgspec import UNSET, Struct

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation, is_busy, state, stop_reason
from antiphon.conformance.agent.v2.work import (
    FINAL,
    Entity,
    Work,
    background,
    is_output,
    run_turn,
    statuses,
    still_works,
)
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("v2-background", shares=True)
NONE_REPORTED = "the agent reported no background work; see --prompt background=TEXT"


class Background(Struct, frozen=True):
    """Work that goes on while the session is idle. `listed` is the state update that lists it."""

    agent: Conversation
    session: str
    listed: RecordedFrame
    items: list[Entity]

    def end_of(self, item: Entity) -> RecordedFrame | None:
        """Return the update with the final status of a tool call, or the exit of a terminal."""
        return next((frame for frame in self.agent.updates(self.session) if _ends(frame, item)), None)


def _ends(frame: RecordedFrame, item: Entity) -> bool:
    kind, id = item
    if kind == "terminal":
        ended = isinstance(frame.update.get("exitStatus"), dict)
        return frame.update_kind == "terminal_update" and frame.update.get("terminalId") == id and ended
    return frame.update_kind == "tool_call_update" and statuses([frame]).get(id, [""])[-1] in FINAL


async def begin_background(case: AgentCase) -> Background:
    """Run a turn that leaves work in the background. Raises `NotSeen`."""
    case.decide.need(case.decide.has("background"), "background work came with a later revision of the draft")
    case.decide.need(bool(case.prompts.background), NONE_REPORTED)
    agent, session = await case.open_session()
    await run_turn(agent, session, case.prompts.background)
    await agent.link.barrier()
    states = [frame for frame in agent.updates(session) if background(frame)]
    items = background(states[-1]) if states else None
    case.decide.need(bool(items), NONE_REPORTED)
    return Background(agent, session, states[-1], items or [])


@scenarios.add("PROMPT-V2-45", "PROMPT-V2-46", versions=(2,))
async def background_work_is_announced_and_listed(case: AgentCase) -> None:
    """Background work is announced before it is listed, and every state lists it."""
    work = await begin_background(case)
    await run_turn(work.agent, work.session, case.prompts.plain)
    states = [frame for frame in work.agent.updates(work.session) if state(frame) is not None]
    reporting = next(frame.index for frame in states if background(frame) is not None)
    silent = [frame for frame in states if background(frame) is None and frame.index > reporting]
    case.decide.check(
        "PROMPT-V2-45", not silent, "expected `background` on every state update once it was reported",
        work.listed, *silent,
    )  # fmt: skip
    for item in work.items:
        first = next(frame for frame in states if item in (background(frame) or ()))
        announced = [frame for frame in work.agent.updates(work.session) if _is_about(frame, item)]
        case.decide.check(
            "PROMPT-V2-46", bool(announced) and announced[0].index < first.index,
            f"expected an update of the {item[0]} {item[1]!r} before the first state that lists it",
            first, *announced[:1],
        )  # fmt: skip


def _is_about(frame: RecordedFrame, item: Entity) -> bool:
    key = "terminalId" if item[0] == "terminal" else "toolCallId"
    return frame.update.get(key) == item[1]


@scenarios.add("PROMPT-V2-40", versions=(2,))
async def cancel_keeps_background_work(case: AgentCase) -> None:
    """A cancel of foreground work does not end the work that is listed as background."""
    work = await begin_background(case)
    foreground = await _begin_foreground(case, work)
    cancel = work.agent.cancel(work.session)
    end = await foreground.end(after=cancel)
    await work.agent.link.barrier()
    for item in work.items:
        ended = work.end_of(item)
        by_cancel = ended is not None and ended.index > cancel.index and _was_cancelled(ended)
        listed = background(end)
        dropped = listed is not None and item not in listed and (ended is None or ended.index > end.index)
        case.decide.check(
            "PROMPT-V2-40", not by_cancel and not dropped,
            f"expected the background {item[0]} {item[1]!r} to go on after a cancel",
            work.listed, cancel, *([] if ended is None else [ended]), end,
        )  # fmt: skip


def _was_cancelled(end: RecordedFrame) -> bool:
    """Whether an end was none of its own: a cancelled tool call, a terminal that a signal ended."""
    status = end.update.get("exitStatus")
    return end.update.get("status") == "cancelled" or (
        isinstance(status, dict) and bool(status.get("signal"))
    )


@scenarios.add("SESS-39", versions=(2,))
async def close_ends_background_work(case: AgentCase) -> None:
    """A close ends the work in the background, too."""
    work = await begin_background(case)
    seen = work.agent.updates(work.session)
    items = [item for item in work.items if any(_is_about(frame, item) for frame in seen)]
    request, response = await work.agent.link.exchange("session/close", {"sessionId": work.session})
    case.decide.need(response.error is UNSET, "`session/close` was refused")
    resumed = work.agent.resume(work.session)
    answer = await work.agent.link.response(resumed)
    case.decide.need(answer.error is UNSET, "a closed session cannot be resumed")
    await work.agent.link.barrier()
    alive = [
        frame for frame in work.agent.updates(work.session, after=resumed)
        if any(item in (background(frame) or ()) for item in items)
    ]  # fmt: skip
    case.decide.check(
        "SESS-39", not alive, "expected a close to end the work in the background",
        work.listed, request, response, resumed, *alive,
    )  # fmt: skip


@scenarios.add("PROMPT-V2-46", "TOOL-V2-11", "TOOL-V2-13", "TOOL-V2-15", versions=(2,))
async def one_tool_call_can_be_cancelled(case: AgentCase) -> None:
    """A tool call that advertises it can be cancelled, which ends it and not the foreground work."""
    work = await begin_background(case)
    offered = [item for item in work.items if item[0] == "tool_call" and _offers_cancel(work, item)]
    case.decide.need(bool(offered), "no background tool call advertises `capabilities.cancel`")
    item = offered[0]
    foreground = await _begin_foreground(case, work)
    params = {"sessionId": work.session, "toolCallId": item[1]}
    request, response = await work.agent.link.exchange("tool_call/cancel", params)
    case.decide.need(response.error is UNSET or work.end_of(item) is None, "the tool call ended by itself")
    expected = "expected `{}` in answer to `tool_call/cancel`, then the final status of the tool call"
    case.decide.check("TOOL-V2-13", isinstance(response.result, dict), expected, request, response)
    case.decide.need(isinstance(response.result, dict), "`tool_call/cancel` was refused")
    try:
        end = await work.agent.update(
            work.session, lambda frame: _ends(frame, item), "the final status", after=request
        )
    except NotSeen as unseen:
        case.decide.check("TOOL-V2-13", False, f"{expected}: {unseen}", work.listed, request, response)
        raise
    ends = [each for each in await foreground.ends(after=request) if stop_reason(each) != "end_turn"]
    case.decide.check(
        "TOOL-V2-15", not ends, "expected the cancel of a tool call to leave the foreground work alone",
        foreground.prompt, request, response, end, *ends,
    )  # fmt: skip
    case.decide.check(
        "TOOL-V2-11", not _offers_cancel(work, item),
        "expected `capabilities.cancel` to be withdrawn from a tool call that has ended", request, end,
    )  # fmt: skip
    states = [frame for frame in work.agent.updates(work.session, after=request) if state(frame) is not None]
    lists = [(frame, background(frame)) for frame in states]
    dropped = [frame for frame, listed in lists if listed is not None and item not in listed]
    case.decide.check(
        "PROMPT-V2-46", not dropped or end.index < dropped[0].index,
        "expected the final status of background work before the first state that no longer lists it",
        work.listed, request, *dropped[:1], end,
    )  # fmt: skip
    work.agent.cancel(work.session)


async def _begin_foreground(case: AgentCase, work: Background) -> Work:
    """Begin slow work in the foreground, and wait for its first output."""
    prompt = work.agent.prompt(work.session, case.prompts.slow)
    busy = await work.agent.update(work.session, is_busy, "a running state", after=prompt)
    await work.agent.update(work.session, is_output, "output of the agent", after=busy)
    foreground = Work(work.agent, work.session, prompt)
    await still_works(case, foreground)
    return foreground


def _offers_cancel(work: Background, item: Entity) -> bool:
    """Whether the last capabilities of a tool call permit to cancel it. Each list is whole (TOOL-V2-10)."""
    offered = False
    for frame in work.agent.updates(work.session):
        if _is_about(frame, item) and "capabilities" in frame.update:
            capabilities = frame.update["capabilities"]
            offered = isinstance(capabilities, dict) and isinstance(capabilities.get("cancel"), dict)
    return offered
