"""Forks: a new session that goes on from a point of another one, which knows nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon.agent.beginning import enter
from antiphon.agent.sessions import check_setup
from antiphon.bridge import requests as upward
from antiphon.engine.events import Updated
from antiphon.engine.forking import forked
from antiphon.engine.session import Session
from antiphon.errors import InvalidParams, ResourceNotFound, SessionUnknown
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.reading import read_session
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent
    from antiphon.agent.link import Handlers, Link


async def source(agent: Agent, session_id: str, at: str | None) -> list[Updated]:
    """What a fork begins with. The session may be live here, in the store, or open in another process; it
    stays as it is (SESS-52)."""
    live = agent.find(session_id)
    if live is not None:
        made = _cut(live.fold, at)
        await live.live.durable()  # nothing is shown in the fork that the source could lose
        return made
    try:
        return _cut(await read_session(agent.store, session_id), at)
    except SessionUnknown:
        raise ResourceNotFound("no such session", data={"sessionId": session_id}) from None


def _cut(fold: Session, at: str | None) -> list[Updated]:
    updates = forked(fold, at=at)
    if updates is None:
        raise ResourceNotFound("no such message", data={"reason": "unknown_message_id", "messageId": at})
    return [Updated.of(update) for update in updates]


def handlers(link: Link) -> Handlers:
    async def fork(params: Any, inbound: Inbound) -> Any:
        wanted: v2.ForkSessionRequest = upward.fork_session(params) if link.v1 else params
        check_setup(wanted, link.agent.system_prompts)
        at = _message(wanted.meta)
        session = await link.agent.beginning.begin(wanted, lambda: link.agent.fork(wanted, at=at, maker=link))
        return enter(link, session, inbound, v2.ForkSessionResponse)

    return {"session/fork": fork}


def _message(meta: dict[str, Any] | None) -> str | None:
    """Our own: the message after which to fork."""
    ours = (meta or {}).get(META_KEY)
    at = ours.get("messageId") if isinstance(ours, dict) else None
    if at is not None and not isinstance(at, str):
        raise InvalidParams("`messageId` is the id of a message")
    return at
