"""What the schema allows is read, and written again as the same JSON; what is malformed is forgiven or
refused exactly as the schema marks it."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from antiphon.errors import InvalidParams, InvalidResult
from antiphon.schema.codec import Codec, codec
from antiphon.schema.methods import Kind, Method, methods
from antiphon.schema.repair import repair
from antiphon.schema.wire import choose
from tests.requirements.marks import requirement
from tests.schema.strategies import (
    PATCH_FIELDS,
    PATCHES,
    Instances,
    Node,
    array_items,
    constants,
    definitions,
    malformed,
    map_values,
    positions,
    ref,
    shape,
)

EXAMPLES = settings().max_examples
PROFILE = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)

LOSSES = {
    "IdleStateUpdate": "all states are one struct: keys beside a custom stop reason go (EXT-03 forbids them)",
    "McpError": "keys beside the three of a JSON-RPC error go (RPC-21); whole errors travel as raw results",
}
"""Definitions that admit any key though they are no unknown variant, and why those keys are not kept."""


@cache
def instances(version: int) -> Instances:
    return Instances(version)


@cache
def payloads(version: int) -> dict[str, tuple[Method, str]]:
    """Every definition that is the params or the result of a method."""
    found = {}
    by_key = {(method.name, method.kind): method for method in methods(version)}
    for name, node in definitions(version).items():
        if "x-method" in node:
            kind = Kind.NOTIFICATION if name.endswith("Notification") else Kind.REQUEST
            part = "result" if name.endswith("Response") else "params"
            found[name] = (by_key[node["x-method"], kind], part)
    return found


def read(method: Method, part: str, value: Any) -> Any:
    raw = json.dumps(value).encode()
    own: Codec = codec(method.version)
    return own.result(method.name, raw) if part == "result" else own.params(method.kind, method.name, raw)


def canonical(version: int, node: Node, value: Any) -> Any:
    """`value` without what is equal by design: `null` or a default where absence means the same."""
    defs = definitions(version)
    if isinstance(value, list):
        items = array_items(defs, node, value)
        return value if items is None else [canonical(version, items, item) for item in value]
    if not isinstance(value, dict):
        return value
    found = shape(defs, node, value)
    lossy = set(found.owners) & LOSSES.keys()
    if found.unknown and not lossy:
        return value
    inner = map_values(defs, node)
    if inner is not None:
        return {key: canonical(version, inner, item) for key, item in value.items()}
    if not found.properties:
        return value
    kept = {}
    for key, item in value.items():
        prop = found.properties.get(key)
        if prop is None:
            if not lossy:
                kept[key] = item
            continue
        plain = canonical(version, prop.node, item)
        patch = prop.owner in PATCHES[version] or (version, prop.owner, key) in PATCH_FIELDS
        if prop.required or not is_default(version, prop.node, plain, patch=patch):
            kept[key] = plain
    return kept


def is_default(version: int, node: Node, value: Any, *, patch: bool) -> bool:
    if not (set(node) - {"x-deserialize-default-on-error"}):
        return False  # any value at all: null is one (RPC-42)
    kinds = node.get("type", [])
    nullable = "null" in kinds or {"type": "null"} in node.get("anyOf", ())
    if value is None:
        return not patch and not admits_everything(version, node)
    if "default" in node:
        return value in (canonical(version, node, node["default"]), node["default"])
    return not nullable and value in ([], {}) and kinds in ("array", "object")


def admits_everything(version: int, node: Node) -> bool:
    return any(option.get("$ref", "").endswith("ErrorData") for option in node.get("anyOf", ()))


def names(version: int) -> list[str]:
    return [
        name for name in payloads(version) if not name.startswith(("UpdateSession", "SessionNotification"))
    ]


ALL = [pytest.param(version, name, id=f"v{version}-{name}") for version in (1, 2) for name in names(version)]


@cache
def updates(version: int) -> dict[str, Node]:
    union = definitions(version)["SessionUpdate"]
    options = union.get("anyOf") or union["oneOf"]
    return {next(iter(constants(option).values()), "unknown"): option for option in options}


UPDATES = [
    pytest.param(version, tag, id=f"v{version}-{tag}") for version in (1, 2) for tag in updates(version)
]


def check_both_ways(method: Method, part: str, node: Node, value: Any) -> None:
    decoded = read(method, part, value)
    again = json.loads(codec(method.version).encode(decoded))
    assert canonical(method.version, node, again) == canonical(method.version, node, value)
    type_ = method.result if part == "result" else method.params
    try:
        strict = msgspec.convert(value, type_, dec_hook=choose)
    except msgspec.ValidationError:
        return  # an unknown variant: only repair reads it
    assert repair(method.version).build(type_, value) == strict == decoded


@requirement("EXT-07")
@pytest.mark.parametrize(("version", "name"), ALL)
def test_every_valid_payload_comes_back_as_the_same_json(version: int, name: str) -> None:
    method, part = payloads(version)[name]

    @settings(PROFILE, max_examples=EXAMPLES // 6)
    @given(instances(version).of(name))
    def check(value: Any) -> None:
        if part == "params" and value is None:
            value = {}
        check_both_ways(method, part, {"$ref": f"#/$defs/{name}"}, value)

    check()


@requirement("MSG-21")
@pytest.mark.parametrize(("version", "tag"), UPDATES)
def test_every_valid_update_comes_back_as_the_same_json(version: int, tag: str) -> None:
    name = "SessionNotification" if version == 1 else "UpdateSessionNotification"
    method, part = payloads(version)[name]

    @settings(PROFILE, max_examples=EXAMPLES // 4)
    @given(instances(version).node(updates(version)[tag]))
    def check(update: Any) -> None:
        check_both_ways(method, part, {"$ref": f"#/$defs/{name}"}, {"sessionId": "s", "update": update})

    check()


MISSING = object()
MAY_LACK = {(2, "PromptResponse", ("messageId",)): "C-01", (1, "PromptResponse", ("stopReason",)): "SD-05"}
"""Required properties that a receiver does without."""


def replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    value = copy.deepcopy(value)
    inner = value
    for step in path[:-1]:
        inner = inner[step]
    if new is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


def faults(version: int, node: Node, value: Any) -> list[tuple[tuple[str | int, ...], Any, bool]]:
    """Every way to break one property: where, what to put there, and whether it is forgiven."""
    defs = definitions(version)
    found = []
    for position in positions(defs, node, value):
        wrong = malformed(defs, position.node)
        if wrong is not ...:
            found.append((position.path, wrong, position.forgiven))
        if (version, ref(node), position.path) not in MAY_LACK:
            found.append((position.path, MISSING, not position.vital))
    return found


def check_faults(method: Method, part: str, node: Node, strategy: st.SearchStrategy[Any]) -> None:
    """Breaks one property of a valid instance at a time."""

    @settings(PROFILE, max_examples=EXAMPLES // 5)
    @given(strategy, st.data())
    def check(value: Any, data: st.DataObject) -> None:
        found = faults(method.version, node, value)
        assume(found)
        path, wrong, forgiven = data.draw(st.sampled_from(found))
        broken = replaced(value, path, wrong)
        if forgiven:
            read(method, part, broken)
        else:
            with pytest.raises((InvalidParams, InvalidResult)):
                read(method, part, broken)

    check()


ANY_JSON = "ProxySuccessorResponse"
"""The one payload that nothing can be wrong with."""


@requirement("RPC-40")
@pytest.mark.parametrize(("version", "name"), [param for param in ALL if ANY_JSON not in param.values])
def test_a_fault_in_a_payload_is_forgiven_only_where_marked(version: int, name: str) -> None:
    method, part = payloads(version)[name]
    check_faults(method, part, {"$ref": f"#/$defs/{name}"}, instances(version).of(name))


@requirement("RPC-40")
@pytest.mark.parametrize(("version", "tag"), UPDATES)
def test_a_fault_in_an_update_is_forgiven_only_where_marked(version: int, tag: str) -> None:
    name = "SessionNotification" if version == 1 else "UpdateSessionNotification"
    method, part = payloads(version)[name]
    update = instances(version).node(updates(version)[tag])
    whole = st.fixed_dictionaries({"sessionId": st.just("s"), "update": update})
    check_faults(method, part, {"$ref": f"#/$defs/{name}"}, whole)


def test_the_reasons_for_losses_name_definitions_that_exist() -> None:
    assert LOSSES.keys() <= definitions(1).keys() | definitions(2).keys()
