"""The types are the schemas, no less and no more: read from the raw JSON Schema, not from the generator."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from typing import Any

import pytest

from antiphon.schema.methods import Kind, Sender, methods
from antiphon.schema.wire import Wire
from tests.requirements.marks import requirement
from tests.schema.schema_walk import MADE_NAMES, NO_TYPES, PACKAGES, walked
from tests.schema.strategies import Node, branches, constants, definitions

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@requirement("RPC-40")
@VERSIONS
def test_every_definition_property_mark_and_constant_is_in_the_types(version: int) -> None:
    walked(version)


@requirement("EXT-03")
@VERSIONS
def test_nothing_is_in_the_types_that_is_not_in_the_schema(version: int) -> None:
    seen = walked(version).seen
    package = PACKAGES[version]
    for name in package.__all__:
        made = getattr(package, name)
        if isinstance(made, type) and issubclass(made, Wire | Enum):
            assert made in seen, name
        else:
            assert name in definitions(version) or name in MADE_NAMES[version], name


@VERSIONS
def test_every_definition_without_a_type_has_a_reason(version: int) -> None:
    package = PACKAGES[version]
    missing = {name for name in definitions(version) if name not in package.__all__}
    assert missing <= NO_TYPES.keys()
    assert not NO_TYPES.keys() & set(package.__all__)


@VERSIONS
def test_every_leniency_entry_names_a_field_that_exists(version: int) -> None:
    for struct, marks in import_module(f"antiphon.schema.v{version}.leniency").LENIENT.items():
        assert marks.keys() <= set(struct.__struct_fields__)


SIDES = {"agent": Sender.CLIENT, "client": Sender.AGENT, "protocol": Sender.EITHER, "proxy": Sender.EITHER}
SENDERS = {"proxy/initialize": Sender.CLIENT}


NO_METHODS_OF_THE_SCHEMA = {1: {"session/set_model"}, 2: set()}
"""v1 had it while it was unstable, and agents and clients still use it."""


@requirement("EXT-12")
@VERSIONS
def test_the_method_table_is_the_schemas_and_no_more(version: int) -> None:
    stable = definitions(version, unstable=False)
    expected_rows = {}
    for name, node in definitions(version).items():
        if "x-method" not in node or name.endswith("Response"):
            continue
        method = node["x-method"]
        kind = Kind.REQUEST if name.endswith("Request") else Kind.NOTIFICATION
        results = [
            other
            for other, inner in definitions(version).items()
            if inner.get("x-method") == method and other.endswith("Response")
        ]
        result = getattr(PACKAGES[version], results[0]) if kind is Kind.REQUEST else None
        params = getattr(PACKAGES[version], name)
        expected_rows[method, kind] = (
            SENDERS.get(method, SIDES[node["x-side"]]), name in stable, params, result
        )  # fmt: skip
    rows = {
        (row.name, row.kind): (row.sender, row.stable, row.params, row.result) for row in methods(version)
    }
    extra = rows.keys() - expected_rows.keys()
    assert {name for name, _ in extra} == NO_METHODS_OF_THE_SCHEMA[version]
    assert {key: row for key, row in rows.items() if key not in extra} == expected_rows


@requirement("INIT-30")
@VERSIONS
def test_what_is_unstable_is_told_apart(version: int) -> None:
    stable, unstable = definitions(version, unstable=False), definitions(version)
    told = import_module(f"antiphon.schema.v{version}.stability")
    assert unstable.keys() - stable.keys() == told.DEFINITIONS
    shared = [name for name in stable if name not in NO_TYPES or not name.endswith(("Request", "Response"))]
    fields = {
        (name, key)
        for name in shared
        for key in unstable[name].get("properties", {}).keys() - stable[name].get("properties", {}).keys()
    }
    assert fields == told.FIELDS
    variants = {
        (name, value)
        for name in shared
        if name not in NO_TYPES
        for value in tags(unstable[name]) - tags(stable[name])
    }
    assert variants == told.VARIANTS
    methods_of = [{node.get("x-method") for node in part.values()} for part in (unstable, stable)]
    assert methods_of[0] - methods_of[1] == told.METHODS


def tags(node: Node) -> set[Any]:
    return {value for option in branches(node) for value in constants(option).values()} | {
        option["const"] for option in branches(node) if "const" in option
    }
