"""`_antiphon/search_sessions`: find words in the contents of sessions. It attaches the client to none."""

from __future__ import annotations

import asyncio

from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import MethodNotFound
from antiphon.schema.antiphon import hub as wire
from antiphon.server.request import Request
from antiphon.stores.base import Store
from antiphon.stores.search.base import Match, MatchKind, searches

SECONDS = 2.0
"""How long one request may search."""
PAGES = 8
"""Pages that are read for one answer, if matches of subagents fill them."""


async def search_sessions(request: Request) -> wire.SearchSessionsResponse:
    async with request.client.policy.searching():
        return await _search(request)


async def _search(request: Request) -> wire.SearchSessionsResponse:
    params: wire.SearchSessionsRequest = request.params
    store, policy = request.registry.store, request.client.policy
    searcher = searches(store)
    if searcher is None:
        raise MethodNotFound("_antiphon/search_sessions")
    found: list[Match] = []
    cursor, complete = params.cursor, True
    until = asyncio.get_running_loop().time() + SECONDS
    for _ in range(PAGES):
        left = until - asyncio.get_running_loop().time()
        page = await searcher.search(
            params.query,
            sessions=policy.only,
            limit=params.limit - len(found),
            after=cursor,
            seconds=max(left, SECONDS / 4),
        )
        found += await _listed(store, page.matches)
        cursor, complete = page.next, complete and page.complete
        if cursor is None or len(found) >= params.limit or left <= 0:
            break
    return wire.SearchSessionsResponse(
        matches=[_match(match) for match in found], next_cursor=cursor, incomplete=not complete
    )


async def _listed(store: Store, matches: tuple[Match, ...]) -> list[Match]:
    """Return the matches in sessions that lists have: not those of subagents."""
    listed: dict[str, bool] = {}
    for session_id in {match.session_id for match in matches}:
        record = await store.get(session_id)
        listed[session_id] = record is not None and SUBAGENT_OF not in record.meta
    return [match for match in matches if listed[match.session_id]]


def _match(match: Match) -> wire.SearchMatch:
    is_message = match.kind in (MatchKind.USER, MatchKind.AGENT, MatchKind.THOUGHT)
    return wire.SearchMatch(
        session_id=match.session_id,
        title=match.title,
        message_id=match.id if is_message else None,
        tool_call_id=match.id if match.kind is MatchKind.TOOL else None,
        role=wire.SearchRole(match.kind),
        seq=match.seq,
        at=match.at,
        snippet=match.snippet,
        ranges=list(match.ranges),
    )
