"""Scenarios about sessions: their ids, their setup, and how they are listed, closed and deleted."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import datetime
from itertools import pairwise
from typing import Any

from msgspec import UNSET

from antiphon.conformance.agent.cancel import check_end, long_turn
from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation, is_content
from antiphon.conformance.agent.initialization import NO_SUCH_SESSION
from antiphon.conformance.link import METHOD_NOT_FOUND, NotSeen, Refused
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("sessions", shares=True)

INVALID_PARAMS = -32602
MOST_PAGES = 50
"""How many pages of a list the judge reads to find its session."""


def offers(agent: Conversation, method: str) -> bool:
    """Whether the agent has an optional method of sessions. In v2 a list and a close are no option."""
    if agent.version == 1:
        return agent.offers("sessionCapabilities", method)
    return agent.offers("session") and (
        method in ("list", "close", "resume") or agent.offers("session", method)
    )


def require_offer(case: AgentCase, agent: Conversation, method: str, *only: str) -> None:
    """End the scenario unless the agent has an optional method. `only`: what does not apply without it."""
    case.decide.applies(offers(agent, method), f"the agent does not advertise `{method}`", *only)


async def listed(agent: Conversation, session: str, **params: Any) -> tuple[Any, list[RecordedFrame]]:
    """Return the entry of a session in `session/list`, and the frames that were read; `None` without one.

    Raises `NotSeen` if the list cannot be read.
    """
    frames: list[RecordedFrame] = []
    for _ in range(MOST_PAGES):
        request = agent.link.request("session/list", params)
        response = await agent.link.accepted(request)
        frames = [request, response]
        sessions = response.get("result", "sessions")
        for entry in sessions if isinstance(sessions, list) else []:
            if isinstance(entry, dict) and entry.get("sessionId") == session:
                return entry, frames
        cursor = response.get("result", "nextCursor")
        if cursor is UNSET or cursor is None:
            return None, frames
        params = {**params, "cursor": cursor}
    raise NotSeen(f"the session is not on the first {MOST_PAGES} pages of the list")


def entry_fault(entry: Any) -> str:
    """Return what is wrong with an entry of `session/list`; empty if nothing is."""
    if not isinstance(entry, dict):
        return "an entry is no object"
    if not isinstance(entry.get("sessionId"), str) or not entry["sessionId"]:
        return "`sessionId` is missing"
    if not is_absolute(entry.get("cwd")):
        return "`cwd` is not an absolute path"
    directories = entry.get("additionalDirectories")
    if directories is not None and not (isinstance(directories, list) and all(map(is_absolute, directories))):
        return "`additionalDirectories` are not absolute paths"
    if not isinstance(entry.get("title"), str | None):
        return "`title` is not a string"
    changed = entry.get("updatedAt")
    try:
        if changed is not None:
            datetime.fromisoformat(changed)
    except (TypeError, ValueError):
        return "`updatedAt` is not a time in ISO 8601"
    return ""


def is_absolute(path: Any) -> bool:
    """Whether a path is absolute where the agent runs, which may be another system."""
    return isinstance(path, str) and (path.startswith(("/", "\\\\")) or path[1:3] in (":\\", ":/"))


# --- setup ---------------------------------------------------------------------------------------------


@scenarios.add("SESS-03")
async def ids_are_unique(case: AgentCase) -> None:
    """Every session has an id of its own."""
    agent = await case.open()
    created = [await agent.created_session() for _ in range(3)]
    ids = [response.result["sessionId"] for response in created]
    case.decide.check(
        "SESS-03", all(ids) and len(set(ids)) == len(ids),
        "expected a different `sessionId`, not empty, for every session", *created,
    )  # fmt: skip


@scenarios.add("SESS-10")
async def additional_directories_are_the_complete_list(case: AgentCase) -> None:
    """A session that is resumed without additional directories has none."""
    agent = await case.open()
    require_offer(case, agent, "additionalDirectories")
    way = "resume" if offers(agent, "resume") else "load"
    case.decide.need(offers(agent, "list"), "the agent cannot list sessions, so its directories are not seen")
    case.decide.need(
        way == "resume" or agent.offers("loadSession"), "the agent cannot resume or load a session"
    )
    extra = os.path.join(case.cwd, "extra")
    os.makedirs(extra, exist_ok=True)
    created = agent.link.request("session/new", {**agent.setup(), "additionalDirectories": [extra]})
    response = await agent.link.response(created)
    case.decide.check(
        "SESS-10", response.error_code != INVALID_PARAMS,
        "expected additional directories to be accepted, because they are advertised", created, response,
    )  # fmt: skip
    if not isinstance(session := response.get("result", "sessionId"), str):
        raise NotSeen("the session was not made")
    entry, _ = await listed(agent, session)
    case.decide.need(
        isinstance(entry, dict) and bool(entry.get("additionalDirectories")),
        "the list does not show the additional directories",
    )
    if offers(agent, "close"):  # who joins a session that is open elsewhere may not change its setup
        await agent.link.call("session/close", {"sessionId": session})
    resumed = agent.resume(session) if way == "resume" else agent.load(session)
    answer = await agent.link.response(resumed)
    case.decide.need(answer.error is UNSET, f"`{resumed.method}` was refused")
    entry, frames = await listed(agent, session)
    case.decide.check(
        "SESS-10", not (entry or {}).get("additionalDirectories"),
        f"expected no additional directories after `{resumed.method}` named none",
        created, resumed, answer, *frames,
    )  # fmt: skip


@scenarios.add("MCPCFG-01", versions=(1,))
async def stdio_servers_are_always_supported(case: AgentCase) -> None:
    """A v1 session can be made with an MCP server that is a process."""
    agent = await case.open()
    await agent.new_session()
    program = shutil.which("true") or sys.executable
    server = {"name": "antiphon-judge", "command": program, "args": ["--version"], "env": []}
    request, response = await agent.link.exchange("session/new", {"cwd": case.cwd, "mcpServers": [server]})
    case.decide.check(
        "MCPCFG-01", response.error_code != INVALID_PARAMS,
        "expected an MCP server that is a process to be accepted", request, response,
    )  # fmt: skip


@scenarios.add("MCPCFG-05", "MCPCFG-06", versions=(2,))
async def mcp_servers_are_checked(case: AgentCase) -> None:
    """A v2 agent rejects MCP transports that it does not support, and two servers of one name."""
    agent = await case.open()
    await agent.new_session()
    unknown = {"type": "_antiphon.judge", "name": "unknown"}
    request, response = await agent.link.exchange("session/new", {**agent.setup(), "mcpServers": [unknown]})
    case.decide.check(
        "MCPCFG-05", response.error_code == INVALID_PARAMS,
        f"expected {INVALID_PARAMS} for an MCP transport that does not exist", request, response,
    )  # fmt: skip
    offered = agent.offers("session", "mcp", "stdio")
    case.decide.applies(offered, "the agent does not advertise `session.mcp.stdio`")
    server = {"type": "stdio", "name": "same", "command": sys.executable, "args": ["-c", ""]}
    request = agent.link.request("session/new", {**agent.setup(), "mcpServers": [server, server]})
    response = await agent.link.response(request)
    case.decide.check(
        "MCPCFG-06", response.error_code == INVALID_PARAMS,
        f"expected {INVALID_PARAMS} for two MCP servers of one name", request, response,
    )  # fmt: skip


# --- lists ---------------------------------------------------------------------------------------------


@scenarios.add("SESS-31", "SESS-32", "SESS-33", "SESS-35")
async def lists_have_their_shape(case: AgentCase) -> None:
    """A list has sessions with an id and a folder, and is empty if no session fits."""
    agent = await case.open()
    require_offer(case, agent, "list")
    session = await agent.new_session()
    await agent.run_turn(session, case.prompts.plain)
    below = os.path.join(case.cwd, "below")
    pages: dict[str, tuple[dict[str, Any], bool]] = {
        "of all sessions": ({}, False),
        "of one folder": ({"cwd": case.cwd}, False),
        "of a folder without sessions": ({"cwd": below}, True),
    }
    for name, (params, empty) in pages.items():
        request, response = await agent.link.exchange("session/list", params)
        case.decide.need(response.error_code != METHOD_NOT_FOUND, "`session/list` does not exist")
        sessions = response.get("result", "sessions")
        ok = isinstance(sessions, list) and not (empty and sessions)
        expected = f"expected `sessions` as an {'empty ' if empty else ''}array in the list {name}"
        case.decide.check("SESS-31", ok, expected, request, response)
        faults = [
            fault
            for entry in (sessions if isinstance(sessions, list) else [])
            if (fault := entry_fault(entry))
        ]
        case.decide.check(
            "SESS-32", not faults,
            "expected every session to have its fields" + (f"; {faults[0]}" if faults else ""),
            request, response,
        )  # fmt: skip
    if agent.version == 2:
        entry, frames = await listed(agent, session, cwd=os.path.dirname(case.cwd))
        case.decide.check(
            "SESS-33",
            entry is None,
            "expected a list of one folder to leave out the folders in it",
            *frames,
        )
    request, response = await agent.link.exchange("session/list", {"cursor": "antiphon-judge-no-such-cursor"})
    case.decide.check(
        "SESS-35", response.error is not UNSET, "expected an error for an invalid cursor", request, response
    )


@scenarios.add("SESS-37", "SESS-50")
async def a_list_changes_nothing(case: AgentCase) -> None:
    """Reading the list leaves a session as it was, and a turn leaves its folder as it was."""
    agent = await case.open()
    require_offer(case, agent, "list")
    session = await agent.new_session()
    before, frames = await listed(agent, session)
    await agent.run_turn(session, case.prompts.plain)
    await agent.link.barrier()
    reads = [await listed(agent, session) for _ in range(4)]
    case.decide.need(all(entry is not None for entry, _ in reads), "the list does not show the session")
    updates = [frame for frame in agent.updates(session, after=reads[0][1][0]) if is_content(frame)]
    # The agent may change the session itself meanwhile, for example its title. It does not do so each time.
    same = any(one == two for one, two in pairwise(entry.get("updatedAt") for entry, _ in reads))
    case.decide.check(
        "SESS-37", same and not updates, "expected a list neither to load nor to change a session",
        *(frame for _, pair in reads for frame in pair), *updates,
    )  # fmt: skip
    if before is not None:
        case.decide.check(
            "SESS-50", before.get("cwd") == reads[0][0].get("cwd"),
            "expected the same `cwd` before and after a turn", *frames, *reads[0][1],
        )  # fmt: skip


# --- the end -------------------------------------------------------------------------------------------


@scenarios.add("SESS-38", "PROMPT-V1-14", "PROMPT-V1-15")
async def closing_ends_the_work(case: AgentCase) -> None:
    """Closing a session is answered with an object, and ends the turn that runs in it."""
    agent = await case.open()
    require_offer(case, agent, "close", "SESS-38")
    idle = await agent.new_session()
    await check_closed(case, agent, idle)
    if agent.version == 2:
        return
    session = await agent.new_session()
    prompt = await long_turn(case, agent, session)
    close = await check_closed(case, agent, session)
    await check_end(case, agent, prompt, close, requirement="SESS-38")


async def check_closed(case: AgentCase, agent: Conversation, session: str) -> RecordedFrame:
    """Close a session, check the answer, and return the request. Raises `Refused`."""
    close = agent.link.request("session/close", {"sessionId": session})
    response = await case.answered("SESS-38", agent.link, close)
    if response.error_code == METHOD_NOT_FOUND and not case.decide.has("baseline-methods"):
        raise Refused(close, response)
    ok = isinstance(response.result, dict) or (agent.version == 1 and response.result is None)
    case.decide.check("SESS-38", ok, "expected `{}` as the result of `session/close`", close, response)
    if response.error is not UNSET:
        raise Refused(close, response)  # what works in the session is not cancelled
    return close


@scenarios.add("SESS-47", "SESS-48")
async def a_deleted_session_is_gone(case: AgentCase) -> None:
    """A deleted session is in no list, and deleting one that does not exist succeeds."""
    agent = await case.open()
    require_offer(case, agent, "delete")
    session = await agent.new_session()
    await agent.run_turn(session, case.prompts.plain)
    closes = offers(agent, "close")
    if closes:
        await agent.link.response(agent.link.request("session/close", {"sessionId": session}))
    delete = agent.link.request("session/delete", {"sessionId": session})
    response = await case.answered("SESS-47", agent.link, delete)
    # SESS-49: an agent decides whether an open session can be deleted.
    case.decide.need(closes or response.error is UNSET, "the agent refuses to delete an open session")
    ok = isinstance(response.result, dict) or (agent.version == 1 and response.result is None)
    case.decide.check("SESS-47", ok, "expected `{}` as the result of `session/delete`", delete, response)
    if ok and offers(agent, "list"):
        entry, frames = await listed(agent, session)
        case.decide.check(
            "SESS-47", entry is None, "expected a deleted session in no list", delete, response, *frames
        )
    for name, unknown in (("a deleted", session), ("an unknown", NO_SUCH_SESSION)):
        request, again = await agent.link.exchange("session/delete", {"sessionId": unknown})
        case.decide.check(
            "SESS-48", again.error is UNSET, f"expected success for {name} session", request, again
        )
