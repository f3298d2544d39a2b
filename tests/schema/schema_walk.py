"""Compares the types of a version with its raw JSON Schema, definition by definition.

Shares nothing with the generator, so that a fault of the generator shows; divergences are data with a reason.
"""

from __future__ import annotations

import types
import typing
from enum import Enum
from importlib import import_module
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.schema import v1, v2
from antiphon.schema.wire import Choice, Lenient, NoVariant, OpenEnum, OpenIntEnum
from tests.schema.strategies import PATCH_FIELDS, PATCHES, Node, branches, constants, definitions, ref

PACKAGES: dict[int, Any] = {1: v1, 2: v2}

NO_TYPES = {
    **dict.fromkeys(
        ("AgentRequest", "AgentResponse", "AgentNotification", "ClientRequest", "ClientResponse",
         "ClientNotification", "ProxyRequest", "ProxyResponse", "ProxyNotification"),
        "a JSON-RPC frame: jsonrpc.frames has those, and the method table what is in them",
    ),
    **dict.fromkeys(
        ("ExtRequest", "ExtResponse", "ExtNotification"),
        "the payload of a method outside the protocol: plain JSON (EXT-01)",
    ),
    **dict.fromkeys(
        ("RunningStateUpdate", "IdleStateUpdate", "RequiresActionStateUpdate", "UnknownStateUpdate",
         "ErrorStopReason"),
        "merged into StateUpdate: msgspec refuses a second tag field in the union of session updates; keys"
        " beside a custom stop reason are not kept (EXT-03 forbids them)",
    ),
    **dict.fromkeys(
        ("ElicitationSessionScope", "ElicitationRequestScope"),
        "alternatives inside one object: fields of the modes, with a check (ELIC-04)",
    ),
}  # fmt: skip
"""Definitions without a type of their own, and why."""

NOT_IN_THE_SCHEMA = {
    (1, "SessionCapabilities", "turnComplete"): "TC-05: the capability of the turn_complete opt-in",
    (1, "StateUpdate", "stop_reason"): "SD-02: the proposed key of the reason",
    (2, "StateUpdate", "stop_reason"): "SD-02: the proposed key of the reason",
    (2, "SessionStateUpdate", "stop_reason"): "SD-02: the proposed key of the reason",
    **{
        (1, f"{verb}SessionResponse", "models"): "the models of a session, which v1 once had as unstable"
        for verb in ("New", "Load", "Fork", "Resume")
    },
}
"""Fields of generated types that no pinned schema has, and why."""

MADE_NAMES = {
    1: {"State", "IdleStopReason"},
    2: {"State", "StopReason"},
}
"""Enums of constants that the schema has only inline, in the variants of StateUpdate."""

HAND_WRITTEN = {1: "optins", 2: "proposed"}

OPEN_BY_RULE = {"SessionUpdate": "EXT-10: an unknown v1 update must not fail the session"}
BOUNDS = {
    "int64": (None, None),
    "uint64": (0, None),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "uint16": (0, 2**16 - 1),
}


