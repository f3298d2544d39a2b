"""Writes the members of every public class into tests/project/public_members.txt.

`python -m tools.public_members` renews the file after a wanted change; a test compares it with the code.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
LISTING = ROOT / "tests" / "project" / "public_members.txt"
APPLICATIONS = {"cli", "tui", "web", "rehearsal"}
"""Packages that are programs and export nothing for others."""


def public_modules() -> list[ModuleType]:
    """Return `antiphon` and the modules directly below it that have an `__all__`."""
    package = ROOT / "src" / "antiphon"
    names = [path.parent.name for path in package.glob("*/__init__.py")]
    names += [path.stem for path in package.glob("*.py") if not path.stem.startswith("__")]
    modules = [import_module(f"antiphon.{name}") for name in sorted(set(names) - APPLICATIONS)]
    return [import_module("antiphon"), *(module for module in modules if hasattr(module, "__all__"))]


def members(cls: type) -> Iterator[str]:
    """Yield the public members of a class, each with its kind."""
    outside = {
        name for base in cls.__mro__ if not base.__module__.startswith("antiphon") for name in vars(base)
    }
    ours = [base for base in cls.__mro__ if base.__module__.startswith("antiphon")]
    fields = {name for base in cls.__mro__ for name in getattr(base, "__annotations__", {})}
    fields.update(name for base in ours for name in _attributes(base))
    for name in sorted({*dir(cls), *fields} - outside):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(cls, name, None)
        if isinstance(value, property | cached_property):
            yield f"{name}: property"
        elif isinstance(value, staticmethod | classmethod) or inspect.isroutine(value):
            call = inspect.unwrap(getattr(cls, name))
            yield f"{name}(): {'async ' if inspect.iscoroutinefunction(call) else ''}method"
        elif issubclass(cls, Enum):
            yield f"{name} = {getattr(value, 'value', value)!r}"
        else:
            yield f"{name}: attribute"


def _attributes(cls: type) -> Iterator[str]:
    """Yield the names that the constructor of a class sets on `self`."""
    if "__init__" not in vars(cls) or hasattr(cls, "__struct_fields__"):
        return
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(vars(cls)["__init__"])))):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                yield target.attr


def listing() -> str:
    """Return the whole listing: each class once, where it is first exported, and its members."""
    seen: set[type] = set()
    parts = []
    for module in public_modules():
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if not inspect.isclass(value) or value in seen or not value.__module__.startswith("antiphon"):
                continue
            seen.add(value)
            parts.append(
                "\n".join([f"{module.__name__}.{name}", *(f"    {each}" for each in members(value))])
            )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    LISTING.write_text(listing())
