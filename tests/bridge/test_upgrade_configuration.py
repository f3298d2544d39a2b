"""Options and modes of v1 agents: one list of options (24.2, 24.4, CONF)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.schema import v1
from antiphon.schema.codec import codec
from tests.bridge.wire import Up, plain, v1_update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"
MODES = {
    "currentModeId": "ask",
    "availableModes": [
        {"id": "ask", "name": "Ask", "description": "First", "_meta": {"k": 1}},
        {"id": "code", "name": "Code"},
    ],
}
MODE_OPTION: dict[str, Any] = {
    "type": "select",
    "configId": "mode",
    "name": "Session Mode",
    "category": "mode",
    "currentValue": "ask",
    "options": [
        {"value": "ask", "name": "Ask", "description": "First", "_meta": {"k": 1}},
        {"value": "code", "name": "Code"},
    ],
    "_meta": {"antiphon": {"modes": True}},
}
VALUES = [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]
SELECT = {"type": "select", "name": "Model", "category": "model", "currentValue": "a", "options": VALUES}
BOOLEAN = {"type": "boolean", "name": "Fast", "currentValue": True, "description": "D", "_meta": {"k": 2}}


def result(method: str, **fields: Any) -> Any:
    return codec(1).result(method, msgspec.json.encode(fields))


def strict(method: str, lifted: Any) -> Any:
    """The JSON of a result that v2 reads back as what it is."""
    raw = msgspec.json.encode(lifted)
    assert codec(2).result(method, raw) == lifted
    return plain(raw)


def opened(up: Up, **fields: Any) -> Any:
    made = up.machine.configuration.new_session(result("session/new", sessionId="s", **fields))
    return strict("session/new", made)


def current(up: Up, mode: str, **fields: Any) -> list[dict[str, Any]]:
    return up.feed(v1_update("current_mode_update", currentModeId=mode, **fields))


def test_24_2_modes_are_an_option_of_category_mode() -> None:
    up = Up()
    assert opened(up, modes=MODES, _meta={"k": 1}) == {
        "sessionId": "s",
        "configOptions": [MODE_OPTION],
        "_meta": {"k": 1},
    }
    assert up.machine.configuration.mode == "mode"
    assert up.lost == []


@requirement("SESS-06")
def test_nothing_given_is_nothing_told() -> None:
    assert opened(Up(), modes=None, configOptions=None) == {"sessionId": "s"}


def test_24_2_ids_are_renamed() -> None:
    groups = [{"group": "g", "name": "G", "options": VALUES, "_meta": {"k": 1}}]
    given = [
        {"id": "x", **SELECT},
        {"id": "y", **SELECT, "options": groups},
        {"id": "z", **BOOLEAN},
    ]
    grouped = [{"groupId": "g", "name": "G", "options": VALUES, "_meta": {"k": 1}}]
    assert opened(Up(), configOptions=given)["configOptions"] == [
        {"configId": "x", **SELECT},
        {"configId": "y", **SELECT, "options": grouped},
        {"configId": "z", **BOOLEAN},
    ]


@pytest.mark.parametrize(("taken", "made"), [(["mode"], "_mode"), (["mode", "_mode"], "__mode")])
def test_24_2_a_taken_id_is_not_taken_again(taken: list[str], made: str) -> None:
    up = Up()
    options = opened(up, modes=MODES, configOptions=[{"id": id, **SELECT} for id in taken])["configOptions"]
    assert [option["configId"] for option in options] == [*taken, made]
    assert up.machine.configuration.mode == made


@requirement("CONF-V1-05")
def test_an_option_of_category_mode_stands_for_the_modes() -> None:
    up = Up()
    own = {"id": "own", **SELECT, "category": "mode", "options": VALUES}
    told = {"configId": "own", **SELECT, "category": "mode"}
    assert opened(up, modes=MODES, configOptions=[own])["configOptions"] == [told]
    assert up.machine.configuration.mode is None
    assert current(up, "b") == [
        {"sessionUpdate": "config_option_update", "configOptions": [{**told, "currentValue": "b"}]}
    ]
    assert current(up, "code") == []
    assert up.lost == ["mode"]


def test_24_4_a_current_mode_is_the_whole_list_with_the_mode_changed() -> None:
    up = Up()
    opened(up, modes=MODES, configOptions=[{"id": "x", **SELECT}])
    assert current(up, "code", meta={"k": 1}) == [
        {
            "sessionUpdate": "config_option_update",
            "configOptions": [{"configId": "x", **SELECT}, {**MODE_OPTION, "currentValue": "code"}],
            "_meta": {"k": 1},
        }
    ]


@requirement("CONF-V2-04")
def test_a_current_mode_that_was_not_listed_is_listed() -> None:
    up = Up()
    opened(up, modes={"currentModeId": "ask", "availableModes": []})
    (told,) = current(up, "new")
    assert told["configOptions"][0]["options"] == [{"value": "new", "name": "new"}]


def test_24_4_a_current_mode_of_a_session_without_modes_is_lost() -> None:
    up = Up()
    assert current(up, "code") == []
    assert up.lost == ["mode"]


def test_24_4_an_option_update_keeps_the_modes() -> None:
    up = Up()
    opened(up, modes=MODES)
    assert up.feed(v1_update("config_option_update", configOptions=[{"id": "z", **BOOLEAN}])) == [
        {
            "sessionUpdate": "config_option_update",
            "configOptions": [{"configId": "z", **BOOLEAN}, MODE_OPTION],
        }
    ]


@requirement("CONF-V2-04")
@pytest.mark.parametrize("options", [[], [{"group": "g", "name": "G", "options": []}]])
def test_an_option_without_values_is_left_out(options: list[Any]) -> None:
    up = Up()
    empty = {"id": "e", **SELECT, "options": options}
    told = opened(up, configOptions=[empty, {"id": "z", **BOOLEAN}])
    assert told["configOptions"] == [{"configId": "z", **BOOLEAN}]
    assert [each["id"] for each in told["_meta"][ORIGINAL]["configOptions"]] == ["e"]
    assert up.lost == ["config_values"]


def test_24_2_setting_a_mode_is_answered_with_the_whole_list() -> None:
    up = Up()
    opened(up, modes=MODES)
    made = up.machine.configuration.set_mode("code", v1.SetSessionModeResponse(meta={"k": 1}))
    assert strict("session/set_config_option", made) == {
        "configOptions": [{**MODE_OPTION, "currentValue": "code"}],
        "_meta": {"k": 1},
    }


def test_24_2_setting_an_option_is_answered_with_the_whole_list() -> None:
    up = Up()
    opened(up, modes=MODES)
    answer = result("session/set_config_option", configOptions=[{"id": "z", **BOOLEAN}])
    made = up.machine.configuration.set_config_option(answer)
    assert strict("session/set_config_option", made) == {
        "configOptions": [{"configId": "z", **BOOLEAN}, MODE_OPTION]
    }


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_24_2_load_and_resume_give_the_options_too(method: str) -> None:
    made, _ = Up().machine.reopened(result(method, modes=MODES))
    assert strict("session/resume", made) == {"configOptions": [MODE_OPTION]}


def test_24_2_fork_gives_the_options_too() -> None:
    made = Up().machine.configuration.fork_session(result("session/fork", sessionId="f", modes=MODES))
    assert strict("session/fork", made) == {"sessionId": "f", "configOptions": [MODE_OPTION]}
