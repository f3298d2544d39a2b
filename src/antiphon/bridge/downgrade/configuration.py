"""Config options, modes, models and commands of a v2 session as v1 has them: in results and in updates (24.2,
24.4).

v1 names an option `id` and a group `group`, knows booleans only if the client asked for them, and has modes
besides options: they mirror the first select option of category `mode` (CONF-V1-04). It also had models once,
which agents still send: a v1 client gets them only if the agent sent them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from msgspec import structs

from antiphon.bridge import losses
from antiphon.bridge.content import recast
from antiphon.bridge.losses import Ledger, mark
from antiphon.engine.configuration import offered_values
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import ConfigOptionMeta
from antiphon.schema.v1.models import ModelId, ModelInfo, SessionModelState
from antiphon.schema.version import META_KEY, ours_in, without_ours
from antiphon.schema.wire import Unknown

MADE_OF_MODES: Final = {"modes": True}
"""Marks, under our key, an option that a v1 agent has as its modes: v1 clients get it back as those alone."""
MODELS: Final = "models"
"""The key, under our own, that marks the option that a v1 agent has as its models."""
MADE_OF_MODELS: Final = "made"
"""The mark of an option made of models: v1 clients get it back as models only."""
ALSO_MODELS: Final = "also"
"""The mark of an agent's own option that it also sent as models: v1 clients get both."""

Sent: TypeAlias = v1.AvailableCommandsUpdate | v1.ConfigOptionUpdate | v1.CurrentModeUpdate


