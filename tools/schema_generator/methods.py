"""Reads the method table: which definition is the params and which the result of what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import decisions
from .model import AnyType, ChoiceType, Row, StructType, UnionType, Version

if TYPE_CHECKING:
    from .reader import Reader


def read_methods(reader: Reader) -> list[Row]:
    results = {
        node["x-method"]: name
        for name, node in reader.definitions.items()
        if "x-method" in node and name.endswith("Response")
    }
    rows = []
    for name, node in reader.definitions.items():
        if "x-method" not in node or name.endswith("Response"):
            continue
        method = node["x-method"]
        request = name.endswith("Request")
        if not request and not name.endswith("Notification"):
            raise ValueError(f"{name}: neither a request nor a notification")
        result = results[method] if request else None
        rows.append(
            Row(
                method,
                "REQUEST" if request else "NOTIFICATION",
                decisions.METHOD_SENDERS.get(method, decisions.SENDERS[node["x-side"]]),
                name in reader.stable,
                f"{reader.page(name)}.{name}",
                None if result is None else f"{reader.page(result)}.{result}",
                _has_session(reader.version, reader.version.types[name]),
            )
        )
    rows += [
        Row(name, "REQUEST", "CLIENT", False, params, result, True)
        for name, params, result in decisions.EXTRA_METHODS.get(reader.number, ())
    ]
    return sorted(rows, key=lambda row: (row.name, row.kind))


def _has_session(version: Version, item: AnyType) -> bool:
    if isinstance(item, StructType):
        return any(field.wire == "sessionId" for field in item.fields)
    if isinstance(item, UnionType):
        return any(_has_session(version, version.types[struct]) for struct, _, _ in item.members)
    if isinstance(item, ChoiceType):
        return any(_has_session(version, version.types[struct]) for _, struct, _ in item.tagged)
    return False
