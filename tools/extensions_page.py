"""Writes the tables of docs/extensions.md from the structs of our own protocol.

`python -m tools.extensions_page` writes the page, and with `--check` only says whether it is up to date.
A table stands between `<!-- methods: NAME … -->` or `<!-- fields: STRUCT -->` and `<!-- end -->`. Its words
are the docstrings of the structs and the docstrings or `#:` comments of their fields.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from enum import EnumType
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import msgspec

from antiphon.schema.methods import OWN, Method, antiphon_methods
from antiphon.schema.wire import AntiphonUpdate

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extensions.md"
SCHEMA = ROOT / "src" / "antiphon" / "schema"
SOURCES = (*sorted((SCHEMA / "antiphon").glob("*.py")), SCHEMA / "version.py")
BLOCK = re.compile(r"(<!-- (methods|fields): ([^>]*?) -->\n).*?(<!-- end -->)", re.S)
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", Any: "any"}

WRITTEN_AS = {"promptLifecycle": "`2`"}
"""Fields that are another type on the wire."""


def _docs() -> dict[str, str]:
    """Return what is said of each struct, field (`Struct.field`) and type alias of the sources."""
    found: dict[str, str] = {}
    for path in SOURCES:
        text = path.read_text()
        tree = ast.parse(text)
        for name, doc in _documented(tree, text):
            found[name] = doc
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = ast.get_docstring(node) or ""
                found |= {f"{node.name}.{name}": doc for name, doc in _documented(node, text)}
    return found


def _documented(block: ast.Module | ast.ClassDef, text: str) -> Iterator[tuple[str, str]]:
    """Yield the names that are assigned or annotated in a block, each with its docstring or comment. A field
    without one has that of its type."""
    lines = text.splitlines()
    for node, after in zip(block.body, [*block.body[1:], None], strict=True):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if not isinstance(target, ast.Name):
            continue
        _, _, comment = lines[(node.end_lineno or 0) - 1].partition("  #: ")
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            comment = str(after.value.value)
        if not comment and isinstance(node, ast.AnnAssign):
            comment = f"={ast.unparse(node.annotation).partition(' | ')[0]}"
        yield target.id, " ".join(comment.split())


def _structs() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for path in SOURCES:
        module = import_module(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
        names |= {name: each for name, each in vars(module).items() if isinstance(each, msgspec.StructMeta)}
    return names


def _type(type: Any) -> str:
    """Return the JSON type of a field."""
    arguments = [each for each in get_args(type) if each not in (NoneType, msgspec.UnsetType)]
    origin = get_origin(type)
    if type in JSON_TYPES:
        return JSON_TYPES[type]
    if origin is list:
        return f"array of {_type(arguments[0])}" if arguments[0] is not Any else "array"
    if origin is dict:
        return "object"
    if isinstance(type, EnumType):
        return "string"
    if isinstance(type, msgspec.StructMeta):
        return f"`{type.__name__}`"
    if hasattr(type, "__metadata__"):
        return _type(type.__origin__)
    return " or ".join(dict.fromkeys(map(_type, arguments)))


def _is_optional(field: msgspec.structs.FieldInfo) -> bool:
    """Whether a field may be absent. An empty name is only the default for names that a peer left out."""
    return not field.required and field.default != ""


def _key(field: msgspec.structs.FieldInfo) -> str:
    return f"`{field.encode_name}`{'?' if _is_optional(field) else ''}"


def _meaning(docs: dict[str, str], struct: str, field: str) -> str:
    found = docs.get(f"{struct}.{field}", "")
    while found.startswith("="):
        found = docs.get(found[1:], "")
    return found.replace("|", "\\|")


def _fields(docs: dict[str, str], struct: Any) -> str:
    rows = [
        f"| {_key(field)} | {WRITTEN_AS.get(field.encode_name) or _type(field.type)}"
        f" | {_meaning(docs, struct.__name__, field.name)} |\n"
        for field in msgspec.structs.fields(struct)
    ]
    return "| Key | Type | Meaning |\n|---|---|---|\n" + "".join(rows)


def _methods(docs: dict[str, str], methods: list[Method]) -> str:
    """Return a table of methods, and one of the fields that need words."""
    rows, fields = [], dict[str, None]()
    for method in methods:
        name = method.params.__name__
        keys = ", ".join(map(_key, msgspec.structs.fields(method.params)))
        result = ""
        if method.result is not None:
            result = "{" + ", ".join(map(_key, msgspec.structs.fields(method.result))) + "}"
        rows.append(f"| `{method.name}` | {docs[name]} | {keys} | {result} |\n")
        for struct in (method.params, method.result):
            for field in () if struct is None else msgspec.structs.fields(struct):
                meaning = _meaning(docs, struct.__name__, field.name)
                if meaning:
                    fields[f"| `{field.encode_name}` | {_type(field.type)} | {meaning} |\n"] = None
    about = "| Method | What it does | Params | Result |\n|---|---|---|---|\n" + "".join(rows)
    return f"{about}\n| Field | Type | Meaning |\n|---|---|---|\n" + "".join(sorted(fields))


def written(page: str) -> str:
    """Return the page with its tables as they should be."""
    docs, structs = _docs(), _structs()
    methods = {method.name.removeprefix(OWN): method for method in antiphon_methods()}

    def table(block: re.Match[str]) -> str:
        begin, kind, names, end = block.groups()
        if kind == "fields":
            return begin + _fields(docs, structs[names]) + end
        return begin + _methods(docs, [methods[name] for name in names.split()]) + end

    return BLOCK.sub(table, page)


def own_names() -> set[str]:
    """Return the names of our own methods and updates, and of the kinds of our own in unions."""
    tags = {each.__struct_config__.tag for each in _structs().values()}
    return {method.name for method in antiphon_methods()} | {
        tag for tag in tags if str(tag).startswith("_antiphon")
    }


def not_shown(page: str) -> set[str]:
    """Return the structs on the wire that have no table on the page: params, updates and `_meta` objects."""
    shown = {name for _, kind, names, _ in BLOCK.findall(page) for name in names.split()}
    wanted = {
        name
        for name, each in _structs().items()
        if name.endswith("Meta") or (issubclass(each, AntiphonUpdate) and each is not AntiphonUpdate)
    }
    return (wanted | {method.name.removeprefix(OWN) for method in antiphon_methods()}) - shown


def main() -> int:
    page = PAGE.read_text()
    if "--check" in sys.argv[1:]:
        if written(page) != page:
            print("docs/extensions.md is not up to date: run `python -m tools.extensions_page`")
            return 1
        return 0
    PAGE.write_text(written(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