class Configuration:
    """The options, modes and commands of a session, as one v1 client has them."""

    __slots__ = ("_boolean", "_ledger", "_mode", "_model", "_sent_options")

    def __init__(self, ledger: Ledger, *, boolean: bool) -> None:
        self._ledger = ledger
        self._boolean = boolean
        """Whether the client takes boolean options (CONF-V1-06)."""
        self._mode: str | None = None
        self._model: str | None = None
        self._sent_options: list[v1.SessionConfigOption] = []

    def new_session(self, result: v2.NewSessionResponse) -> v1.NewSessionResponse:
        return v1.NewSessionResponse(session_id=v1.SessionId(result.session_id), **self._setup(result))

    def fork_session(self, result: v2.ForkSessionResponse) -> v1.ForkSessionResponse:
        return v1.ForkSessionResponse(session_id=v1.SessionId(result.session_id), **self._setup(result))

    def load_session(self, result: v2.ResumeSessionResponse) -> v1.LoadSessionResponse:
        return v1.LoadSessionResponse(**self._setup(result))

    def resume_session(self, result: v2.ResumeSessionResponse) -> v1.ResumeSessionResponse:
        return v1.ResumeSessionResponse(**self._setup(result))

    def _setup(
        self, result: v2.NewSessionResponse | v2.ForkSessionResponse | v2.ResumeSessionResponse
    ) -> dict[str, Any]:
        """Return the fields of all results that set up a session."""
        options, _ = self._options(result.config_options)
        return {
            "modes": self._modes(result.config_options),
            "models": self._models(result.config_options),
            "config_options": options or None,
            "meta": result.meta,
        }

    def set_config_option(
        self, result: v2.SetSessionConfigOptionResponse
    ) -> v1.SetSessionConfigOptionResponse:
        """Return the answer to the client that set an option, which knows the current mode from then on."""
        options, dropped = self._options(result.config_options)
        mode, model = mode_option(result.config_options), _marked_as_models(result.config_options)
        self._mode = None if mode is None else mode.current_value
        self._model = None if model is None else model.current_value
        return v1.SetSessionConfigOptionResponse(
            config_options=options,
            meta=mark(result.meta, {"configOptions": dropped}) if dropped else result.meta,
        )

    def commands(self, update: v2.AvailableCommandsUpdate) -> list[Sent]:
        shown, dropped = [], []
        for command in update.available_commands:
            twin = self._command(command)
            if twin is None:
                dropped.append(command)
            else:
                shown.append(twin)
        meta = mark(update.meta, {"availableCommands": dropped}) if dropped else update.meta
        return [v1.AvailableCommandsUpdate(available_commands=shown, meta=meta)]

    def initial_commands(self, commands: Sequence[v2.AvailableCommand]) -> list[Sent]:
        """v1 results have no commands: they are sent after the answer (24.2)."""
        if not commands:
            return []
        return self.commands(v2.AvailableCommandsUpdate(available_commands=list(commands)))

    def takes(self, options: Iterable[v2.SessionConfigOption]) -> bool:
        """Whether the client takes options of all their types."""
        return self._boolean or not any(isinstance(option, v2.SessionConfigBoolean) for option in options)

    def options(self, update: v2.ConfigOptionUpdate) -> list[Sent]:
        before = self._sent_options
        shown, dropped = self._options(update.config_options)
        meta = mark(update.meta, {"configOptions": dropped}) if dropped else update.meta
        mode, model = mode_option(update.config_options), _marked_as_models(update.config_options)
        sent: list[Sent] = []
        if shown != before or not (_is_made_of_modes(mode) or _is_made_of_models(model)):
            sent.append(v1.ConfigOptionUpdate(config_options=shown, meta=meta))
        # A client that never got modes cannot get another current one.
        if mode is not None and self._mode is not None and mode.current_value != self._mode:
            sent.append(v1.CurrentModeUpdate(current_mode_id=v1.SessionModeId(mode.current_value)))
            self._mode = mode.current_value
        if model is not None and self._model is not None and model.current_value != self._model:
            if _is_made_of_models(model):
                self._ledger.lose(losses.MODEL, update)
            self._model = model.current_value
        return sent

    def _modes(self, options: Iterable[v2.SessionConfigOption]) -> v1.SessionModeState | None:
        mode = mode_option(options)
        if mode is None:
            return None
        self._mode = mode.current_value
        return v1.SessionModeState(
            current_mode_id=v1.SessionModeId(mode.current_value),
            available_modes=[
                v1.SessionMode(
                    id=v1.SessionModeId(value.value),
                    name=value.name,
                    description=value.description,
                    meta=value.meta,
                )
                for value in offered_values(mode)
            ],
            meta=without_ours(mode.meta) if _is_made_of_modes(mode) else None,
        )

    def _models(self, options: Iterable[v2.SessionConfigOption]) -> SessionModelState | None:
        model = _marked_as_models(options)
        if model is None:
            return None
        self._model = model.current_value
        return SessionModelState(
            current_model_id=ModelId(model.current_value),
            available_models=[
                ModelInfo(
                    model_id=ModelId(value.value),
                    name=value.name,
                    description=value.description,
                    meta=value.meta,
                )
                for value in offered_values(model)
            ],
            meta=without_ours(model.meta) if _is_made_of_models(model) else None,
        )

    def _options(
        self, options: Iterable[v2.SessionConfigOption]
    ) -> tuple[list[v1.SessionConfigOption], list[v2.SessionConfigOption]]:
        shown: list[v1.SessionConfigOption] = []
        dropped: list[v2.SessionConfigOption] = []
        for option in options:
            if isinstance(option, v2.SessionConfigSelect):
                if not (_is_made_of_modes(option) or _is_made_of_models(option)):
                    shown.append(_select(option))
            elif isinstance(option, v2.SessionConfigBoolean) and self._boolean:
                shown.append(v1.SessionConfigBoolean(**_common(option)))
            else:
                self._ledger.lose(losses.CONFIG_OPTION, option)
                dropped.append(option)
        self._sent_options = shown
        return shown, dropped

    def _command(self, command: v2.AvailableCommand) -> v1.AvailableCommand | None:
        if isinstance(command, dict):
            self._ledger.lose(losses.COMMAND_TYPE, command)
            name, description = command.get("name"), command.get("description")
            if not isinstance(name, str) or not isinstance(description, str):
                return None
            return v1.AvailableCommand(name=name, description=description, meta=mark(None, command))
        meta, taken = command.meta, None
        if isinstance(command.input, Unknown):
            self._ledger.lose(losses.COMMAND_INPUT, command)
            meta = mark(meta, {"input": command.input})
        elif command.input is not None:
            taken = recast(command.input, v1.UnstructuredCommandInput)
        return v1.AvailableCommand(name=command.name, description=command.description, input=taken, meta=meta)


