"""Writes docs/api.md: every public name with the first sentence of its docstring.

`python -m tools.api_page` renews the page; a test compares it with the code.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

from antiphon.errors import AntiphonError
from tools.public_members import ROOT, public_modules

PAGE = ROOT / "docs" / "api.md"
HEAD = """\
# Public names

Each name is listed with the first module that exports it. Everything else is internal and may change without
notice. `tests/project/public_members.txt` lists the members of the classes. This page is generated with
`python -m tools.api_page`.
"""
ORDER = (
    "antiphon",
    "agent",
    "client",
    "hub",
    "stores",
    "errors",
    "content",
    "wire",
    "session_files",
    "testing",
)


def page() -> str:
    """Return the whole page."""
    modules = sorted(public_modules(), key=_place)
    seen: set[int] = set()
    return "\n".join([HEAD, *(section for module in modules for section in _section(module, seen))])


def _place(module: ModuleType) -> tuple[int, str]:
    name = module.__name__.removeprefix("antiphon.")
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _section(module: ModuleType, seen: set[int]) -> Iterator[str]:
    rows = []
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if name.startswith("_") or id(value) in seen:
            continue
        seen.add(id(value))
        rows.append(f"| `{name}` | {summary(name, value).replace('|', chr(92) + '|')} |")
    if rows:
        yield "\n".join([f"## `{module.__name__}`", "", "| | |", "|---|---|", *rows, ""])


def summary(name: str, value: Any) -> str:
    """Return the first sentence of the docstring of a name; without one, what its definition shows."""
    if inspect.isclass(value):
        own = vars(value).get("__doc__")
        return _sentence("" if own is None or own.startswith(f"{name}(") else own) or _shape(value)
    if inspect.isroutine(value):
        return _sentence(value.__doc__ or "") or f"`{name}{inspect.signature(value)}`"
    text, source = constants().get(name, ("", ""))
    return _sentence(text) or (f"`{source}`" if source else "")


def _sentence(docstring: str) -> str:
    paragraph = " ".join(inspect.cleandoc(docstring).partition("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z`])", paragraph)[0].rstrip(":")


def _shape(value: type) -> str:
    if issubclass(value, AntiphonError):
        return f"`{value.code}`: {value.summary}."
    names = [repr(each.value) for each in value] if issubclass(value, Enum) else _fields(value)
    return ", ".join(f"`{each}`" for each in names)


def _fields(value: Any) -> list[str]:
    return list(
        value.__struct_fields__ if hasattr(value, "__struct_fields__") else getattr(value, "_fields", ())
    )


@cache
def constants() -> dict[str, tuple[str, str]]:
    """Return the docstring and the value of each module-level name of the package, as its source has them."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted((ROOT / "src" / "antiphon").rglob("*.py")):
        body = ast.parse(path.read_text()).body
        for node, following in zip(body, [*body[1:], None], strict=True):
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            text = following.value if isinstance(following, ast.Expr) else None
            docstring = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
            source = ast.unparse(node.value)
            found.setdefault(ast.unparse(target), (docstring, source if len(source) <= 100 else ""))
    return found


if __name__ == "__main__":
    PAGE.write_text(page())
