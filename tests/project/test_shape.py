"""The structure of the source tree stays within bounds, and a bad tree is seen to exceed each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.shape import Shape, measure

BOUNDS = {
    "lines without generated code": 94_500,
    "modules in one package": 20,
    "gerund modules": 1,
    "deepest inheritance chain": 2,
    "modules in one import cycle": 0,
    "public functions with more than 8 parameters": 0,
    "public members of one class": 41,
}
"""The most that the tree may have of each. Lower a bound whenever the tree gets better. Raise the bound of
the lines only with a new feature, by what it adds; raise no other."""


def counts(shape: Shape) -> dict[str, int]:
    return {
        "lines without generated code": shape.lines,
        "modules in one package": max(shape.modules.values(), default=0),
        "gerund modules": len(shape.gerunds),
        "deepest inheritance chain": len(shape.chain),
        "modules in one import cycle": max(map(len, shape.cycles.values()), default=0),
        "public functions with more than 8 parameters": len(shape.public_long_signatures),
        "public members of one class": max(shape.members.values(), default=0),
    }


def exceeded(shape: Shape, bounds: dict[str, int]) -> dict[str, tuple[int, int]]:
    found = counts(shape)
    return {name: (found[name], bound) for name, bound in bounds.items() if found[name] > bound}


def test_the_tree_is_within_its_bounds() -> None:
    assert exceeded(measure(), BOUNDS) == {}, "run `python -m tools.shape` to see the names"


GOOD = {
    "antiphon/__init__.py": '__all__ = ["Agent"]\n',
    "antiphon/agent/__init__.py": "",
    "antiphon/agent/agent.py": "class Agent:\n    def run(self, a, b): ...\n    def _hidden(self): ...\n",
    "antiphon/agent/turn.py": "from antiphon.agent.agent import Agent\nclass Turn(Agent): ...\n",
    "antiphon/schema/v1/types.py": "x = 1\n" * 1000,
}
TIGHT = {
    "lines without generated code": 6,
    "modules in one package": 2,
    "gerund modules": 0,
    "deepest inheritance chain": 2,
    "modules in one import cycle": 0,
    "public functions with more than 8 parameters": 0,
    "public members of one class": 1,
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_good_tree_is_counted(tmp_path: Path) -> None:
    assert counts(measure(write(tmp_path, GOOD))) == TIGHT


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("lines without generated code", "agent/turn.py", "a = 1\n" * 10),
        ("modules in one package", "agent/options.py", ""),
        ("gerund modules", "agent/settling.py", ""),
        (
            "deepest inheritance chain",
            "hub/hub.py",
            "from antiphon.agent.turn import Turn\nclass Hub(Turn): ...\n",
        ),
        (
            "modules in one import cycle",
            "agent/agent.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from antiphon.agent.turn import Turn\n",
        ),
        (
            "public functions with more than 8 parameters",
            "agent/agent.py",
            "class Agent:\n    def run(self, a, b, c, d, e, f, g, h, *, i): ...\n",
        ),
        (
            "public members of one class",
            "agent/agent.py",
            "class Agent:\n    name: str\n    def run(self): ...\n",
        ),
    ],
)
def test_a_bad_tree_is_noticed(tmp_path: Path, name: str, path: str, text: str) -> None:
    write(tmp_path, {**GOOD, f"antiphon/{path}": text})
    assert name in exceeded(measure(tmp_path), TIGHT)


def test_relative_imports_count(tmp_path: Path) -> None:
    write(tmp_path, {**GOOD, "antiphon/agent/agent.py": "from .turn import Turn\n"})
    assert measure(tmp_path).cycles == {"agent": ["antiphon.agent.agent", "antiphon.agent.turn"]}


def test_exceptions_protocols_and_enums_are_no_inheritance(tmp_path: Path) -> None:
    source = (
        "class A(Exception): ...\nclass B(A): ...\nclass C(B): ...\nclass P(Protocol): ...\nclass Q(P): ...\n"
    )
    assert measure(write(tmp_path, {"antiphon/hub/errors.py": source})).chain == []
