"""Sessions from outside: the list, archiving, titles and status. None of them attaches the client."""

from __future__ import annotations

from typing import Any

from msgspec import structs, to_builtins

from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import InvalidParams, SessionDamaged, one_line
from antiphon.live.presence import rfc3339
from antiphon.live.stored_session import read_session
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.hub import Fault, SessionInfoMeta
from antiphon.schema.version import META_KEY
from antiphon.server.registry import SessionRegistry, record_of
from antiphon.server.request import Request
from antiphon.server.session_facts import TITLE_LIMIT
from antiphon.stores.base import LIST_LIMIT, RecordPatch, SessionRecord, Store

ARCHIVED = "archived"
"""The key in the `meta` of a session's record that says so."""
_FILTER = v2.SessionArchiveFilter


async def list_sessions(request: Request) -> Any:
    client, registry, params = request.client, request.registry, request.params
    types = client.types
    wanted = _FILTER.EXCLUDE if params.archived is None else _FILTER(params.archived)
    records, cursor = await _page(request, wanted)
    sessions = [info_of(registry, record, types) for record in records]
    return types.ListSessionsResponse(sessions=sessions, next_cursor=cursor)


async def archive(request: Request) -> Any:
    """Hide a session from the usual list; work in it ends, as by a close (SESS-53)."""
    registry, session_id = request.registry, request.params.session_id
    await registry.close_if_open(session_id, request.client.policy)
    await _mark_archived(registry.store, session_id, archived=True)
    registry.changed(session_id)
    return {}


async def unarchive(request: Request) -> Any:
    await _mark_archived(request.registry.store, request.params.session_id, archived=False)
    request.registry.changed(request.params.session_id)
    return {}


async def status(request: Request) -> Any:
    client, registry, types = request.client, request.registry, request.client.types
    session_id = request.params.session_id
    session = registry.serving(session_id)
    if session is None:
        await record_of(registry.store, session_id)
        if not await registry.is_open_elsewhere(session_id):
            return types.SessionStatusResponse(status=types.SessionStatus.SAVED)
    if client.v1:
        return v1.SessionStatusResponse(status=v1.SessionStatus.OPEN)
    if session is None:
        state = (await read_session(registry.store, session_id)).turns.snapshot()
    else:
        state = session.fold.turns.snapshot()
        await session.feed.durable()  # a client sees only what is kept (invariant 1)
    return v2.SessionStatusResponse(status=v2.SessionStatus.OPEN, state=_plain(state))


async def set_title(request: Request) -> Any:
    registry, session_id, title = request.registry, request.params.session_id, _title(request.params.title)
    await registry.rename(session_id, title, request.client.policy)
    registry.changed(session_id)
    return request.client.types.SetSessionTitleResponse(title=title)


def info_of(registry: SessionRegistry, record: SessionRecord, types: Any) -> Any:
    """Return a session as lists have it, in the types of a version."""
    glance, fault = registry.glance(record.session_id), record.fault
    ours = SessionInfoMeta(
        agent=registry.agent_of(record),
        state=None if glance is None else glance.state,
        clients=None if glance is None else glance.clients,
        fault=None if fault is None else Fault(kind=fault.kind, found=one_line(fault.found)),
    )
    return types.SessionInfo(
        session_id=record.session_id,
        cwd=record.cwd,
        additional_directories=list(record.additional_directories),
        title=record.title,
        updated_at=rfc3339(record.updated_at),
        archived=is_archived(record),  # SESS-54: on every one
        meta={META_KEY: to_builtins(ours)},
    )


async def _mark_archived(store: Store, session_id: str, *, archived: bool) -> None:
    record = await record_of(store, session_id)
    if record.fault is not None and record.fault.in_record:
        raise SessionDamaged(session_id, record.fault.found)  # what is unreadable in it would be replaced
    if is_archived(record) is not archived:
        meta = {key: value for key, value in record.meta.items() if key != ARCHIVED}
        await store.update(session_id, RecordPatch(meta={**meta, ARCHIVED: True} if archived else meta))


def is_archived(record: SessionRecord) -> bool:
    return record.meta.get(ARCHIVED) is True


async def _page(request: Request, wanted: v2.SessionArchiveFilter) -> tuple[list[SessionRecord], str | None]:
    """Return a page of the list and the cursor of the next one. Only the last page may be empty."""
    if not wanted.known:
        raise InvalidParams(f"`archived` cannot be {str(wanted)!r}")  # SESS-54
    policy, cursor = request.client.policy, request.params.cursor
    found: list[SessionRecord] = []
    while True:
        listing = await request.registry.store.list(cwd=request.params.cwd, after=cursor, limit=LIST_LIMIT)
        cursor = listing.next
        found += [
            record
            for record in listing.records
            if (wanted == _FILTER.INCLUDE or is_archived(record) is (wanted == _FILTER.ONLY))
            and SUBAGENT_OF not in record.meta
            and policy.shows(record.session_id)
        ]
        # A cursor would show a client that other sessions exist, which it may not know of.
        if cursor is None or (2 * len(found) >= LIST_LIMIT and policy.sees_all):
            return found, cursor


def _title(given: str) -> str:
    """A title is one line that says something (SESS-57)."""
    title = " ".join(given.split())
    if not title or len(title) > TITLE_LIMIT:
        raise InvalidParams(f"a title is one line of 1 to {TITLE_LIMIT} characters")
    return title


def _plain(state: Any) -> Any:
    """Return a state as a result has it, which is no update."""
    if not isinstance(state, v2.StateUpdate):
        return {key: value for key, value in state.items() if key != "sessionUpdate"}
    return v2.StateUpdate(**{**structs.asdict(state), "proposed_reason": None})
