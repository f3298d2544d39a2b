"""Random valid instances of the pinned schemas, a walk over an instance along its schema, and the patches.

Reads the raw JSON Schema only: it shares nothing with the generator or the generated types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

PINNED = Path(__file__).parent.parent.parent / "tools" / "pinned"

Node = dict[str, Any]

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
KEYS = st.sampled_from(["x_one", "x_two", "x_three"])
SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXT | st.floats(-1e6, 1e6)
ANYTHING = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(TEXT, SCALARS, max_size=2)
RANGES = {
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "uint16": (0, 2**16 - 1),
}

PATCHES = {
    1: {"SessionInfoUpdate", "CompactionUpdate", "SubagentUpdate", "SessionMessage"},
    2: {
        "UserMessage", "AgentMessage", "AgentThought", "ToolCallUpdate", "TerminalUpdate", "CompactionUpdate",
        "SessionInfoUpdate", "SubagentUpdate", "SessionMessage",
    },
}  # fmt: skip
"""Definitions where absent, null and a value are three things (MSG-21); no schema says so."""
PATCH_FIELDS = {(2, "UsageUpdate", "cost")}


@cache
def definitions(version: int, *, unstable: bool = True) -> dict[str, Node]:
    name = f"v{version}.unstable.json" if unstable else f"v{version}.json"
    found: dict[str, Node] = json.loads((PINNED / name).read_text())["$defs"]
    return found


def ref(node: Node) -> str | None:
    """The definition that `node` names."""
    if "$ref" in node:
        return str(node["$ref"]).rpartition("/")[2]
    parts = node.get("allOf", ())
    return ref(parts[0]) if len(parts) == 1 else None


def branches(node: Node) -> list[Node]:
    found: list[Node] = node.get("anyOf") or node.get("oneOf") or []
    return found


def constants(node: Node) -> dict[str, Any]:
    """The properties of a branch that have a constant value: its tag."""
    return {key: value["const"] for key, value in node.get("properties", {}).items() if "const" in value}


class Instances:
    """Strategies for the definitions of one version."""

    def __init__(self, version: int) -> None:
        self.defs = definitions(version)
        self._made: dict[str, st.SearchStrategy[Any]] = {}

    def of(self, name: str) -> st.SearchStrategy[Any]:
        if name not in self._made:
            self._made[name] = self.node(self.defs[name])
        return self._made[name]

    def node(self, node: Node, *, without: frozenset[str] = frozenset()) -> st.SearchStrategy[Any]:
        if "$ref" in node:
            return self.of(ref(node) or "")
        if "const" in node:
            return st.just(node["const"])
        parts = [self.node(part) for part in node.get("allOf", ())]
        options = branches(node)
        if options:
            parts.append(st.one_of([self.node(option) for option in options]))
            without |= {key for option in options for key in option.get("properties", {})}
        if "type" in node and not (parts and "properties" not in node):
            parts.append(self._typed(node, without))
        if not parts:
            return ANYTHING
        if len(parts) == 1:
            return parts[0]
        return st.tuples(*parts).map(
            lambda made: {key: value for part in made for key, value in part.items()}
        )

    def _typed(self, node: Node, without: frozenset[str]) -> st.SearchStrategy[Any]:
        kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
        return st.one_of([getattr(self, f"_{kind}")(node, without) for kind in kinds])

    def _null(self, node: Node, without: frozenset[str]) -> st.SearchStrategy[Any]:
        return st.none()

    def _boolean(self, node: Node, without: frozenset[str]) -> st.SearchStrategy[Any]:
        return st.booleans()

    def _string(self, node: Node, without: frozenset[str]) -> st.SearchStrategy[Any]:
        return st.text(max_size=6, min_size=node.get("minLength", 0)).filter(_encodes)

    def _integer(self, node: Node, without: frozenset[str]) -> st.SearchStrategy[Any]:
        low, high = RANGES[node["format"]]
        return st.integers(node.get("minimum", low), node.get("maximum", high))

    def _number(self, node: Node, without: frozenset[str]) -> st.SearchStrategy[Any]:
        low, high = node.get("minimum", -1e9), node.get("maximum", 1e9)
        return st.floats(low, high) | st.integers(int(low), int(high))

    def _array(self, node: Node, without: frozenset[str]) -> st.SearchStrategy[Any]:
        least = node.get("minItems", 0)
        return st.lists(self.node(node["items"]), min_size=least, max_size=least + 2)

    def _object(self, node: Node, without: frozenset[str]) -> st.SearchStrategy[Any]:
        properties = {key: value for key, value in node.get("properties", {}).items() if key not in without}
        required = set(node.get("required", ()))
        taken = {tag for option in branches(node.get("not", {})) for tag in constants(option).values()}
        made = {
            key: self.node(value).filter(lambda tag: tag not in taken)
            if "not" in node and key in required and value == {"type": "string"}
            else self.node(value)
            for key, value in properties.items()
        }
        fixed = st.fixed_dictionaries(
            {key: value for key, value in made.items() if key in required},
            optional={key: value for key, value in made.items() if key not in required},
        )
        more = node.get("additionalProperties") or node.get("unevaluatedProperties")
        if not more:
            return fixed
        values = ANYTHING if more is True else self.node(more)
        extra = st.dictionaries(KEYS if properties else TEXT, values, max_size=2)
        return st.tuples(extra, fixed).map(lambda pair: pair[0] | pair[1])


def _encodes(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


class Property(NamedTuple):
    """A property that an object has by its schema, and the definition that says so."""

    node: Node
    required: bool
    owner: str


class Shape(NamedTuple):
    properties: dict[str, Property]
    unknown: bool
    """The object is a variant that the schema does not name."""
    owners: tuple[str, ...]


def shape(defs: dict[str, Node], node: Node, value: dict[str, Any], owner: str = "") -> Shape:
    """Which properties `value` may have by `node`, once the branches that it takes are known."""
    name = ref(node) if "properties" not in node else None
    if name is not None:
        return shape(defs, defs[name], value, name)
    properties: dict[str, Property] = {}
    unknown, owners = False, (owner,)
    for key, inner in node.get("properties", {}).items():
        properties[key] = Property(inner, key in node.get("required", ()), owner)
    chosen = branch(defs, node, value)
    for part in [*node.get("allOf", ()), *([chosen] if chosen is not None else [])]:
        found = shape(defs, part, value, owner)
        # A branch repeats a property of its object only to narrow it; the marks are on the object's.
        properties = found.properties | properties
        unknown = unknown or found.unknown or "not" in part
        owners += found.owners
    return Shape(properties, unknown, owners)


def branch(defs: dict[str, Node], node: Node, value: dict[str, Any]) -> Node | None:
    """The branch of a union that an object takes."""
    options = [option for option in branches(node) if option.get("type") != "null"]
    for option in options:
        tag = constants(option)
        if tag and all(value.get(key) == constant for key, constant in tag.items()):
            return option
    known = [constants(option) for option in options if constants(option)]
    tags = {key for tag in known for key in tag}
    for option in options:
        if "not" in option and all(isinstance(value.get(key), str) for key in tags):
            return option
    for option in options:
        if not constants(option) and "not" not in option and _fits(defs, option, value):
            return option
    return None


def _fits(defs: dict[str, Node], option: Node, value: dict[str, Any]) -> bool:
    name = ref(option)
    node = option if name is None else defs[name]
    return node.get("type", "object") == "object" and set(node.get("required", ())) <= value.keys()


def array_items(defs: dict[str, Node], node: Node, value: list[Any]) -> Node | None:
    """The schema of the items of a list; of two kinds of lists, the one that the first item fits."""
    name = ref(node)
    if name is not None:
        return array_items(defs, defs[name], value)
    if "items" in node:
        found: Node = node["items"]
        return found
    for option in branches(node):
        inner = array_items(defs, option, value)
        if inner is not None and (
            not value or not isinstance(value[0], dict) or _fits(defs, inner, value[0])
        ):
            return inner
    return None


def map_values(defs: dict[str, Node], node: Node) -> Node | None:
    """The schema of the values of an object that is a map."""
    name = ref(node)
    if name is not None:
        return map_values(defs, defs[name])
    more = node.get("additionalProperties")
    if isinstance(more, dict):
        return more
    found = (map_values(defs, option) for option in branches(node))
    return next((item for item in found if item is not None), None)


class Position(NamedTuple):
    """A place in an instance: how to get there, what is expected, and whether a fault there is forgiven."""

    path: tuple[str | int, ...]
    node: Node
    forgiven: bool
    vital: bool
    """Without the property the message fails."""


def positions(
    defs: dict[str, Node], node: Node, value: Any, path: tuple[str | int, ...] = (), *, forgiven: bool = False
) -> Iterator[Position]:
    """Every property of an instance that could be malformed, tags aside."""
    if isinstance(value, list):
        items = array_items(defs, node, value)
        for index, item in enumerate(value if items is not None else ()):
            yield from positions(defs, items or {}, item, (*path, index), forgiven=forgiven)
        return
    if not isinstance(value, dict):
        return
    found = shape(defs, node, value)
    if found.unknown:
        return
    inner = map_values(defs, node)
    if inner is not None:
        for key, item in value.items():
            yield from positions(defs, inner, item, (*path, key), forgiven=forgiven)
    for key, prop in found.properties.items():
        if key not in value or "const" in prop.node or key in _tags(defs, node):
            continue
        here = forgiven or bool(prop.node.get("x-deserialize-default-on-error"))
        items_too = here or bool(prop.node.get("x-deserialize-skip-invalid-items"))
        yield Position((*path, key), prop.node, here, prop.required and not forgiven)
        yield from positions(defs, prop.node, value[key], (*path, key), forgiven=items_too)


def _tags(defs: dict[str, Node], node: Node) -> set[str]:
    name = ref(node) if "properties" not in node else None
    node = node if name is None else defs[name]
    tags = {key for option in branches(node) for key in constants(option)}
    for option in branches(node):
        if ref(option):
            tags |= _tags(defs, {"$ref": f"#/{ref(option)}"})
    return tags


def malformed(defs: dict[str, Node], node: Node) -> Any:
    """A value that certainly does not fit `node`, or `...` where everything fits."""
    name = ref(node)
    if name is not None:
        return malformed(defs, defs[name])
    kinds = set(_kinds(defs, node))
    if "any" in kinds:
        return ...
    for wrong, kind in (
        ({"no": []}, "object"),
        ([{"no": 1}], "array"),
        (True, "boolean"),
        ("\1no", "string"),
    ):
        if kind not in kinds and not (kind == "array" and "object" in kinds):
            return wrong
    return ...


def _kinds(defs: dict[str, Node], node: Node) -> Iterator[str]:
    name = ref(node)
    if name is not None:
        yield from _kinds(defs, defs[name])
        return
    if not {"type", "anyOf", "oneOf", "properties"} & node.keys():
        yield "any"
    kinds = node.get("type", [])
    yield from [kinds] if isinstance(kinds, str) else kinds
    for option in branches(node):
        yield from _kinds(defs, option)
