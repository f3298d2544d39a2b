"""Abilities: what an agent said it can do, the same words for both versions. What it did not say, it cannot
(INIT-14)."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from antiphon.errors import LocalError
from antiphon.schema import v1, v2
from antiphon.schema.version import META_KEY, without_ours

CONTENT: dict[type, str] = {
    v2.ImageContent: "image",
    v2.AudioContent: "audio",
    v2.EmbeddedResource: "embedded_context",
}
"""What has to be offered before a prompt may hold it; text and links may always be sent (CONT-02)."""


MCP = ("stdio", "http", "acp")


class Abilities(Struct, frozen=True, kw_only=True):
    sessions: bool = False
    """Whether it has sessions at all."""
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    load: bool = False
    """Whether a session can be opened again with its history."""
    resume: bool = False
    """Whether a session can be opened again."""
    listing: bool = False
    """Whether it lists the sessions it keeps."""
    close: bool = False
    delete: bool = False
    fork: bool = False
    annotations: bool = False
    """Whether clients can put reactions and notes on messages."""
    fork_at: bool = False
    """Whether a session can be forked after any of its messages."""
    archive: bool = False
    status: bool = False
    """Whether it tells the status of sessions that are not open here."""
    title: bool = False
    """Whether sessions can be given titles."""
    system_prompt: frozenset[str] = frozenset()
    """How a system prompt may be given: `append`, `override`."""
    logout: bool = False
    auth_status: bool = False
    """Whether it tells who is logged in."""
    providers: bool = False
    """Whether its model providers can be set."""
    additional_directories: bool = False
    mcp: frozenset[str] = frozenset()
    """Which kinds of MCP servers it can be given: `stdio`, `http`, `acp`."""
    delivery: frozenset[str] = frozenset()
    """How a prompt may be delivered while the session works: `queue`, `steer`, `interrupt`."""
    queue: bool = False
    """Whether prompts can be put into a queue, edited, moved and withdrawn there."""
    operations: frozenset[str] = frozenset()
    """What it does once under an operation id, however often it is asked: `prompt`, `cancel`, `new`, …"""
    replay_after: bool = False
    """Whether a session can be followed after an event whose number is known."""
    ours: dict[str, Any] = {}
    """What stands under `_meta["antiphon"]`."""
    announces: dict[str, Any] = {}
    """What else stands in the `_meta` of its capabilities: the extensions that it has (EXT-01)."""

    def check(self, content: list[v2.ContentBlock]) -> None:
        """Refuse what the agent cannot take, before it is sent (PROMPT-V1-01)."""
        if not content:
            raise LocalError("a prompt needs some content")  # PROMPT-V2-01
        for block in content:
            needed = CONTENT.get(type(block))
            if needed is not None and not getattr(self, needed):
                raise LocalError(f"this agent takes no {needed.replace('_', ' ')} in a prompt")

    def check_setup(self, servers: Sequence[v2.McpServer], directories: Sequence[str]) -> None:
        """Refuse what a session of the agent cannot have."""
        if not self.sessions:
            raise LocalError("this agent offers no sessions")
        if directories and not self.additional_directories:
            raise LocalError("this agent takes no additional directories")  # SESS-09
        names = [server.get("name") if isinstance(server, dict) else server.name for server in servers]
        if len(set(names)) != len(names):
            raise LocalError("two MCP servers of one name")  # MCPCFG-06
        for server in servers:
            kind = server.get("type") if isinstance(server, dict) else server.__struct_config__.tag
            if kind not in self.mcp:  # MCPCFG-02, MCPCFG-04
                raise LocalError(f"this agent takes no MCP servers of type {kind!r}")
            if isinstance(server, v2.McpServerStdio) and not os.path.isabs(server.command):
                raise LocalError(f"{server.command!r} is not an absolute path")  # MCPCFG-08
            if isinstance(server, v2.McpServerStdio):
                variables = [variable.name for variable in server.env]
                if len(set(variables)) != len(variables):
                    # MCPCFG-07
                    raise LocalError(f"a variable is named twice for the MCP server {server.name!r}")


def abilities(result: Any) -> Abilities:
    """Those that an `initialize` result names."""
    return _of_v2(result) if isinstance(result, v2.InitializeResponse) else _of_v1(result)


def _of_v2(result: v2.InitializeResponse) -> Abilities:
    session = result.capabilities.session
    auth = result.capabilities.auth
    known: dict[str, Any] = {
        "logout": bool(result.auth_methods),  # AUTH-09
        "auth_status": auth is not None and auth.status is not None,
        "providers": result.capabilities.providers is not None,
    }
    if session is None:
        return Abilities(ours=_ours(result.capabilities.meta), **known)
    prompt = session.prompt or v2.PromptCapabilities()
    return Abilities(
        image=prompt.image is not None,
        audio=prompt.audio is not None,
        embedded_context=prompt.embedded_context is not None,
        mcp=frozenset(
            kind for kind in ("stdio", "http", "acp") if getattr(session.mcp, kind, None) is not None
        ),
        sessions=True,
        load=True,
        resume=True,
        listing=True,
        close=True,
        delete=session.delete is not None,
        additional_directories=session.additional_directories is not None,
        **known,
        **_unstable(session),
        **_added(result.capabilities.meta),
    )


def _of_v1(result: v1.InitializeResponse) -> Abilities:
    able = result.agent_capabilities
    prompt, session = able.prompt_capabilities, able.session_capabilities
    return Abilities(
        image=prompt.image,
        audio=prompt.audio,
        embedded_context=prompt.embedded_context,
        mcp=frozenset(kind for kind in MCP if getattr(able.mcp_capabilities, kind, True)),  # MCPCFG-01
        sessions=True,
        load=able.load_session,
        resume=session.resume is not None,
        listing=session.list is not None,
        close=session.close is not None,
        delete=session.delete is not None,
        additional_directories=session.additional_directories is not None,
        logout=able.auth.logout is not None,  # AUTH-11
        auth_status=able.auth.status is not None,
        providers=able.providers is not None,
        **_unstable(session),
        **_added(able.meta),
    )


def _unstable(session: v1.SessionCapabilities | v2.SessionCapabilities) -> dict[str, Any]:
    prompts = session.system_prompt
    modes = set() if prompts is None else {"append"}
    if prompts is not None and prompts.mode is not None and prompts.mode.override is not None:
        modes.add("override")
    return {
        "fork": session.fork is not None,
        "archive": session.archive is not None,
        "status": session.status is not None,
        "title": session.title is not None,
        "system_prompt": frozenset(modes),
    }


def _added(meta: dict[str, Any] | None) -> dict[str, Any]:
    ours = _ours(meta)
    delivery, operations = ours.get("delivery"), ours.get("operations")
    return {
        "ours": ours,
        "announces": without_ours(meta) or {},
        "queue": isinstance(ours.get("inject"), dict),
        "operations": frozenset(map(str, operations)) if isinstance(operations, list) else frozenset(),
        "replay_after": ours.get("replayAfter") is True,
        "annotations": ours.get("annotations") is True,
        "fork_at": ours.get("forkAt") is True,
        "delivery": frozenset(delivery) if isinstance(delivery, list) else frozenset(),
    }


def _ours(meta: dict[str, Any] | None) -> dict[str, Any]:
    ours = (meta or {}).get(META_KEY)
    return ours if isinstance(ours, dict) else {}
