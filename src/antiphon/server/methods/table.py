"""The method table: one row per method that a client may call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from operator import attrgetter
from typing import Any

from msgspec import structs

from antiphon.connection.sessions import session_of
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import CloseSessionMeta
from antiphon.server.method import Act, Lane, Method, Opens, Role
from antiphon.server.methods import annotations as annotation_methods
from antiphon.server.methods import (
    answers,
    attachments,
    auth,
    config,
    extensions,
    prompts,
    providers,
    push,
    queue,
    records,
    search,
    sessions,
)
from antiphon.server.offer import Offer

OBSERVER, CONTROLLER, OWNER = Role.OBSERVER, Role.CONTROLLER, Role.OWNER
CONNECTION = Lane.CONNECTION
CLOSE_FOR_ALL = "session/close for all"
"""`session/close` with `_meta["antiphon"].forAll`; without it, a client only leaves."""
EXTENSION = "_"
"""Every extension method that is not ours: only client and agent know what it does."""


def _has_providers(offer: Offer) -> bool:
    """PROV-01: without a declared provider they are no methods of the agent."""
    return offer.has_providers


def _push(name: str, handler: Callable[[Any], Awaitable[Any]], act: Act) -> Method:
    has = attrgetter("has_push")
    return Method(name, handler, lane=CONNECTION, role=CONTROLLER, act=act, sessionless=True, offered=has)


_ROWS = (
    # --- the connection
    Method("initialize", lane=CONNECTION, role=OBSERVER, login=False, sessionless=True),
    # It reaches the client's own requests alone, in the lane of the request that it names.
    Method("$/cancel_request", lane=CONNECTION, role=OBSERVER, login=False, sessionless=True),
    Method("proxy/initialize", lane=CONNECTION),
    Method("proxy/successor", lane=CONNECTION),
    # --- login
    Method("authenticate", auth.log_in, lane=CONNECTION, act=Act.LOGIN, login=False),
    Method("auth/login", auth.log_in, lane=CONNECTION, act=Act.LOGIN, login=False),
    Method("logout", auth.log_out, lane=CONNECTION, act=Act.LOGIN, login=False),
    Method("auth/logout", auth.log_out, lane=CONNECTION, act=Act.LOGIN, login=False),
    Method("auth/status", auth.status, lane=CONNECTION, role=OBSERVER, login=False, sessionless=True),
    # --- sessions
    Method("session/new", sessions.new, lane=CONNECTION, role=CONTROLLER, act=Act.CREATE, opens=Opens.NEW),
    # The fork is another session.
    Method(
        "session/fork", sessions.fork, role=CONTROLLER, act=Act.CREATE, opens=Opens.NEW, leads_elsewhere=True
    ),
    Method("session/load", sessions.load, role=OBSERVER, subagents=True, opens=Opens.EXISTING),
    Method("session/resume", sessions.resume, role=OBSERVER, subagents=True, opens=Opens.EXISTING),
    # A client that may not act is only detached by it.
    Method("session/close", sessions.close, role=OBSERVER, act=Act.CLOSE, login=False),
    Method(CLOSE_FOR_ALL, sessions.close, act=Act.CLOSE, login=False),
    Method("session/delete", sessions.delete, act=Act.DELETE),
    Method(
        "session/list",
        records.list_sessions,
        lane=CONNECTION,
        role=OBSERVER,
        subagents=True,
        sessionless=True,
    ),
    Method(
        "_antiphon/search_sessions",
        search.search_sessions,
        lane=CONNECTION,
        role=OBSERVER,
        act=Act.CALL,
        sessionless=True,
        counts_as_search=True,
        offered=lambda offer: "searchSessions" in offer.ours,
    ),
    Method("session/status", records.status, role=OBSERVER, subagents=True),
    # Work in it ends, for everybody.
    Method("session/archive", records.archive, act=Act.ARCHIVE),
    Method("session/unarchive", records.unarchive, act=Act.ARCHIVE),
    Method("session/set_title", records.set_title, role=CONTROLLER, act=Act.CONFIG),
    Method("_antiphon/attach", attachments.attach, role=OBSERVER, act=Act.CALL),
    Method("_antiphon/detach", attachments.detach, role=OBSERVER, act=Act.CALL),
    # --- prompts and their queue
    Method("session/prompt", prompts.prompt, role=CONTROLLER, act=Act.PROMPT, counts_as_prompt=True),
    Method("_antiphon/inject", queue.inject, role=CONTROLLER, act=Act.PROMPT, counts_as_prompt=True),
    Method("_antiphon/replace_inject", queue.replace, role=CONTROLLER, act=Act.PROMPT, counts_as_prompt=True),
    Method("_antiphon/revoke_inject", queue.revoke, role=CONTROLLER, act=Act.CANCEL),
    Method("_antiphon/move_inject", queue.move, role=CONTROLLER, act=Act.CONFIG),
    Method("_antiphon/list_inject", queue.list_queue, role=OBSERVER, act=Act.CALL),
    Method("_antiphon/resume_queue", queue.resume, role=CONTROLLER, act=Act.CONFIG),
    # --- turns
    Method("session/cancel", notified=prompts.cancel, role=CONTROLLER, act=Act.CANCEL, subagents=True),
    Method("tool_call/cancel", prompts.cancel_tool_call, role=CONTROLLER, act=Act.CANCEL),
    Method("terminal/cancel", prompts.cancel_terminal, role=CONTROLLER, act=Act.CANCEL),
    Method("_antiphon/answer", answers.answer, role=CONTROLLER, act=Act.ANSWER),
    Method("_antiphon/annotate", annotation_methods.annotate, role=CONTROLLER, act=Act.ANNOTATE),
    Method("_antiphon/remove_annotation", annotation_methods.remove, role=CONTROLLER, act=Act.ANNOTATE),
    # It reaches nothing but a request that this very client was asked.
    Method(
        "mcp/message",
        notified=prompts.mcp_message,
        lane=CONNECTION,
        role=CONTROLLER,
        subagents=True,
        sessionless=True,
    ),
    # --- configuration
    Method("session/set_config_option", config.set_option, role=CONTROLLER, act=Act.CONFIG),
    Method("session/set_mode", config.set_mode, role=CONTROLLER, act=Act.CONFIG),
    Method("session/set_model", config.set_model, role=CONTROLLER, act=Act.CONFIG),
    # The list shows addresses.
    Method("providers/list", providers.list_providers, lane=CONNECTION, offered=_has_providers),
    Method("providers/set", providers.set_provider, lane=CONNECTION, act=Act.CONFIG, offered=_has_providers),
    Method("providers/disable", providers.disable, lane=CONNECTION, act=Act.CONFIG, offered=_has_providers),
    # --- Web Push: what a client subscribes is bound to its token, and shows its sessions only
    _push("_antiphon/push_key", push.key, Act.CALL),
    _push("_antiphon/push_subscribe", push.subscribe, Act.SUBSCRIBE),
    _push("_antiphon/push_unsubscribe", push.unsubscribe, Act.SUBSCRIBE),
    # --- extensions; those that follow are a hub's own
    Method(EXTENSION, extensions.call, role=CONTROLLER, act=Act.CALL),
    Method("_antiphon/journal", extensions.call, act=Act.EXPORT, subagents=True),
    Method("_antiphon/timeline", extensions.call, role=OBSERVER, act=Act.CALL, subagents=True),
    Method("_antiphon/transcript", extensions.call, role=OBSERVER, act=Act.CALL, subagents=True),
    # It shows the names of files, and is there to write a prompt.
    Method("_antiphon/find_files", extensions.call, role=CONTROLLER, act=Act.CALL),
    Method("_antiphon/link", extensions.call, act=Act.LINK, leads_elsewhere=True),
    Method("_antiphon/hubs", extensions.call, act=Act.CALL, leads_elsewhere=True),
    # It is for clients that may begin sessions anywhere.
    Method(
        "_antiphon/list_folders",
        extensions.call,
        lane=CONNECTION,
        role=CONTROLLER,
        act=Act.CALL,
        leads_elsewhere=True,
    ),
    Method("_antiphon/list_agents", extensions.call, role=CONTROLLER, act=Act.CALL, leads_elsewhere=True),
    # It lets the hub run one more program.
    Method("_antiphon/add_agent", extensions.call, act=Act.CONFIG, leads_elsewhere=True),
)


METHODS = {row.name: row for row in _ROWS}
_UNKNOWN = Method("", extensions.call)


def method_of(name: str) -> Method:
    """Return the row of a method. One of ours that is not listed is for owners alone."""
    known = METHODS.get(name)
    if known is not None:
        return known
    act = Act.CALL if name.startswith(EXTENSION) else Act.READ
    unknown = structs.replace(_UNKNOWN, name=name, act=act)
    return structs.replace(METHODS[EXTENSION], name=name) if unknown.is_foreign else unknown


def lane_of(name: str, params: object) -> str | None:
    """Return the session in whose lane a request or notification runs; `None` for that of the connection."""
    return session_of(params) if method_of(name).lane is Lane.SESSION else None


def meant_by(name: str, params: object) -> Method:
    """Return the row of a request: a `session/close` may be one for all clients."""
    if name == "session/close" and read_meta(CloseSessionMeta, getattr(params, "meta", None)).for_all:
        return METHODS[CLOSE_FOR_ALL]
    return method_of(name)
