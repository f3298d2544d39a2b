"""Config options as a client sets them: the same for both versions, v1's modes and models among them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from antiphon.bridge import requests_v1
from antiphon.client.spoken import Spoken, SpokenV1
from antiphon.client.view import View
from antiphon.connection import Connection
from antiphon.engine.configuration import Value, config_id, find_option, takes
from antiphon.errors import InvalidParams, LocalError
from antiphon.schema import v1, v2
from antiphon.schema.v1.models import SetSessionModelRequest


class Configuring:
    def __init__(self, session_id: str, connection: Connection, spoken: Spoken, view: View) -> None:
        self._session_id = v2.SessionId(session_id)
        self._connection = connection
        self._spoken = spoken
        self._view = view

    @property
    def options(self) -> list[v2.SessionConfigOption]:
        """In the agent's order (CONF-04)."""
        told = self._view.fold.facts.config
        return [] if told is None else list(told.latest.config_options)

    async def set(self, id: str, value: Value, meta: dict[str, Any] | None = None) -> None:
        """Returns once the agent has agreed, and the complete list is known."""
        method, params = self._asked(self._wanted(id, value, meta))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settled(outcome: Any) -> None:
            """In the lane: what the agent told of its options before it answered is known already."""
            if done.done():
                return
            if isinstance(outcome, Exception):
                done.set_exception(outcome)
                return
            self.told(self._answered(params, outcome))
            done.set_result(None)

        call = self._connection.begin(method, params, settled)
        try:
            await done
        except asyncio.CancelledError:
            self._connection.abandon(call)
            raise

    def told(self, options: list[v2.SessionConfigOption]) -> None:
        """The agent has named the complete list in an answer (CONF-01)."""
        if options != self.options:
            self._view.tell(v2.ConfigOptionUpdate(config_options=options))

    def assume(self, options: list[v2.SessionConfigOption]) -> list[str]:
        """Take it that an agent of v1, which opened the session again, still has these options where it named
        none of their kind. Returns the ids of those: their values are not known."""
        if not isinstance(self._spoken, SpokenV1):
            return []
        before = by_id(self.options)
        self._spoken.upgrade.configuration.assume(options)
        self.told(self._spoken.upgrade.configuration.options)
        return [id for id in by_id(self.options) if id not in before]

    def _wanted(self, id: str, value: Value, meta: dict[str, Any] | None) -> v2.SetSessionConfigOptionRequest:
        option = find_option(self.options, id)
        if option is None:
            raise LocalError(f"this session has no config option {id!r}")
        if not takes(option, value):
            raise LocalError(f"the config option {id!r} does not offer {value!r}")
        if isinstance(value, bool):
            return v2.SetSessionConfigOptionBoolean(
                session_id=self._session_id, config_id=v2.SessionConfigId(id), value=value, meta=meta
            )
        return v2.SetSessionConfigOptionId(
            session_id=self._session_id,
            config_id=v2.SessionConfigId(id),
            value=v2.SessionConfigValueId(value),
            meta=meta,
        )

    def _asked(self, wanted: v2.SetSessionConfigOptionRequest) -> tuple[str, Any]:
        if not isinstance(self._spoken, SpokenV1):
            return "session/set_config_option", wanted
        try:
            params = requests_v1.set_config_option(wanted, self._spoken.upgrade.configuration)
        except InvalidParams as error:
            raise LocalError(error.detail) from None  # nothing was sent: it is ours
        if isinstance(params, v1.SetSessionModeRequest):
            return "session/set_mode", params
        if isinstance(params, SetSessionModelRequest):
            return "session/set_model", params
        return "session/set_config_option", params

    def _answered(self, params: Any, result: Any) -> list[v2.SessionConfigOption]:
        if isinstance(self._spoken, SpokenV1):
            configuration = self._spoken.upgrade.configuration
            if isinstance(params, v1.SetSessionModeRequest):
                return configuration.set_mode(params.mode_id, result).config_options
            if isinstance(params, SetSessionModelRequest):
                return configuration.set_model(params.model_id, result).config_options
            return configuration.set_config_option(result).config_options
        return list(result.config_options)


def by_id(options: Iterable[v2.SessionConfigOption]) -> dict[str, v2.SessionConfigOption]:
    """Options by their ids, in the agent's order; the first of an id counts."""
    found: dict[str, v2.SessionConfigOption] = {}
    for option in options:
        id = config_id(option)
        if id is not None:
            found.setdefault(id, option)
    return found


def arranged(options: Iterable[v2.SessionConfigOption]) -> list[v2.SessionConfigOption]:
    """Options as a user should see them (CONF-04): in the agent's order, but what belongs to the model stands
    behind the first option that chooses it."""
    shown = list(options)
    model = next((option for option in shown if _category(option) == "model"), None)
    if model is None:
        return shown
    beside = [option for option in shown if _category(option) == "model_config"]
    others = [option for option in shown if _category(option) != "model_config"]
    at = next(place for place, option in enumerate(others) if option is model) + 1
    return [*others[:at], *beside, *others[at:]]


def _category(option: v2.SessionConfigOption) -> object:
    return option.get("category") if isinstance(option, dict) else option.category
