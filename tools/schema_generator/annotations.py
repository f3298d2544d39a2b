"""A schema node as a Python annotation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .pinned import Node

MARKS = {
    "x-deserialize-default-on-error": "ERROR",
    "x-deserialize-skip-invalid-items": "SKIP",
    "x-deserialize-default-on-null": "NULL",
}
INTEGERS = {
    # 64-bit bounds are not for msgspec to check: its constraints end at int64.
    "int64": {},
    "uint64": {"ge": 0},
    "int32": {"ge": -(2**31), "le": 2**31 - 1},
    "uint32": {"ge": 0, "le": 2**32 - 1},
    "uint16": {"ge": 0, "le": 2**16 - 1},
}
IGNORED = {"format", "contentEncoding", "default", *MARKS}


@dataclass(frozen=True)
class Annotation:
    text: str
    nullable: bool = False
    shape: str = "value"
    """`array`, `object`, `any`, or `value`."""

    @property
    def full(self) -> str:
        return f"{self.text} | None" if self.nullable else self.text


def lenient(node: Node) -> tuple[str, ...]:
    return tuple(flag for mark, flag in MARKS.items() if node.get(mark))


def branches_of(node: Node) -> list[Node]:
    found: list[Node] = node.get("anyOf") or node.get("oneOf") or []
    return found


def reference(node: Node) -> str | None:
    """The definition that a node is, where it is nothing else."""
    if "$ref" in node:
        return str(node["$ref"]).rpartition("/")[2]
    if isinstance(node.get("allOf"), list) and len(node["allOf"]) == 1:
        return reference(node["allOf"][0])
    return None


def annotation(node: Node, any_names: Mapping[str, str]) -> Annotation:
    """The annotation of a node; `any_names` are definitions that admit every value, and other aliases."""
    name = reference(node)
    if name is not None:
        return Annotation(name, shape=any_names.get(name, "value"))
    rest = {key: value for key, value in node.items() if key not in IGNORED}
    if not rest:
        return Annotation("Any", shape="any")
    branches = branches_of(rest)
    if branches:
        if any(not branch for branch in branches):
            return Annotation("Any", shape="any")
        nullable = {"type": "null"} in branches
        inner = [annotation(branch, any_names) for branch in branches if branch != {"type": "null"}]
        if len(inner) == 1:
            return replace(inner[0], nullable=nullable)
        return Annotation(" | ".join(item.full for item in inner), nullable)
    kinds = rest["type"] if isinstance(rest["type"], list) else [rest["type"]]
    nullable = "null" in kinds
    (kind,) = [kind for kind in kinds if kind != "null"]
    return replace(_of_type(kind, node, any_names), nullable=nullable)


def _of_type(kind: str, node: Node, any_names: Mapping[str, str]) -> Annotation:
    if kind == "array":
        item = annotation(node["items"], any_names).full
        return Annotation(constrained(f"list[{item}]", {"min_length": node.get("minItems")}), shape="array")
    if kind == "object":
        values = node.get("additionalProperties", True)
        item = "Any" if values is True else annotation(values, any_names).full
        return Annotation(f"dict[str, {item}]", shape="object")
    if kind == "integer":
        bounds = dict(INTEGERS[node["format"]])
        for key, bound in (("minimum", "ge"), ("maximum", "le")):
            if key in node:
                bounds[bound] = node[key]
        return Annotation(constrained("int", bounds))
    if kind == "number":
        return Annotation(constrained("float", {"ge": node.get("minimum"), "le": node.get("maximum")}))
    if kind == "string":
        return Annotation(constrained("str", {"min_length": node.get("minLength")}))
    if kind == "boolean":
        return Annotation("bool")
    raise ValueError(f"no annotation for {node!r}")


def constrained(text: str, bounds: Mapping[str, int | None]) -> str:
    given = ", ".join(f"{key}={value}" for key, value in bounds.items() if value is not None)
    return f"Annotated[{text}, Meta({given})]" if given else text
