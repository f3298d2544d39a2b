"""Every string field of the pinned v2 schema, filled with text that does harm: updates, questions, lists.

Walks the raw JSON Schema, so a field that is added there is tested without anybody thinking of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.schema.strategies import Node, branches, definitions, ref

CONCEALED = "\x1b[5;31;8m"
"""Colours that hide what follows; the command itself never sets them."""
HOSTILE = (
    f"{CONCEALED}hid\x1b]0;title\x07\x1b]52;c;cm0=\x07\x1b[6n\x9b2J\x00\x08\x7f\x85 \u202egnp.exe\u2066x"
    "\u2069\u200b\u200f\u061c\u2062\ufeff\u00ad\u2028\u3164\U000e0041\U000e0042a\u200db"
    " [bold]b[/] [@click=app.quit]press[/] <img src=x onerror=alert(1)> &#x202e;\rover\nforged"
)
DEEPEST = 24
IDS = ("messageId", "toolCallId", "terminalId", "compactionId", "planId")
_DEFINITIONS = definitions(2)
NUMBERS = {"integer": 1, "number": 1.5, "boolean": True, "null": None}


def updates() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every kind of update but states, which would end the turn; its tag and its other fields."""
    for number, value in enumerate(every(_DEFINITIONS["SessionUpdate"])):
        tag = value.pop("sessionUpdate")
        if tag != "state_update":
            yield tag, _numbered(value, number)


def _numbered(value: Any, number: int) -> Any:
    """With ids of its own: an update is about something new."""
    if isinstance(value, list):
        return [_numbered(one, number) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: f"{HOSTILE}{number}" if key in IDS and isinstance(one, str) else _numbered(one, number)
        for key, one in value.items()
    }


def permissions() -> list[dict[str, Any]]:
    return list(every(_DEFINITIONS["RequestPermissionRequest"]))


def session_infos() -> list[dict[str, Any]]:
    return list(every(_DEFINITIONS["SessionInfo"]))


def every(node: Node, depth: int = 0) -> list[Any]:
    """Values of a schema with all their fields; each branch that it has stands in one of them."""
    if depth > DEEPEST:
        return []
    if "const" in node:
        return [node["const"]]
    parts = [every(_DEFINITIONS[str(ref(node))], depth + 1)] if "$ref" in node else []
    parts += [every(part, depth + 1) for part in node.get("allOf", ())]
    if options := branches(node):
        parts.append([one for option in options for one in every(option, depth + 1) if one is not None])
    if "properties" in node or isinstance(node.get("additionalProperties"), dict):
        parts.append(_objects(node, depth))
    if parts:
        found = [part for part in parts if part]
        return [
            _merged([part[n % len(part)] for part in found]) for n in range(max(map(len, found), default=0))
        ]
    return _plain(node, depth)


def _plain(node: Node, depth: int) -> list[Any]:
    kinds = node.get("type", "string")
    kind = next((each for each in ([kinds] if isinstance(kinds, str) else kinds) if each != "null"), "null")
    if kind == "array":
        return [every(node.get("items", {"type": "string"}), depth + 1)]
    return [{"string": HOSTILE, "object": {}, **NUMBERS}[kind]]


def _objects(node: Node, depth: int) -> list[Any]:
    fields = {
        name: every(field, depth + 1) for name, field in node.get("properties", {}).items() if name != "_meta"
    }
    fields = {name: values for name, values in fields.items() if values}
    made: list[dict[str, Any]] = [
        {name: values[-1 - number % len(values)] for name, values in fields.items()}
        for number in range(max(map(len, fields.values()), default=1))
    ]
    more = node.get("additionalProperties")
    if isinstance(more, dict) and more:
        made = [
            {f"{HOSTILE}{n}": one for n, one in enumerate(every(more, depth + 1))} | each for each in made
        ]
    return made


def _merged(parts: list[Any]) -> Any:
    if all(isinstance(part, dict) for part in parts):
        return {key: value for part in parts for key, value in part.items()}
    return parts[-1]
