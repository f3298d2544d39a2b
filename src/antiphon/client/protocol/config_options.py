"""ConfigOptions: the config options of a session, alike for both versions. v1's modes and models are config
options too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.client.protocol.calls import call_in_lane
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.protocol.tracked_session import TrackedSession
from antiphon.connection import Connection
from antiphon.engine.configuration import Value, config_id, find_option, takes
from antiphon.errors import InvalidParams, LocalError
from antiphon.schema import v1, v2
from antiphon.schema.v1.models import SetSessionModelRequest


class ConfigOptions:
    def __init__(
        self, session_id: str, connection: Connection, dialect: AgentDialect, tracker: TrackedSession[Any]
    ) -> None:
        self._session_id = session_id
        self._connection = connection
        self._dialect = dialect
        self._tracker = tracker

    @property
    def options(self) -> list[v2.SessionConfigOption]:
        """In the agent's order (CONF-04)."""
        config = self._tracker.fold.facts.config
        return [] if config is None else list(config.latest.config_options)

    async def set(self, id: str, value: Value, meta: dict[str, Any] | None = None) -> None:
        """Returns once the agent has agreed and the complete list is known."""
        option = find_option(self.options, id)
        if option is None:
            raise LocalError(f"this session has no config option {id!r}")
        if not takes(option, value):
            raise LocalError(f"the config option {id!r} does not offer {value!r}")
        method, params = set_option_request(self._dialect, self._session_id, id, value, meta)

        def answered(result: Any) -> None:
            self._apply(options_in_answer(self._dialect, params, result))

        await call_in_lane(self._connection, method, params, answered)

    def _apply(self, options: list[v2.SessionConfigOption]) -> None:
        if options != self.options:
            self._tracker.apply(v2.ConfigOptionUpdate(config_options=options))

    def assume(self, options: list[v2.SessionConfigOption]) -> list[str]:
        """Assume that a v1 agent that reopened the session still has these options, if it named none of their
        kind. Returns the ids of those: their values are not known."""
        if not isinstance(self._dialect, AgentDialectV1):
            return []
        before = options_by_id(self.options)
        configuration = self._dialect.upgrade.configuration
        configuration.assume(options)
        self._apply(configuration.options)
        return [id for id in options_by_id(self.options) if id not in before]


def options_by_id(options: Iterable[v2.SessionConfigOption]) -> dict[str, v2.SessionConfigOption]:
    """Options by their ids, in the agent's order. The first one of an id counts."""
    found: dict[str, v2.SessionConfigOption] = {}
    for option in options:
        id = config_id(option)
        if id is not None:
            found.setdefault(id, option)
    return found


def arranged(options: Iterable[v2.SessionConfigOption]) -> list[v2.SessionConfigOption]:
    """Options as a user should see them (CONF-04): in the agent's order, but those that belong to the model
    right after the first option that chooses the model."""
    shown = list(options)
    of_model = [option for option in shown if _category(option) == "model_config"]
    others = [option for option in shown if _category(option) != "model_config"]
    for at, option in enumerate(others, start=1):
        if _category(option) == "model":
            return [*others[:at], *of_model, *others[at:]]
    return shown


def _category(option: v2.SessionConfigOption) -> object:
    return option.get("category") if isinstance(option, dict) else option.category


def set_option_request(
    dialect: AgentDialect, session_id: str, option_id: str, value: Value, meta: dict[str, Any] | None
) -> tuple[str, Any]:
    """The method and params that set a config option."""
    request: v2.SetSessionConfigOptionRequest
    session, option = v2.SessionId(session_id), v2.SessionConfigId(option_id)
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
