from __future__ import annotations

import pytest

from antiphon.engine.configuration import fault, find_option, set_value, takes
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from tests.requirements.marks import requirement


def value(id: str) -> v2.SessionConfigSelectOption:
    return v2.SessionConfigSelectOption(value=v2.SessionConfigValueId(id), name=id.title())


def group(id: str, *values: str) -> v2.SessionConfigSelectGroup:
    return v2.SessionConfigSelectGroup(
        group_id=v2.SessionConfigGroupId(id), name=id, options=[value(one) for one in values]
    )


def select(*entries: object, id: str = "model", current: str = "fast") -> v2.SessionConfigSelect:
    return v2.SessionConfigSelect(
        config_id=v2.SessionConfigId(id),
        name="Model",
        current_value=v2.SessionConfigValueId(current),
        options=list(entries),
    )


SWITCH = v2.SessionConfigBoolean(config_id=v2.SessionConfigId("loud"), name="Loud", current_value=False)
STRANGE = Unknown({"type": "slider", "configId": "heat", "name": "Heat", "currentValue": 3})


@requirement("CONF-V2-04")
@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ([select(value("fast"), value("deep")), SWITCH, STRANGE], None),
        ([select(group("a", "fast"), group("b", "deep"))], None),
        ([select()], "nothing to choose"),
        ([select(group("a", "fast"), group("b"))], "a group is empty"),
        ([select(group("a", "fast"), value("deep"))], "all in groups, or none"),
        ([select(group("a", "fast"), group("b", "fast"))], "offered twice"),
        ([select(value("deep"))], "'fast' is not among"),
        ([SWITCH, SWITCH], "an id of its own"),
        ([select(value("fast"), id="")], "an id of its own"),
    ],
)
def test_what_may_be_offered(options: list[v2.SessionConfigOption], wrong: str | None) -> None:
    found = fault(options)
    assert found is None if wrong is None else wrong in (found or "")


def test_an_option_takes_what_it_offers_and_nothing_else() -> None:
    grouped = select(group("a", "fast"), group("b", "deep"))
    assert [takes(grouped, one) for one in ("fast", "deep", "slow", True)] == [True, True, False, False]
    assert [takes(SWITCH, one) for one in (True, False, "true", 1)] == [True, True, False, False]
    assert not takes(STRANGE, 3)


@requirement("CONF-01")
def test_setting_one_gives_the_complete_list_and_leaves_the_others_as_they_are() -> None:
    options = [select(value("fast"), value("deep")), SWITCH, STRANGE]
    changed = set_value(options, "model", "deep")
    assert changed == [select(value("fast"), value("deep"), current="deep"), SWITCH, STRANGE]
    assert set_value(options, "heat", "4") == options, "an unknown type keeps its value"
    assert find_option(changed, "heat") is STRANGE
    assert find_option(changed, "cold") is None
