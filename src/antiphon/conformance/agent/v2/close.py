"""Scenarios about `session/close` in v2: during work, with held prompts, with open questions, and twice."""

from __future__ import annotations

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import is_idle, stop_reason
from antiphon.conformance.agent.v2.held_prompts import submit
from antiphon.conformance.agent.v2.work import CANCELLED, REQUEST_CANCELLED, Work, begin_blocked, begin_slow
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame, same_id
from antiphon.conformance.scenario import Collection

scenarios = Collection("v2-close", shares=True)


async def close(case: AgentCase, work: Work) -> tuple[RecordedFrame, RecordedFrame]:
    """Close the session. Return the request and its answer. Raises `Refused`, `NotSeen`."""
    request = work.agent.link.request("session/close", {"sessionId": work.session})
    if work.question is not None and not case.decide.has("permission-withdrawal"):
        work.agent.link.answer(work.question, CANCELLED)  # In older revisions this was up to the client.
    response = await work.agent.link.accepted(request)
    return request, response


@scenarios.add("SESS-40", "SESS-42", versions=(2,))
async def close_while_a_message_streams(case: AgentCase) -> None:
    """Work that is closed ends as cancelled before the answer, and nothing follows it."""
    work = await begin_slow(case)
    request, response = await close(case, work)
    await decide_end(case, work, request, response)
    read = await work.agent.link.barrier()
    late = [
        frame for frame in work.agent.link.since(response)
        if frame.session_id == work.session and frame.index < read.index and not is_idle(frame)
    ]  # fmt: skip
    case.decide.check(
        "SESS-42", not late, "expected nothing for the session after the answer to `session/close`",
        request, response, *late,
    )  # fmt: skip


async def decide_end(case: AgentCase, work: Work, request: RecordedFrame, response: RecordedFrame) -> None:
    """Decide whether closed work ended as cancelled before the answer to the close."""
    ends = [frame for frame in work.agent.updates(work.session, after=request) if is_idle(frame)]
    before = [frame for frame in ends if frame.index < response.index]
    by_itself = bool(before) and stop_reason(before[-1]) != "cancelled" and work.question is None
    case.decide.need(not by_itself, "the work may have ended before the close; see --prompt slow=TEXT")
    case.decide.check(
        "SESS-40", bool(before) and stop_reason(before[-1]) == "cancelled",
        "expected `idle` with `cancelled` before the answer to `session/close` of a session that works",
        work.prompt, request, *ends, response,
    )  # fmt: skip


@scenarios.add("SESS-40", "SESS-43", versions=(2,))
async def close_during_a_permission(case: AgentCase) -> None:
    """A close withdraws open questions before its answer."""
    work = await begin_blocked(case)
    question = work.question
    assert question is not None
    request, response = await close(case, work)
    await decide_end(case, work, request, response)
    withdrawn = [
        frame for frame in work.agent.link.since(request)
        if frame.method == "$/cancel_request" and same_id(frame.get("params", "requestId"), question.id)
    ]  # fmt: skip
    case.decide.check(
        "SESS-43", any(frame.index < response.index for frame in withdrawn),
        "expected `$/cancel_request` for the open permission request before the answer to `session/close`",
        question, request, *withdrawn, response,
    )  # fmt: skip


@scenarios.add("SESS-41", versions=(2,))
async def close_takes_held_prompts(case: AgentCase) -> None:
    """A close fails the prompts that are not inserted with -32800."""
    work = await begin_blocked(case)
    prompts = await submit(case, work, "one", "two")
    request, closed = await close(case, work)
    for prompt in prompts:
        expected = "expected a prompt that a close kept from being inserted to fail with `-32800`"
        try:
            answer = await work.agent.link.response(prompt)
        except NotSeen as unseen:
            case.decide.check("SESS-41", False, f"{expected}: {unseen}", prompt, request, closed)
            return
        ok = answer.error_code in (None, REQUEST_CANCELLED)
        case.decide.check("SESS-41", ok, expected, prompt, request, closed, answer)


@scenarios.add("SESS-44", versions=(2,))
async def close_an_unknown_session(case: AgentCase) -> None:
    """Closing a session that does not exist, or a second time, succeeds."""
    agent = await case.open()
    created = await agent.created_session()
    session = created.result["sessionId"]
    unknown = f"judge-{case.random.getrandbits(64):x}"
    await close(case, Work(agent, session, created))
    for id in (session, unknown):
        request, response = await agent.link.exchange("session/close", {"sessionId": id})
        case.decide.check(
            "SESS-44", response.error is UNSET, "expected the close of a session that is not open to succeed",
            request, response,
        )  # fmt: skip
