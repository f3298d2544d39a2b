"""What is done with sessions from outside: archiving, titles and their status (unstable), and the list.

None of it attaches the client to the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon.agent.permits import Permit
from antiphon.agent.titles import choose_title
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import InvalidParams, ResourceNotFound, SessionDamaged
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.presence import rfc3339
from antiphon.schema import v1, v2
from antiphon.schema.version import META_KEY
from antiphon.stores.base import LIST_LIMIT, RecordPatch, SessionRecord, Store

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent
    from antiphon.agent.link import Handlers, Link

ARCHIVED = "archived"
"""Where a session's record says so, among its `meta`."""
TITLE_LIMIT = 1000
_FILTER = v2.SessionArchiveFilter


def handlers(link: Link) -> Handlers:
    agent = link.agent

    async def list_page(params: Any, inbound: Inbound) -> Any:
        types: Any = v1 if link.v1 else v2
        wanted = _FILTER.EXCLUDE if params.archived is None else _FILTER(params.archived)
        records, cursor = await _page(agent.store, params.cwd, params.cursor, wanted, link.permit)
        sessions = [info_of(agent, record, types) for record in records]
        return types.ListSessionsResponse(sessions=sessions, next_cursor=cursor)

    async def archive(params: Any, inbound: Inbound) -> Any:
        await agent.archive(params.session_id)
        return {}

    async def unarchive(params: Any, inbound: Inbound) -> Any:
        await agent.unarchive(params.session_id)
        return {}

    async def status(params: Any, inbound: Inbound) -> Any:
        session = agent.find(params.session_id)
        if session is None:
            await record_of(agent.store, params.session_id)
            if link.v1:
                return v1.SessionStatusResponse(status=v1.SessionStatus.SAVED)
            return v2.SessionStatusResponse(status=v2.SessionStatus.SAVED)
        if link.v1:
            return v1.SessionStatusResponse(status=v1.SessionStatus.OPEN)
        state = session.fold.turns.snapshot()
        await session.live.durable()  # what is told is kept (invariant 1)
        return v2.SessionStatusResponse(status=v2.SessionStatus.OPEN, state=_plain(state))

    async def set_title(params: Any, inbound: Inbound) -> Any:
        title = _title(params.title)
        async with agent.aside(params.session_id) as live:
            await choose_title(live, title)
        agent.noticed(params.session_id)
        types: Any = v1 if link.v1 else v2
        return types.SetSessionTitleResponse(title=title)

    return {
        "session/list": list_page,
        "session/archive": archive,
        "session/unarchive": unarchive,
        "session/status": status,
        "session/set_title": set_title,
    }


def info_of(agent: Agent, record: SessionRecord, types: Any) -> Any:
    """A session as lists have it, in the types of a version."""
    return types.SessionInfo(
        session_id=record.session_id,
        cwd=record.cwd,
        additional_directories=list(record.additional_directories),
        title=record.title,
        updated_at=rfc3339(record.updated_at),
        archived=is_archived(record),  # SESS-54: on every one
        meta={META_KEY: agent.told_of(record)},
    )


async def record_of(store: Store, session_id: str) -> SessionRecord:
    record = await store.get(session_id)
    if record is None:
        raise ResourceNotFound("no such session", data={"sessionId": session_id})  # SESS-53, SESS-55
    return record


async def mark_archived(store: Store, session_id: str, *, archived: bool) -> None:
    record = await record_of(store, session_id)
    if record.fault is not None and record.fault.in_record:
        raise SessionDamaged(session_id, record.fault.found)  # what is unreadable in it would be replaced
    if is_archived(record) is not archived:
        meta = {key: value for key, value in record.meta.items() if key != ARCHIVED}
        await store.update(session_id, RecordPatch(meta={**meta, ARCHIVED: True} if archived else meta))


def is_archived(record: SessionRecord) -> bool:
    return record.meta.get(ARCHIVED) is True


async def _page(
    store: Store,
    cwd: str | None,
    cursor: str | None,
    wanted: v2.SessionArchiveFilter,
    permit: Permit,
) -> tuple[list[SessionRecord], str | None]:
    """Some of what is wanted, and where the list goes on; only its end is an empty page."""
    if not wanted.known:
        raise InvalidParams(f"`archived` cannot be {str(wanted)!r}")  # SESS-54
    found: list[SessionRecord] = []
    while True:
        listing = await store.list(cwd=cwd, after=cursor, limit=LIST_LIMIT)
        cursor = listing.next
        found += [
            record
            for record in listing.records
            if (wanted == _FILTER.INCLUDE or is_archived(record) is (wanted == _FILTER.ONLY))
            and SUBAGENT_OF not in record.meta
            and permit.shows(record.session_id)
        ]
        # To who sees only some of them, a cursor would tell of the others.
        if cursor is None or (2 * len(found) >= LIST_LIMIT and permit.sees_all):
            return found, cursor


def _title(given: str) -> str:
    """A title is one line that says something (SESS-57)."""
    title = " ".join(given.split())
    if not title or len(title) > TITLE_LIMIT:
        raise InvalidParams(f"a title is one line of 1 to {TITLE_LIMIT} characters")
    return title


def _plain(state: Any) -> Any:
    """The state as it stands in a result, where it is no update."""
    if not isinstance(state, v2.StateUpdate):
        return {key: value for key, value in state.items() if key != "sessionUpdate"}
    return v2.StateUpdate(
        state=state.state,
        stop_reason=state.stop_reason,
        error=state.error,
        usage=state.usage,
        background=state.background,
        meta=state.meta,
    )
