"""Decoding and encoding by method and version: what a peer may send, and what becomes of it."""

from __future__ import annotations

import json

import pytest

from antiphon.errors import InvalidParams, MethodNotFound, UnsupportedVersion
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.wire import UNSET, Unknown
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


def test_there_is_one_codec_per_version():
    assert codec(2) is codec(2)
    assert codec(1).version == 1
    with pytest.raises(UnsupportedVersion):
        codec(3)


@requirement("RPC-18")
def test_a_method_that_is_not_of_the_version_is_not_found():
    for kind in Kind:
        with pytest.raises(MethodNotFound):
            codec(2).params(kind, "session/set_mode", b"{}")
    with pytest.raises(MethodNotFound):
        codec(2).result("session/set_mode", b"{}")


@requirement("EXT-01")
def test_an_extension_keeps_its_plain_json():
    assert params(1, "_vendor/thing", [1, {"a": None}]) == [1, {"a": None}]
    assert codec(1).params(Kind.NOTIFICATION, "_vendor/thing", None) == {}
    assert result(2, "_vendor/thing", {"ok": True}) == {"ok": True}


@pytest.mark.parametrize("raw", [None, b"null", b"{}"])
def test_missing_params_are_empty_params(raw):
    assert codec(2).params(Kind.REQUEST, "auth/logout", raw) == v2.LogoutAuthRequest()
    with pytest.raises(InvalidParams, match="sessionId"):
        codec(2).params(Kind.REQUEST, "session/close", raw)


@requirement("RPC-39")
def test_unknown_properties_are_ignored():
    made = params(2, "session/close", {"sessionId": "s", "future": {"deep": [1]}})
    assert made == v2.CloseSessionRequest(session_id=v2.SessionId("s"))


@requirement("EXT-04")
@pytest.mark.parametrize("value", [None, {}, {"traceparent": "00-1"}, {"vendor": {"deep": [None]}}])
def test_meta_is_an_object_or_null(value):
    made = params(1, "session/cancel", {"sessionId": "s", "_meta": value}, Kind.NOTIFICATION)
    assert made.meta == value
    assert "_meta" in again(1, v1.CancelNotification(session_id=v1.SessionId("s"), meta={}))


@requirement("EXT-04")
def test_a_meta_that_is_no_object_counts_as_absent():
    assert params(2, "session/close", {"sessionId": "s", "_meta": 5}).meta is None
    assert update(2, {"sessionUpdate": "user_message", "messageId": "m", "_meta": "no"}).meta is UNSET


@requirement("RPC-42")
@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, {"a": [None]}])
def test_raw_input_and_output_are_passed_through_untouched(value):
    for version in (1, 2):
        sent = {
            "sessionUpdate": "tool_call_update", "toolCallId": "t", "rawInput": value, "rawOutput": value,
        }  # fmt: skip
        made = update(version, sent)
        assert made.raw_input == value
        assert again(version, made) == sent
    assert update(2, {"sessionUpdate": "tool_call_update", "toolCallId": "t"}).raw_input is UNSET


@requirement("MSG-13", "MSG-21")
@pytest.mark.parametrize("kind", ["user_message", "agent_message", "agent_thought"])
def test_content_is_absent_null_or_a_value(kind):
    bare = {"sessionUpdate": kind, "messageId": "m"}
    text = [{"type": "text", "text": "a"}]
    assert update(2, bare).content is UNSET
    assert update(2, bare | {"content": None}).content is None
    assert update(2, bare | {"content": []}).content == []
    assert update(2, bare | {"content": text}).content == [v2.TextContent(text="a")]
    for sent in (bare, bare | {"content": None}, bare | {"content": []}, bare | {"content": text}):
        assert again(2, update(2, sent)) == sent


PATCHES = [
    {"sessionUpdate": "user_message", "messageId": "m"},
    {"sessionUpdate": "agent_message", "messageId": "m"},
    {"sessionUpdate": "agent_thought", "messageId": "m"},
    {"sessionUpdate": "tool_call_update", "toolCallId": "t"},
    {"sessionUpdate": "terminal_update", "terminalId": "t"},
    {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"},
    {"sessionUpdate": "session_info_update"},
]


@requirement("MSG-18")
@pytest.mark.parametrize("bare", PATCHES, ids=lambda patch: patch["sessionUpdate"])
def test_meta_on_an_upsert_is_a_patch_of_three_states(bare):
    for meta in ({}, {"_meta": None}, {"_meta": {}}, {"_meta": {"a": None, "b": 1}}):
        assert again(2, update(2, bare | meta)) == bare | meta
    assert update(2, bare).meta is UNSET


@requirement("MSG-19")
def test_meta_elsewhere_is_there_or_not():
    chunk = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "m",
        "content": {"type": "text", "text": "a"},
    }
    assert update(2, chunk) == update(2, chunk | {"_meta": None})
    assert again(2, update(2, chunk | {"_meta": None})) == chunk