def mode_option(options: Iterable[v2.SessionConfigOption]) -> v2.SessionConfigSelect | None:
    """Return the option that v1's modes mirror: the first select of category `mode`."""
    return _first_select(options, v2.SessionConfigOptionCategory.MODE)


def model_option(options: Iterable[v2.SessionConfigOption]) -> v2.SessionConfigSelect | None:
    """Return the option that `session/set_model` sets: the one that was sent as models, or else the first
    select of category `model`."""
    options = list(options)
    return _marked_as_models(options) or own_model_option(options)


def own_model_option(options: Iterable[v2.SessionConfigOption]) -> v2.SessionConfigSelect | None:
    """Return the first select of category `model`."""
    return _first_select(options, v2.SessionConfigOptionCategory.MODEL)


def _first_select(
    options: Iterable[v2.SessionConfigOption], category: v2.SessionConfigOptionCategory
) -> v2.SessionConfigSelect | None:
    selects = (option for option in options if isinstance(option, v2.SessionConfigSelect))
    return next((option for option in selects if option.category == category), None)


def _marked_as_models(options: Iterable[v2.SessionConfigOption]) -> v2.SessionConfigSelect | None:
    selects = (option for option in options if isinstance(option, v2.SessionConfigSelect))
    return next((option for option in selects if _models(option) in (MADE_OF_MODELS, ALSO_MODELS)), None)


def _models(option: v2.SessionConfigSelect) -> str:
    return read_meta(ConfigOptionMeta, option.meta).models or ""


def _is_made_of_models(option: v2.SessionConfigSelect | None) -> bool:
    return option is not None and _models(option) == MADE_OF_MODELS


def _unmarked(option: v2.SessionConfigSelect) -> dict[str, Any] | None:
    """Return the `_meta` of an option without our mark."""
    ours = {key: value for key, value in ours_in(option.meta).items() if key != MODELS}
    if len(ours) == len(ours_in(option.meta)):
        return option.meta
    rest = without_ours(option.meta) or {}
    return {**rest, META_KEY: ours} if ours else rest or None


def _is_made_of_modes(option: v2.SessionConfigSelect | None) -> bool:
    return option is not None and (option.meta or {}).get(META_KEY) == MADE_OF_MODES


def _select(option: v2.SessionConfigSelect) -> v1.SessionConfigSelect:
    values = [
        recast(entry, v1.SessionConfigSelectOption)
        for entry in option.options
        if isinstance(entry, v2.SessionConfigSelectOption)
    ]
    groups = [
        v1.SessionConfigSelectGroup(
            group=v1.SessionConfigGroupId(entry.group_id),
            name=entry.name,
            options=[recast(value, v1.SessionConfigSelectOption) for value in entry.options],
            meta=entry.meta,
        )
        for entry in option.options
        if isinstance(entry, v2.SessionConfigSelectGroup)
    ]
    return v1.SessionConfigSelect(
        **{**_common(option), "options": groups or values, "meta": _unmarked(option)}
    )


def _common(option: v2.SessionConfigSelect | v2.SessionConfigBoolean) -> dict[str, Any]:
    """Return the fields of an option under the names of v1."""
    fields = structs.asdict(option)
    fields["id"] = fields.pop("config_id")
    if option.category is not None:
        fields["category"] = v1.SessionConfigOptionCategory(option.category)
    return fields
