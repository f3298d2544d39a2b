"""Tool calls: patched by id, `null` resets, content chunks append."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UNSET

from antiphon.engine.content import patch_meta
from antiphon.engine.transcript import about_in
from antiphon.schema import v2

AnyToolCallUpdate: TypeAlias = v2.ToolCallUpdate | v2.SessionToolCallUpdate

FINAL = frozenset(
    {v2.ToolCallStatus.COMPLETED, v2.ToolCallStatus.FAILED, v2.ToolCallStatus.CANCELLED}
)  # TOOL-V2-08
_SCALARS = ("name", "title", "kind", "status", "raw_input", "raw_output", "capabilities")
_RESETS: dict[str, Any] = {"kind": v2.ToolKind.OTHER, "status": v2.ToolCallStatus.PENDING}  # TOOL-V2-02


class ToolCall:
    """One tool call; a new one has the defaults of TOOL-V2-03."""

    __slots__ = (
        "capabilities", "content", "id", "key", "kind", "locations", "meta", "name", "position", "raw_input",
        "raw_output", "status", "title",
    )  # fmt: skip

    def __init__(self, id: v2.ToolCallId, *, position: int) -> None:
        self.id = id
        self.key = f"tool/{id}"
        self.position = position
        self.name: str | None = None
        self.title: str | None = None
        self.kind = v2.ToolKind.OTHER
        self.status = v2.ToolCallStatus.PENDING
        self.content: list[v2.ToolCallContent] = []
        self.locations: list[v2.ToolCallLocation] = []
        self.raw_input: Any = None
        self.raw_output: Any = None
        self.capabilities: v2.ToolCallCapabilities | None = None
        self.meta: dict[str, Any] = {}

    @property
    def final(self) -> bool:
        """Whether it has ended; an unknown status is still in progress (TOOL-V2-07)."""
        return self.status in FINAL

    @property
    def about(self) -> str | None:
        """The id of the message that triggered it, if the agent names one."""
        return about_in(self.meta)

    def patch(self, update: AnyToolCallUpdate) -> None:
        for name in _SCALARS:
            value = getattr(update, name)
            if value is not UNSET:
                setattr(self, name, _RESETS.get(name) if value is None else value)
        if update.content is not UNSET:
            self.content = list(update.content or ())
        if update.locations is not UNSET:
            self.locations = list(update.locations or ())
        self.meta = patch_meta(self.meta, update.meta)

    def append(self, chunk: v2.ToolCallContentChunk) -> None:
        self.content.append(chunk.content)  # items stay apart: a chunk is one of them (TOOL-V2-05)

    def materialize(self) -> v2.SessionToolCallUpdate:
        """Return all fields, cleared ones as `null`: it replaces what a client holds."""
        return v2.SessionToolCallUpdate(
            tool_call_id=self.id,
            name=self.name,
            title=self.title,
            kind=self.kind,
            status=self.status,
            content=self.content.copy(),
            locations=self.locations.copy(),
            raw_input=self.raw_input,
            raw_output=self.raw_output,
            capabilities=self.capabilities,
            meta=self.meta or None,
        )
