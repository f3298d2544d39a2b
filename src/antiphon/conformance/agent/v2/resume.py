"""Scenarios about `session/resume` in v2: the state, the replay, and the ids of what is replayed."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation, is_busy, is_idle, state
from antiphon.conformance.agent.v2.work import (
    INVALID_PARAMS,
    MESSAGES,
    Entity,
    begin_slow,
    entity,
    inserted_id,
    run_turn,
    words_of,
)
from antiphon.conformance.link import METHOD_NOT_FOUND
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("v2-resume", shares=True)
FROM_START = {"type": "start"}
BAD_CURSORS: tuple[Any, ...] = ({"type": "_antiphon.judge/unknown"}, {}, "start")


class Resumed:
    """One `session/resume`, and what the agent sent before its answer."""

    def __init__(self, agent: Conversation, request: RecordedFrame, response: RecordedFrame) -> None:
        self.request = request
        self.response = response
        updates = agent.updates(request.params["sessionId"], after=request)
        self.before = [frame for frame in updates if frame.index < response.index]
        self.after = [frame for frame in updates if frame.index > response.index]
        self.history = [frame for frame in self.before if entity(frame) is not None]


async def resume(agent: Conversation, session: str, **params: Any) -> Resumed:
    """Resume a session, and wait for what follows the answer. Close it first if it cannot be resumed open.

    Raises `Refused`.
    """
    request = agent.resume(session, **params)
    response = await agent.link.response(request)
    if response.error is not UNSET:
        await agent.link.call("session/close", {"sessionId": session})
        request = agent.resume(session, **params)
        response = await agent.link.accepted(request)
    await agent.link.barrier()
    return Resumed(agent, request, response)


def decide_state(case: AgentCase, resumed: Resumed) -> None:
    """Decide whether a state was reported after any replay and before the answer. It may be any state."""
    last = resumed.history[-1].index if resumed.history else -1
    states = [frame for frame in resumed.before if state(frame) is not None and frame.index > last]
    case.decide.check(
        "SESS-21", bool(states),
        "expected a `state_update` after any replay and before the answer to `session/resume`",
        resumed.request, *resumed.before[-3:], resumed.response, *resumed.after[:1],
    )  # fmt: skip


@scenarios.add("SESS-17", "SESS-21", versions=(2,))
async def resume_without_replay(case: AgentCase) -> None:
    """A resume without `replayFrom` sends no history, and the state before its answer."""
    agent, session = await case.open_session()
    await run_turn(agent, session, case.prompts.plain)
    known = {entity(frame) for frame in agent.updates(session)}
    resumed = await resume(agent, session)
    replayed = [frame for frame in resumed.history if entity(frame) in known]
    case.decide.check(
        "SESS-17", not replayed, "expected no history before the answer to a resume without `replayFrom`",
        resumed.request, *replayed, resumed.response,
    )  # fmt: skip
    decide_state(case, resumed)


@scenarios.add("SESS-18", "SESS-21", "SESS-22", "SESS-23", versions=(2,))
async def resume_with_replay(case: AgentCase) -> None:
    """A resume from the start replays the history before its answer, under the ids it had."""
    agent, session = await case.open_session()
    prompt, _ = await run_turn(agent, session, case.prompts.plain)
    await agent.link.barrier()
    known = {entity(frame) for frame in agent.updates(session)} - {None}
    resumed = await resume(agent, session, replayFrom=FROM_START)
    late = [frame for frame in resumed.after if entity(frame) in known]
    case.decide.check(
        "SESS-18", not late, "expected all history before the answer to `session/resume`, and none after it",
        resumed.request, resumed.response, *late,
    )  # fmt: skip
    decide_state(case, resumed)
    case.decide.need(bool(resumed.history), "the agent retained no history")
    unprimed = [frame for frame in _first_of_each(resumed.history) if not _replaces(frame)]
    case.decide.check(
        "SESS-23", not unprimed, "expected a message with `content: []` before the chunks that replay it",
        resumed.request, *unprimed, resumed.response,
    )  # fmt: skip
    id = await inserted_id(agent, prompt)
    words = {key: text for key, text in words_of(resumed.history).items() if key[0] == "user_message"}
    same = [key for key, text in words.items() if text == case.prompts.plain]
    case.decide.need(bool(same), "the agent did not retain the user message")
    case.decide.check(
        "SESS-22", same == [("user_message", id)],
        f"expected the replayed prompt to have the id {id!r} of the answer to `session/prompt`",
        prompt, await agent.link.response(prompt),
        *(frame for frame in resumed.history if entity(frame) in same), resumed.response,
    )  # fmt: skip


def _first_of_each(history: list[RecordedFrame]) -> list[RecordedFrame]:
    """Return the first update of every message."""
    first: dict[Entity, RecordedFrame] = {}
    for frame in history:
        found = entity(frame)
        if found is not None and found[0] in MESSAGES:
            first.setdefault(found, frame)
    return list(first.values())


def _replaces(frame: RecordedFrame) -> bool:
    """Whether an update replaces the content of a message. A chunk does not."""
    return frame.update_kind in MESSAGES and "content" in frame.update


@scenarios.add("MSG-04", "MSG-12", versions=(2,))
async def replayed_messages_are_those_that_were_sent(case: AgentCase) -> None:
    """A message of the agent has one id for all its chunks, and the same id when it is replayed."""
    agent, session = await case.open_session()
    await run_turn(agent, session, case.prompts.plain)
    live = agent.updates(session)
    resumed = await resume(agent, session, replayFrom=FROM_START)
    sent, replayed = _outputs(live), _outputs(resumed.history)
    case.decide.need(bool(sent) and bool(replayed), "the agent retained no message of its own")
    for key, text in replayed.items():
        parts = _parts(sent, key[0], text)
        involved = {key, *((key[0], part) for part in parts)}
        frames = [frame for frame in live + resumed.history if entity(frame) in involved]
        case.decide.check(
            "MSG-04", len(parts) < 2,
            f"expected one id for all chunks of a message, got {', '.join(map(repr, parts))}", *frames,
        )  # fmt: skip
        if len(parts) == 1:
            case.decide.check(
                "MSG-12", parts[0] == key[1],
                f"expected the replayed message to keep its id {parts[0]!r}, got {key[1]!r}", *frames,
            )  # fmt: skip


def _outputs(frames: list[RecordedFrame]) -> dict[Entity, str]:
    """Return the text of the agent's own messages and thoughts that have any."""
    return {key: text for key, text in words_of(frames).items() if key[0] != "user_message" and text}


