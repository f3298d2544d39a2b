"""Config options, modes, models and commands of a v1 agent as v2 has them (24.2, 24.4, CONF).

v2 has no modes: they are an option of category `mode`. If the agent has such an option itself, its modes
repeat that option (CONF-V1-05); otherwise one is made of them. The models that v1 once had become an option
of category `model` in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import structs

from antiphon.bridge import losses
from antiphon.bridge.content import recast
from antiphon.bridge.downgrade.configuration import (
    ALSO_MODELS,
    MADE_OF_MODELS,
    MADE_OF_MODES,
    MODELS,
    mode_option,
    own_model_option,
)
from antiphon.bridge.downgrade.configuration import Configuration as Downgraded
from antiphon.bridge.losses import Ledger, mark
from antiphon.engine.configuration import config_id, offered_values
from antiphon.schema import v1, v2
from antiphon.schema.v1.models import ModelId, ModelInfo, SessionModelState, SetSessionModelResponse
from antiphon.schema.version import with_ours

MODE: Final = v2.SessionConfigId("mode")
MODE_NAME: Final = "Session Mode"
MODEL: Final = v2.SessionConfigId("model")
MODEL_NAME: Final = "Model"


_Setup: TypeAlias = (
    v1.NewSessionResponse | v1.ForkSessionResponse | v1.LoadSessionResponse | v1.ResumeSessionResponse
)


class Configuration:
    """The options, modes and models of one session."""

    __slots__ = ("_dropped", "_ledger", "_models", "_modes", "_options")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._options: list[v2.SessionConfigOption] = []
        self._dropped: list[v1.SessionConfigOption] = []
        self._modes: v1.SessionModeState | None = None
        self._models: SessionModelState | None = None

    @property
    def options(self) -> list[v2.SessionConfigOption]:
        """The complete list (CONF-01)."""
        own: list[v2.SessionConfigOption] = self._options.copy()
        model = None if self._models is None else own_model_option(own)
        if model is not None:
            own[own.index(model)] = structs.replace(
                model, meta=with_ours(model.meta, **{MODELS: ALSO_MODELS})
            )
        return [*own, *(made for made in (self._made(), self._made_of_models()) if made is not None)]

    @property
    def mode(self) -> v2.SessionConfigId | None:
        """The option that `session/set_mode` sets, because it was made of the modes."""
        made = self._made()
        return None if made is None else made.config_id

    def has_mode(self, mode_id: str) -> bool:
        return self._modes is not None and any(mode.id == mode_id for mode in self._modes.available_modes)

    @property
    def model(self) -> v2.SessionConfigId | None:
        """The option that `session/set_model` sets, because it was made of the models."""
        made = self._made_of_models()
        return None if made is None else made.config_id

    def has_model(self, model_id: str) -> bool:
        known = () if self._models is None else self._models.available_models
        return any(model.model_id == model_id for model in known)

    def new_session(self, result: v1.NewSessionResponse) -> v2.NewSessionResponse:
        return v2.NewSessionResponse(session_id=v2.SessionId(result.session_id), **self._setup(result))

    def fork_session(self, result: v1.ForkSessionResponse) -> v2.ForkSessionResponse:
        return v2.ForkSessionResponse(session_id=v2.SessionId(result.session_id), **self._setup(result))

    def reopened(self, result: v1.LoadSessionResponse | v1.ResumeSessionResponse) -> v2.ResumeSessionResponse:
        return v2.ResumeSessionResponse(**self._setup(result))

    def assume(self, options: Sequence[v2.SessionConfigOption]) -> None:
        """Assume that the agent still has these options, modes and models, if it named none of that kind when
        it reopened the session: v1 does not require it to."""
        downgraded = Downgraded(Ledger(), boolean=True).load_session(
            v2.ResumeSessionResponse(config_options=list(options))
        )
        if not self._options:
            self._take(downgraded.config_options or ())
        self._modes = self._modes or downgraded.modes
        self._models = self._models or downgraded.models

    def set_config_option(
        self, result: v1.SetSessionConfigOptionResponse
    ) -> v2.SetSessionConfigOptionResponse:
        self._take(result.config_options)
        return v2.SetSessionConfigOptionResponse(
            config_options=self.options, meta=self._with_dropped(result.meta)
        )

    def set_mode(self, mode_id: str, result: v1.SetSessionModeResponse) -> v2.SetSessionConfigOptionResponse:
        """Return the answer for the option that was made of the modes: the whole list (24.2)."""
        if self._modes is not None:
            self._modes = structs.replace(self._modes, current_mode_id=v1.SessionModeId(mode_id))
        return v2.SetSessionConfigOptionResponse(config_options=self.options, meta=result.meta)

    def set_model(self, model_id: str, result: SetSessionModelResponse) -> v2.SetSessionConfigOptionResponse:
        """Return the answer for the option that was made of the models: the whole list."""
        if self._models is not None:
            self._models = structs.replace(self._models, current_model_id=ModelId(model_id))
        return v2.SetSessionConfigOptionResponse(config_options=self.options, meta=result.meta)

    def option_update(self, update: v1.ConfigOptionUpdate) -> list[v2.ConfigOptionUpdate]:
        self._take(update.config_options)
        return [v2.ConfigOptionUpdate(config_options=self.options, meta=self._with_dropped(update.meta))]

    def mode_update(self, update: v1.CurrentModeUpdate) -> list[v2.ConfigOptionUpdate]:
        own = mode_option(self._options)
        if own is not None:
            value = v2.SessionConfigValueId(update.current_mode_id)
            if all(value != offered.value for offered in offered_values(own)):
                self._ledger.lose(losses.MODE, update)
                return []
            self._options = [
                structs.replace(own, current_value=value) if option is own else option
                for option in self._options
            ]
        elif self._modes is None:
            self._ledger.lose(losses.MODE, update)
            return []
        if self._modes is not None:
            self._modes = structs.replace(self._modes, current_mode_id=update.current_mode_id)
        return [v2.ConfigOptionUpdate(config_options=self.options, meta=update.meta)]

    def commands(self, update: v1.AvailableCommandsUpdate) -> v2.AvailableCommandsUpdate:
        upgraded: list[v2.AvailableCommand] = [
            recast(
                command,
                v2.Command,
                input=None if command.input is None else recast(command.input, v2.TextCommandInput),
            )
            for command in update.available_commands
        ]
        return v2.AvailableCommandsUpdate(available_commands=upgraded, meta=update.meta)

    def _setup(self, result: _Setup) -> dict[str, Any]:
        """Take what the agent says of a session that it has set up; return the fields of all such results."""
        self._modes, self._models = result.modes, result.models
        self._take(result.config_options or ())
        return {"config_options": self.options, "meta": self._with_dropped(result.meta)}

    def _take(self, options: Iterable[v1.SessionConfigOption]) -> None:
        self._options, self._dropped = [], []
        for option in options:
            upgraded = self._option(option)
            if upgraded is None:
                self._ledger.lose(losses.CONFIG_VALUES, option)
                self._dropped.append(option)
            else:
                self._options.append(upgraded)

    def _with_dropped(self, meta: dict[str, Any] | None) -> dict[str, Any] | None:
        return mark(meta, {"configOptions": self._dropped}) if self._dropped else meta

    def _option(self, option: v1.SessionConfigOption) -> v2.SessionConfigOption | None:
        fields = structs.asdict(option)
        fields["config_id"] = fields.pop("id")
        if option.category is not None:
            fields["category"] = v2.SessionConfigOptionCategory(option.category)
        if isinstance(option, v1.SessionConfigBoolean):
            return v2.SessionConfigBoolean(**fields)
        options = _entries(option.options)
        return None if options is None else v2.SessionConfigSelect(**{**fields, "options": options})

    def _made(self) -> v2.SessionConfigSelect | None:
        modes = self._modes
        if modes is None or mode_option(self._options) is not None:
            return None
        return v2.SessionConfigSelect(
            config_id=self._free(MODE),
            name=MODE_NAME,
            category=v2.SessionConfigOptionCategory.MODE,
            current_value=v2.SessionConfigValueId(modes.current_mode_id),
            options=_listed(modes.current_mode_id, {str(mode.id): mode for mode in modes.available_modes}),
            meta=with_ours(modes.meta, **MADE_OF_MODES),
        )

    def _made_of_models(self) -> v2.SessionConfigSelect | None:
        models = self._models
        if models is None or own_model_option(self._options) is not None:
            return None
        return v2.SessionConfigSelect(
            config_id=self._free(MODEL),
            name=MODEL_NAME,
            category=v2.SessionConfigOptionCategory.MODEL,
            current_value=v2.SessionConfigValueId(models.current_model_id),
            options=_listed(
                models.current_model_id, {str(model.model_id): model for model in models.available_models}
            ),
            meta=with_ours(models.meta, **{MODELS: MADE_OF_MODELS}),
        )

    def _free(self, id: v2.SessionConfigId) -> v2.SessionConfigId:
        """Return an id for an option that is made here, which no option of the agent has."""
        taken = {config_id(option) for option in self._options}
        while id in taken:
            id = v2.SessionConfigId(f"_{id}")
        return id


def _listed(
    current: str, offered: Mapping[str, v1.SessionMode] | Mapping[str, ModelInfo]
) -> list[v2.SessionConfigSelectOption]:
    """Return the values of an option that is made here; the current one is among them (CONF-V2-04)."""
    values = [
        v2.SessionConfigSelectOption(
            value=v2.SessionConfigValueId(id), name=one.name, description=one.description, meta=one.meta
        )
        for id, one in offered.items()
    ]
    if current not in offered:
        values.append(v2.SessionConfigSelectOption(value=v2.SessionConfigValueId(current), name=current))
    return values


def _entries(options: v1.SessionConfigSelectOptions) -> v2.SessionConfigSelectOptions | None:
    """Return the values of a select; `None` if it, or one of its groups, has none (CONF-V2-04)."""
    values: list[v2.SessionConfigSelectOption] = []
    groups: list[v2.SessionConfigSelectGroup] = []
    for entry in options:
        if isinstance(entry, v1.SessionConfigSelectOption):
            values.append(recast(entry, v2.SessionConfigSelectOption))
        elif entry.options:
            groups.append(
                v2.SessionConfigSelectGroup(
                    group_id=v2.SessionConfigGroupId(entry.group),
                    name=entry.name,
                    options=[recast(value, v2.SessionConfigSelectOption) for value in entry.options],
                    meta=entry.meta,
                )
            )
        else:
            return None
    return groups or values or None