@requirement("TOOL-V1-02")
def test_null_means_nothing_in_v1():
    bare = {"sessionUpdate": "tool_call_update", "toolCallId": "t"}
    assert update(1, bare | {"title": None, "content": None}) == update(1, bare)


@requirement("EXT-07")
def test_an_unknown_update_is_kept_whole():
    sent = {"sessionUpdate": "_antiphon_queue", "entries": [{"a": None}], "_meta": {"x": 1}}
    for version in (1, 2):
        made = update(version, sent)
        assert made == Unknown(sent)
        assert isinstance(made, Unknown)
        assert again(version, made) == sent


@requirement("EXT-06", "EXT-07")
def test_an_unknown_block_inside_a_known_update_is_kept_whole():
    block = {"type": "_hologram", "depth": 3.5, "frames": [None]}
    made = update(2, {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": block})
    assert made == v2.AgentMessageChunk(message_id=v2.MessageId("m"), content=Unknown(block))


@requirement("EXT-06")
def test_unknown_enum_values_are_kept():
    sent = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "_levitate", "status": "dreaming"}
    made = update(2, sent)
    assert (made.kind, made.status) == ("_levitate", "dreaming")
    assert again(2, made) == sent


@requirement("EXT-08")
def test_a_known_tag_with_a_bad_payload_is_an_error():
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m"}
    for content in ({"type": "text"}, {"type": "text", "text": 5}, {"type": 5, "text": "a"}, {"text": "a"}):
        with pytest.raises(InvalidParams):
            update(2, chunk | {"content": content})
    for broken in (chunk, {"sessionUpdate": 5}, {}, "text", None):
        with pytest.raises(InvalidParams):
            update(2, broken)


@requirement("EXT-10")
def test_a_v1_union_is_closed_but_an_unknown_update_fails_nothing():
    with pytest.raises(InvalidParams):
        update(1, {"sessionUpdate": "agent_message_chunk", "content": {"type": "_hologram"}})
    assert isinstance(update(1, {"sessionUpdate": "next_year"}), Unknown)
    notice = update(1, {"sessionUpdate": "notice", "severity": "_mild", "title": "t"})
    assert notice.severity == "_mild"


@requirement("EXT-10", "ELIC-09")
def test_the_open_unions_of_v1_keep_what_they_do_not_know():
    asked = {"mode": "_voice", "message": "m", "sessionId": "s", "more": 1}
    assert params(1, "elicitation/create", asked) == Unknown(asked)
    assert result(1, "elicitation/create", {"action": "_later"}) == Unknown(action="_later")
    schema = {"properties": {"x": {"type": "_date", "zone": "UTC"}}}
    form = params(
        1, "elicitation/create", {"mode": "form", "message": "m", "sessionId": "s", "requestedSchema": schema}
    )
    assert form.requested_schema.properties == {"x": Unknown(type="_date", zone="UTC")}


@requirement("EXT-08")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("session/set_config_option", {"type": "_float", "value": 1, "configId": "c"}),
        ("elicitation/create", {"mode": "_voice", "sessionId": "s"}),
        ("elicitation/create", {"mode": "_voice", "message": "m"}),
        ("elicitation/create", {"mode": "_voice", "message": "m", "sessionId": "s", "requestId": 1}),
    ],
)
def test_an_unknown_variant_still_needs_what_every_variant_has(name, value):
    with pytest.raises(InvalidParams):
        params(2, name, value)


@requirement("PLAN-V2-03")
def test_an_unknown_plan_has_an_id():
    plan = {"type": "_tree", "planId": "p", "root": {}}
    made = update(2, {"sessionUpdate": "plan_update", "plan": plan})
    assert made.plan == Unknown(plan)
    with pytest.raises(InvalidParams, match="planId"):
        update(2, {"sessionUpdate": "plan_update", "plan": {"type": "_tree"}})


@requirement("INIT-16")
def test_a_support_marker_is_an_object_and_never_a_boolean():
    answer = {"protocolVersion": 2, "info": {"name": "a", "version": "1"}}
    session = {"delete": {}, "additionalDirectories": None, "prompt": {"image": True, "audio": {}}}
    made = result(2, "initialize", answer | {"capabilities": {"session": session}})
    assert made.capabilities == v2.AgentCapabilities(
        session=v2.SessionCapabilities(
            delete=v2.SessionDeleteCapabilities(),
            prompt=v2.PromptCapabilities(audio=v2.PromptAudioCapabilities()),
        )
    )
    assert again(2, made)["capabilities"] == {"session": {"delete": {}, "prompt": {"audio": {}}}}


