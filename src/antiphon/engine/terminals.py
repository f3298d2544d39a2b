"""Terminals: the output and state of an agent's own terminals."""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64
from typing import Any

from msgspec import UNSET, structs

from antiphon.engine.content import add_run, patch_meta
from antiphon.schema import v2

_RUN = 1024
_FIELDS = ("command", "cwd", "exit_status", "size", "capabilities")


class Terminal:
    """One terminal; of a new one nothing is known (TERMV2-03)."""

    __slots__ = (
        "_pieces", "_runs", "capabilities", "command", "cwd", "exit_status", "id", "key", "meta", "position",
        "size",
    )  # fmt: skip

    def __init__(self, id: v2.TerminalId, *, position: int) -> None:
        self.id = id
        self.key = f"terminal/{id}"
        self.position = position
        self.command: str | None = None
        self.cwd: str | None = None
        self.exit_status: v2.TerminalExitStatus | None = None
        self.size: v2.TerminalSize | None = None
        self.capabilities: v2.TerminalCapabilities | None = None
        self.meta: dict[str, Any] = {}
        self._runs: list[bytes] | None = None
        self._pieces: list[bytes] = []
        # The output is `_runs` and then `_pieces`, joined when asked for: replays under way share them.

    @property
    def output(self) -> bytes | None:
        """Every byte so far, or `None` if the output was never reported."""
        return None if self._runs is None else b"".join([*self._runs, *self._pieces])

    def parts(self) -> list[bytes] | None:
        """Return the output as it is kept, in pieces."""
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
        for name in _FIELDS:
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
        return v2.TerminalUpdate(
            terminal_id=self.id,
            command=self.command,
            cwd=self.cwd,
            output=None,
            exit_status=self.exit_status,
            size=self.size,
            capabilities=self.capabilities,
            meta=self.meta or None,
        )


def _decoded(data: str) -> bytes | None:
    """Decode the bytes of a chunk; return `None` if it is not base64, so that it is skipped."""
    try:
        return a2b_base64(data)
    except (Error, ValueError):
        return None
