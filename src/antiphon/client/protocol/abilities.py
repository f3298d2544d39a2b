"""Abilities: what an agent can do, in one form for both protocol versions. An ability that the agent did not
announce is absent (INIT-14)."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from antiphon.errors import LocalError
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.clients import AgentCapabilitiesMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.version import Extras, ours_in, without_ours

CONTENT_ABILITIES: dict[type, str] = {
    v2.ImageContent: "image",
    v2.AudioContent: "audio",
    v2.EmbeddedResource: "embedded_context",
}
"""The ability that each kind of content needs. Text and links need none (CONT-02)."""

SESSION_ABILITIES = ("delete", "additional_directories", "fork", "archive", "status", "title")
"""Those that both versions announce by a session capability of the same name."""
MCP_TRANSPORTS = ("stdio", "http", "acp")


class Abilities(Struct, frozen=True, kw_only=True):
    """What an agent announced in its answer to `initialize`."""

    sessions: bool = False
    """Whether the agent has sessions at all."""
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    load: bool = False
    """Whether a session can be reopened with its history."""
    resume: bool = False
    """Whether a session can be reopened."""
    listing: bool = False
    """Whether the agent lists the sessions it keeps."""
    close: bool = False
    delete: bool = False
    fork: bool = False
    annotations: bool = False
    """Whether clients can put reactions and notes on messages."""
    fork_at: bool = False
    """Whether a session can be forked after any of its messages."""
    archive: bool = False
    status: bool = False
    """Whether the agent reports the status of sessions that are not open here."""
    title: bool = False
    """Whether clients can set session titles."""
    system_prompt: frozenset[str] = frozenset()
    """The supported system prompt modes: `append`, `override`."""
    logout: bool = False
    auth_status: bool = False
    """Whether the agent reports the login status."""
    providers: bool = False
    """Whether clients can set the agent's model providers."""
    additional_directories: bool = False
    mcp: frozenset[str] = frozenset()
    """The kinds of MCP servers that the agent accepts: `stdio`, `http`, `acp`."""
    delivery: frozenset[str] = frozenset()
    """How a prompt may be delivered while the session works: `queue`, `steer`, `interrupt`."""
    queue: bool = False
    """Whether prompts can be queued, edited, moved and withdrawn."""
    operations: frozenset[str] = frozenset()
    """The operations that the agent runs at most once per operation id: `prompt`, `cancel`, `new`, …"""
    replay_after: bool = False
    """Whether a session can be followed after an event of a known number."""
    ours: AgentCapabilitiesMeta = AgentCapabilitiesMeta()
    """The content of `_meta["antiphon"]`."""
    extras: Extras = Extras()
    """What the agent confirmed of what any client may ask for."""
    announces: dict[str, Any] = {}
    """The rest of the capabilities' `_meta`: the extensions that the agent has (EXT-01)."""

    def check_content(self, content: list[v2.ContentBlock]) -> None:
        """Raise `LocalError` for content that the agent cannot take (PROMPT-V1-01)."""
        if not content:
            raise LocalError("a prompt needs at least one content block, got none")  # PROMPT-V2-01
        for block in content:
            needed = CONTENT_ABILITIES.get(type(block))
            if needed is not None and not getattr(self, needed):
                raise LocalError(f"this agent takes no {needed.replace('_', ' ')} in a prompt")

    def check_setup(self, servers: Sequence[v2.McpServer], directories: Sequence[str]) -> None:
        """Raise `LocalError` for MCP servers or directories that the agent cannot take."""
        if not self.sessions:
            raise LocalError("this agent offers no sessions")
        if directories and not self.additional_directories:
            raise LocalError("this agent takes no additional directories")  # SESS-09
        names = [server.get("name") if isinstance(server, dict) else server.name for server in servers]
        if len(set(names)) != len(names):
            raise LocalError(f"MCP servers need different names, got {names}")  # MCPCFG-06
        for server in servers:
            kind = server.get("type") if isinstance(server, dict) else server.__struct_config__.tag
            if kind not in self.mcp:  # MCPCFG-02, MCPCFG-04
                raise LocalError(f"this agent takes no MCP servers of type {kind!r}")
            if isinstance(server, v2.McpServerStdio):
                if not os.path.isabs(server.command):
                    raise LocalError(
                        f"the command of an MCP server must be an absolute path, got {server.command!r}"
                    )  # MCPCFG-08
                variables = [variable.name for variable in server.env]
                if len(set(variables)) != len(variables):
                    # MCPCFG-07
                    raise LocalError(f"the MCP server {server.name!r} sets a variable twice: {variables}")


def read_abilities(result: v1.InitializeResponse | v2.InitializeResponse) -> Abilities:
    """Read the abilities from an `initialize` result."""
    return _read_v2(result) if isinstance(result, v2.InitializeResponse) else _read_v1(result)


def _read_v2(result: v2.InitializeResponse) -> Abilities:
    session = result.capabilities.session
    auth = result.capabilities.auth
    known: dict[str, Any] = {
        "logout": bool(result.auth_methods),  # AUTH-09
        "auth_status": auth is not None and auth.status is not None,
        "providers": result.capabilities.providers is not None,
    }
    if session is None:
        return Abilities(ours=read_meta(AgentCapabilitiesMeta, result.capabilities.meta), **known)
    prompt = session.prompt or v2.PromptCapabilities()
    return Abilities(
        image=prompt.image is not None,
        audio=prompt.audio is not None,
        embedded_context=prompt.embedded_context is not None,
        mcp=frozenset(kind for kind in MCP_TRANSPORTS if getattr(session.mcp, kind, None) is not None),
        sessions=True,
        load=True,
        resume=True,
        listing=True,
        close=True,
        **known,
        **_read_session(session),
        **_read_extensions(result.capabilities.meta),
    )


def _read_v1(result: v1.InitializeResponse) -> Abilities:
    able = result.agent_capabilities
    prompt, session = able.prompt_capabilities, able.session_capabilities
    return Abilities(
        image=prompt.image,
        audio=prompt.audio,
        embedded_context=prompt.embedded_context,
        mcp=frozenset(kind for kind in MCP_TRANSPORTS if getattr(able.mcp_capabilities, kind, True)),
        # MCPCFG-01: v1 has no flag for stdio
        sessions=True,
        load=able.load_session,
        resume=session.resume is not None,
        listing=session.list is not None,
        close=session.close is not None,
        logout=able.auth.logout is not None,  # AUTH-11
        auth_status=able.auth.status is not None,
        providers=able.providers is not None,
        **_read_session(session),
        **_read_extensions(able.meta),
    )


def _read_session(session: v1.SessionCapabilities | v2.SessionCapabilities) -> dict[str, Any]:
    prompts = session.system_prompt
    modes = set() if prompts is None else {"append"}
    if prompts is not None and prompts.mode is not None and prompts.mode.override is not None:
        modes.add("override")
    return {
        **{name: getattr(session, name) is not None for name in SESSION_ABILITIES},
        "system_prompt": frozenset(modes),
    }


def _read_extensions(meta: dict[str, Any] | None) -> dict[str, Any]:
    ours, extras = read_meta(AgentCapabilitiesMeta, meta), Extras.from_meta(ours_in(meta))
    return {
        "ours": ours,
        "extras": extras,
        "annotations": extras.annotations,
        "announces": without_ours(meta) or {},
        "queue": ours.inject is not None,
        "operations": frozenset(ours.operations),
        "replay_after": ours.replay_after,
        "fork_at": ours.fork_at,
        "delivery": frozenset(ours.delivery),
    }