@requirement("INIT-28")
def test_unknown_auth_methods_are_kept_or_skipped_and_bad_capabilities_are_none():
    answer = {"protocolVersion": 2, "info": {"name": "a", "version": "1"}}
    kept = {"type": "_token", "methodId": "t", "name": "Token", "url": "x"}
    methods = [
        {"type": "_token"},
        7,
        kept,
        {"type": "agent", "methodId": "a", "name": "A"},
        {"type": "terminal"},
    ]
    made = result(2, "initialize", answer | {"authMethods": methods, "capabilities": [1]})
    agent = v2.AuthMethodAgent(method_id=v2.AuthMethodId("a"), name="A")
    assert made.auth_methods == [Unknown(kept), agent]
    assert made.capabilities == v2.AgentCapabilities()


@requirement("INIT-11")
def test_a_bare_v1_answer_has_every_default():
    made = result(1, "initialize", {"protocolVersion": 1})
    assert made == v1.InitializeResponse(protocol_version=1)
    assert made.agent_capabilities.load_session is False
    assert made.agent_capabilities.prompt_capabilities.image is False
    assert made.auth_methods == []


@requirement("PROMPT-V2-14")
@pytest.mark.parametrize("reason", [None, 5, {"a": 1}, ["end_turn"]])
def test_a_stop_reason_that_is_none_is_not_reported(reason):
    made = update(2, {"sessionUpdate": "state_update", "state": "idle", "stopReason": reason})
    assert made == v2.SessionStateUpdate(state=v2.State.IDLE)
    assert update(2, {"sessionUpdate": "state_update", "state": "idle"}) == made


@requirement("C-05")
def test_an_error_ends_work_as_a_stop_reason():
    sent = {
        "sessionUpdate": "state_update", "state": "idle", "stopReason": "error",
        "error": {"code": -32603, "message": "no", "data": {"reason": "interrupted"}},
    }  # fmt: skip
    made = update(2, sent)
    assert made.stop_reason is v2.StopReason.ERROR
    assert made.error.data == {"reason": "interrupted"}
    assert again(2, made) == sent


@requirement("EXT-07")
def test_an_unknown_state_is_kept_whole():
    sent = {"sessionUpdate": "state_update", "state": "_dreaming", "about": ["sheep"]}
    assert update(2, sent) == Unknown(sent)
    child = {"sessionUpdate": "subagent_update", "sessionId": "c", "state": {"state": "_dreaming", "x": 1}}
    assert update(2, child).state == Unknown(state="_dreaming", x=1)
    with pytest.raises(InvalidParams):
        update(2, {"sessionUpdate": "state_update", "state": 5})


def test_a_state_is_the_same_type_inside_and_outside_of_updates():
    made = update(2, {"sessionUpdate": "state_update", "state": "running"})
    assert isinstance(made, v2.StateUpdate)
    tool = update(2, {"sessionUpdate": "tool_call_update", "toolCallId": "t"})
    assert isinstance(tool, v2.ToolCallUpdate)
    assert again(2, v2.StateUpdate(state=v2.State.IDLE)) == {"state": "idle"}


def test_mcpcfg_a_v1_stdio_server_needs_no_type():
    stdio = {"name": "n", "command": "/c", "args": [], "env": []}
    http = {"type": "http", "name": "n", "url": "u", "headers": []}
    made = params(1, "session/new", {"cwd": "/", "mcpServers": [stdio, stdio | {"type": "stdio"}, http]})
    server = v1.McpServerStdio(name="n", command="/c", args=[], env=[])
    assert made.mcp_servers == [server, server, v1.McpServerHttp(name="n", url="u", headers=[])]
    with pytest.raises(InvalidParams):
        params(1, "session/new", {"cwd": "/", "mcpServers": [{"type": "http"} | stdio]})


@requirement("RPC-27")
def test_an_error_names_the_place_and_not_the_value():
    secret = {"name": "n", "command": "/c", "env": [{"name": "KEY", "value": ["hunter2"]}], "type": "stdio"}
    with pytest.raises(InvalidParams) as caught:
        params(2, "session/new", {"cwd": "/", "mcpServers": [secret]})
    assert str(caught.value) == "Expected `str`, got `array` - at `$.mcpServers[0].env[0].value`"
    option = {"optionId": "o", "name": "n", "kind": "hunter2"}
    with pytest.raises(InvalidParams) as caught:
        params(
            1,
            "session/request_permission",
            {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": [option]},
        )
    assert str(caught.value) == "Invalid enum value - at `$.options[0].kind`"


@requirement("RPC-38")
def test_nesting_without_end_is_refused_and_not_a_crash():
    deep = b'{"sessionId":"s","_meta":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    with pytest.raises(InvalidParams):
        codec(2).params(Kind.REQUEST, "session/close", deep)
    with pytest.raises(InvalidParams):
        codec(2).params(Kind.REQUEST, "_x", deep)
