"""Prints counts that describe the structure of the source tree: `python -m tools.shape [SRC]`.

The counts cover our own code; the types under `schema/v1` and `schema/v2` are generated and left out.
`tests/project/test_shape.py` bounds each count.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
SERVING = ("server", "agent", "client", "hub", "live")
"""The packages whose inheritance and import cycles are counted."""
GENERATED = re.compile(r"antiphon\.schema\.v\d(\.|$)")
NOUNS = {"testing", "recording", "routing", "logging", "string"}
"""Module names that end in -ing and are nouns of the field."""
APART = {"Protocol", "Enum", "StrEnum", "IntEnum", "Flag", "IntFlag", "NamedTuple", "TypedDict", "Generic"}
"""Bases of classes that are no part of a hierarchy of behaviour."""
MOST_PARAMETERS = 8


@dataclass(frozen=True)
class Module:
    """One module of the tree: its dotted name and its syntax."""

    name: str
    tree: ast.Module
    lines: int
    folder: bool
    """Whether this is the `__init__` of a package."""

    @property
    def package(self) -> str:
        """Return the package that holds the module."""
        return self.name if self.folder else self.name.rpartition(".")[0]


@dataclass
class Shape:
    """The counts of one source tree."""

    lines: int = 0
    modules: dict[str, int] = field(default_factory=dict)
    """Modules of each package, its subpackages aside."""
    gerunds: list[str] = field(default_factory=list)
    cycles: dict[str, list[str]] = field(default_factory=dict)
    """The largest import cycle of each serving package that has one, `TYPE_CHECKING` imports included."""
    chain: list[str] = field(default_factory=list)
    """The deepest inheritance chain of our own classes in the serving packages, the class first."""
    long_signatures: list[str] = field(default_factory=list)
    """Functions with more than 8 parameters."""
    public_long_signatures: list[str] = field(default_factory=list)
    """Those of them that a package exports, or that are methods of an exported class."""
    members: dict[str, int] = field(default_factory=dict)
    """Public members of each public class."""


def read_modules(source: Path) -> dict[str, Module]:
    """Read every module below `source/antiphon` that is not generated."""
    found = {}
    for path in sorted((source / "antiphon").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        folder = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if folder else parts)
        if not GENERATED.match(name):
            text = path.read_text()
            found[name] = Module(name, ast.parse(text), len(text.splitlines()), folder)
    return found


def measure(source: Path = SOURCE) -> Shape:
    """Count what describes the tree below `source`."""
    modules = read_modules(source)
    shape = Shape(lines=sum(module.lines for module in modules.values()))
    for module in modules.values():
        if not module.folder:
            shape.modules[module.package] = shape.modules.get(module.package, 0) + 1
        last = module.name.rpartition(".")[2]
        if last.endswith("ing") and last not in NOUNS:
            shape.gerunds.append(module.name)
        shape.long_signatures += _long_signatures(module)
    imports = {name: set(_imports(module, modules)) for name, module in modules.items()}
    for package in SERVING:
        inside = {name for name in modules if name.startswith(f"antiphon.{package}.")}
        largest = max(_components(inside, imports), key=len, default=[])
        if len(largest) > 1:
            shape.cycles[package] = sorted(largest)
    shape.chain = _deepest_chain(modules)
    public = public_names(modules)
    shape.members = {name: count for name, count in _member_counts(modules).items() if name in public}
    shape.public_long_signatures = [
        name for name in shape.long_signatures if name in public or name.rpartition(".")[0] in public
    ]
    return shape


def _imports(module: Module, known: Iterable[str]) -> Iterator[str]:
    """Yield the modules of the tree that a module imports anywhere in its text."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.package.split(".")[: len(module.package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for each in node.names:
                full = f"{base}.{each.name}"
                yield full if full in known else base