def flat(annotation: Any) -> list[Any]:
    """The members of a union, without the marks for absence and null."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [item for member in typing.get_args(annotation) for item in flat(member)]
    return [] if annotation in (types.NoneType, UnsetType, NoVariant) else [annotation]


def form(annotation: Any) -> Any:
    """An annotation as a value that can be compared."""
    members = flat(annotation)
    if len(members) != 1:
        return frozenset(form(member) for member in members)
    (only,) = members
    bounds: dict[str, Any] = {}
    if typing.get_origin(only) is typing.Annotated:
        meta = only.__metadata__[0]
        bounds = {
            key: getattr(meta, key) for key in ("ge", "le", "min_length") if getattr(meta, key) is not None
        }
        only = only.__origin__
    origin, arguments = typing.get_origin(only), typing.get_args(only)
    if origin is list:
        return ("list", form(arguments[0]), bounds.get("min_length"))
    if origin is dict:
        return ("dict", form(arguments[1]))
    if only in (int, float):
        return (only, bounds.get("ge"), bounds.get("le"))
    if only is str:
        return (str, bounds.get("min_length"))
    return only


def expected(version: int, node: Node) -> Any:
    """The form that a schema node asks for."""
    name = ref(node)
    if name is not None:
        return form(getattr(PACKAGES[version], name))
    options = [option for option in branches(node) if option != {"type": "null"}]
    if options and {} not in options:
        members: set[Any] = set()
        for option in options:
            made = expected(version, option)
            members |= made if isinstance(made, frozenset) else {made}
        return members.pop() if len(members) == 1 else frozenset(members)
    kind = node.get("type")
    kinds = [kind] if isinstance(kind, str) else [item for item in kind or () if item != "null"]
    if not kinds:
        return Any
    return {
        "array": lambda: ("list", expected(version, node["items"]), node.get("minItems")),
        "object": lambda: ("dict", values(version, node)),
        "integer": lambda: (int, *integer_bounds(node)),
        "number": lambda: (float, node.get("minimum"), node.get("maximum")),
        "string": lambda: (str, node.get("minLength")),
        "boolean": lambda: bool,
    }[kinds[0]]()


def values(version: int, node: Node) -> Any:
    more = node.get("additionalProperties", True)
    return Any if more is True else expected(version, more)


def integer_bounds(node: Node) -> tuple[int | None, int | None]:
    low, high = BOUNDS[node["format"]]
    return node.get("minimum", low), node.get("maximum", high)


def nullable(node: Node) -> bool:
    return "null" in (node.get("type") or ()) or {"type": "null"} in branches(node)


class Walk:
    """Compares every struct of a version with the properties that the schema gives it."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.defs = definitions(version)
        self.seen: set[Any] = set()
        tables = import_module(f"antiphon.schema.v{version}.leniency")
        self.lenient = tables.LENIENT
        self.open = {member: union for union in tables.OPEN for member in union.members}

    def type(self, name: str) -> Any:
        return getattr(PACKAGES[self.version], name)

    def properties(self, node: Node, owner: str) -> dict[str, tuple[Node, bool, str]]:
        required = node.get("required", ())
        return {key: (value, key in required, owner) for key, value in node.get("properties", {}).items()}

    def struct(self, struct: Any, properties: dict[str, tuple[Node, bool, str]]) -> None:
        self.seen.add(struct)
        fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
        extra = {
            key
            for number, name, key in NOT_IN_THE_SCHEMA
            if (number, name) == (self.version, struct.__name__)
        }
        assert fields.keys() == properties.keys() | extra, struct
        for key, (node, required, owner) in properties.items():
            field = fields[key]
            where = f"{struct.__name__}.{key}"
            assert field.required == required, where
            assert form(field.type) == expected(self.version, node), where
            anything = form(field.type) is Any
            admits_null = types.NoneType in typing.get_args(field.type)
            assert admits_null == nullable(node) or anything or ref(node) == "RequestId", where
            self.absence(where, field, node, owner, key, anything=anything)
            marks = Lenient(0)
            for base in struct.__mro__:
                marks |= self.lenient.get(base, {}).get(field.name, Lenient(0))
            assert marks == (Lenient(0) if key == "_meta" else marks_of(node)), where
            if key == "_meta":
                assert marks_of(node) == Lenient.ERROR, where

    def absence(self, where: str, field: Any, node: Node, owner: str, key: str, *, anything: bool) -> None:
        """How a field says that it was absent."""
        if field.required:
            return
        patch = owner in PATCHES[self.version] or (self.version, owner, key) in PATCH_FIELDS
        default = field.default
        if anything or (nullable(node) and patch):
            assert default is UNSET, where
        elif nullable(node):
            assert default is None, where
        elif "default" in node:
            made = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            assert made == msgspec.convert(node["default"], field.type), where
        elif node.get("type") in ("array", "object"):
            assert field.default_factory in (list, dict), where
        else:
            assert default is UNSET, where

    def union(self, name: str, node: Node) -> None:
        """A union with tags: every branch is a member, every member a branch."""
        union, base = self.type(name), self.properties(node, name)
        options = branches(node)
        members = self.members(union)
        known = {}
        for option in options:
            tag = constants(option)
            if "not" in option:
                continue
            own = self.branch_properties(option, name, tag)
            if tag:
                ((tag_field, value),) = tag.items()
                known[value] = members[tag_field, value]
                self.struct(members[tag_field, value], base | own)
            elif ref(option):
                assert self.type(ref(option) or "") in union.untagged
            else:
                (inline,) = [item for item in union.untagged if item not in self.all_named()]
                self.struct(inline, base | own)
        hand_written = import_module(f"antiphon.schema.v{self.version}.{HAND_WRITTEN[self.version]}")
        extra = {struct for struct in members.values() if struct.__module__ == hand_written.__name__}
        assert set(members.values()) == set(known.values()) | extra
        self.openness(name, union, options, list(known.values()))

    def openness(self, name: str, union: Any, options: list[Node], known: list[Any]) -> None:
        fallback = next((option for option in options if "not" in option), None)
        opened = fallback is not None or name in OPEN_BY_RULE
        if isinstance(union, Choice):
            assert union.open == opened, name
            return
        assert all((struct in self.open) == opened for struct in known), name
        if fallback is not None:
            entry = self.open[known[0]]
            tags = {key for option in options for key in constants(option)}
            assert {entry.tag} == tags
            node = self.defs[name]
            assert entry.needs.keys() == {*node.get("required", ()), *fallback["required"]} - tags, name

    def members(self, union: Any) -> dict[tuple[str, str], Any]:
        if isinstance(union, Choice):
            return {(str(union.tag_field), tag): struct for tag, struct in union.tagged.items()}
        return {
            (struct.__struct_config__.tag_field, struct.__struct_config__.tag): struct
            for struct in flat(union)
        }

    def branch_properties(self, option: Node, owner: str, tag: Node) -> dict[str, tuple[Node, bool, str]]:
        found = self.properties(option, owner)
        found = {key: value for key, value in found.items() if key not in tag}
        target = ref(option)
        if target is None:
            return found
        return found | self.definition_properties(target)

    def definition_properties(self, name: str) -> dict[str, tuple[Node, bool, str]]:
        node = self.defs[name]
        if name == "StateUpdate":
            return self.state_properties(node)
        found = self.properties(node, name)
        for option in branches(node):
            # Alternatives inside an object: each of their fields may be absent.
            for key, (inner, _, owner) in self.definition_properties(ref(option) or "").items():
                found[key] = (inner, False, owner)
        return found

    def state_properties(self, node: Node) -> dict[str, tuple[Node, bool, str]]:
        stop = {1: "IdleStopReason", 2: "StopReason"}[self.version]
        found: dict[str, tuple[Node, bool, str]] = {}
        states, reasons = set(), set()
        for option in branches(node):
            target = ref(option)
            if target is None:
                continue
            states |= set(constants(option).values())
            found |= self.properties(self.defs[target], target)
            for inner in branches(self.defs[target]):
                reasons |= set(constants(inner).values())
                if ref(inner):
                    found |= self.properties(self.defs[ref(inner) or ""], ref(inner) or "")
        assert {member.value for member in self.type("State")} == states
        assert {member.value for member in self.type(stop)} == reasons
        assert issubclass(self.type(stop), OpenEnum)
        reason = {**found["stopReason"][0], "anyOf": [{"$ref": f"#/{stop}"}, {"type": "null"}]}
        del reason["type"]
        found["stopReason"] = (reason, False, "IdleStateUpdate")
        found["state"] = ({"$ref": "#/State"}, True, "StateUpdate")
        self.seen |= {self.type("State"), self.type(stop)}
        return found

    def all_named(self) -> list[Any]:
        return [self.type(name) for name in self.defs if name not in NO_TYPES]

    def definition(self, name: str, node: Node) -> None:
        made = self.type(name)
        options = branches(node)
        if name == "StateUpdate":
            self.struct(made, self.state_properties(node))
        elif (
            options
            and all(option.get("type") in ("string", "integer") for option in options)
            and any("const" in option for option in options)
        ):
            self.enum(made, options)
        elif any(constants(option) for option in options):
            self.union(name, node)
        elif isinstance(made, Choice):
            self.choice(made, name, options)
        elif node.get("type") == "object" and not (isinstance(made, type) and made.__struct_config__.tag):
            self.struct(made, self.definition_properties(name))
        elif node.get("type") == "object":
            assert made.__struct_config__.tag  # compared where its union is
        elif hasattr(made, "__supertype__"):
            assert (made.__name__, made.__supertype__, node) == (name, str, {"type": "string"})
        else:
            assert form(made) == expected(self.version, node), name
        if isinstance(made, type):
            self.seen.add(made)

    def choice(self, made: Choice, name: str, options: list[Node]) -> None:
        assert len(made.untagged) == len(options)
        for member, option in zip(made.untagged, options, strict=True):
            if option.get("type") == "object":
                self.struct(member, self.properties(option, name))
            else:
                assert form(member) == expected(self.version, option)

    def enum(self, made: type[Enum], options: list[Node]) -> None:
        assert {member.value for member in made} == {
            option["const"] for option in options if "const" in option
        }
        assert issubclass(made, OpenEnum | OpenIntEnum) == any("const" not in option for option in options)


def marks_of(node: Node) -> Lenient:
    marks = {
        "x-deserialize-default-on-error": Lenient.ERROR,
        "x-deserialize-skip-invalid-items": Lenient.SKIP,
        "x-deserialize-default-on-null": Lenient.NULL,
    }
    found = Lenient(0)
    for key, mark in marks.items():
        if node.get(key):
            found |= mark
    return found


def walked(version: int) -> Walk:
    walk = Walk(version)
    for name, node in walk.defs.items():
        if name not in NO_TYPES:
            walk.definition(name, node)
    return walk
