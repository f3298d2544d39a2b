"""Cursors on the wire: where a client that comes back goes on reading (`docs/extensions.md`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from antiphon.errors import InvalidParams
from antiphon.schema import v2
from antiphon.schema.version import META_KEY
from antiphon.schema.wire import Unknown

if TYPE_CHECKING:
    from antiphon.engine.session import Session
    from antiphon.live.attachment_writer import AttachmentWriter


class Cursor(Struct, frozen=True):
    """The last event that a client has applied, and its own prompts whose messages it shows by itself."""

    after: int
    operations: tuple[str, ...] = ()

    def check(self, fold: Session) -> None:
        if self.after > fold.last_seq:
            raise InvalidParams("the cursor names an event that is not there yet")

    def own(self, voice: AttachmentWriter, fold: Session) -> None:
        """A v1 client is not shown its own prompts: also not those that were taken while it was away."""
        for operation_id in self.operations:
            entry = fold.prompts.of_operation(operation_id)
            if entry is not None:
                voice.pending.recognize(entry)


def read_cursor(params: v2.ResumeSessionRequest, *, loaded: bool) -> Cursor | None:
    """The cursor of a resume, in `replayFrom`, or of v1's load, beside its params; `None`: there is none."""
    if loaded:
        ours = (params.meta or {}).get(META_KEY)
        if not isinstance(ours, dict) or "after" not in ours:
            return None
        operations = ours.get("operations", [])
        if not (isinstance(operations, list) and all(isinstance(one, str) for one in operations)):
            raise InvalidParams("`operations` is a list of operation ids")
        return Cursor(_number(ours["after"], "after"), tuple(operations))
    replay_from = params.replay_from
    if not isinstance(replay_from, Unknown):
        return None
    if replay_from.get("type") != "_antiphon_after":
        raise InvalidParams("`replayFrom` is of an unknown type")  # SESS-19
    return Cursor(_number(replay_from.get("seq"), "replayFrom.seq"))


def _number(given: Any, name: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidParams(f"`{name}` is the number of an event")
    return given
