"""Requests to a v1 agent: v2 params as v1 params (24.2, v2 to v1).

A request that v1 or this agent does not support raises `InvalidParams`. `capabilities` are the agent's.
Results that need memory are in `upgrade.configuration`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import structs

from antiphon.bridge import losses
from antiphon.bridge.content import ContentDown, recast, twin
from antiphon.bridge.losses import Ledger, Report, mark, refused
from antiphon.bridge.upgrade.configuration import Configuration
from antiphon.bridge.upgrade.facts import is_rfc3339
from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.v1.models import ModelId, SetSessionModelRequest

SetOption: TypeAlias = (
    v1.SetSessionModeRequest
    | SetSessionModelRequest
    | v1.SetSessionConfigOptionId
    | v1.SetSessionConfigOptionBoolean
)


def prompt(
    params: v2.PromptRequest, *, capabilities: v1.AgentCapabilities, report: Report | None = None
) -> v1.PromptRequest:
    """Refuse a prompt before it is inserted, if it holds content that the agent does not take (24.3,
    CONT-02)."""
    if not params.prompt:  # PROMPT-V2-01
        raise InvalidParams("a prompt needs at least one content block")
    able = capabilities.prompt_capabilities
    for block in params.prompt:
        match block:
            case v2.TextContent() | v2.ResourceLink():
                continue
            case v2.ImageContent() if able.image:
                continue
            case v2.AudioContent() if able.audio:
                continue
            case v2.EmbeddedResource() if able.embedded_context:
                continue
        kind = block.get("type") if isinstance(block, dict) else block.__struct_config__.tag
        raise refused(losses.PROMPT_CONTENT, f"the agent takes no content of type {kind!r} in prompts")
    return recast(params, v1.PromptRequest, prompt=ContentDown(Ledger(report)).blocks(params.prompt))


def _changes(
    params: v2.NewSessionRequest | v2.ResumeSessionRequest | v2.ForkSessionRequest,
    able: v1.AgentCapabilities,
    report: Report | None,
) -> dict[str, Any]:
    """Return the fields that differ in requests that set up a session."""
    if params.additional_directories and able.session_capabilities.additional_directories is None:  # SESS-09
        raise refused(losses.DIRECTORIES, "the agent takes no additional directories")
    return {
        "mcp_servers": mcp_servers(params.mcp_servers, capabilities=able),
        "system_prompt": _system_prompt(params.system_prompt, report),
    }


def new_session(
    params: v2.NewSessionRequest, *, capabilities: v1.AgentCapabilities, report: Report | None = None
) -> v1.NewSessionRequest:
    return recast(params, v1.NewSessionRequest, **_changes(params, capabilities, report))


def fork_session(
    params: v2.ForkSessionRequest, *, capabilities: v1.AgentCapabilities, report: Report | None = None
) -> v1.ForkSessionRequest:
    return recast(params, v1.ForkSessionRequest, **_changes(params, capabilities, report))


def resume_session(
    params: v2.ResumeSessionRequest, *, capabilities: v1.AgentCapabilities, report: Report | None = None
) -> v1.LoadSessionRequest | v1.ResumeSessionRequest:
    """v2's one request is two in v1: a load, which replays, and a resume, which does not.

    Without a cursor an agent that cannot resume is loaded, and its replay is to be dropped.
    """
    replay = params.replay_from is not None
    if replay and not isinstance(params.replay_from, v2.ReplayFromStart):  # SESS-19: never another cursor
        raise refused(losses.REPLAY_CURSOR, "the agent replays from the start or not at all")
    resumes = capabilities.session_capabilities.resume is not None
    if not capabilities.load_session and (replay or not resumes):  # SESS-12, SESS-14
        raise refused(losses.LOAD, "the agent cannot load sessions")
    fields = {**structs.asdict(params), **_changes(params, capabilities, report)}
    del fields["replay_from"]
    return (v1.LoadSessionRequest if replay or not resumes else v1.ResumeSessionRequest)(**fields)


def list_sessions(params: v2.ListSessionsRequest) -> v1.ListSessionsRequest:
    archived = None if params.archived is None else v1.SessionArchiveFilter(params.archived)
    return recast(params, v1.ListSessionsRequest, archived=archived)


def listed_sessions(
    result: v1.ListSessionsResponse, *, report: Report | None = None
) -> v2.ListSessionsResponse:
    """Upgrade the answer to it."""
    ledger = Ledger(report)
    sessions = [_session_info(info, ledger) for info in result.sessions]
    return recast(result, v2.ListSessionsResponse, sessions=sessions)


def set_config_option(params: v2.SetSessionConfigOptionRequest, configuration: Configuration) -> SetOption:
    """Set an option. One that was made of the session's modes is set by `session/set_mode`, one that was made
    of its models by `session/set_model`."""
    if isinstance(params, dict):
        raise refused(
            losses.CONFIG_VALUE, f"config value is of type {params.get('type')!r}; expected `id` or `boolean`"
        )
    if params.config_id == configuration.mode:
        if isinstance(params.value, bool) or not configuration.has_mode(params.value):  # CONF-V1-02
            raise InvalidParams(f"the session has no mode {params.value!r}")
        return v1.SetSessionModeRequest(
            session_id=v1.SessionId(params.session_id),
            mode_id=v1.SessionModeId(params.value),
            meta=params.meta,
        )
    if params.config_id == configuration.model:
        if isinstance(params.value, bool) or not configuration.has_model(params.value):
            raise InvalidParams(f"the session has no model {params.value!r}")
        return SetSessionModelRequest(
            session_id=v1.SessionId(params.session_id), model_id=ModelId(params.value), meta=params.meta
        )
    if isinstance(params, v2.SetSessionConfigOptionBoolean):
        return recast(params, v1.SetSessionConfigOptionBoolean)
    return recast(params, v1.SetSessionConfigOptionId)


def mcp_servers(servers: Iterable[v2.McpServer], *, capabilities: v1.AgentCapabilities) -> list[v1.McpServer]:
    return [_mcp_server(server, capabilities.mcp_capabilities) for server in servers]


def _mcp_server(server: v2.McpServer, able: v1.McpCapabilities) -> v1.McpServer:
    if (
        isinstance(server, v2.McpServerStdio)  # MCPCFG-01: every v1 agent takes it
        or (isinstance(server, v2.McpServerHttp) and able.http)
        or (isinstance(server, v2.McpServerAcp) and able.acp)
    ):
        downgraded: v1.McpServer = twin(server, v1)
        return downgraded
    kind = server.get("type") if isinstance(server, dict) else server.__struct_config__.tag
    raise refused(losses.MCP_TYPE, f"the agent does not support the MCP transport {kind!r}")  # MCPCFG-05


def _system_prompt(given: v2.SystemPrompt | None, report: Report | None) -> v1.SystemPrompt | None:
    if given is None:
        return None
    content = ContentDown(Ledger(report)).blocks(given.content)
    return recast(given, v1.SystemPrompt, mode=v1.SystemPromptMode(given.mode), content=content)


def _session_info(info: v1.SessionInfo, ledger: Ledger) -> v2.SessionInfo:
    updated_at, meta = info.updated_at, info.meta
    if updated_at is not None and not is_rfc3339(updated_at):
        ledger.lose(losses.UPDATED_AT, info)
        updated_at, meta = None, mark(meta, {"updatedAt": info.updated_at})
    return recast(info, v2.SessionInfo, updated_at=updated_at, meta=meta)
