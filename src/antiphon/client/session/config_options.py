"""ConfigOptions: the config options of a session, alike for both versions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from antiphon.client.protocol.config_options import options_in_answer, set_option_request
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.session.tracker import SessionTracker
from antiphon.connection import Connection
from antiphon.engine.configuration import Value, config_id, find_option, takes
from antiphon.errors import LocalError
from antiphon.schema import v2


class ConfigOptions:
    def __init__(
        self, session_id: str, connection: Connection, dialect: AgentDialect, tracker: SessionTracker
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
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answered(outcome: Any) -> None:
            """Runs in the lane: option updates that the agent sent before its answer are applied."""
            if done.done():
                return
            if isinstance(outcome, Exception):
                done.set_exception(outcome)
                return
            self._apply(options_in_answer(self._dialect, params, outcome))
            done.set_result(None)

        call = self._connection.begin(method, params, answered)
        try:
            await done
        except asyncio.CancelledError:
            self._connection.abandon(call)
            raise

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
    model = next((option for option in shown if _category(option) == "model"), None)
    if model is None:
        return shown
    of_model = [option for option in shown if _category(option) == "model_config"]
    others = [option for option in shown if _category(option) != "model_config"]
    at = next(index for index, option in enumerate(others) if option is model) + 1
    return [*others[:at], *of_model, *others[at:]]


def _category(option: v2.SessionConfigOption) -> object:
    return option.get("category") if isinstance(option, dict) else option.category
