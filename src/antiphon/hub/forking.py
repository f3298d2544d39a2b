"""A fork at the hub: the agent's own, where it has one; else a session that is told what happened so far."""

from __future__ import annotations

import logging

from antiphon.errors import CallFailed, InvalidResult, LinkLost, LocalError, RequestError
from antiphon.hub.bringing import go_on
from antiphon.hub.feed import UpstreamFeed
from antiphon.hub.mcp_offers import Provision
from antiphon.hub.upstream import Upstream
from antiphon.hub.work import UpstreamWork
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

logger = logging.getLogger("antiphon.hub")


async def fork_there(
    source: UpstreamWork, wanted: v2.ForkSessionRequest, provision: Provision, *, at: str | None
) -> tuple[Upstream, UpstreamFeed] | None:
    """A session at the agent that goes on from that of `source`, in the same process; `None` where the agent
    cannot do it, or not at that message."""
    try:
        feed = await source.binding.bring()
        upstream, able = source.binding.upstream, feed.session.abilities
        if upstream is None or not able.fork or (at is not None and not able.fork_at):
            return None
        able.check_setup(wanted.mcp_servers, wanted.additional_directories)
        there_at = None if at is None else source.agents_message_id(at)
        if at is not None and there_at is None:
            return None
        servers = upstream.mcp_offers.tell(wanted.mcp_servers, provision)
        there = v2.ForkSessionRequest(
            session_id=v2.SessionId(feed.session.id),
            cwd=wanted.cwd,
            mcp_servers=list(servers),
            additional_directories=wanted.additional_directories,
            meta=None if there_at is None else {META_KEY: {"messageId": there_at}},
        )
        begin = upstream.client._begin
        session = await begin(there, servers, prepare=lambda fork: go_on(fork, source.fold))
    except (CallFailed, InvalidResult, LinkLost, LocalError, RequestError) as error:
        logger.warning("the agent does not fork session %s: %s", source.id, error)
        return None
    return upstream, upstream.feed(session)
