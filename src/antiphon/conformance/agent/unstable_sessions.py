"""Scenarios about methods of sessions that are unstable: fork, archive, status and title."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation, is_content
from antiphon.conformance.agent.initialization import NO_SUCH_SESSION
from antiphon.conformance.agent.replays import ended_turn, reopen
from antiphon.conformance.agent.sessions import INVALID_PARAMS, listed, offers, require_offer
from antiphon.conformance.agent.turns import words
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("unstable-sessions", shares=True)

NOT_FOUND = -32002


async def ask(
    agent: Conversation, method: str, session: str, **params: Any
) -> tuple[RecordedFrame, RecordedFrame]:
    """Send a request about a session. Return it with its response."""
    request = agent.link.request(method, {"sessionId": session, **params})
    return request, await agent.link.response(request)


async def history(case: AgentCase, agent: Conversation, session: str) -> tuple[int, list[RecordedFrame]]:
    """Load a session and return how many prompts it has, with the frames of the replay."""
    case.decide.need(agent.version == 2 or agent.offers("loadSession"), "the agent cannot load a session")
    loaded = await reopen(case, agent, session, load=True)
    prompts = words(loaded.replay, "user_message").count("".join(case.prompts.plain.split()))
    return prompts, [loaded.request, *loaded.replay, loaded.response]


@scenarios.add("SESS-52")
async def a_fork_leaves_its_source(case: AgentCase) -> None:
    """A turn of a fork is not part of the session that was forked."""
    agent = await case.open()
    require_offer(case, agent, "fork")
    source = await agent.new_session()
    await ended_turn(case, agent, source)
    before, _ = await history(case, agent, source)
    case.decide.need(before == 1, "the replay does not show the prompt")
    request, response = await ask(agent, "session/fork", source, **agent.setup())
    fork = response.get("result", "sessionId")
    case.decide.need(isinstance(fork, str) and fork != source, "the session could not be forked")
    await agent.run_turn(fork, case.prompts.plain)
    after, frames = await history(case, agent, source)
    case.decide.check(
        "SESS-52", after == before, "expected a fork to leave the history of its source as it was",
        request, response, *frames,
    )  # fmt: skip


@scenarios.add("SESS-53", "SESS-54")
async def an_archived_session_is_hidden_and_kept(case: AgentCase) -> None:
    """An archived session is in no ordinary list, keeps its history, and can be brought back."""
    agent = await case.open()
    require_offer(case, agent, "archive")
    decide = case.decide
    decide.check(
        "SESS-54", offers(agent, "list"), "expected an agent that archives sessions to list them",
        *agent.introduction,
    )  # fmt: skip
    session = await agent.new_session()
    await ended_turn(case, agent, session)
    entry, _ = await listed(agent, session)
    decide.need(entry is not None, "the list does not show the session")
    for again in ("", " again"):
        frames = await ask(agent, "session/archive", session)
        decide.check(
            "SESS-53", frames[1].error is UNSET, f"expected a session to be archived{again}", *frames
        )
    entry, shown = await listed(agent, session)
    decide.check(
        "SESS-53", entry is None, "expected an archived session in no ordinary list", *frames, *shown
    )
    unknown = await ask(agent, "session/archive", NO_SUCH_SESSION)
    decide.check(
        "SESS-53",
        unknown[1].error_code == NOT_FOUND,
        f"expected {NOT_FOUND} for an unknown session",
        *unknown,
    )
    for choice in ("include", "only"):
        entry, shown = await listed(agent, session, archived=choice)
        decide.check(
            "SESS-54", isinstance(entry, dict) and entry.get("archived") is True,
            f"expected the archived session, marked as `archived`, in the list with `{choice}`", *shown,
        )  # fmt: skip
    request, response = await agent.link.exchange("session/list", {"archived": "antiphon-judge-unknown"})
    decide.check(
        "SESS-54", response.error_code == INVALID_PARAMS,
        f"expected {INVALID_PARAMS} for an unknown filter", request, response,
    )  # fmt: skip
    frames = await ask(agent, "session/unarchive", session)
    entry, shown = await listed(agent, session)
    replayed = [frame for frame in agent.updates(session, after=frames[0]) if is_content(frame)]
    decide.check(
        "SESS-53", entry is not None and not replayed,
        "expected a session that is brought back in the list, and not loaded", *frames, *shown, *replayed,
    )  # fmt: skip
    prompts, shown = await history(case, agent, session)
    decide.check("SESS-53", prompts == 1, "expected an archived session to keep its history", *frames, *shown)


@scenarios.add("SESS-55")
async def a_status_has_no_effect(case: AgentCase) -> None:
    """`session/status` says whether a session is open, and an unknown session is an error."""
    agent = await case.open()
    require_offer(case, agent, "status")
    session = await agent.new_session()
    await ended_turn(case, agent, session)
    request, response = await ask(agent, "session/status", session)
    await agent.link.barrier()
    updates = [frame for frame in agent.updates(session, after=request) if is_content(frame)]
    case.decide.check(
        "SESS-55", isinstance(response.get("result", "status"), str) and not updates,
        "expected `status` in the answer, and no replay", request, response, *updates,
    )  # fmt: skip
    request, response = await ask(agent, "session/status", NO_SUCH_SESSION)
    case.decide.check(
        "SESS-55",
        response.error_code == NOT_FOUND and response.get("error", "data", "sessionId") == NO_SUCH_SESSION,
        f"expected {NOT_FOUND} with the `sessionId` as data for an unknown session", request, response,
    )  # fmt: skip


@scenarios.add("SESS-57")
async def a_title_is_stored(case: AgentCase) -> None:
    """`session/set_title` answers with the title that the list shows."""
    agent = await case.open()
    require_offer(case, agent, "title")
    session = await agent.new_session()
    request, response = await ask(agent, "session/set_title", session, title="Judged by Antiphon")
    stored = response.get("result", "title")
    case.decide.check(
        "SESS-57", isinstance(stored, str) and bool(stored), "expected the stored title", request, response
    )
    await ended_turn(case, agent, session)
    if isinstance(stored, str) and offers(agent, "list"):
        entry, frames = await listed(agent, session)
        if entry is not None and entry.get("title") is not None:
            case.decide.check(
                "SESS-57", entry["title"] == stored, "expected the list to keep the stored title",
                request, response, *frames,
            )  # fmt: skip
    request, response = await ask(agent, "session/set_title", session, title=7)
    case.decide.check(
        "SESS-57", response.error_code == INVALID_PARAMS,
        f"expected {INVALID_PARAMS} for a title that is a number", request, response,
    )  # fmt: skip
