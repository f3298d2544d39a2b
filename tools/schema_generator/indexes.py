"""Writes the modules that say something about the pages: `__init__`, methods, leniency, stability."""

from __future__ import annotations

from . import decisions
from .model import StructType, UnionType, Version
from .writer import HEADER, module

LAZY = """
_PAGE_OF = {name: page for page, names in _PAGES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    # A page is loaded when one of its types is asked for: starting up costs only what is used.
    try:
        page = _PAGE_OF[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(import_module(f"{__name__}.{page}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
"""


def indexes(version: Version) -> dict[str, str]:
    return {
        "__init__.py": init(version),
        "methods.py": methods(version),
        "leniency.py": leniency(version),
        "stability.py": stability(version),
    }


def init(version: Version) -> str:
    homes = {
        page: sorted((item.name for item in version.on_page(page)), key=str.lower) for page in decisions.PAGES
    }
    homes = {page: names for page, names in sorted(homes.items()) if names}
    package = f"antiphon.schema.v{version.number}"
    typed = "\n".join(f"    from {package}.{page} import {', '.join(names)}" for page, names in homes.items())
    table = "\n".join(f'    "{page}": """\n        {names}\n    """,' for page, names in _wrapped(homes))
    public = ", ".join(f'"{name}"' for name in sorted(version.types))
    imported = (
        "from importlib import import_module\nfrom typing import TYPE_CHECKING, Any\n\n"
        f"if TYPE_CHECKING:\n{typed}"
    )
    body = f"_PAGES = {{\n{table}\n}}\n{LAZY}\n\n__all__ = [{public}]\n"
    return module(
        f"Every type of ACP v{version.number}, each loaded with its page when asked for.", body, imported
    )


def _wrapped(homes: dict[str, list[str]]) -> list[tuple[str, str]]:
    made = []
    for page, names in homes.items():
        lines, current = [], ""
        for name in names:
            if len(current) + len(name) > 95:
                lines.append(current.rstrip())
                current = ""
            current += name + " "
        lines.append(current.rstrip())
        made.append((page, "\n        ".join(lines)))
    return made


def methods(version: Version) -> str:
    rows = "\n".join(
        f'    Row("{row.name}", {row.kind}, {row.sender}, {row.stable}, {row.session_scoped},\n'
        f'        "{row.params}", ' + ("None" if row.result is None else f'"{row.result}"') + "),"
        for row in version.methods
    )
    body = (
        "REQUEST, NOTIFICATION = Kind.REQUEST, Kind.NOTIFICATION\n"
        "CLIENT, AGENT, EITHER = Sender.CLIENT, Sender.AGENT, Sender.EITHER\n\n"
        "# fmt: off\n"
        f"ROWS = (\n    # name, kind, sender, stable, session scoped, params, result\n{rows}\n)\n"
        "# fmt: on\n"
    )
    doc = f"The methods of ACP v{version.number}; types are named by page, and loaded when asked for."
    return module(doc, body, "from antiphon.schema.methods import Kind, Row, Sender")


def leniency(version: Version) -> str:
    structs = [item for item in version.types.values() if isinstance(item, StructType)]
    entries, used = [], set()
    for item in sorted(structs, key=lambda each: (each.page, each.name)):
        marks = []
        for each in item.fields:
            if each.name == "meta":
                if each.lenient != ("ERROR",):
                    raise ValueError(f"{item.name}: `_meta` is not lenient")
            elif each.lenient:
                marks.append(f'"{each.name}": {" | ".join(each.lenient)}')
        if marks:
            used.add(item.page)
            entries.append(f"    {item.page}.{item.name}: {{{', '.join(marks)}}},")
    unions, states = [], []
    for union in version.types.values():
        if isinstance(union, UnionType) and union.open:
            unions.append("    " + _open(version, union) + ",")
            used |= {version.types[name].page for name, _, _ in union.members}
    for item in structs:
        if item.open_field:
            states.append(f'    {item.page}.{item.name}: "{item.open_field}",')
            used.add(item.page)
    variants = {
        home for (number, _), (home, _) in decisions.EXTRA_VARIANTS.items() if number == version.number
    }
    types = {home for (number, _), home in decisions.EXTRA_TYPES.items() if number == version.number}
    homes = sorted(variants | types)
    body = (
        "ERROR, SKIP, NULL = Lenient.ERROR, Lenient.SKIP, Lenient.NULL\n\n"
        "LENIENT: dict[type[Wire], dict[str, Lenient]] = {\n"
        + "\n".join(entries)
        + "".join(f"\n    **{home}.LENIENT," for home in homes)
        + "\n}\n"
        '"""`_meta` is lenient wherever it is (EXT-04) and not listed."""\n\n'
        "OPEN: tuple[Open, ...] = (\n" + "\n".join(unions) + "\n)\n"
        '"""The unions that keep an unknown tag, with what an unknown variant needs."""\n\n'
        "OPEN_STRUCTS: dict[type[Wire], str] = {\n"
        + "\n".join(states)
        + "".join(f"\n    **{home}.OPEN_STRUCTS," for home in sorted(variants))
        + "\n}\n"
        '"""Structs that are a union themselves: another value of the field makes the object `Unknown`."""\n'
    )
    package = f"antiphon.schema.v{version.number}"
    typing = "from typing import Any\n\n" if " Any" in body else ""
    imported = (
        typing + f"from {package} import {', '.join(sorted({*used, *homes}))}\n"
        "from antiphon.schema.wire import Lenient, Open, Wire"
    )
    return module(
        f"Where a receiver of ACP v{version.number} forgives, and which unions are open.", body, imported
    )


def _open(version: Version, union: UnionType) -> str:
    members = ", ".join(f"{version.types[name].page}.{name}" for name, _, _ in union.members)
    parts = [f'"{union.tag_field}"', f"({members},)"]
    if union.needs:
        parts.append("needs={" + ", ".join(f'"{key}": {kind}' for key, kind in union.needs) + "}")
    if union.one_of:
        parts.append("one_of=(" + ", ".join(f'"{name}"' for name in union.one_of) + ")")
        parts.append(f"exactly={union.exactly}")
    return f"Open({', '.join(parts)})"


def stability(version: Version) -> str:
    def names(items: set[str]) -> str:
        return ", ".join(f'"{item}"' for item in sorted(items))

    def pairs(items: set[tuple[str, str]]) -> str:
        return ", ".join(f'("{first}", "{second}")' for first, second in sorted(items))

    extra = {name for name, _, _ in decisions.EXTRA_METHODS.get(version.number, ())}
    missing = {row.name for row in version.methods if not row.stable} - extra
    body = (
        f"METHODS = frozenset({{{names(missing)}}})\n\n"
        f"DEFINITIONS = frozenset({{{names(version.unstable_definitions)}}})\n"
        '"""Names as the schema has them."""\n\n'
        f"FIELDS = frozenset({{{pairs(version.unstable_fields)}}})\n"
        '"""Fields of stable definitions: definition, wire name."""\n\n'
        f"VARIANTS = frozenset({{{pairs(version.unstable_variants)}}})\n"
        '"""Tags and values of stable unions and enums: definition, value."""\n'
    )
    return f'{HEADER}"""What only the unstable schema of ACP v{version.number} has."""\n\n{body}'
