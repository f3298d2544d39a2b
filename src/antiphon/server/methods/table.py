"""The method table: one row per method that a client may call."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from antiphon.connection.sessions import session_of
from antiphon.schema.version import ours_in
from antiphon.server.method import OURS, Act, Lane, Method, Opens, Role
from antiphon.server.methods import annotations as annotation_methods
from antiphon.server.methods import (
    answers,
    attachments,
    auth,
    config,
    extensions,
    prompts,
    providers,
    queue,
    records,
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


_ROWS = (
    # --- the connection
    Method(name="initialize", lane=CONNECTION, role=OBSERVER, login=False, sessionless=True),
    # It reaches the client's own requests alone, in the lane of the request that it names.
    Method(name="$/cancel_request", lane=CONNECTION, role=OBSERVER, login=False, sessionless=True),
    Method(name="proxy/initialize", lane=CONNECTION),
    Method(name="proxy/successor", lane=CONNECTION),
    # --- login
    Method(name="authenticate", handler=auth.log_in, lane=CONNECTION, act=Act.LOGIN, login=False),
    Method(name="auth/login", handler=auth.log_in, lane=CONNECTION, act=Act.LOGIN, login=False),
    Method(name="logout", handler=auth.log_out, lane=CONNECTION, act=Act.LOGIN, login=False),
    Method(name="auth/logout", handler=auth.log_out, lane=CONNECTION, act=Act.LOGIN, login=False),
    Method(
        name="auth/status", handler=auth.status, lane=CONNECTION, role=OBSERVER, login=False, sessionless=True
    ),
    # --- sessions
    Method(
        name="session/new",
        handler=sessions.new,
        lane=CONNECTION,
        role=CONTROLLER,
        act=Act.CREATE,
        opens=Opens.NEW,
    ),
    Method(
        name="session/fork",
        handler=sessions.fork,
        role=CONTROLLER,
        act=Act.CREATE,
        opens=Opens.NEW,
        leads_elsewhere=True,  # the fork is another session
    ),
    Method(
        name="session/load",
        handler=sessions.load,
        role=OBSERVER,
        subagents=True,
        opens=Opens.EXISTING,
    ),
    Method(
        name="session/resume",
        handler=sessions.resume,
        role=OBSERVER,
        subagents=True,
        opens=Opens.EXISTING,
    ),
    # Whoever may not act only leaves by it.
    Method(name="session/close", handler=sessions.close, role=OBSERVER, act=Act.CLOSE, login=False),
    Method(name=CLOSE_FOR_ALL, handler=sessions.close, act=Act.CLOSE, login=False),
    Method(name="session/delete", handler=sessions.delete, act=Act.DELETE),
    Method(
        name="session/list",
        handler=records.list_sessions,
        lane=CONNECTION,
        role=OBSERVER,
        subagents=True,
        sessionless=True,
    ),
    Method(name="session/status", handler=records.status, role=OBSERVER, subagents=True),
    # Work in it ends, for everybody.
    Method(name="session/archive", handler=records.archive, act=Act.ARCHIVE),
    Method(name="session/unarchive", handler=records.unarchive, act=Act.ARCHIVE),
    Method(name="session/set_title", handler=records.set_title, role=CONTROLLER, act=Act.CONFIG),
    Method(name="_antiphon/attach", handler=attachments.attach, role=OBSERVER, act=Act.CALL),
    Method(name="_antiphon/detach", handler=attachments.detach, role=OBSERVER, act=Act.CALL),
    # --- prompts and their queue
    Method(
        name="session/prompt",
        handler=prompts.prompt,
        role=CONTROLLER,
        act=Act.PROMPT,
        counts_as_prompt=True,
    ),
    Method(
        name="_antiphon/inject",
        handler=queue.inject,
        role=CONTROLLER,
        act=Act.PROMPT,
        counts_as_prompt=True,
    ),
    Method(
        name="_antiphon/replace_inject",
        handler=queue.replace,
        role=CONTROLLER,
        act=Act.PROMPT,
        counts_as_prompt=True,
    ),
    Method(name="_antiphon/revoke_inject", handler=queue.revoke, role=CONTROLLER, act=Act.CANCEL),
    Method(name="_antiphon/move_inject", handler=queue.move, role=CONTROLLER, act=Act.CONFIG),
    Method(name="_antiphon/list_inject", handler=queue.list_queue, role=OBSERVER, act=Act.CALL),
    Method(name="_antiphon/resume_queue", handler=queue.resume, role=CONTROLLER, act=Act.CONFIG),
    # --- turns
    Method(name="session/cancel", notified=prompts.cancel, role=CONTROLLER, act=Act.CANCEL, subagents=True),
    Method(name="tool_call/cancel", handler=prompts.cancel_tool_call, role=CONTROLLER, act=Act.CANCEL),
    Method(name="terminal/cancel", handler=prompts.cancel_terminal, role=CONTROLLER, act=Act.CANCEL),
    Method(name="_antiphon/answer", handler=answers.answer, role=CONTROLLER, act=Act.ANSWER),
    Method(name="_antiphon/annotate", handler=annotation_methods.annotate, role=CONTROLLER, act=Act.ANNOTATE),
    Method(
        name="_antiphon/remove_annotation",
        handler=annotation_methods.remove,
        role=CONTROLLER,
        act=Act.ANNOTATE,
    ),
    # It reaches nothing but a request that this very client was asked.
    Method(
        name="mcp/message",
        notified=prompts.mcp_message,
        lane=CONNECTION,
        role=CONTROLLER,
        subagents=True,
        sessionless=True,
    ),
    # --- configuration
    Method(name="session/set_config_option", handler=config.set_option, role=CONTROLLER, act=Act.CONFIG),
    Method(name="session/set_mode", handler=config.set_mode, role=CONTROLLER, act=Act.CONFIG),
    Method(name="session/set_model", handler=config.set_model, role=CONTROLLER, act=Act.CONFIG),
    # The list shows addresses.
    Method(name="providers/list", handler=providers.list_providers, lane=CONNECTION, offered=_has_providers),
    Method(
        name="providers/set",
        handler=providers.set_provider,
        lane=CONNECTION,
        act=Act.CONFIG,
        offered=_has_providers,
    ),
    Method(
        name="providers/disable",
        handler=providers.disable,
        lane=CONNECTION,
        act=Act.CONFIG,
        offered=_has_providers,
    ),
    # --- extensions; the next four are a hub's own
    Method(name=EXTENSION, handler=extensions.call, role=CONTROLLER, act=Act.CALL),
    Method(name="_antiphon/journal", handler=extensions.call, act=Act.EXPORT, subagents=True),
    Method(name="_antiphon/timeline", handler=extensions.call, role=OBSERVER, act=Act.CALL, subagents=True),
    Method(name="_antiphon/transcript", handler=extensions.call, role=OBSERVER, act=Act.CALL, subagents=True),
    Method(name="_antiphon/link", handler=extensions.call, act=Act.LINK, leads_elsewhere=True),
)


def _by_name(rows: Iterable[Method]) -> dict[str, Method]:
    return {row.name: row for row in rows}


METHODS = _by_name(_ROWS)
_UNKNOWN = Method(name="", handler=extensions.call)


def method_of(name: str) -> Method:
    """Return the row of a method. One of ours that is not listed is for owners alone."""
    known = METHODS.get(name)
    if known is not None:
        return known
    foreign = name.startswith(EXTENSION) and not name.startswith(OURS)
    act = Act.CALL if name.startswith("_") else Act.READ
    return structs.replace(METHODS[EXTENSION] if foreign else _UNKNOWN, name=name, act=act)


def lane_of(name: str, params: object) -> str | None:
    """Return the session in whose lane a request or notification runs; `None` for that of the connection."""
    return session_of(params) if method_of(name).lane is Lane.SESSION else None


def meant_by(name: str, params: object) -> Method:
    """Return the row of a request: a `session/close` may be one for all clients."""
    if name == "session/close" and ours_in(getattr(params, "meta", None)).get("forAll") is True:
        return METHODS[CLOSE_FOR_ALL]
    return method_of(name)