def _components(names: set[str], edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of the graph (Kosaraju's two passes)."""
    backward: dict[str, set[str]] = defaultdict(set)
    for name in names:
        for target in edges[name] & names:
            backward[target].add(name)
    order: list[str] = []
    seen: set[str] = set()
    for root in sorted(names):
        if root not in seen:
            order += _finished(root, {name: edges[name] & names for name in names}, seen)
    seen = set()
    return [_finished(root, backward, seen) for root in reversed(order) if root not in seen]


def _finished(root: str, edges: dict[str, set[str]], seen: set[str]) -> list[str]:
    """Walk depth first from the root and return the new names in the order in which they are finished."""
    done: list[str] = []
    path = [(root, iter(sorted(edges.get(root, ()))))]
    seen.add(root)
    while path:
        name, rest = path[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            done.append(name)
            path.pop()
        else:
            seen.add(following)
            path.append((following, iter(sorted(edges.get(following, ())))))
    return done


def _classes(modules: dict[str, Module]) -> Iterator[tuple[str, ast.ClassDef]]:
    for module in modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                yield module.name, node


def _base_names(node: ast.ClassDef) -> list[str]:
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return [ast.unparse(base).rpartition(".")[2] for base in bases]


def _deepest_chain(modules: dict[str, Module]) -> list[str]:
    """Return the longest chain of classes of ours, each the base of the one before."""
    bases: dict[str, list[str]] = {}
    for _, node in _classes(modules):
        bases.setdefault(node.name, _base_names(node))

    def chain(name: str) -> list[str]:
        longest = max(
            (chain(base) for base in bases[name] if base in bases and base != name), key=len, default=[]
        )
        return [name, *longest]

    def apart(name: str) -> bool:
        return name in APART or name.endswith(("Error", "Exception")) or name in EXCEPTIONS

    def counts(name: str) -> bool:
        roots = {name, *(base for each in chain(name) for base in bases.get(each, ()))}
        return not any(apart(root) for root in roots)

    serving = tuple(f"antiphon.{package}." for package in SERVING)
    chains = [
        chain(node.name)
        for module, node in _classes(modules)
        if module.startswith(serving) and counts(node.name)
    ]
    return max(chains, key=len, default=[])


EXCEPTIONS = {"Exception", "BaseException", "AntiphonError", "LocalError", "RemoteError", "RequestError"}


def _long_signatures(module: Module) -> Iterator[str]:
    def walk(body: list[ast.stmt], prefix: str) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from walk(node.body, f"{prefix}.{node.name}")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
                if len([name for name in names if name not in ("self", "cls")]) > MOST_PARAMETERS:
                    yield f"{prefix}.{node.name}"
                yield from walk(node.body, f"{prefix}.{node.name}.<locals>")

    yield from walk(module.tree.body, module.name)


def public_names(modules: dict[str, Module]) -> set[str]:
    """Return the classes and functions that an `__all__` names, as `module.name`."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    defined: dict[str, list[str]] = defaultdict(list)
    for module in modules.values():
        for node in module.tree.body:
            if isinstance(node, kinds):
                defined[node.name].append(module.name)
    return {
        f"{place}.{name}"
        for package in modules.values()
        for name in _exported(package)
        for place in defined[name]
        if place.startswith(package.name)
    }


def _exported(package: Module) -> set[str]:
    return {
        each.value
        for node in package.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and ast.unparse(node).startswith("__all__")
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def _member_counts(modules: dict[str, Module]) -> dict[str, int]:
    """Count the public members of every class, with those that it inherits from classes of ours."""
    own: dict[str, set[str]] = {}
    bases: dict[str, list[str]] = {}
    for _, node in _classes(modules):
        own.setdefault(node.name, set(_members(node)))
        bases.setdefault(node.name, _base_names(node))

    def members(name: str) -> set[str]:
        return own[name].union(*(members(base) for base in bases[name] if base in own and base != name))

    return {f"{module}.{node.name}": len(members(node.name)) for module, node in _classes(modules)}


def _members(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        names: list[str] = []
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [each.name]
        elif isinstance(each, ast.AnnAssign):
            names = [ast.unparse(each.target)]
        elif isinstance(each, ast.Assign):
            names = [ast.unparse(target) for target in each.targets]
        yield from (name for name in names if not name.startswith("_"))


def report(shape: Shape) -> str:
    """Return the counts as lines of text."""
    fullest = sorted(shape.modules.items(), key=lambda each: -each[1])[:12]
    widest = sorted(shape.members.items(), key=lambda each: -each[1])[:12]
    rows = [
        ("lines without generated code", f"{shape.lines:,}"),
        ("modules", str(sum(shape.modules.values()))),
        ("modules per package", ", ".join(f"{name} {count}" for name, count in fullest)),
        ("gerund modules", f"{len(shape.gerunds)}: {' '.join(shape.gerunds)}"),
        ("deepest inheritance", f"{len(shape.chain)}: {' < '.join(shape.chain)}"),
        ("import cycles", ", ".join(f"{name} {len(each)}" for name, each in shape.cycles.items()) or "none"),
        ("more than 8 parameters", f"{len(shape.long_signatures)}: {' '.join(shape.long_signatures)}"),
        (
            "… of them public",
            f"{len(shape.public_long_signatures)}: {' '.join(shape.public_long_signatures)}",
        ),
        ("public members", ", ".join(f"{name} {count}" for name, count in widest)),
    ]
    return "".join(f"{name}: {value}\n" for name, value in rows)


if __name__ == "__main__":
    sys.stdout.write(report(measure(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)))
