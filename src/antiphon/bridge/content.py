"""Content blocks in both directions: v1 and v2 differ in open types, in icons and in two ranges (CONT)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from types import ModuleType
from typing import Any, TypeVar

from msgspec import Struct, structs

from antiphon.bridge import losses
from antiphon.bridge.losses import Ledger, mark
from antiphon.schema import v1, v2
from antiphon.schema.wire import Unknown

T = TypeVar("T", bound=Struct)
_ROLES = {v2.Role.ASSISTANT: v1.Role.ASSISTANT, v2.Role.USER: v1.Role.USER}


def recast(value: Struct, type: type[T], **changes: Any) -> T:
    """Return a struct of one version as its twin of the other, which has fields of the same names. `changes`
    are the fields whose types differ."""
    return type(**{**structs.asdict(value), **changes})


def twin(value: Any, schema: ModuleType) -> Any:
    """Return a value as the other version, `v1` or `v2`, has it, with everything in it. The structs and enums
    in it have the same names and fields in both."""
    if isinstance(value, list):
        return [twin(each, schema) for each in value]
    if isinstance(value, Struct):
        fields = {name: twin(getattr(value, name), schema) for name in value.__struct_fields__}
        return getattr(schema, type(value).__name__)(**fields)
    return getattr(schema, type(value).__name__)(value) if isinstance(value, Enum) else value


class ContentDown:
    """v2 blocks as v1 blocks. A block of unknown type becomes a text that names the type (24.4)."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def block(self, block: v2.ContentBlock) -> v1.ContentBlock:
        if isinstance(block, dict):
            self._ledger.lose(losses.CONTENT_TYPE, block)
            return placeholder(block)
        annotations = None if block.annotations is None else self._annotations(block.annotations)
        if isinstance(block, v2.TextContent):
            return v1.TextContent(text=block.text, annotations=annotations, meta=block.meta)
        match block:
            case v2.ImageContent():
                return recast(block, v1.ImageContent, annotations=annotations)
            case v2.AudioContent():
                return recast(block, v1.AudioContent, annotations=annotations)
            case v2.EmbeddedResource():
                resource = twin(block.resource, v1)
                return recast(block, v1.EmbeddedResource, annotations=annotations, resource=resource)
        fields = {**structs.asdict(block), "annotations": annotations}
        if fields.pop("icons") is not None:
            self._ledger.lose(losses.CONTENT_ICONS, block)
            fields["meta"] = mark(block.meta, {"icons": block.icons})
        return v1.ResourceLink(**fields)

    def blocks(self, blocks: Iterable[v2.ContentBlock]) -> list[v1.ContentBlock]:
        return [self.block(block) for block in blocks]

    def _annotations(self, given: v2.Annotations) -> v1.Annotations:
        audience, meta = None, given.meta
        if given.audience is not None:
            audience = [_ROLES[role] for role in given.audience if role in _ROLES]
            if len(audience) < len(given.audience):
                self._ledger.lose(losses.CONTENT_AUDIENCE, given)
                meta = mark(meta, {"audience": given.audience})
        return recast(given, v1.Annotations, audience=audience, meta=meta)


class ContentUp:
    """v1 blocks as v2 blocks."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def block(self, block: v1.ContentBlock | Unknown) -> v2.ContentBlock:
        if isinstance(block, Unknown):
            return block  # of a type that v1 does not have: an agent sent it all the same
        annotations = None if block.annotations is None else self._annotations(block.annotations)
        if isinstance(block, v1.TextContent):
            return v2.TextContent(text=block.text, annotations=annotations, meta=block.meta)
        match block:
            case v1.ImageContent():
                return recast(block, v2.ImageContent, annotations=annotations)
            case v1.AudioContent():
                return recast(block, v2.AudioContent, annotations=annotations)
            case v1.EmbeddedResource():
                resource = twin(block.resource, v2)
                return recast(block, v2.EmbeddedResource, annotations=annotations, resource=resource)
        size, meta = block.size, block.meta
        if size is not None and size < 0:  # CONT-04
            self._ledger.lose(losses.RESOURCE_SIZE, block)
            size, meta = None, mark(meta, {"size": size})
        return recast(block, v2.ResourceLink, annotations=annotations, size=size, meta=meta)

    def blocks(self, blocks: Iterable[v1.ContentBlock]) -> list[v2.ContentBlock]:
        return [self.block(block) for block in blocks]

    def _annotations(self, given: v1.Annotations) -> v2.Annotations:
        priority, meta = given.priority, given.meta
        if priority is not None and not 0 <= priority <= 1:  # CONT-04
            self._ledger.lose(losses.ANNOTATION_PRIORITY, given)
            priority, meta = None, mark(meta, {"priority": priority})
        audience = None if given.audience is None else [v2.Role(role) for role in given.audience]
        return recast(given, v2.Annotations, audience=audience, priority=priority, meta=meta)


def placeholder(raw: dict[str, Any]) -> v1.TextContent:
    """Return a text for something of unknown type; all of it is in the `_meta`."""
    return v1.TextContent(text=f"[{raw.get('type', 'unknown')}]", meta=mark(None, raw))
