"""What peers also send: dialects, opt-ins, and where the layers of the specification disagree (C-…)."""

from __future__ import annotations

import json

import msgspec
import pytest

from antiphon.errors import InvalidParams, InvalidResult
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.v1 import optins
from antiphon.schema.v2 import proposed
from antiphon.schema.wire import Unknown, choose
from tests.requirements.marks import requirement


def params(version, name, value, kind=Kind.REQUEST):
    return codec(version).params(kind, name, json.dumps(value).encode())


def result(version, name, value):
    return codec(version).result(name, json.dumps(value).encode())


def update(version, value):
    whole = params(version, "session/update", {"sessionId": "s", "update": value}, Kind.NOTIFICATION)
    return whole.update


def again(version, value):
    return json.loads(codec(version).encode(value))


def test_the_dialect_as_first_proposed_is_read():
    sent = {
        "sessionUpdate": "state_change", "state": "idle", "stop_reason": "end_turn",
        "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2},
    }  # fmt: skip
    made = update(2, sent)
    usage = v2.Usage(total_tokens=3, input_tokens=1, output_tokens=2)
    assert made == proposed.StateChange(state=v2.State.IDLE, stop_reason=v2.StopReason.END_TURN, usage=usage)
    assert again(2, made) == sent
    assert update(2, {"sessionUpdate": "state_change", "state": "idle", "stop_reason": 5}).stop_reason is None
    unknown = {"sessionUpdate": "state_change", "state": "_x"}
    assert update(2, unknown) == Unknown(unknown)


@requirement("TC-01")
def test_the_opt_ins_of_v1_are_read():
    done = {"sessionUpdate": "turn_complete", "promptRequestId": "2", "stopReason": "end_turn"}
    assert update(1, done) == optins.TurnComplete(
        stop_reason=v1.IdleStopReason.END_TURN, prompt_request_id="2"
    )
    text = {"type": "text", "text": "a"}
    replaced = {
        "sessionUpdate": "message_update",
        "messageId": "m",
        "updateType": "replace",
        "content": [text],
    }
    assert update(1, replaced).content == [v1.TextContent(text="a")]
    user = {"sessionUpdate": "user_message", "messageId": "m", "content": None}
    state = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"}
    for sent in (done, replaced, user, state):
        assert again(1, update(1, sent)) == sent
    assert isinstance(update(1, state), v1.StateUpdate)
    capabilities = {"sessionCapabilities": {"turnComplete": {}}}
    made = result(1, "initialize", {"protocolVersion": 1, "agentCapabilities": capabilities})
    assert made.agent_capabilities.session_capabilities.turn_complete == {}
    assert again(1, optins.PromptAccepted(message_id=v1.MessageId("m"))) == {"messageId": "m"}


@requirement("C-01")
def test_a_v2_prompt_may_be_answered_without_an_id():
    assert result(2, "session/prompt", {"messageId": "m"}) == v2.PromptResponse(message_id=v2.MessageId("m"))
    assert result(2, "session/prompt", {}) == proposed.PromptTaken()
    assert result(2, "session/prompt", {"_meta": {"a": 1}}) == proposed.PromptTaken(meta={"a": 1})
    for wrong in ({"messageId": 5}, {"messageId": None}, None, []):
        with pytest.raises(InvalidResult):
            result(2, "session/prompt", wrong)


@requirement("C-07")
def test_a_command_without_a_type_is_a_command():
    commands = [{"name": "a", "description": "b"}, {"type": "command", "name": "c", "description": "d"}]
    for more in ([], [{"type": "_menu", "name": "m", "description": "n", "rows": 3}]):
        made = update(2, {"sessionUpdate": "available_commands_update", "availableCommands": commands + more})
        assert made.available_commands == [
            v2.Command(name="a", description="b"),
            v2.Command(name="c", description="d"),
            *map(Unknown, more),
        ]
    assert again(2, made)["availableCommands"][0]["type"] == "command"


@requirement("C-08", "CONF-V1-07", "CONF-V2-01")
def test_setting_an_option():
    base = {"sessionId": "s", "configId": "c"}
    own = {"session_id": "s", "config_id": "c"}
    name = "session/set_config_option"
    assert params(2, name, base | {"type": "id", "value": "x"}) == v2.SetSessionConfigOptionId(
        **own, value="x"
    )
    assert params(2, name, base | {"type": "boolean", "value": True}).value is True
    with pytest.raises(InvalidParams, match="type"):
        params(2, name, base | {"value": "x"})
    assert again(2, v2.SetSessionConfigOptionId(**own, value="x")) == base | {"type": "id", "value": "x"}
    kept = base | {"type": "_float", "value": 0.5}
    assert params(2, name, kept) == Unknown(kept)
    assert params(1, name, base | {"value": "x"}) == v1.SetSessionConfigOptionId(**own, value="x")
    assert params(1, name, base | {"type": "_float", "value": "x"}) == v1.SetSessionConfigOptionId(
        **own, value="x"
    )
    assert params(1, name, base | {"type": "boolean", "value": True}).value is True
    assert again(1, v1.SetSessionConfigOptionId(**own, value="x")) == base | {"value": "x"}
    with pytest.raises(InvalidParams):
        params(1, name, base | {"type": "boolean", "value": "x"})


@requirement("C-19")
def test_a_mode_update_is_read_under_both_names_and_written_under_one():
    for key in ("currentModeId", "modeId"):
        made = update(1, {"sessionUpdate": "current_mode_update", key: "ask"})
        assert made == v1.CurrentModeUpdate(current_mode_id=v1.SessionModeId("ask"))
        assert again(1, made) == {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
    with pytest.raises(InvalidParams):
        update(1, {"sessionUpdate": "current_mode_update", "modeId": 5})


@requirement("C-20")
def test_an_empty_v1_result_may_be_null():
    for name, empty in (
        ("session/load", v1.LoadSessionResponse()),
        ("fs/write_text_file", v1.WriteTextFileResponse()),
        ("session/set_mode", v1.SetSessionModeResponse()),
    ):
        assert result(1, name, None) == result(1, name, {}) == empty
        assert again(1, empty) == {}
    for version, name in ((1, "session/new"), (2, "session/close")):
        with pytest.raises(InvalidResult):
            result(version, name, None)


def test_a_v1_prompt_is_answered_at_its_insertion_under_the_future_flag() -> None:
    assert result(1, "session/prompt", {"messageId": "m"}) == optins.PromptAccepted(message_id="m")
    assert result(1, "session/prompt", {}) == optins.PromptAccepted(), "the user message names it (SD-05)"
    with pytest.raises(InvalidResult):
        result(1, "session/prompt", "x")


def test_a_select_option_is_read_strictly_and_needs_no_repair() -> None:
    option = b'{"type":"select","configId":"m","name":"M","currentValue":"a","options":[%b]}'
    flat = b'{"value":"a","name":"A"}'
    for choices in (flat, b'{"groupId":"g","name":"G","options":[%b]}' % flat):
        raw = b'{"sessionUpdate":"config_option_update","configOptions":[' + option % choices + b"]}"
        read = msgspec.json.decode(raw, type=v2.ConfigOptionUpdate, dec_hook=choose)
        assert isinstance(read.config_options[0], v2.SessionConfigSelect)


@pytest.mark.parametrize("version", [1, 2])
def test_a_prompt_answer_with_a_number_out_of_range_is_an_invalid_result(version: int) -> None:
    with pytest.raises(InvalidResult):
        codec(version).result("session/prompt", b"1" * 5000)
