"""The building blocks: open sets keep what they do not know, choices find their member."""

from __future__ import annotations

import msgspec
import pytest

from antiphon.schema import v1, v2
from antiphon.schema.wire import UNSET, Choice, OpenEnum, Unknown, Wire, choose
from tests.requirements.marks import requirement


class Colour(OpenEnum):
    RED = "red"


@requirement("EXT-07")
def test_an_open_enum_keeps_a_value_it_does_not_name():
    made = msgspec.json.decode(b'"_mauve"', type=Colour)
    assert (made, made.known, msgspec.json.encode(made), f"{made}") == (
        "_mauve",
        False,
        b'"_mauve"',
        "_mauve",
    )
    assert made == Colour("_mauve")
    assert Colour("red") is Colour.RED
    assert Colour.RED.known
    assert not Colour("RED").known
    assert len(Colour) == 1


@requirement("EXT-10")
def test_a_v1_enum_is_closed_where_the_schema_closes_it():
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'"_levitate"', type=v1.ToolKind)
    assert msgspec.json.decode(b'"_levitate"', type=v2.ToolKind) == "_levitate"
    assert msgspec.json.decode(b'"_level"', type=v1.SessionConfigOptionCategory) == "_level"


@pytest.mark.parametrize("value", [b"7", b"null", b"{}"])
def test_an_open_enum_takes_strings_only(value):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(value, type=Colour)


@requirement("RPC-23")
def test_any_other_int32_is_an_error_code():
    assert msgspec.json.decode(b"-32601", type=v2.ErrorCode) is v2.ErrorCode.METHOD_NOT_FOUND
    other = msgspec.json.decode(b"-33001", type=v2.ErrorCode)
    assert (other, other.known, msgspec.json.encode(other)) == (-33001, False, b"-33001")
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(str(2**31).encode(), type=v2.ErrorCode)


@requirement("EXT-07")
def test_an_unknown_variant_is_written_as_it_came():
    whole = Unknown(type="video", src="x", _meta={"a": None})
    assert msgspec.json.decode(msgspec.json.encode([whole])) == [dict(whole)]
    assert repr(Unknown(type="x")) == "Unknown({'type': 'x'})"


@requirement("RPC-44")
def test_fields_are_camel_case_on_the_wire():
    made = v2.ToolCallUpdate(tool_call_id=v2.ToolCallId("t"), raw_input=None)
    assert msgspec.json.decode(msgspec.json.encode(made)) == {"toolCallId": "t", "rawInput": None}


def test_a_wire_struct_cannot_be_changed_or_built_by_position():
    chunk = v2.TextContent(text="a")
    with pytest.raises(AttributeError):
        chunk.text = "b"
    with pytest.raises(TypeError):
        v2.TextContent("a")


def test_a_choice_knows_its_members():
    server = v1.McpServerStdio(name="n", command="c", args=[], env=[])
    assert isinstance(server, v1.McpServer)
    assert not isinstance(v1.TextContent(text="a"), v1.McpServer)
    assert isinstance([], v1.SessionConfigSelectOptions)
    assert isinstance(Unknown(type="x"), v1.MultiSelectItems)
    assert not isinstance(Unknown(type="x"), v1.McpServer)


def test_a_choice_takes_the_first_member_that_fits():
    resource = {"uri": "file:///a", "blob": "aGk="}
    assert choose(v2.EmbeddedResourceResource, resource) == v2.BlobResourceContents(
        uri="file:///a", blob="aGk="
    )
    with pytest.raises(msgspec.ValidationError, match="text"):
        choose(v2.EmbeddedResourceResource, {"uri": "file:///a"})


@requirement("ELIC-21")
def test_a_multi_select_with_a_type_is_never_a_titled_one():
    titled = {"anyOf": [{"const": "a", "title": "A"}]}
    assert isinstance(choose(v2.MultiSelectItems, titled), v2.TitledMultiSelectItems)
    assert choose(v2.MultiSelectItems, titled | {"type": "_rank"}) == Unknown(titled | {"type": "_rank"})
    for wrong in ({"type": "string"} | titled, {"type": 5} | titled):
        with pytest.raises(msgspec.ValidationError):
            choose(v2.MultiSelectItems, wrong)


def test_the_hook_refuses_types_that_are_no_choice():
    with pytest.raises(NotImplementedError):
        choose(complex, 1)


def test_no_two_tagged_structs_of_a_version_share_a_union_by_accident():
    for package in (v1, v2):
        for name in package.__all__:
            made = getattr(package, name)
            if isinstance(made, Choice):
                assert all(
                    struct.__struct_config__.tag_field == made.tag_field for struct in made.tagged.values()
                )


@requirement("ELIC-04")
def test_a_question_has_its_scope():
    schema = v2.ElicitationSchema(type=v2.ElicitationSchemaType.OBJECT, properties={})
    session = v2.SessionId("s")
    assert (
        v2.ElicitationFormMode(message="m", requested_schema=schema, session_id=session).request_id is UNSET
    )
    with pytest.raises(ValueError, match="exactly one"):
        v2.ElicitationFormMode(message="m", requested_schema=schema)
    with pytest.raises(ValueError, match="exactly one"):
        v2.ElicitationFormMode(message="m", requested_schema=schema, session_id=session, request_id=1)
    old = v1.ElicitationSchema(properties={})
    both = v1.ElicitationFormMode(
        message="m", requested_schema=old, session_id=v1.SessionId("s"), request_id=None
    )
    assert both.request_id is None


def test_every_wire_struct_is_one():
    for package in (v1, v2):
        for name in package.__all__:
            made = getattr(package, name)
            if isinstance(made, msgspec.StructMeta):
                assert issubclass(made, Wire)
                assert made.__struct_config__.frozen
