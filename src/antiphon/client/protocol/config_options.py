"""Config options as requests of the agent's version. v1's modes and models are config options too."""

from __future__ import annotations

from typing import Any

from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.engine.configuration import Value
from antiphon.errors import InvalidParams, LocalError
from antiphon.schema import v1, v2
from antiphon.schema.v1.models import SetSessionModelRequest


def set_option_request(
    dialect: AgentDialect, session_id: str, config_id: str, value: Value, meta: dict[str, Any] | None
) -> tuple[str, Any]:
    """The method and params that set a config option."""
    request: v2.SetSessionConfigOptionRequest
    session, option = v2.SessionId(session_id), v2.SessionConfigId(config_id)
    if isinstance(value, bool):
        request = v2.SetSessionConfigOptionBoolean(
            session_id=session, config_id=option, value=value, meta=meta
        )
    else:
        chosen = v2.SessionConfigValueId(value)
        request = v2.SetSessionConfigOptionId(session_id=session, config_id=option, value=chosen, meta=meta)
    if not isinstance(dialect, AgentDialectV1):
        return "session/set_config_option", request
    try:
        params = requests_v1.set_config_option(request, dialect.upgrade.configuration)
    except InvalidParams as error:
        raise LocalError(error.detail) from None  # nothing was sent: the fault is local
    if isinstance(params, v1.SetSessionModeRequest):
        return "session/set_mode", params
    if isinstance(params, SetSessionModelRequest):
        return "session/set_model", params
    return "session/set_config_option", params


def options_in_answer(dialect: AgentDialect, params: Any, result: Any) -> list[v2.SessionConfigOption]:
    """The complete list of options (CONF-01) after the answer to `set_option_request`."""
    if not isinstance(dialect, AgentDialectV1):
        return list(result.config_options)
    configuration = dialect.upgrade.configuration
    if isinstance(params, v1.SetSessionModeRequest):
        return configuration.set_mode(params.mode_id, result).config_options
    if isinstance(params, SetSessionModelRequest):
        return configuration.set_model(params.model_id, result).config_options
    return configuration.set_config_option(result).config_options
