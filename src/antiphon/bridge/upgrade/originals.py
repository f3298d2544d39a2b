"""Originals: the updates of a v1 agent that are kept as they were written, besides their upgraded form.

A v1 client behind a hub gets a v1 agent's update as the agent wrote it (invariant 8). Mostly a downgrade of
the upgraded update restores it; this finds the updates for which it does not: unknown fields and kinds,
`null` for absent, modes sent as options. Plain message chunks are the same in both versions and are not
examined here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec
from msgspec import Raw

from antiphon.bridge.downgrade.session import Downgrade
from antiphon.engine.items import OURS
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.schema import v1, v2
from antiphon.schema.v1 import optins
from antiphon.schema.wire import Unknown

NOT_UPGRADED: Final = Unknown({"sessionUpdate": f"{OURS}v1"})
"""The update in a journal, with the original, for an update that v2 cannot express. No v2 client gets it."""

_CLIENT = v1.ClientCapabilities(
    session=v1.ClientSessionCapabilities(
        notices=v1.NoticeCapabilities(),
        compaction=v1.CompactionCapabilities(),
        config_options=v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities()),
    )
)
_TAGS = frozenset(member.__struct_config__.tag for member in get_args(v1.SessionUpdate))
_OTHERS = (
    optins.TurnComplete, optins.MessageUpdate, optins.UserMessage, optins.SessionStateUpdate,
    v1.SubagentUpdate, v1.SessionMessage, v1.SessionMessageChunk,
)  # fmt: skip
"""Updates that each client opts in to by itself, and those that name sessions, which have other ids at a
hub."""
_CHUNK_FIELDS = 9
"""The names in the line of a text chunk: jsonrpc, method, params, sessionId, update, sessionUpdate, content,
type and text."""
_plain = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def is_plain(update: v1.SessionUpdate, line: bytes | Raw) -> bool:
    """Whether an update is a message chunk with only a text and perhaps an id: it is the same in both
    versions. This runs for every chunk, so the fields of its line are counted and not decoded. A quote and a
    colon in the text count too: such a chunk is examined more closely, and nothing is lost."""
    if not isinstance(update, v1.ContentChunk) or type(update.content) is not v1.TextContent:
        return False
    fields = _CHUNK_FIELDS if update.message_id is None else _CHUNK_FIELDS + 1
    return type(line) is bytes and line.count(b'":') == fields and b'" :' not in line


class Originals:
    """One session of a v1 agent, as it would reach a v1 client that takes everything."""

    __slots__ = ("_down",)

    def __init__(self) -> None:
        self._down = Downgrade(_CLIENT)

    def asked(self, request: v2.RequestPermissionRequest) -> None:
        """Note the tool call of a question."""
        if isinstance(request.subject, v2.ToolCallPermissionSubject):
            self._down.tools.update(request.subject.tool_call)

    def of(self, update: v1.SessionUpdate, written: bytes, upgraded: Sequence[Any]) -> bytes | None:
        """Return the original of an upgraded update if it has to be kept. `None` if a downgrade restores it,
        or if it holds something that could not be read back (unknown fields are not checked)."""
        if isinstance(update, _OTHERS) or (isinstance(update, v1.UserMessageChunk) and not upgraded):
            return None  # the echo of a prompt is not shown
        shown = [each for each in upgraded if not isinstance(each, v2.StateUpdate)]
        downgraded = [_plain(_encode(down)) for each in shown for down in self._down.apply(each)]
        if _is_better_downgraded(update, shown):
            return None
        try:
            wanted: dict[str, Any] = _plain(written)
        except UNREADABLE:
            return None
        piece = next((each for each in shown if isinstance(each, v2.ContentChunk)), None)
        if piece is not None and wanted.get("messageId") is None:
            wanted["messageId"] = piece.message_id  # invariant 8: but for that, as it was written
            written = _encode(wanted)
        if isinstance(update, v1.Plan):
            return written  # a client that takes plans by their ids would get it as one
        return None if downgraded == [wanted] else written


def _is_better_downgraded(update: v1.SessionUpdate, shown: Sequence[v2.SessionUpdate]) -> bool:
    """Whether a v1 client is better served by the downgraded update."""
    if isinstance(update, Unknown):
        tag = str(update.get("sessionUpdate"))
        # A v1 client cannot read what only v2 has; the hub's own sessions send our own updates.
        return tag.startswith(OURS) or (
            tag not in _TAGS and any(not isinstance(each, Unknown) for each in shown)
        )
    # The client cannot read a terminal that runs on this side (24.4).
    calls = [each for each in shown if isinstance(each, v2.SessionToolCallUpdate)]
    return any(isinstance(item, v2.Terminal) for call in calls for item in call.content or ())


__all__ = ["NOT_UPGRADED", "Originals", "is_plain"]
