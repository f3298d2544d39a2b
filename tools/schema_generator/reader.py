"""Reads the definitions of one version into the model."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from . import decisions, unions
from .annotations import Annotation, annotation, branches_of, lenient, reference
from .methods import read_methods
from .model import AliasType, EnumType, Field, StructType, Version, snake
from .pinned import Node

PAGE_OF = {name: page for page, (_, names) in decisions.PAGES.items() for name in names.split()}
KEYS_THAT_RENAME = {"_meta": "meta"}


class Reader:
    def __init__(self, number: int, stable: dict[str, Node], unstable: dict[str, Node]) -> None:
        self.number = number
        self.stable = stable
        self.definitions = unstable
        self.version = Version(number)
        self.shapes = {name: self._shape(node) for name, node in unstable.items()}
        self.tagged_uses, self.plain_uses = self._uses()

    def read(self) -> Version:
        for name, node in self.definitions.items():
            if name not in self.stable:
                self.version.unstable_definitions.add(name)
            if name in decisions.ENVELOPES or name in decisions.MERGED:
                self.note_unstable_fields(name, node)
                continue
            if name not in PAGE_OF:
                raise ValueError(f"v{self.number}: {name} has no page")
            self.note_unstable_fields(name, node)
            self._read(name, node)
        self._check_pages()
        self.version.methods = read_methods(self)
        return self.version

    def page(self, name: str) -> str:
        return PAGE_OF[name]

    def is_own_variant(self, name: str) -> bool:
        """Whether a definition is used as exactly one tagged variant and nothing else."""
        return len(self.tagged_uses[name]) == 1 and not self.plain_uses[name]

    def annotation(self, node: Node) -> Annotation:
        return annotation(node, self.shapes)

    def doc(self, name: str) -> str:
        """One line for the reader of the generated type: what it is for, and whether it is stable."""
        node = self.definitions.get(name, {})
        parts = []
        if "x-method" in node:
            part = {"Request": "Params", "Notification": "Params"}.get(suffix(name), "Result")
            parts.append(f"{part} of `{node['x-method']}`.")
        if name in self.version.unstable_definitions:
            parts.append("Unstable.")
        return " ".join(parts)

    def note_unstable_fields(self, name: str, node: Node) -> None:
        if name in self.stable and name not in decisions.ENVELOPES:
            known = self.stable[name].get("properties", {})
            for wire in node.get("properties", {}):
                if wire not in known:
                    self.version.unstable_fields.add((name, wire))

    def fields(self, owner: str, properties: Node, required: list[str]) -> tuple[Field, ...]:
        made = []
        for wire, node in properties.items():
            made.append(self.field(owner, wire, node, required=wire in required))
        made += self.extra_fields(owner)
        return tuple(sorted(made, key=lambda item: item.name == "meta"))

    def extra_fields(self, owner: str) -> list[Field]:
        extra = decisions.EXTRA_FIELDS.get((self.number, owner), ())
        return [Field(wire, name, text, "None", ("ERROR",)) for wire, name, text in extra]

    def field(self, owner: str, wire: str, node: Node, *, required: bool) -> Field:
        name = KEYS_THAT_RENAME.get(wire, snake(wire))
        found = self.annotation(node)
        text, default = found.full, None
        patched = decisions.PATCHES[self.number].get(owner)
        if required:
            pass
        elif found.shape == "any":
            text, default = found.text, "UNSET"
        elif found.nullable and patched in (decisions.ALL, wire):
            text, default = f"{found.text} | UnsetType | None", "UNSET"
        elif found.nullable:
            default = "None"
        elif "default" in node:
            default = self._default(found, node["default"])
        elif found.shape in ("array", "object"):
            default = "[]" if found.shape == "array" else "{}"
        else:
            text, default = f"{text} | UnsetType", "UNSET"
        marks = lenient(node)
        if required and "ERROR" in marks and found.shape != "array":
            raise ValueError(f"{owner}.{wire}: a required lenient field needs an empty value to fall back to")
        return Field(wire, name, text, default, marks, (owner, wire) in self.version.unstable_fields)

    def _default(self, found: Annotation, default: Any) -> str:
        if isinstance(default, dict):
            return "{}" if found.shape == "object" else f"{found.text}()"
        if isinstance(default, str):
            return f"{found.text}.{default.upper()}"
        return repr(default)

    def _shape(self, node: Node) -> str:
        if not {key for key in node if not key.startswith("x-")}:
            return "any"
        branches = node.get("anyOf", ())
        return "any" if "properties" not in node and any(not branch for branch in branches) else "value"

    def _read(self, name: str, node: Node) -> None:
        page, doc = self.page(name), self.doc(name)
        branches = branches_of(node)
        target = reference(node)
        if name == "StateUpdate":
            unions.read_state(self, node)
        elif self.shapes[name] == "any":
            self.version.add(AliasType(name, page, doc, "Any"))
        elif target is not None:
            self.version.add(AliasType(name, page, doc, target))
        elif is_enum(branches):
            self._read_enum(name, branches)
        elif any(unions.tag_of(branch) for branch in branches):
            unions.read_tagged(self, name, node)
        elif branches and "properties" not in node:
            unions.read_untagged(self, name, branches)
        elif node.get("type") == "object":
            if not self.is_own_variant(name):
                self.read_struct(name, node)
        elif node.get("type") == "string" and name not in decisions.PLAIN_STRINGS:
            self.version.add(AliasType(name, page, doc, "str", new_type=True))
        else:
            self.version.add(AliasType(name, page, doc, self.annotation(node).full))

    def read_struct(
        self,
        name: str,
        node: Node,
        *,
        tag: tuple[str, str] | None = None,
        also: tuple[Field, ...] = (),
        doc: str = "",
    ) -> None:
        own = self.fields(name, node.get("properties", {}), node.get("required", []))
        alternatives, one_of, exactly = unions.alternatives(self, node)
        taken = {item.name for item in own}
        fields = (*own, *alternatives, *(item for item in also if item.name not in taken))
        fields = tuple(sorted(fields, key=lambda item: item.name == "meta"))
        self.version.add(
            StructType(
                name, self.page(name), " ".join(filter(None, (doc, self.doc(name)))), fields,
                tag=tag, one_of=one_of, exactly=exactly,
            )
        )  # fmt: skip

    def _read_enum(self, name: str, branches: list[Node]) -> None:
        known = {branch.get("const") for branch in branches_of(self.stable.get(name, {}))}
        constants = [branch["const"] for branch in branches if "const" in branch]
        for value in constants:
            if name in self.stable and value not in known:
                self.version.unstable_variants.add((name, value))
        open_ = len(constants) < len(branches)
        if isinstance(constants[0], int):
            kind = "OpenIntEnum"
            members = [(decisions.ERROR_CODES[value], value, False) for value in constants]
        else:
            kind = "OpenEnum" if open_ else "StrEnum"
            members = [
                (member_name(value), value, (name, value) in self.version.unstable_variants)
                for value in constants
            ]
        self.version.add(EnumType(name, self.page(name), self.doc(name), tuple(members), kind))

    def _uses(self) -> tuple[dict[str, list[tuple[str, str]]], dict[str, int]]:
        tagged: dict[str, list[tuple[str, str]]] = defaultdict(list)
        plain: dict[str, int] = defaultdict(int)

        def walk(owner: str, node: Any) -> None:
            if isinstance(node, list):
                for item in node:
                    walk(owner, item)
            elif isinstance(node, dict):
                tag, target = unions.tag_of(node), reference(node)
                if tag and target:
                    tagged[target].append((owner, tag[1]))
                    return
                if "$ref" in node:
                    plain[reference(node) or ""] += 1
                for value in node.values():
                    walk(owner, value)

        for name, node in self.definitions.items():
            if name not in decisions.ENVELOPES and name not in decisions.MERGED:
                walk(name, node)
        return tagged, plain

    def _check_pages(self) -> None:
        order = list(decisions.PAGES)
        for item in self.version.types.values():
            for name in item.names():
                other = self.version.types.get(name)
                if other is not None and order.index(other.page) > order.index(item.page):
                    raise ValueError(f"{item.page}.{item.name} needs {name} of the later page {other.page}")


def is_enum(branches: list[Node]) -> bool:
    """Constants, with or without "and any other" beside them."""
    return any("const" in branch for branch in branches) and all(
        branch.get("type") in ("string", "integer") for branch in branches
    )


def suffix(name: str) -> str:
    return next((end for end in ("Request", "Response", "Notification") if name.endswith(end)), "")


def member_name(value: str) -> str:
    return value.replace("-", "_").upper()
