"""Scenarios about prompts that a v2 client sends while the agent works: inserted at once, held or refused.

The work waits for a permission, so that the judge decides when it goes on. An agent may insert such a prompt
at once or hold it. No published text forbids refusing it: then nothing is tested.
"""

from __future__ import annotations

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import select_first_allow
from antiphon.conformance.agent.v2.work import (
    CANCELLED,
    REQUEST_CANCELLED,
    Work,
    begin_blocked,
    inserted_id,
    is_user_message,
    words_of,
)
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("v2-held-prompts", shares=True)
REFUSES = "the agent refuses prompts while it works"


async def submit(case: AgentCase, work: Work, *words: str) -> list[RecordedFrame]:
    """Send prompts while the work goes on. Ends the scenario if the agent refuses one at once."""
    prompts = [work.agent.prompt(work.session, f"{case.prompts.plain} ({each})") for each in words]
    await work.agent.link.barrier()
    answers = [work.agent.link.recording.response_to(prompt) for prompt in prompts]
    refused = any(answer is not None and answer.error is not UNSET for answer in answers)
    case.decide.need(not refused, REFUSES)
    return prompts


def go_on(work: Work) -> None:
    """Let the work go on: give the permission it waits for."""
    assert work.question is not None
    work.agent.link.on_request("session/request_permission", select_first_allow)
    select_first_allow(work.agent.link, work.question)


async def message_of(work: Work, prompt: RecordedFrame, id: str) -> RecordedFrame:
    """Wait for the user message of a prompt."""
    return await work.agent.update(
        work.session, lambda frame: is_user_message(frame) and frame.update.get("messageId") == id,
        "the user message of a held prompt", after=prompt,
    )  # fmt: skip


def shown(work: Work, prompt: RecordedFrame) -> list[RecordedFrame]:
    """Return the user messages that repeat the text of a prompt."""
    frames = [frame for frame in work.agent.updates(work.session, after=prompt) if is_user_message(frame)]
    words = prompt.params["prompt"][0]["text"]
    ids = [id for (_, id), text in words_of(frames).items() if words in text]
    return [frame for frame in frames if frame.update.get("messageId") in ids]


@scenarios.add("PROMPT-V2-32", versions=(2,))
async def held_prompts_are_inserted_in_order(case: AgentCase) -> None:
    """Prompts that wait for the end of the work are inserted in the order in which they were sent."""
    work = await begin_blocked(case)
    prompts = await submit(case, work, "one", "two", "three")
    go_on(work)
    ids = [await inserted_id(work.agent, prompt) for prompt in prompts]
    case.decide.need(len(set(ids)) == len(ids), "two prompts have the same message id")
    for prompt, id in zip(prompts, ids, strict=True):
        await message_of(work, prompt, id)
    order = list(dict.fromkeys(
        frame.update.get("messageId")
        for frame in work.agent.updates(work.session, after=prompts[0])
        if is_user_message(frame) and frame.update.get("messageId") in ids
    ))  # fmt: skip
    case.decide.check(
        "PROMPT-V2-32", order == ids,
        "expected prompts that were sent during work to be inserted in the order in which they were sent",
        *prompts, *(frame for prompt in prompts for frame in shown(work, prompt)),
    )  # fmt: skip


@scenarios.add("PROMPT-V2-34", "QUEUE-03", versions=(2,))
async def cancel_takes_held_prompts(case: AgentCase) -> None:
    """A cancel fails the prompts that are not inserted yet with -32800, and they are never shown."""
    work = await begin_blocked(case)
    prompts = await submit(case, work, "one", "two")
    cancel = work.agent.cancel(work.session)
    assert work.question is not None
    work.agent.link.answer(work.question, CANCELLED)
    end = await work.end(after=cancel)
    for prompt in prompts:
        expected = "expected a prompt that was not inserted before a cancel to fail with `-32800`"
        answer = await answer_or_none(work, prompt)
        case.decide.check(
            "PROMPT-V2-34", answer is not None and answer.error_code in (None, REQUEST_CANCELLED), expected,
            prompt, cancel, end, *([] if answer is None else [answer]),
        )  # fmt: skip
        if answer is not None and answer.error is UNSET:
            # It was inserted. After the end of the cancelled work that is too late.
            inserted_before = answer.index < end.index
            case.decide.check("PROMPT-V2-34", inserted_before, expected, prompt, cancel, end, answer)
        await decide_never_shown(case, work, prompt, answer)


async def answer_or_none(work: Work, prompt: RecordedFrame) -> RecordedFrame | None:
    try:
        return await work.agent.link.response(prompt)
    except NotSeen:
        return None


@scenarios.add("RPC-31", "QUEUE-03", versions=(2,))
async def a_held_prompt_can_be_withdrawn(case: AgentCase) -> None:
    """A prompt whose request is cancelled is answered: inserted, or with -32800 and never shown."""
    work = await begin_blocked(case)
    (prompt,) = await submit(case, work, "one")
    withdrawal = work.agent.link.notify("$/cancel_request", {"requestId": prompt.id})
    go_on(work)
    end = await work.end(after=withdrawal)
    answer = await answer_or_none(work, prompt)
    case.decide.check(
        "RPC-31", answer is not None and answer.error_code in (None, REQUEST_CANCELLED),
        "expected an answer to the withdrawn prompt: inserted, or failed with `-32800`",
        prompt, withdrawal, end, *([] if answer is None else [answer]),
    )  # fmt: skip
    await decide_never_shown(case, work, prompt, answer)


async def decide_never_shown(
    case: AgentCase, work: Work, prompt: RecordedFrame, answer: RecordedFrame | None
) -> None:
    """Decide that a prompt which failed was not inserted."""
    if answer is None or answer.error is UNSET:
        return
    await work.agent.link.barrier()
    seen = shown(work, prompt)
    case.decide.check(
        "QUEUE-03", not seen, "expected no user message of a prompt that failed: it marks the insertion",
        prompt, *seen, answer,
    )  # fmt: skip