def _parts(sent: dict[Entity, str], kind: str, text: str) -> list[str]:
    """Return the ids of the messages of a type, sent one after the other, whose texts make up this text."""
    ids = [id for each, id in sent if each == kind]
    for start in range(len(ids)):
        whole = ""
        for end in range(start, len(ids)):
            whole += sent[kind, ids[end]]
            if whole == text:
                return ids[start : end + 1]
    return []


@scenarios.add("SESS-19", versions=(2,))
async def an_unknown_cursor_is_refused(case: AgentCase) -> None:
    """A resume with an unknown or malformed cursor is refused with -32602."""
    agent, session = await case.open_session()
    await run_turn(agent, session, case.prompts.plain)
    known = await agent.link.response(agent.resume(session))
    case.decide.need(known.error is UNSET, "the agent does not resume a session that is open")
    for cursor in BAD_CURSORS:
        request = agent.resume(session, replayFrom=cursor)
        response = await agent.link.response(request)
        case.decide.check(
            "SESS-19", response.error_code == INVALID_PARAMS,
            f"expected `-32602` for the cursor {cursor!r}", request, response,
        )  # fmt: skip


@scenarios.add("SESS-21", versions=(2,))
async def resume_during_a_turn(case: AgentCase) -> None:
    """A resume while the agent works reports that it works."""
    work = await begin_slow(case)
    request = work.agent.resume(work.session)
    response = await work.agent.link.response(request)
    case.decide.need(response.error is UNSET, "the agent does not resume a session that works")
    resumed = Resumed(work.agent, request, response)
    read = await work.agent.link.barrier()
    known = work.entities(request)
    seen = await work.agent.update(
        work.session, lambda frame: entity(frame) in known or is_idle(frame), "output", after=read
    )
    case.decide.need(not is_idle(seen), "the turn ended by itself; see --prompt slow=TEXT")
    # A message that goes on after the answer: the agent worked all the time.
    states = [frame for frame in resumed.before if state(frame) is not None]
    case.decide.check(
        "SESS-21", bool(states) and is_busy(states[-1]),
        "expected the state `running` before the answer to a `session/resume` during work",
        request, *states, response, seen,
    )  # fmt: skip
    work.agent.cancel(work.session)


@scenarios.add("SESS-16", "SESS-30", versions=(2,))
async def the_methods_of_v2_exist(case: AgentCase) -> None:
    """Listing, resuming and closing exist without a marker, and `session/load` does not exist."""
    agent, session = await case.open_session()
    load = agent.link.request("session/load", {"sessionId": session, "cwd": agent.cwd, "mcpServers": []})
    response = await agent.link.response(load)
    case.decide.check(
        "SESS-16", response.error is not UNSET,
        "expected an error for `session/load`, which v2 does not have", load, response,
    )  # fmt: skip
    params = {"sessionId": session}
    for request in (
        agent.link.request("session/list"), agent.resume(session), agent.link.request("session/close", params)
    ):  # fmt: skip
        response = await agent.link.response(request)
        case.decide.check(
            "SESS-30", response.error_code != METHOD_NOT_FOUND,
            f"expected `{request.method}` to exist in v2", request, response,
        )  # fmt: skip
