"""No import cycle inside these packages, `TYPE_CHECKING` imports counted; one made on purpose is seen."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
PACKAGES = ("server", "agent", "hub", "live")


def imports(path: Path, names: set[str]) -> Iterator[str]:
    """Yield the modules among `names` that a file imports, wherever in it the import is."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            parts = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [part for part in parts if part in names]
            yield from found
            if len(found) < len(parts) and node.module in names:
                yield node.module


def cycle_in(source: Path, package: str) -> list[str]:
    """Return the modules of a package that import each other in a circle."""
    files = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (source / "antiphon" / package).rglob("*.py")
    }
    graph = {name: set(imports(path, set(files))) - {name} for name, path in files.items()}
    while leaves := [name for name, needs in graph.items() if not needs]:
        for leaf in leaves:
            del graph[leaf]
        for needs in graph.values():
            needs.difference_update(leaves)
    return sorted(graph)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_itself_through_others(package: str) -> None:
    assert cycle_in(SOURCE, package) == []


@pytest.mark.parametrize(
    ("package", "module", "line"),
    [
        ("server", "session", "from antiphon.server.registry import SessionRegistry"),
        ("agent", "worker", "from antiphon.agent.session import AgentSession"),
        ("hub", "session_factory", "from antiphon.hub.core import HubCore"),
        ("live", "tail", "from antiphon.live.session import LiveSession"),
    ],
)
def test_a_cycle_is_seen_although_only_types_are_imported(
    tmp_path: Path, package: str, module: str, line: str
) -> None:
    shutil.copytree(SOURCE / "antiphon" / package, tmp_path / "antiphon" / package)
    path = tmp_path / "antiphon" / package / f"{module}.py"
    path.write_text(f"{path.read_text()}\nif TYPE_CHECKING:\n    {line}\n")
    assert f"antiphon.{package}.{module}" in cycle_in(tmp_path, package)
