"""Tests see the product as its users do. Where one reaches into a private name, a line here says why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[1]
NEVER = {"_core", "_server"}
"""The parts behind `Hub`, `Agent` and `ClientSession`: what they do shows on the wire, in the metrics, in the
process table, in the store and in the logs."""
PUBLIC = {"os._exit"}
"""Documented names that begin with an underscore."""


class Allowed(NamedTuple):
    places: int
    why: str


FAULT = "it puts a fault where only the inside of a store or a socket can have one"
FIRST = "`connect` returns no client before `initialize` is answered, and sets no bound of a transport"
FOREIGN = "it is a name of asyncio or Textual, which have no public one for it"
INSIDE = "it looks at the threads, commits and settings of an SQLite connection, which no file shows"
MEMORY = "it is a bound of what is kept, which changes nothing that a caller sees"
MOMENT = "it is a moment between two steps of the loop, which no client can hit"
PART = "it tests one part of a module, by a name that the rest of the product has no use for"
TABLE = "it compares a table with the schema, so that nothing is missing in it"
ALLOWED = {
    "agent/test_cancelling.py": Allowed(1, MOMENT),
    "bridge/test_dialects.py": Allowed(1, MEMORY),
    "bridge/test_downgrade_terminal_text.py": Allowed(2, MEMORY),
    "bridge/test_upgrade.py": Allowed(1, TABLE),
    "client/test_client.py": Allowed(3, MEMORY),
    "client/test_link.py": Allowed(4, PART),
    "client/test_opening.py": Allowed(2, MEMORY),
    "engine/test_content.py": Allowed(1, PART),
    "engine/test_events.py": Allowed(1, TABLE),
    "engine/test_fold.py": Allowed(1, TABLE),
    "fuzz/lines.py": Allowed(4, MEMORY),
    "http/test_socket_faults.py": Allowed(6, FAULT),
    "http/test_unread_answers.py": Allowed(12, MEMORY),
    "hub/test_audit.py": Allowed(2, MEMORY),
    "hub/test_large_prompts.py": Allowed(1, FIRST),
    "jsonrpc/test_sse.py": Allowed(1, MEMORY),
    "live/test_runs.py": Allowed(2, PART),
    "races/test_cancel.py": Allowed(1, MOMENT),
    "requirements/agent_by_hand.py": Allowed(1, FIRST),
    "server/test_ends.py": Allowed(1, FOREIGN),
    "session_files/test_salvage.py": Allowed(2, FAULT),
    "stores/test_contract.py": Allowed(1, FAULT),
    "stores/test_sqlite.py": Allowed(8, INSIDE),
    "stores/test_sqlite_damage.py": Allowed(3, FAULT),
    "transports/test_sliced_writer.py": Allowed(3, MEMORY),
    "transports/test_websocket.py": Allowed(5, MOMENT),
    "tui/test_chat.py": Allowed(1, FOREIGN),
    "tui/test_first_minutes.py": Allowed(1, FOREIGN),
    "tui/test_hostile.py": Allowed(1, FOREIGN),
    "tui/test_pending_prompts.py": Allowed(5, MOMENT),
    "tui/test_text.py": Allowed(1, PART),
}
"""The places in each file. Lower a number when a test finds another way; add none without a reason."""


class Place(NamedTuple):
    line: int
    name: str


def private_places(source: str) -> list[Place]:
    """Where a test reaches into a private name that it does not define itself."""
    tree = ast.parse(source)
    own = {name for node in ast.walk(tree) for name in _defined(node)}
    return sorted(
        place for node in ast.walk(tree) for place in _reached(node) if place.name.split(".")[-1] not in own
    )


def _defined(node: ast.AST) -> Iterator[str]:
    """The private names that a file gives to its own classes and objects."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node):
        yield node.attr


def _reached(node: ast.AST) -> Iterator[Place]:
    if isinstance(node, ast.Attribute) and _is_private(node.attr) and not _is_own(node):
        if ast.unparse(node) not in PUBLIC:
            yield Place(node.lineno, node.attr)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "antiphon":
        yield from (Place(node.lineno, alias.name) for alias in node.names if _is_private(alias.name))
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("setattr", "getattr"):
        named = [arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant)]
        texts = [name for name in named if isinstance(name, str)]
        yield from (Place(node.lineno, name) for name in texts if _is_private(name.split(".")[-1]))


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def reached_by_file() -> dict[str, list[Place]]:
    files = {str(path.relative_to(TESTS)): path.read_text() for path in TESTS.rglob("*.py")}
    places = {name: private_places(source) for name, source in sorted(files.items())}
    return {name: found for name, found in places.items() if found}


def test_tests_reach_into_private_names_only_where_a_reason_is_given() -> None:
    reached = reached_by_file()
    assert {name: len(found) for name, found in reached.items()} == {
        name: allowed.places for name, allowed in ALLOWED.items()
    }
    assert all(allowed.why for allowed in ALLOWED.values())


def test_no_test_reaches_behind_the_public_classes() -> None:
    assert not [place for found in reached_by_file().values() for place in found if place.name in NEVER]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("assert hub._core.find(id) is None", ["_core"]),
        ("agent._server.registry._sessions.clear()", ["_server", "_sessions"]),
        ("links[0]._paced = open()._socket", ["_paced", "_socket"]),
        ("from antiphon.engine.fold import _UPDATES, fold", ["_UPDATES"]),
        ("monkeypatch.setattr(Store, '_open', fails)", ["_open"]),
        ("monkeypatch.setattr('antiphon.hub.core._start', fails)", ["antiphon.hub.core._start"]),
        ("getattr(hub, '_core').aclose()", ["_core"]),
        ("class A:\n def __init__(self): self._a = 1\ndef test(a, hub): a._a = hub._core", ["_core"]),
    ],
)
def test_every_way_into_a_private_name_is_seen(source: str, names: list[str]) -> None:
    assert [place.name for place in private_places(source)] == names


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n def look(self): return self._core, self.__dict__",
        "class A:\n def _look(self): ...\ndef test(a): a._look()",
        "os._exit(1)",
        "from tests.hub.doors import _helper",
        "hub.store, hub.token, type(hub).__name__",
        "monkeypatch.setattr('antiphon.hub.access.admission.SWEEP', 60.0)",
    ],
)
def test_what_is_a_test_s_own_or_public_is_not_meant(source: str) -> None:
    assert private_places(source) == []
