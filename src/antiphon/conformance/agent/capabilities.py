"""Scenarios about the capabilities that an agent advertises: their names and their shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.scenario import Collection

scenarios = Collection("capabilities", shares=True)

FLAG, MARKER = bool, dict
"""A flag is a boolean. A marker is an object, or `null` for no."""
CAPABILITIES: dict[int, dict[str, Any]] = {
    1: {
        "loadSession": FLAG,
        "promptCapabilities": {"image": FLAG, "audio": FLAG, "embeddedContext": FLAG},
        "mcpCapabilities": {"http": FLAG, "sse": FLAG, "acp": FLAG},
        "sessionCapabilities": dict.fromkeys(
            ("list", "delete", "additionalDirectories", "resume", "close", "fork", "archive", "status",
             "title", "systemPrompt", "turnComplete"), MARKER,
        ),
        "auth": {"logout": MARKER, "status": MARKER},
        "providers": MARKER,
    },
    2: {
        "session": {
            "prompt": {"image": MARKER, "audio": MARKER, "embeddedContext": MARKER},
            "mcp": {"stdio": MARKER, "http": MARKER, "acp": MARKER},
            **dict.fromkeys(
                ("delete", "additionalDirectories", "fork", "archive", "status", "title", "systemPrompt"),
                MARKER,
            ),
        },
        "auth": {"status": MARKER, "logout": MARKER},  # no marker of v2: AUTH-12 decides that
        "providers": MARKER,
    },
}  # fmt: skip
"""The capabilities of the published schemas, stable and unstable, by version."""
DRAFTS = frozenset({"nes", "positionEncoding", "quota", "list"})
"""Names of public drafts that agents use at the root."""


def known(value: dict[str, Any], shapes: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any, type]]:
    """Yield the path, the value and the shape of every known capability that is not `null`."""
    for key, shape in shapes.items():
        found = value.get(key)
        if found is None:
            continue
        if isinstance(shape, dict):
            yield path + key, found, MARKER
            if isinstance(found, dict):
                yield from known(found, shape, f"{path}{key}.")
        else:
            yield path + key, found, shape


def unknown(value: dict[str, Any], shapes: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of capabilities that no schema has."""
    for key, found in value.items():
        if not key.startswith("_") and key not in shapes and key not in DRAFTS:
            yield path + key
        elif isinstance(shapes.get(key), dict) and isinstance(found, dict):
            yield from unknown(found, shapes[key], f"{path}{key}.")


@scenarios.add("INIT-16", "INIT-17", "INIT-21", "INIT-23")
async def capabilities_have_their_shape(case: AgentCase) -> None:
    """Flags are booleans, markers are objects, and custom capabilities are under `_meta`."""
    agent = await case.open()
    shapes, frames = CAPABILITIES[agent.version], agent.introduction
    wrong = [
        (path, value) for path, value, shape in known(agent.capabilities, shapes) if type(value) is not shape
    ]
    flags = [path for path, value in wrong if isinstance(value, bool)]
    if agent.version == 1:
        case.decide.check(
            "INIT-17", not wrong,
            "expected flags as booleans and session and login capabilities as objects"
            + named([path for path, _ in wrong]), *frames,
        )  # fmt: skip
    else:
        case.decide.check(
            "INIT-16",
            not flags,
            "expected every marker as an object, never as a boolean" + named(flags),
            *frames,
        )
        others = [path for path, value in wrong if not isinstance(value, bool)]
        case.decide.check(
            "INIT-21", not others, "expected every marker as an object or `null`" + named(others), *frames
        )
    custom = list(unknown(agent.capabilities, shapes))
    case.decide.check(
        "INIT-23", not custom, "expected custom capabilities under `_meta`" + named(custom), *frames
    )


def named(paths: list[str]) -> str:
    return f"; wrong: {', '.join(paths)}" if paths else ""
