"""Scenarios about turns: the order of updates, and when a turn has ended."""

from __future__ import annotations

from typing import Any

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import SESSION, USER_MESSAGE, PlayedAgent, state, text
from antiphon.conformance.client.printed import Words, printed_words
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("turns")

FLOOD = 1500
"""Chunks of a flood. With the filling they are more than a pipe holds, so that a client has to wait."""
FILLING = "that is long enough to fill the pipe to the screen "
INVALID_PARAMS, INTERNAL_ERROR, ODD_CODE = -32602, -32603, 4711


@scenarios.add("RPC-37", "PROMPT-V1-04")
async def flood_of_chunks(case: ClientCase) -> None:
    """A client that prints slowly still shows every chunk, in order, before it takes the turn as ended."""
    agent, prompt = await case.open_prompt()
    agent.run.program.hold_output()
    agent.accept(prompt)
    words = Words()
    chunks = [agent.say(f"{words()} {FILLING}") for _ in range(FLOOD)]
    end = agent.finish(prompt)
    agent.run.program.release_output()
    found = printed_words(await agent.output(), words.all)
    tail = bool(found.missing) and found.missing == tuple(words.all[-len(found.missing) :])
    if case.version == 1:
        case.decide.check(
            "PROMPT-V1-04", not tail,
            f"expected the client to apply all {FLOOD} chunks before it took the turn as ended; "
            f"the last {len(found.missing)} are missing from its output", *chunks[-3:], end,
        )  # fmt: skip
        if tail:
            return
    case.decide.check(
        "RPC-37", found.complete,
        f"expected the client to print {FLOOD} chunks in the order in which they were sent; "
        f"{len(found.missing)} are missing, and the others are {'in' if found.ordered else 'out of'} order",
        *chunks[:3], *chunks[-3:], end,
    )  # fmt: skip


@scenarios.add("PROMPT-V2-52", versions=(2,))
async def answer_is_not_the_end(case: ClientCase) -> None:
    """A client waits for the idle state after the prompt is answered."""
    agent, prompt = await case.begin_turn()
    await _goes_on(case, agent, "PROMPT-V2-52", "the prompt was answered", prompt)


@scenarios.add("PROMPT-V2-19", versions=(2,))
async def idle_of_other_work(case: ClientCase) -> None:
    """The idle state of work that the agent began by itself does not end a prompt that is open."""
    agent = await case.open({"session/new": None})
    agent.link.answer(await agent.asked("session/new"), {"sessionId": SESSION})
    agent.update(state("running"))
    prompt = await agent.prompt()
    idle = agent.update(state("idle", stopReason="end_turn"))
    await _goes_on(case, agent, "PROMPT-V2-19", "other work ended", prompt, idle)


@scenarios.add("PROMPT-V2-20", versions=(2,))
async def repeated_idle(case: ClientCase) -> None:
    """An idle state that is sent again ends no turn."""
    agent = await case.open({"session/new": None})
    agent.link.answer(await agent.asked("session/new"), {"sessionId": SESSION})
    first = agent.update(state("idle", stopReason="end_turn"))
    prompt = await agent.prompt()
    again = agent.update(state("idle", stopReason="end_turn"))
    await _goes_on(case, agent, "PROMPT-V2-20", "an idle state was sent again", first, prompt, again)


async def _goes_on(
    case: ClientCase, agent: PlayedAgent, requirement: str, after: str, *frames: RecordedFrame
) -> None:
    """Check that the client takes part in the turn that follows, and shows its text."""
    expected = f"expected the client to wait for the end of its turn after {after}"
    prompt = next(frame for frame in frames if frame.method == "session/prompt")
    words = Words()
    try:
        await agent.link.barrier()
    except NotSeen:
        if not agent.link.ended:
            raise
        case.decide.check(requirement, False, f"{expected}; it closed the connection", *frames)
        return
    if agent.link.recording.response_to(prompt) is None:
        agent.accept(prompt)
    late = agent.say(words())
    end = agent.finish(prompt)
    found = printed_words(await agent.output(), words.all)
    case.decide.check(
        requirement,
        found.complete,
        f"{expected}; it did not print the text that followed",
        *frames,
        late,
        end,
    )


@scenarios.add("PROMPT-V2-14", versions=(2,))
async def idle_without_a_stop_reason(case: ClientCase) -> None:
    """An idle state ends the turn, also if its stop reason is missing or malformed."""
    for fields in ({}, {"stopReason": None}, {"stopReason": 7}):
        agent, prompt = await case.begin_turn()
        agent.say("done")
        end = agent.update(state("idle", **fields))
        case.decide.need(case.manner.exits, "the client does not end after its turn")
        ok = case.decide.check(
            "PROMPT-V2-14", await agent.ended(),
            "expected the client to take any idle state as the end of its turn; it went on waiting",
            prompt, end,
        )  # fmt: skip
        if not ok:
            return


