"""Options, modes and commands of a v2 session in v1's words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.schema import v2
from antiphon.schema.codec import codec
from antiphon.schema.wire import Unknown
from tests.bridge.wire import Down, capabilities, plain, update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"
BOOLEAN = capabilities(session={"configOptions": {"boolean": {}}})

MODE = {
    "type": "select", "configId": "m", "name": "Mode", "category": "mode", "currentValue": "ask",
    "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code", "description": "Writes"}],
}  # fmt: skip
MODEL = {
    "type": "select", "configId": "model", "name": "Model", "category": "_own", "currentValue": "x",
    "options": [{"groupId": "g", "name": "G", "options": [{"value": "x", "name": "X"}]}],
}  # fmt: skip
SWITCH = {"type": "boolean", "configId": "b", "name": "Fast", "currentValue": True}
ODD = {"type": "_slider", "configId": "s", "name": "Heat", "currentValue": 3}


def in_v1(option: dict[str, Any]) -> dict[str, Any]:
    renamed = {key: value for key, value in option.items() if key != "configId"}
    renamed["id"] = option["configId"]
    if "options" in renamed:
        renamed["options"] = [
            {("group" if key == "groupId" else key): value for key, value in entry.items()}
            for entry in renamed["options"]
        ]
    return renamed


def result(method: str, **fields: Any) -> Any:
    return codec(2).result(method, msgspec.json.encode(fields))


def new(**fields: Any) -> v2.NewSessionResponse:
    made: v2.NewSessionResponse = result("session/new", sessionId="s", **fields)
    return made


MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code", "description": "Writes"}],
}


def test_24_2_options_are_renamed_and_modes_mirror_the_first_mode_option() -> None:
    down = Down()
    other = {**MODE, "configId": "m2", "currentValue": "code"}
    sent = down.machine.configuration.new_session(new(configOptions=[MODEL, MODE, other], _meta={"k": 1}))
    assert plain(sent) == {
        "sessionId": "s",
        "modes": MODES,
        "configOptions": [in_v1(MODEL), in_v1(MODE), in_v1(other)],
        "_meta": {"k": 1},
    }
    assert down.lost == []


def test_24_2_a_session_without_options_has_neither() -> None:
    assert plain(Down().machine.configuration.new_session(new())) == {"sessionId": "s"}


def test_24_2_modes_may_be_grouped() -> None:
    grouped = {**MODE, "options": [{"groupId": "g", "name": "G", "options": MODE["options"]}]}
    assert plain(Down().machine.configuration.new_session(new(configOptions=[grouped])))["modes"] == MODES


def test_24_2_load_resume_and_fork_answer_alike() -> None:
    configuration = Down().machine.configuration
    resumed = result("session/resume", configOptions=[MODE])
    forked = result("session/fork", sessionId="f", configOptions=[MODE])
    expected = {"modes": MODES, "configOptions": [in_v1(MODE)]}
    assert plain(configuration.load_session(resumed)) == expected
    assert plain(configuration.resume_session(resumed)) == expected
    assert plain(configuration.fork_session(forked)) == {"sessionId": "f", **expected}


@requirement("CONF-V1-06")
@pytest.mark.parametrize(
    ("asked", "given", "sent"),
    [
        (None, [MODE, SWITCH], [MODE]),
        (BOOLEAN, [MODE, SWITCH], [MODE, SWITCH]),
        (BOOLEAN, [ODD, SWITCH], [SWITCH]),
    ],
)
def test_booleans_only_for_those_who_asked_and_unknown_types_for_none(
    asked: Any, given: Any, sent: Any
) -> None:
    down = Down(asked)
    dropped = [option for option in given if option not in sent]
    meta = {"_meta": {ORIGINAL: {"configOptions": dropped}}} if dropped else {}
    assert down.feed(update("config_option_update", configOptions=given)) == [
        {"sessionUpdate": "config_option_update", "configOptions": [*map(in_v1, sent)], **meta}
    ]
    assert down.lost == ["config_option"] * len(dropped)
    answer = down.machine.configuration.set_config_option(
        result("session/set_config_option", configOptions=given)
    )
    assert plain(answer) == {"configOptions": [*map(in_v1, sent)], **meta}


def test_24_4_a_changed_mode_is_also_told_as_a_mode() -> None:
    down = Down()
    down.machine.configuration.new_session(new(configOptions=[MODE]))
    changed = update("config_option_update", configOptions=[{**MODE, "currentValue": "code"}])
    sent = down.feed(changed)
    assert sent[1:] == [{"sessionUpdate": "current_mode_update", "currentModeId": "code"}]
    assert len(down.feed(changed)) == 1


def test_24_4_no_mode_is_told_to_a_client_that_was_given_none() -> None:
    assert len(Down().feed(update("config_option_update", configOptions=[MODE]))) == 1


def test_24_4_who_set_the_mode_knows_it_from_the_answer() -> None:
    down = Down()
    down.machine.configuration.new_session(new(configOptions=[MODE]))
    code = {**MODE, "currentValue": "code"}
    down.machine.configuration.set_config_option(result("session/set_config_option", configOptions=[code]))
    assert len(down.feed(update("config_option_update", configOptions=[code]))) == 1


def test_24_4_commands() -> None:
    down = Down()
    given: list[Any] = [
        {"type": "command", "name": "a", "description": "A", "input": {"type": "text", "hint": "what"}},
        {"type": "command", "name": "b", "description": "B", "input": {"type": "_pick", "of": [1]}},
        {"type": "_macro", "name": "c", "description": "C"},
        {"type": "_macro", "id": 4},
    ]
    commands = update("available_commands_update", availableCommands=given[:3]).available_commands
    nameless = Unknown(given[3])  # never from the wire, where every command has a name
    assert down.feed(v2.AvailableCommandsUpdate(available_commands=[*commands, nameless])) == [
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [
                {"name": "a", "description": "A", "input": {"hint": "what"}},
                {
                    "name": "b",
                    "description": "B",
                    "_meta": {ORIGINAL: {"input": {"type": "_pick", "of": [1]}}},
                },
                {"name": "c", "description": "C", "_meta": {ORIGINAL: given[2]}},
            ],
            "_meta": {ORIGINAL: {"availableCommands": [given[3]]}},
        }
    ]
    assert down.lost == ["command_input", "command_type", "command_type"]


def test_24_2_initial_commands_follow_the_answer() -> None:
    configuration = Down().machine.configuration
    command = v2.Command(name="a", description="A")
    assert [plain(sent) for sent in configuration.initial_commands([command])] == [
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": "a", "description": "A"}],
        }
    ]
    assert configuration.initial_commands([]) == []
