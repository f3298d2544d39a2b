"""Commands, config options, info and usage: there is one of each."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.schema.v2.commands import AvailableCommandsUpdate, Command
from antiphon.schema.v2.config_options import ConfigOptionUpdate
from antiphon.schema.v2.session_list import SessionInfoUpdate
from antiphon.schema.v2.usage import Cost, UsageUpdate
from antiphon.schema.wire import Unknown
from tests.requirements.marks import requirement

from .journals import folded, update

DIAL = {"type": "_dial", "configId": "d", "name": "Dial", "currentValue": 3}
COST = {"amount": 0.5, "currency": "EUR"}


@requirement("CMD-01", "CONF-01")
def test_a_list_of_commands_or_options_replaces_the_earlier_one() -> None:
    facts = folded(
        update(
            "available_commands_update",
            availableCommands=[{"type": "command", "name": "a", "description": "A"}],
        ),
        update(
            "available_commands_update",
            availableCommands=[{"type": "command", "name": "b", "description": "B"}],
        ),
        update("config_option_update", configOptions=[DIAL]),
    ).facts
    assert facts.commands is not None
    assert facts.commands.materialize() == AvailableCommandsUpdate(
        available_commands=[Command(name="b", description="B")]
    )
    assert facts.config is not None
    assert facts.config.materialize() == ConfigOptionUpdate(
        config_options=[Unknown(DIAL)]  # CONF-V2-05
    )


@requirement("USAGE-04")
@pytest.mark.parametrize(
    ("patch", "cost"),
    [
        ({}, Cost(amount=0.5, currency="EUR")),
        ({"cost": None}, None),
        ({"cost": {"amount": 1, "currency": "credits"}}, Cost(amount=1, currency="credits")),
    ],
)
def test_cost_is_kept_cleared_or_replaced(patch: dict[str, Any], cost: Cost | None) -> None:
    usage = folded(
        update("usage_update", used=1, size=9, cost=COST), update("usage_update", used=2, size=9, **patch)
    ).facts.usage
    assert usage is not None
    assert usage.materialize() == UsageUpdate(used=2, size=9, cost=cost)


@requirement("INFO-01")
def test_session_info_is_patched() -> None:
    info = folded(
        update("session_info_update", title="T", updatedAt="now", meta={"a": 1}),
        update("session_info_update", updatedAt=None, meta={"b": 2}),
    ).facts.info
    assert info is not None
    assert info.materialize() == SessionInfoUpdate(title="T", updated_at=None, meta={"a": 1, "b": 2})


def test_a_new_session_has_none_of_them() -> None:
    facts = folded().facts
    assert (facts.commands, facts.config, facts.info, facts.usage) == (None, None, None, None)
