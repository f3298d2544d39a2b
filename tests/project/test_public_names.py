"""`cli` and `tui` import public names only, and a private import is seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "antiphon"
APPLICATIONS = ("cli", "tui")
VERSIONS = ("antiphon.schema.v1", "antiphon.schema.v2")
OWN = "antiphon.schema.antiphon"
"""Modules of wire types, which are public below their package."""


def imports(code: str) -> Iterator[tuple[str, str | None]]:
    """Yield the module and the name of every import of ours; without a name for `import antiphon.x`."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.startswith("antiphon"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("antiphon"):
            yield from ((node.module or "", alias.name) for alias in node.names)


def private_imports(code: str, application: str) -> list[str]:
    """Return the imports that are neither of the application itself nor of a public name."""
    own = f"antiphon.{application}"
    return [
        f"{module}: {name}"
        for module, name in imports(code)
        if module != own and not module.startswith(f"{own}.") and not is_public(module, name)
    ]


def is_public(module: str, name: str | None) -> bool:
    if module in VERSIONS or f"{module}.".startswith(f"{OWN}."):
        return True
    if name is None or module.count(".") > 1:
        return False
    if f"{module}.{name}" in VERSIONS:
        return True
    found = import_module(module)
    listed = getattr(found, "__all__", None)
    return name in listed if listed is not None else hasattr(found, name) and not name.startswith("_")


@pytest.mark.parametrize("application", APPLICATIONS)
def test_applications_import_public_names_only(application: str) -> None:
    found = {
        str(path.relative_to(SOURCES)): private
        for path in sorted((SOURCES / application).rglob("*.py"))
        if (private := private_imports(path.read_text(), application))
    }
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "from antiphon.hub.folder import HubFolder",
        "from antiphon.hub import folder",
        "from antiphon.client import _private",
        "import antiphon.engine.session",
        "def work():\n    from antiphon.client.session import ClientSession",
        "from antiphon.tui.app import ChatApp",
    ],
)
def test_a_private_import_is_seen(line: str) -> None:
    code = (SOURCES / "cli" / "sessions.py").read_text()
    assert len(private_imports(f"{code}\n{line}\n", "cli")) == 1


@pytest.mark.parametrize(
    "package",
    [
        "antiphon",
        "client",
        "conformance",
        "engine",
        "errors",
        "hub",
        "schema",
        "stores",
        "transcripts",
        "wire",
    ],
)
def test_every_public_name_can_be_imported(package: str) -> None:
    module = import_module("antiphon" if package == "antiphon" else f"antiphon.{package}")
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018  # the access is the test
