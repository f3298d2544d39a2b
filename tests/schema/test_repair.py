"""What a receiver forgives, and what it does not (RPC-40, RPC-41), one field at a time."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import msgspec
import pytest

from antiphon.errors import InvalidParams, InvalidResult
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.repair import QUIRKS, Malformed, repair
from antiphon.schema.wire import UNSET, Lenient, Unknown
from tests.requirements.marks import requirement


def params(version, name, value, kind=Kind.REQUEST):
    return codec(version).params(kind, name, json.dumps(value).encode())


def result(version, name, value):
    return codec(version).result(name, json.dumps(value).encode())


def update(version, value):
    whole = params(version, "session/update", {"sessionId": "s", "update": value}, Kind.NOTIFICATION)
    return whole.update


def build(type_: Any, value: Any, version: int = 2) -> Any:
    return repair(version).build(type_, value)


TEXT = {"type": "text", "text": "a"}
TOOL = {"toolCallId": "t"}
OPTION = {"optionId": "o", "name": "n", "kind": "allow_once"}


@requirement("RPC-40")
def test_a_malformed_lenient_field_counts_as_absent():
    value = {"name": 5, "uri": "file:///a", "title": 5, "size": -1, "icons": "x", "annotations": [1]}
    with pytest.raises(Malformed, match="name"):
        build(v2.ResourceLink, value)
    assert build(v2.ResourceLink, value | {"name": "n"}) == v2.ResourceLink(name="n", uri="file:///a")


@requirement("RPC-40")
def test_a_lenient_field_forgives_what_is_malformed_deep_inside():
    value = {"type": "text", "text": "a", "annotations": {"priority": "high", "lastModified": "now"}}
    assert build(v2.TextContent, value).annotations == v2.Annotations(last_modified="now")
    tool = {"toolCallId": "t", "capabilities": {"cancel": True}, "status": 5, "title": "kept"}
    made = build(v2.ToolCallUpdate, tool)
    assert (made.status, made.title, made.capabilities) == (UNSET, "kept", v2.ToolCallCapabilities())


@requirement("RPC-40")
def test_only_the_bad_items_of_an_array_are_dropped():
    value = {"toolCallId": "t", "locations": [{"path": "/a"}, {"path": 5}, 7, {"path": "/b", "line": 0}]}
    made = build(v2.ToolCallUpdate, value)
    assert made.locations == [v2.ToolCallLocation(path="/a"), v2.ToolCallLocation(path="/b")]


@requirement("RPC-40")
def test_null_means_empty_where_the_schema_says_so():
    made = params(2, "session/new", {"cwd": "/", "mcpServers": None, "additionalDirectories": None})
    assert made == v2.NewSessionRequest(cwd="/")
    stdio = {"name": "n", "command": "/c", "args": None, "env": None}
    old = params(1, "session/new", {"cwd": "/", "mcpServers": [stdio]})
    assert old.mcp_servers == [v1.McpServerStdio(name="n", command="/c", args=[], env=[])]
    terminal = {"type": "terminal", "id": "t", "name": "n", "args": None, "env": None}
    made = result(1, "initialize", {"protocolVersion": 1, "authMethods": [terminal]})
    assert made.auth_methods == [v1.AuthMethodTerminal(id=v1.AuthMethodId("t"), name="n")]


@requirement("RPC-40")
@pytest.mark.parametrize("wrong", [5, "x", {}, [5], ["/a", 5]])
def test_null_means_empty_and_nothing_else_does(wrong):
    with pytest.raises(InvalidParams):
        params(2, "session/new", {"cwd": "/", "additionalDirectories": wrong})


@requirement("RPC-40")
def test_a_required_array_may_be_malformed_but_not_missing():
    assert result(2, "session/list", {"sessions": 5}).sessions == []
    assert result(2, "session/list", {"sessions": [5, {"sessionId": "s", "cwd": "/"}]}).sessions == [
        v2.SessionInfo(session_id=v2.SessionId("s"), cwd="/")
    ]
    with pytest.raises(InvalidResult, match="sessions"):
        result(2, "session/list", {})


def schema_with(type_: str, key: str, wrong: Any) -> dict[str, Any]:
    items = {"items": {"type": "string", "enum": ["a"]}} if type_ == "array" else {}
    return {
        "mode": "form", "message": "m", "sessionId": "s",
        "requestedSchema": {"type": "object", "properties": {"p": {"type": type_, **items, key: wrong}}},
    }  # fmt: skip


CONSTRAINTS = [
    ("string", "minLength", -1), ("string", "minLength", "1"), ("string", "maxLength", 1.5),
    ("string", "pattern", 5), ("string", "format", 5), ("string", "enum", "a"), ("string", "enum", [5]),
    ("string", "oneOf", [{"const": "a"}]), ("string", "oneOf", 5),
    ("number", "minimum", "0"), ("number", "maximum", []),
    ("integer", "minimum", 0.5), ("integer", "maximum", "9"),
    ("array", "minItems", -1), ("array", "maxItems", "9"), ("array", "items", {"type": "string"}),
    ("array", "items", {"anyOf": [{"const": 5, "title": "x"}]}), ("array", "items", 5),
]  # fmt: skip


@requirement("RPC-40")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("type_", "key", "wrong"), CONSTRAINTS)
def test_every_elicitation_constraint_is_strict(version, type_, key, wrong):
    with pytest.raises(InvalidParams, match=rf"properties\[\.\.\.\]\.{key}"):
        params(version, "elicitation/create", schema_with(type_, key, wrong))


@requirement("RPC-40")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("type_", "key"),
    [
        (type_, key)
        for type_ in ("string", "number", "integer", "boolean", "array")
        for key in ("title", "description", "default")
    ],
)
def test_what_an_elicitation_only_shows_is_lenient(version, type_, key):
    made = params(version, "elicitation/create", schema_with(type_, key, {"wrong": 1}))
    assert getattr(made.requested_schema.properties["p"], key) is None


@requirement("RPC-40")
@pytest.mark.parametrize("version", [1, 2])
def test_the_required_names_of_a_form_are_strict(version):
    asked = schema_with("string", "title", "t")
    asked["requestedSchema"]["required"] = [5]
    with pytest.raises(InvalidParams, match="required"):
        params(version, "elicitation/create", asked)


@requirement("ELIC-21")
def test_a_list_of_choices_has_one():
    for key in ("enum", "oneOf"):
        with pytest.raises(InvalidParams, match="at least 1"):
            params(2, "elicitation/create", schema_with("string", key, []))
        params(1, "elicitation/create", schema_with("string", key, []))


V2_STRICT = [
    ("session/request_permission", {"sessionId": "s", "title": "t", "options": [OPTION]}, "subject",
     [5, {}, {"type": 5}, {"type": "tool_call"}, {"type": "command", "command": "c"}]),
    ("session/list", {}, "cwd", [5, {}]),
    ("session/list", {}, "cursor", [5, []]),
    ("session/resume", {"sessionId": "s", "cwd": "/"}, "replayFrom", [5, "start", {}, {"type": None}]),
]  # fmt: skip
V1_STRICT = [
    ("fs/read_text_file", {"sessionId": "s", "path": "/a"}, "line", ["1", -1, 1.5]),
    ("fs/read_text_file", {"sessionId": "s", "path": "/a"}, "limit", ["1", -1, []]),
    ("terminal/create", {"sessionId": "s", "command": "c"}, "cwd", [5, {}]),
    ("terminal/create", {"sessionId": "s", "command": "c"}, "outputByteLimit", ["1", -1]),
    ("session/list", {}, "cwd", [5]),
    ("session/list", {}, "cursor", [5]),
]


@requirement("RPC-40")
@pytest.mark.parametrize(
    ("version", "name", "base", "key", "wrong"),
    [
        (version, name, base, key, wrong)
        for version, table in ((1, V1_STRICT), (2, V2_STRICT))
        for name, base, key, wrongs in table
        for wrong in wrongs
    ],
)
def test_a_strict_optional_field_fails_the_message(version, name, base, key, wrong):
    params(version, name, base)
    params(version, name, base | {key: None})
    with pytest.raises(InvalidParams, match=key):
        params(version, name, base | {key: wrong})


@requirement("RPC-40")
def test_the_next_cursor_is_strict_in_v2_and_lenient_in_v1():
    with pytest.raises(InvalidResult, match="nextCursor"):
        result(2, "session/list", {"sessions": [], "nextCursor": 5})
    assert result(1, "session/list", {"sessions": [], "nextCursor": 5}).next_cursor is None


@requirement("RPC-40")
def test_the_content_of_an_accepted_elicitation_is_strict():
    for version in (1, 2):
        assert result(version, "elicitation/create", {"action": "accept", "content": {"a": ["x"]}}).content
        with pytest.raises(InvalidResult, match="content"):
            result(version, "elicitation/create", {"action": "accept", "content": 5})
    with pytest.raises(InvalidResult, match="content"):
        result(1, "elicitation/create", {"action": "accept", "content": {"a": {"deep": 1}}})
    deep = result(2, "elicitation/create", {"action": "accept", "content": {"a": {"deep": 1}}})
    assert deep.content == {"a": {"deep": 1}}


LISTS = [
    ("configOptions", "config_options", "config_option_update"),
    ("availableCommands", "available_commands", "available_commands_update"),
]


@requirement("RPC-41")
@pytest.mark.parametrize("wrong", [5, None, {}, "x"])
@pytest.mark.parametrize(("key", "field", "tag"), LISTS)
def test_a_malformed_list_fails_the_update_in_v2_and_is_empty_in_v1(key, field, tag, wrong):
    sent = {"sessionUpdate": tag, key: wrong}
    assert getattr(update(1, sent), field) == []
    with pytest.raises(InvalidParams, match=key):
        update(2, sent)


@requirement("RPC-41")
@pytest.mark.parametrize("wrong", [5, None, {}])
def test_a_malformed_plan_fails_in_v2_and_is_empty_in_v1(wrong):
    assert update(1, {"sessionUpdate": "plan", "entries": wrong}).entries == []
    with pytest.raises(InvalidParams, match="entries"):
        update(
            2, {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": wrong}}
        )


@requirement("RPC-41")
@pytest.mark.parametrize("wrong", [5, None])
def test_a_malformed_option_list_fails_the_answer_in_v2_and_is_empty_in_v1(wrong):
    assert result(1, "session/set_config_option", {"configOptions": wrong}).config_options == []
    with pytest.raises(InvalidResult):
        result(2, "session/set_config_option", {"configOptions": wrong})


@requirement("RPC-41")
def test_bad_items_are_skipped_in_both():
    entry = {"content": "c", "priority": "high", "status": "pending"}
    entries = [entry, {"content": 5}, 7]
    old = update(1, {"sessionUpdate": "plan", "entries": entries})
    new = update(
        2, {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": entries}}
    )
    assert [item.content for item in old.entries] == ["c"]
    assert [item.content for item in new.plan.entries] == ["c"]


@requirement("MSG-23")
def test_bad_blocks_are_skipped_and_a_malformed_content_is_omitted():
    bare = {"sessionUpdate": "agent_message", "messageId": "m"}
    blocks = [TEXT, {"type": "text"}, 5, {"type": "_x"}]
    assert update(2, bare | {"content": blocks}).content == [v2.TextContent(text="a"), Unknown(type="_x")]
    for wrong in (5, "text", TEXT):
        assert update(2, bare | {"content": wrong}).content is UNSET
    assert update(2, bare | {"content": [5]}).content == []


@requirement("EXT-08")
def test_a_known_tag_with_a_bad_payload_is_forgiven_only_inside_a_lenient_field():
    command = {"name": "c", "description": "d", "input": {"type": "text"}}
    assert build(v2.Command, command).input is None
    assert build(v2.Command, command | {"input": {"type": "_x"}}).input == Unknown(type="_x")
    assert build(v2.Command, command | {"input": {"hint": "h"}}).input is None


@requirement("PROMPT-V2-45")
def test_malformed_background_is_not_reported():
    background = [{"type": "terminal", "terminalId": "t"}, {"type": "terminal"}]
    made = update(2, {"sessionUpdate": "state_update", "state": "running", "background": background})
    assert made.background is None
    kept = [background[0], {"type": "_cron", "at": 5}]
    made = update(2, {"sessionUpdate": "state_update", "state": "running", "background": kept})
    terminal = v2.BackgroundTerminal(terminal_id=v2.TerminalId("t"))
    assert made.background == [terminal, Unknown(type="_cron", at=5)]


@requirement("CONF-V2-04")
def test_options_are_flat_or_grouped():
    base = {"type": "select", "configId": "c", "name": "n", "currentValue": "a"}
    flat = [{"value": "a", "name": "A"}]
    grouped = [{"groupId": "g", "name": "G", "options": [*flat, 5]}]
    made = build(v2.SessionConfigOption, base | {"options": flat})
    assert made.options == [v2.SessionConfigSelectOption(value=v2.SessionConfigValueId("a"), name="A")]
    made = build(v2.SessionConfigOption, base | {"options": grouped})
    assert made.options[0].options == [
        v2.SessionConfigSelectOption(value=v2.SessionConfigValueId("a"), name="A")
    ]
    for wrong in ([], flat + grouped, 5):
        with pytest.raises(Malformed, match="options"):
            build(v2.SessionConfigOption, base | {"options": wrong})


@requirement("CONF-V2-05")
def test_an_unknown_option_type_is_kept_if_it_has_what_all_have():
    kept = {"type": "_slider", "configId": "c", "name": "n", "max": 5}
    sent = {
        "sessionUpdate": "config_option_update",
        "configOptions": [kept, {"type": "_slider", "name": "n"}],
    }
    assert update(2, sent).config_options == [Unknown(kept)]
    assert update(1, sent).config_options == []


def test_a_refusal_says_where():
    chunk = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t"}
    content = {"type": "content", "content": {"type": "resource", "resource": {"uri": "u", "text": 5}}}
    with pytest.raises(InvalidParams) as caught:
        update(2, chunk | {"content": content})
    assert str(caught.value) == "Expected `str`, got `int` - at `$.update.content.content.resource.text`"


def test_permissions_need_an_option_in_v2():
    with pytest.raises(InvalidParams, match="at least 1"):
        params(2, "session/request_permission", {"sessionId": "s", "title": "t", "options": []})
    assert (
        params(1, "session/request_permission", {"sessionId": "s", "toolCall": TOOL, "options": []}).options
        == []
    )


@requirement("EXT-04")
@pytest.mark.parametrize("version", [1, 2])
def test_every_meta_is_lenient(version):
    tables = import_module(f"antiphon.schema.v{version}.leniency")
    assert not any("meta" in marks for marks in tables.LENIENT.values())
    assert (
        build(v1.TextContent if version == 1 else v2.TextContent, TEXT | {"_meta": 5}, version).meta is None
    )


def test_the_other_names_of_keys_belong_to_structs_that_exist():
    for version, package in ((1, v1), (2, v2)):
        for name, keys in QUIRKS[version].other_keys.items():
            fields = {field.encode_name for field in msgspec.structs.fields(getattr(package, name))}
            assert keys.keys() <= fields
            assert not set(keys.values()) & fields


@pytest.mark.parametrize("version", [1, 2])
def test_every_mark_is_one_the_schema_knows(version):
    tables = import_module(f"antiphon.schema.v{version}.leniency")
    for marks in tables.LENIENT.values():
        assert set(marks.values()) <= {
            Lenient.ERROR, Lenient.SKIP, Lenient.NULL, Lenient.ERROR | Lenient.SKIP,
        }  # fmt: skip
