"""Reads what JSON Schema says with `anyOf` and `oneOf`: tagged unions, choices, alternatives, states."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from . import decisions
from .annotations import branches_of, reference
from .model import AliasType, ChoiceType, EnumType, Field, StructType, UnionType, camel
from .pinned import Node

if TYPE_CHECKING:
    from .reader import Reader


def tag_of(branch: Node) -> tuple[str, str] | None:
    """The tag field and tag of a branch that has them."""
    for wire, node in branch.get("properties", {}).items():
        if (
            isinstance(node, dict)
            and isinstance(node.get("const"), str)
            and wire in branch.get("required", ())
        ):
            return wire, node["const"]
    return None


def wire_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def alternatives(reader: Reader, node: Node) -> tuple[tuple[Field, ...], tuple[str, ...], bool]:
    """Fields of objects of which one is to be embedded, the names that tell them apart, and whether
    exactly one may be given."""
    targets = [reference(branch) for branch in branches_of(node)]
    if not targets or None in targets:
        return (), (), True
    fields, names = [], []
    for target in filter(None, targets):
        definition = reader.definitions[target]
        for item in reader.fields(target, definition["properties"], definition["required"]):
            if item.default is None:
                names.append(item.name)
                item = replace(item, annotation=f"{item.annotation} | UnsetType", default="UNSET")
            fields.append(item)
    return tuple(fields), tuple(names), "oneOf" in node


def read_tagged(reader: Reader, name: str, node: Node) -> None:
    """A union told apart by a tag; where some branch has none, a choice."""
    branches = branches_of(node)
    base = reader.fields(name, node.get("properties", {}), node.get("required", []))
    tags = [tag_of(branch) for branch in branches]
    (tag_field,) = {tag[0] for tag in tags if tag}
    fallback = next((branch for branch in branches if "not" in branch), None)
    known = {tag_of(branch) for branch in branches_of(reader.stable.get(name, {}))}
    members: list[tuple[str, str, bool]] = []
    untagged: list[str] = []
    for branch, tag in zip(branches, tags, strict=True):
        if branch is fallback:
            continue
        if tag is None:
            untagged.append(_untagged_member(reader, name, branch, base))
            continue
        unstable = name in reader.stable and tag not in known
        if unstable:
            reader.version.unstable_variants.add((name, tag[1]))
        members.append((_tagged_member(reader, name, branch, tag, base), tag[1], unstable))
    page, doc = reader.page(name), reader.doc(name)
    open_ = fallback is not None or name in decisions.ALWAYS_OPEN
    if untagged:
        tagged = tuple((tag, struct, unstable) for struct, tag, unstable in members)
        reader.version.add(ChoiceType(name, page, doc, tag_field, tagged, tuple(untagged), open_))
        return
    _, one_of, exactly = alternatives(reader, fallback or {})
    _, extra = decisions.EXTRA_VARIANTS.get((reader.number, name), ("", ()))
    reader.version.add(
        UnionType(
            name, page, doc, tag_field, tuple(members), open_, extra,
            needs=_needs(reader, node, fallback or {}, tag_field),
            one_of=tuple(wire_name(item) for item in one_of), exactly=exactly,
            guarded=len(members) == 1 and name not in decisions.SOLE_VARIANT_WITHOUT_TAG,
        )
    )  # fmt: skip


def _needs(reader: Reader, node: Node, fallback: Node, tag_field: str) -> tuple[tuple[str, str], ...]:
    needs = {}
    for part in (node, fallback):
        for wire in part.get("required", ()):
            if wire != tag_field:
                found = reader.annotation(part["properties"][wire])
                needs[wire] = "Any" if found.shape == "any" else "str"
    return tuple(needs.items())


def _tagged_member(
    reader: Reader, union: str, branch: Node, tag: tuple[str, str], base: tuple[Field, ...]
) -> str:
    target = reference(branch)
    doc = f"`{tag[0]}: {tag[1]}` of `{union}`."
    if target is not None and reader.is_own_variant(target):
        reader.read_struct(target, reader.definitions[target], tag=tag, also=base, doc=doc)
        return target
    name = decisions.VARIANT_NAMES.get((union, tag[1]), camel(tag[1]))
    if target is not None:
        taken = reader.definitions[target].get("properties", {})
        own = tuple(item for item in base if item.wire not in taken)
        page = reader.page(target)
        reader.version.add(StructType(name, page, doc, own, base=target, tag=tag))
    else:
        _inline(reader, union, name, branch, base, tag=tag, doc=doc)
    return name


def _untagged_member(reader: Reader, union: str, branch: Node, base: tuple[Field, ...]) -> str:
    target = reference(branch)
    if target is not None:
        return target
    name = decisions.UNTAGGED_NAMES[union, next(iter(branch["properties"]))]
    _inline(reader, union, name, branch, base, tag=None, doc=f"A member of `{union}`.")
    return name


def _inline(
    reader: Reader,
    union: str,
    name: str,
    branch: Node,
    base: tuple[Field, ...],
    *,
    tag: tuple[str, str] | None,
    doc: str,
) -> None:
    properties = {wire: node for wire, node in branch["properties"].items() if tag is None or wire != tag[0]}
    fields = (*reader.fields(name, properties, branch.get("required", [])), *base)
    fields = tuple(sorted(fields, key=lambda item: item.name == "meta"))
    reader.version.add(StructType(name, reader.page(union), doc, fields, tag=tag))


def read_untagged(reader: Reader, name: str, branches: list[Node]) -> None:
    """Alternatives without a tag: a plain union of scalars, or a choice."""
    page, doc = reader.page(name), reader.doc(name)
    if all(is_scalar(branch) for branch in branches):
        parts = ["None" if item == {"type": "null"} else reader.annotation(item).full for item in branches]
        reader.version.add(AliasType(name, page, doc, " | ".join(sorted(parts, key="None".__eq__))))
        return
    members = []
    for branch in branches:
        if branch.get("type") == "array":
            members.append(reader.annotation(branch).full)
        else:
            members.append(_untagged_member(reader, name, branch, ()))
    if len(members) == 1:
        reader.version.add(AliasType(name, page, doc, members[0]))
    else:
        reader.version.add(ChoiceType(name, page, doc, None, (), tuple(members), open=False))


def is_scalar(branch: Node) -> bool:
    if branch.get("type") == "array":
        return bool(branch["items"] == {"type": "string"})
    return branch.get("type") in ("string", "integer", "number", "boolean", "null")


def read_state(reader: Reader, node: Node) -> None:
    """`StateUpdate`, whose variants become one struct: msgspec allows no second tag in a session update."""
    name, page = "StateUpdate", reader.page("StateUpdate")
    known = {tag_of(branch) for branch in reader.stable.get(name, {}).get("anyOf", ())}
    states: list[tuple[str, str | int, bool]] = []
    fields: dict[str, Field] = {}
    for branch in node["anyOf"]:
        tag, target = tag_of(branch), reference(branch)
        if tag is None or target is None:
            continue
        unstable = name in reader.stable and tag not in known
        if unstable:
            reader.version.unstable_variants.add((name, tag[1]))
        states.append((tag[1].upper(), tag[1], unstable))
        definition = reader.definitions[target]
        found = list(reader.fields(target, definition["properties"], definition.get("required", [])))
        for inner in definition.get("anyOf", ()):
            if reference(inner):
                found += _embedded(reader, reference(inner) or "")
        for item in found:
            fields.setdefault(item.name, item)
        if target == "IdleStateUpdate":
            _read_stop_reasons(reader, definition)
    stop = decisions.STOP_REASON[reader.number]
    fields["stop_reason"] = replace(fields["stop_reason"], annotation=f"{stop} | None")
    order = ("stop_reason", "error", "usage", "background", "meta")
    if set(order) < fields.keys():
        raise ValueError(f"StateUpdate has new fields: {sorted(fields)}")
    *told, meta = (fields[item] for item in order if item in fields)
    rest = (*told, *reader.extra_fields(name), meta)
    reader.version.add(EnumType("State", page, "The states a session can be in.", tuple(states), "StrEnum"))
    state = Field("state", "state", "State", None)
    doc = "The state of a session, all variants in one; an unknown state makes it `Unknown`."
    reader.version.add(
        StructType(
            name, page, " ".join(filter(None, (doc, reader.doc(name)))), (state, *rest), open_field="state"
        )
    )


def _embedded(reader: Reader, target: str) -> list[Field]:
    definition = reader.definitions[target]
    return list(reader.fields(target, definition["properties"], definition.get("required", [])))


def _read_stop_reasons(reader: Reader, definition: Node) -> None:
    tags = [tag_of(branch) for branch in definition["anyOf"]]
    members = tuple((tag[1].upper(), tag[1], False) for tag in tags if tag)
    name = decisions.STOP_REASON[reader.number]
    page = reader.page("StateUpdate")
    doc = "Why the session went idle; absent means not reported (PROMPT-V2-14)."
    reader.version.add(EnumType(name, page, doc, members, "OpenEnum"))
