"""Requests of a v1 client: v1 params as v2 params (24.2, v1 to v2).

A request that v2 cannot express raises `InvalidParams`. Results that need memory are in
`downgrade.configuration`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, TypedDict

from antiphon.bridge import losses
from antiphon.bridge.content import ContentUp, recast
from antiphon.bridge.downgrade.configuration import mode_option, model_option
from antiphon.bridge.losses import Ledger, Report, refused
from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.v1.models import SetSessionModelRequest

SetOption: TypeAlias = v2.SetSessionConfigOptionId | v2.SetSessionConfigOptionBoolean


def prompt(params: v1.PromptRequest, *, report: Report | None = None) -> v2.PromptRequest:
    if not params.prompt:  # PROMPT-V2-01
        raise InvalidParams("a prompt needs at least one content block")
    return v2.PromptRequest(
        session_id=v2.SessionId(params.session_id),
        prompt=ContentUp(Ledger(report)).blocks(params.prompt),
        meta=params.meta,
    )


def cancel(params: v1.CancelNotification) -> v2.CancelSessionNotification:
    return recast(params, v2.CancelSessionNotification)


class _Setup(TypedDict):
    """The fields of all requests that set up a session."""

    cwd: str
    additional_directories: list[str]
    mcp_servers: list[v2.McpServer]
    system_prompt: v2.SystemPrompt | None
    meta: dict[str, Any] | None


def _setup(
    params: v1.NewSessionRequest | v1.LoadSessionRequest | v1.ResumeSessionRequest | v1.ForkSessionRequest,
    report: Report | None,
) -> _Setup:
    return {
        "cwd": params.cwd,
        "additional_directories": params.additional_directories,
        "mcp_servers": mcp_servers(params.mcp_servers),
        "system_prompt": _system_prompt(params.system_prompt, report),
        "meta": params.meta,
    }


def new_session(params: v1.NewSessionRequest, *, report: Report | None = None) -> v2.NewSessionRequest:
    return v2.NewSessionRequest(**_setup(params, report))


def load_session(params: v1.LoadSessionRequest, *, report: Report | None = None) -> v2.ResumeSessionRequest:
    """A load is a resume with everything replayed."""
    id, start = v2.SessionId(params.session_id), v2.ReplayFromStart()
    return v2.ResumeSessionRequest(session_id=id, replay_from=start, **_setup(params, report))


def resume_session(
    params: v1.ResumeSessionRequest, *, report: Report | None = None
) -> v2.ResumeSessionRequest:
    id = v2.SessionId(params.session_id)
    return v2.ResumeSessionRequest(session_id=id, **_setup(params, report))


def fork_session(params: v1.ForkSessionRequest, *, report: Report | None = None) -> v2.ForkSessionRequest:
    id = v2.SessionId(params.session_id)
    return v2.ForkSessionRequest(session_id=id, **_setup(params, report))


def list_sessions(params: v1.ListSessionsRequest) -> v2.ListSessionsRequest:
    return v2.ListSessionsRequest(
        cwd=params.cwd,
        cursor=None if params.cursor is None else v2.SessionListCursor(params.cursor),
        archived=None if params.archived is None else v2.SessionArchiveFilter(params.archived),
        meta=params.meta,
    )


def listed_sessions(result: v2.ListSessionsResponse) -> v1.ListSessionsResponse:
    """The answer to it, back in v1."""
    return v1.ListSessionsResponse(
        sessions=[recast(info, v1.SessionInfo) for info in result.sessions],
        next_cursor=result.next_cursor,
        meta=result.meta,
    )


def close_session(params: v1.CloseSessionRequest) -> v2.CloseSessionRequest:
    return recast(params, v2.CloseSessionRequest)


def delete_session(params: v1.DeleteSessionRequest) -> v2.DeleteSessionRequest:
    return recast(params, v2.DeleteSessionRequest)


def set_mode(params: v1.SetSessionModeRequest, options: Iterable[v2.SessionConfigOption]) -> SetOption:
    """A mode is set through the option that the modes mirror, of the session's `options`."""
    mode = mode_option(options)
    if mode is None:
        raise InvalidParams("the session has no modes")
    return v2.SetSessionConfigOptionId(
        session_id=v2.SessionId(params.session_id),
        config_id=mode.config_id,
        value=v2.SessionConfigValueId(params.mode_id),
        meta=params.meta,
    )


def set_model(params: SetSessionModelRequest, options: Iterable[v2.SessionConfigOption]) -> SetOption:
    """A model is set through the option that has the models, of the session's `options`."""
    model = model_option(options)
    if model is None:
        raise InvalidParams("the session has no models")
    return v2.SetSessionConfigOptionId(
        session_id=v2.SessionId(params.session_id),
        config_id=model.config_id,
        value=v2.SessionConfigValueId(params.model_id),
        meta=params.meta,
    )


def set_config_option(params: v1.SetSessionConfigOptionRequest) -> SetOption:
    if isinstance(params, v1.SetSessionConfigOptionBoolean):
        return recast(params, v2.SetSessionConfigOptionBoolean)
    return recast(params, v2.SetSessionConfigOptionId)


def mcp_servers(servers: Iterable[v1.McpServer]) -> list[v2.McpServer]:
    return [_mcp_server(server) for server in servers]


def _mcp_server(server: v1.McpServer) -> v2.McpServer:
    match server:
        case v1.McpServerStdio():
            return v2.McpServerStdio(
                name=server.name,
                command=server.command,
                args=server.args,
                env=[recast(variable, v2.EnvVariable) for variable in server.env],
                meta=server.meta,
            )
        case v1.McpServerHttp():
            return v2.McpServerHttp(
                name=server.name,
                url=server.url,
                headers=[recast(header, v2.HttpHeader) for header in server.headers],
                meta=server.meta,
            )
        case v1.McpServerAcp():
            return recast(server, v2.McpServerAcp)
    raise refused(losses.MCP_SSE, f"MCP server {server.name!r}: the transport `sse` is not supported")


def _system_prompt(given: v1.SystemPrompt | None, report: Report | None) -> v2.SystemPrompt | None:
    if given is None:
        return None
    return v2.SystemPrompt(
        mode=v2.SystemPromptMode(given.mode),
        content=ContentUp(Ledger(report)).blocks(given.content),
        meta=given.meta,
    )
