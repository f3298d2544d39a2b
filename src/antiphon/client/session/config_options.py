"""The order in which a user should see config options."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.schema import v2


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
