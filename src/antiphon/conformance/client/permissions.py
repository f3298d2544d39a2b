"""Scenarios about permission requests, also when the turn is cancelled."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from msgspec import UNSET

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import SESSION, PlayedAgent
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("permissions")

# Two options are of the same kind: only their ids tell them apart.
OPTIONS = (
    {"optionId": "judge-once", "name": "Once", "kind": "allow_once"},
    {"optionId": "judge-once-more", "name": "Once more", "kind": "allow_once"},
    {"optionId": "judge-no", "name": "No", "kind": "reject_once"},
)
CANCELLED = {"outcome": {"outcome": "cancelled"}}
TRIES = 5
"""How often a request is cancelled right behind it. A client may answer before it can see that."""


def _ask(agent: PlayedAgent, **fields: Any) -> RecordedFrame:
    """Ask for permission, in the shape of the version."""
    call = {"toolCallId": "judge-call", "title": "Judge", "kind": "execute", "status": "pending"}
    params: dict[str, Any] = {"sessionId": SESSION, "options": OPTIONS}
    if agent.version == 1:
        agent.update({"sessionUpdate": "tool_call", **call})
        params["toolCall"] = call
    else:
        params |= {"title": "May the judge?", "subject": {"type": "tool_call", "toolCall": call}}
    return agent.link.request("session/request_permission", {**params, **fields})


async def _answer_of_a_person(agent: PlayedAgent, request: RecordedFrame) -> RecordedFrame:
    """Wait for the answer. A client may ask a person, who is not there."""
    try:
        return await agent.link.response(request)
    except NotSeen:
        raise NotSeen("the client did not answer the permission request; it may ask a person") from None


@scenarios.add("PERM-V1-02", versions=(1,))
async def answer_is_an_offered_option(case: ClientCase) -> None:
    """A permission request is answered with one of its options, or as cancelled."""
    agent, prompt = await case.begin_turn()
    request = _ask(agent)
    answer = await _answer_of_a_person(agent, request)
    case.decide.need(answer.error is UNSET, "the client refused the permission request")
    outcome = answer.get("result", "outcome", "outcome")
    option = answer.get("result", "outcome", "optionId")
    offered = [each["optionId"] for each in OPTIONS]
    case.decide.check(
        "PERM-V1-02", outcome == "cancelled" or (outcome == "selected" and option in offered),
        f"expected the outcome `cancelled`, or `selected` with one of {', '.join(offered)}, "
        f"got {outcome!r} with {option!r}", request, answer,
    )  # fmt: skip
    await agent.complete(prompt)


@scenarios.add("PERM-V2-05", versions=(2,))
async def unknown_subject(case: ClientCase) -> None:
    """A permission request about something unknown is asked generically, or declined."""
    agent, prompt = await case.begin_turn()
    request = _ask(agent, subject={"type": "_judge", "payload": [1]})
    answer = await _answer_of_a_person(agent, request)
    case.decide.check(
        "PERM-V2-05", answer.error is UNSET,
        f"expected an outcome for a request with an unknown subject, got the error {answer.error_code}",
        request, answer,
    )  # fmt: skip
    await agent.complete(prompt)


@scenarios.add("PERM-V2-09", versions=(2,))
async def agent_cancels_its_request(case: ClientCase) -> None:
    """A permission request that the agent cancels gets the outcome `cancelled`."""
    agent, prompt = await case.begin_turn()
    for _ in range(TRIES):
        request = _ask(agent)
        cancel = agent.link.notify("$/cancel_request", {"requestId": request.id})
        answer = await _answer_in_time(agent, request)
        case.decide.need(answer is not None or not agent.link.ended, "the client closed the connection")
        outcome = None if answer is None else answer.get("result", "outcome", "outcome")
        if outcome != "selected":
            break
    case.decide.need(
        outcome != "selected", "the client answered before it could see that the request was cancelled"
    )
    case.decide.check(
        "PERM-V2-09", outcome == "cancelled",
        "expected the outcome `cancelled` for a permission request that the agent cancelled, "
        f"got {_seen(answer)}", request, cancel, *([answer] if answer else []),
    )  # fmt: skip
    await agent.complete(prompt)


@scenarios.add("PROMPT-V1-12", "PERM-V1-03", versions=(1,))
async def interrupt_during_a_question(case: ClientCase) -> None:
    """A client that cancels its turn answers open permission requests as cancelled."""
    agent, prompt = await case.open_prompt()
    first, second = _ask(agent), _ask(agent)
    # A client that decides by itself does so in the time of some barriers.
    for _ in range(10):
        await agent.link.barrier()
    answered = [agent.link.recording.response_to(request) for request in (first, second)]
    case.decide.need(None in answered, "the client answers permission requests at once, so none stays open")
    agent.run.program.interrupt()
    cancel = await agent.link.wait(
        lambda frame: frame.method == "session/cancel", "`session/cancel` after SIGINT"
    )
    answers = [agent.link.recording.response_to(request) for request in (first, second)]
    early = [answer is not None and answer.index < cancel.index for answer in answers]
    case.decide.need(not all(early), "the client had answered its permission requests before it cancelled")
    for request, answered_before in zip((first, second), early, strict=True):
        if not answered_before:
            await _is_answered_as_cancelled(case, agent, request, cancel)
    agent.finish(prompt, "cancelled")
    await agent.ended()


async def _is_answered_as_cancelled(
    case: ClientCase, agent: PlayedAgent, request: RecordedFrame, cancel: RecordedFrame
) -> None:
    answer = await _answer_in_time(agent, request)
    ok = answer is not None and answer.get("result", "outcome", "outcome") == "cancelled"
    for requirement in ("PROMPT-V1-12", "PERM-V1-03"):
        case.decide.check(
            requirement, ok,
            "expected the outcome `cancelled` for a permission request that was open when the client "
            f"cancelled its turn, got {_seen(answer)}", request, cancel, *([answer] if answer else []),
        )  # fmt: skip


async def _answer_in_time(agent: PlayedAgent, request: RecordedFrame) -> RecordedFrame | None:
    with suppress(NotSeen):
        return await agent.link.response(request)
    return None


def _seen(answer: RecordedFrame | None) -> str:
    return "no answer" if answer is None else "another answer"