@scenarios.add("PROMPT-V2-05", versions=(2,))
async def echo_before_the_answer(case: ClientCase) -> None:
    """The user's message may come back before the prompt is answered."""
    agent, prompt = await case.open_prompt()
    agent.update(state("running"))
    echo = agent.echo(prompt)
    answer = agent.link.answer(prompt, {"messageId": USER_MESSAGE})
    await _survives(case, agent, "PROMPT-V2-05", "the message before the answer", prompt, echo, answer)


@scenarios.add("SESS-07", versions=(2,))
async def updates_before_the_session_is_known(case: ClientCase) -> None:
    """Updates of a session may come before the answer to `session/new`."""
    agent = await case.open({"session/new": None})
    new = await agent.asked("session/new")
    early = [agent.update(update) for update in _outside_a_turn()]
    answer = agent.link.answer(new, {"sessionId": SESSION})
    prompt = await _prompt_or_fail(case, agent, "SESS-07", new, *early, answer)
    agent.accept(prompt)
    await _survives(case, agent, "SESS-07", "updates before the session was known", *early, answer, prompt)


@scenarios.add("PROMPT-V2-29", versions=(2,))
async def updates_outside_of_turns(case: ClientCase) -> None:
    """Updates may come while the session is idle, before the first prompt."""
    agent = await case.open({"session/new": None})
    answer = agent.link.answer(await agent.asked("session/new"), {"sessionId": SESSION})
    early = [agent.update(update) for update in _outside_a_turn()]
    prompt = await _prompt_or_fail(case, agent, "PROMPT-V2-29", answer, *early)
    agent.accept(prompt)
    await _survives(case, agent, "PROMPT-V2-29", "updates in an idle session", answer, *early, prompt)


def _outside_a_turn() -> list[dict[str, Any]]:
    return [
        state("idle"),
        {"sessionUpdate": "session_info_update", "title": "Judged"},
        {"sessionUpdate": "agent_message", "messageId": "judge-early", "content": [text("Welcome.")]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "judge-early-call", "status": "completed"},
    ]


async def _prompt_or_fail(
    case: ClientCase, agent: PlayedAgent, requirement: str, *frames: RecordedFrame
) -> RecordedFrame:
    """Wait for the prompt. A client that sends it in a plain turn, and not here, did not take the updates."""
    try:
        return await agent.prompt()
    except NotSeen as unseen:
        if case.manner.prompts:
            expected = "expected the client to take updates outside of turns and to go on"
            case.decide.check(requirement, False, f"{expected}; {unseen}", *frames)
        raise


async def _survives(
    case: ClientCase, agent: PlayedAgent, requirement: str, what: str, *frames: RecordedFrame
) -> None:
    """Check that the client shows the text of a turn that has begun."""
    expected = f"expected the client to take {what} and to show the text of its turn"
    words = Words()
    late = agent.say(words())
    end = agent.finish(frames[-1])
    found = printed_words(await agent.output(), words.all)
    case.decide.check(requirement, found.complete, f"{expected}; it did not print it", *frames, late, end)


@scenarios.add("PROMPT-V2-55", versions=(2,))
async def rejected_prompt(case: ClientCase) -> None:
    """A rejected prompt shows in the error response alone; no state follows."""
    agent, prompt = await case.open_prompt()
    refusal = agent.link.refuse(prompt, INVALID_PARAMS, "Unsupported content")
    case.decide.need(case.manner.exits, "the client does not end after its turn")
    case.decide.check(
        "PROMPT-V2-55", await agent.ended(),
        "expected the client to end its turn when the prompt was refused; it went on waiting",
        prompt, refusal,
    )  # fmt: skip


@scenarios.add("RPC-23")
async def error_code_of_no_list(case: ClientCase) -> None:
    """A client takes an error with any code as an error."""
    agent = await case.open({"session/new": None})
    new = await agent.asked("session/new")
    refusal = agent.link.refuse(new, ODD_CODE, "The judge refuses")
    await _gives_up(case, agent, "RPC-23", f"the code {ODD_CODE}", new, refusal)


@scenarios.add("RPC-26")
async def error_data_of_any_shape(case: ClientCase) -> None:
    """A client takes an error with any `data` as an error."""
    agent = await case.open({"session/new": None})
    new = await agent.asked("session/new")
    error = {"code": INTERNAL_ERROR, "message": "The judge refuses", "data": [None, {"a": [1.5]}, "b"]}
    refusal = agent.link.send({"id": new.id, "error": error})
    await _gives_up(case, agent, "RPC-26", "`data` that is a list", new, refusal)


async def _gives_up(
    case: ClientCase, agent: PlayedAgent, requirement: str, what: str, *frames: RecordedFrame
) -> None:
    """Check that a client ends whose session was refused."""
    case.decide.need(case.manner.exits, "the client does not end after its turn")
    case.decide.check(
        requirement, await agent.ended(),
        f"expected the client to take an error with {what} as an error and to end; it went on waiting",
        *frames,
    )  # fmt: skip
