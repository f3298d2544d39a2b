"""Tool calls and the agent's terminals: patched by id, `null` resets, chunks append."""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, structs

from antiphon.engine.content import add_run, patch_meta
from antiphon.engine.transcript import about_in
from antiphon.schema import v2

AnyToolCallUpdate: TypeAlias = v2.ToolCallUpdate | v2.SessionToolCallUpdate

FINAL = frozenset(
    {v2.ToolCallStatus.COMPLETED, v2.ToolCallStatus.FAILED, v2.ToolCallStatus.CANCELLED}
)  # TOOL-V2-08
_SCALARS = ("name", "title", "kind", "status", "raw_input", "raw_output", "capabilities")
_TERMINAL_FIELDS = ("command", "cwd", "exit_status", "size", "capabilities")
_RUN = 1024
_RESETS: dict[str, Any] = {"kind": v2.ToolKind.OTHER, "status": v2.ToolCallStatus.PENDING}  # TOOL-V2-02


class ToolCall(Struct, eq=False):
    """One tool call; a new one has the defaults of TOOL-V2-03."""

    id: v2.ToolCallId
    position: int
    key: str = ""
    name: str | None = None
    title: str | None = None
    kind: v2.ToolKind = v2.ToolKind.OTHER
    status: v2.ToolCallStatus = v2.ToolCallStatus.PENDING
    content: list[v2.ToolCallContent] = []
    locations: list[v2.ToolCallLocation] = []
    raw_input: Any = None
    raw_output: Any = None
    capabilities: v2.ToolCallCapabilities | None = None
    meta: dict[str, Any] = {}

    def __post_init__(self) -> None:
        self.key = f"tool/{self.id}"

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
            content=self.content.copy(),
            locations=self.locations.copy(),
            meta=self.meta or None,
            **{name: getattr(self, name) for name in _SCALARS},
        )


class Terminal(Struct, eq=False):
    """One terminal; of a new one nothing is known (TERMV2-03)."""

    id: v2.TerminalId
    position: int
    key: str = ""
    command: str | None = None
    cwd: str | None = None
    exit_status: v2.TerminalExitStatus | None = None
    size: v2.TerminalSize | None = None
    capabilities: v2.TerminalCapabilities | None = None
    meta: dict[str, Any] = {}
    # The output is `_runs` and then `_pieces`, joined when asked for: replays under way share them.
    _runs: list[bytes] | None = None
    _pieces: list[bytes] = []

    def __post_init__(self) -> None:
        self.key = f"terminal/{self.id}"

    @property
    def output(self) -> bytes | None:
        """Every byte so far, or `None` if the output was never reported."""
        return None if self._runs is None else b"".join([*self._runs, *self._pieces])

    def parts(self) -> list[bytes] | None:
        """Return the output in pieces, without joining them."""
        return None if self._runs is None else [*self._runs, *self._pieces]

    @property
    def text(self) -> str:
        """The output as text; a character that was cut between chunks is whole again (TERMV2-05)."""
        return (self.output or b"").decode(errors="replace")

    @property
    def exited(self) -> bool:
        return self.exit_status is not None  # TERMV2-06: whatever the status is

    def append(self, chunk: v2.TerminalOutputChunk) -> None:
        piece = _decoded(chunk.data)  # TERMV2-05: each chunk on its own
        if piece is None:
            return
        if self._runs is None:
            self._runs = []
        self._pieces.append(piece)
        if len(self._pieces) >= _RUN:
            add_run(self._runs, self._pieces, b"")

    def patch(self, update: v2.TerminalUpdate) -> None:
        for name in _TERMINAL_FIELDS:
            value = getattr(update, name)
            if value is not UNSET:
                setattr(self, name, value)
        if update.output is None:
            self._runs, self._pieces = None, []
        elif update.output is not UNSET:
            whole = _decoded(update.output.data)
            if whole is not None:
                self._runs, self._pieces = [whole] if whole else [], []  # TERMV2-04
        self.meta = patch_meta(self.meta, update.meta)

    def materialize(self) -> v2.TerminalUpdate:
        """One snapshot (SESS-25), cleared fields as `null`."""
        output = self.output
        if output is None:
            return self.bare()
        data = b2a_base64(output, newline=False).decode("ascii")
        return structs.replace(self.bare(), output=v2.TerminalOutput(data=data))

    def bare(self) -> v2.TerminalUpdate:
        """Return it without its output."""
        known = {name: getattr(self, name) for name in _TERMINAL_FIELDS}
        return v2.TerminalUpdate(terminal_id=self.id, output=None, meta=self.meta or None, **known)


def _decoded(data: str) -> bytes | None:
    """Decode the bytes of a chunk; return `None` if it is not base64, so that it is skipped."""
    try:
        return a2b_base64(data)
    except (Error, ValueError):
        return None
