"""Requests of a v1 client: v1 params as v2 params (24.2, v1 to v2).

A request that v2 cannot express raises `InvalidParams`. Results that need memory are in
`downgrade.configuration`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from antiphon.bridge import losses
from antiphon.bridge.content import ContentUp, recast, twin
from antiphon.bridge.downgrade.configuration import mode_option, model_option
from antiphon.bridge.losses import Ledger, Report, refused
from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.v1.models import SetSessionModelRequest

SetOption: TypeAlias = v2.SetSessionConfigOptionId | v2.SetSessionConfigOptionBoolean


def prompt(params: v1.PromptRequest, *, report: Report | None = None) -> v2.PromptRequest:
    if not params.prompt:  # PROMPT-V2-01
        raise InvalidParams("a prompt needs at least one content block")
    return recast(params, v2.PromptRequest, prompt=ContentUp(Ledger(report)).blocks(params.prompt))


def _changes(
    params: v1.NewSessionRequest | v1.LoadSessionRequest | v1.ResumeSessionRequest | v1.ForkSessionRequest,
    report: Report | None,
) -> dict[str, Any]:
    """Return the fields that differ in requests that set up a session."""
    return {
        "mcp_servers": mcp_servers(params.mcp_servers),
        "system_prompt": _system_prompt(params.system_prompt, report),
    }


def new_session(params: v1.NewSessionRequest, *, report: Report | None = None) -> v2.NewSessionRequest:
    return recast(params, v2.NewSessionRequest, **_changes(params, report))


def load_session(params: v1.LoadSessionRequest, *, report: Report | None = None) -> v2.ResumeSessionRequest:
    """Upgrade a load, which is a resume with everything replayed."""
    start = v2.ReplayFromStart()
    return recast(params, v2.ResumeSessionRequest, replay_from=start, **_changes(params, report))


def resume_session(
    params: v1.ResumeSessionRequest, *, report: Report | None = None
) -> v2.ResumeSessionRequest:
    return recast(params, v2.ResumeSessionRequest, **_changes(params, report))


def fork_session(params: v1.ForkSessionRequest, *, report: Report | None = None) -> v2.ForkSessionRequest:
    return recast(params, v2.ForkSessionRequest, **_changes(params, report))


def set_mode(params: v1.SetSessionModeRequest, options: Iterable[v2.SessionConfigOption]) -> SetOption:
    """Set a mode through the option that the modes mirror, of the session's `options`."""
    mode = mode_option(options)
    if mode is None:
        raise InvalidParams("the session has no modes")
    return _set_value(params, mode, params.mode_id)


def set_model(params: SetSessionModelRequest, options: Iterable[v2.SessionConfigOption]) -> SetOption:
    """Set a model through the option that has the models, of the session's `options`."""
    model = model_option(options)
    if model is None:
        raise InvalidParams("the session has no models")
    return _set_value(params, model, params.model_id)


def _set_value(
    params: v1.SetSessionModeRequest | SetSessionModelRequest, option: v2.SessionConfigSelect, value: str
) -> SetOption:
    return v2.SetSessionConfigOptionId(
        session_id=v2.SessionId(params.session_id),
        config_id=option.config_id,
        value=v2.SessionConfigValueId(value),
        meta=params.meta,
    )


def set_config_option(params: v1.SetSessionConfigOptionRequest) -> SetOption:
    if isinstance(params, v1.SetSessionConfigOptionBoolean):
        return recast(params, v2.SetSessionConfigOptionBoolean)
    return recast(params, v2.SetSessionConfigOptionId)


def mcp_servers(servers: Iterable[v1.McpServer]) -> list[v2.McpServer]:
    for server in servers:
        if isinstance(server, v1.McpServerSse):
            raise refused(losses.MCP_SSE, f"MCP server {server.name!r}: the transport `sse` is not supported")
    return [twin(server, v2) for server in servers]


def _system_prompt(given: v1.SystemPrompt | None, report: Report | None) -> v2.SystemPrompt | None:
    if given is None:
        return None
    content = ContentUp(Ledger(report)).blocks(given.content)
    return recast(given, v2.SystemPrompt, mode=v2.SystemPromptMode(given.mode), content=content)
