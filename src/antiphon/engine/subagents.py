"""Subagents that a session has announced, and messages between sessions: patched by id (SUB-01, SUB-03)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Struct, field, structs

from antiphon.engine.content import Content, patch_meta
from antiphon.schema import v2

SUBAGENT_OF = "subagentOf"
"""The key under which the record and the first event of a session name its parent."""

_FIELDS = ("title", "description", "capabilities", "state", "cwd", "additional_directories")


class SubagentInfo(Struct, eq=False):
    """A session that works for this one, as it was announced: absent keeps, null clears (SUB-02)."""

    id: v2.SessionId
    position: int
    key: str = ""
    title: str | None = None
    description: str | None = None
    capabilities: v2.SubagentSessionCapabilities | None = None
    state: v2.StateUpdate | None = None
    """`None` until the agent has confirmed one."""
    cwd: str | None = None
    additional_directories: list[str] | None = None
    meta: dict[str, Any] = {}

    def __post_init__(self) -> None:
        self.key = f"subagent/{self.id}"

    @property
    def can_cancel(self) -> bool:
        """Whether a client may cancel its work; without the capability it may do nothing to it (SUB-02)."""
        return self.capabilities is not None and self.capabilities.cancel is not None

    @property
    def working(self) -> bool:
        """Whether it is known to be at work."""
        return isinstance(self.state, v2.StateUpdate) and self.state.state != v2.State.IDLE

    def patch(self, update: v2.SubagentUpdate) -> None:
        for name in _FIELDS:
            value = getattr(update, name)
            if value is not UNSET:
                setattr(self, name, value)
        self.meta = patch_meta(self.meta, update.meta)

    def materialize(self) -> v2.SubagentUpdate:
        known = {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}
        return v2.SubagentUpdate(session_id=self.id, meta=self.meta or UNSET, **known)


class SessionNote(Struct, eq=False):
    """A message from one session to another; its participants may be named later (SUB-03)."""

    id: v2.MessageId
    position: int
    key: str = ""
    sender_session_id: v2.SessionId | None = None
    recipient_session_id: v2.SessionId | None = None
    sender_message_id: v2.MessageId | None = None
    recipient_message_id: v2.MessageId | None = None
    meta: dict[str, Any] = {}
    _content: Content = field(default_factory=Content)

    def __post_init__(self) -> None:
        self.key = f"session_message/{self.id}"

    @property
    def content(self) -> list[v2.ContentBlock]:
        return self._content.blocks

    @property
    def text(self) -> str:
        return self._content.text

    def append(self, chunk: v2.SessionMessageChunk) -> None:
        self._content.append(chunk.content)

    def patch(self, update: v2.SessionMessage) -> None:
        for name in _PARTIES:
            value = getattr(update, name)
            if value is not UNSET:
                setattr(self, name, value)
        if update.content is not UNSET:
            self._content.replace(update.content or ())
        self.meta = patch_meta(self.meta, update.meta)

    def materialize(self) -> v2.SessionMessage:
        return structs.replace(self.bare(), content=self.content)

    def bare(self) -> v2.SessionMessage:
        """Return it without its content."""
        known = {name: value for name in _PARTIES if (value := getattr(self, name)) is not None}
        return v2.SessionMessage(message_id=self.id, content=[], meta=self.meta or UNSET, **known)

    def parts(self) -> tuple[list[v2.ContentBlock], list[str]]:
        """Return the content without copying it: blocks, and the strings of the plain text after them."""
        return self._content.parts


_SESSIONS = ("sender_session_id", "recipient_session_id")
_PARTIES = (*_SESSIONS, "sender_message_id", "recipient_message_id")


def renamed(update: Any, name: Callable[[str], str]) -> Any:
    """Return the update with other session ids; the same update if it names no session."""
    match update:
        case v2.SubagentUpdate():
            return structs.replace(update, session_id=v2.SessionId(name(update.session_id)))
        case v2.SessionMessage() | v2.SessionMessageChunk():
            named = {field: getattr(update, field, UNSET) for field in _SESSIONS}
            return structs.replace(update, **{f: name(id) for f, id in named.items() if isinstance(id, str)})
        case v2.StateUpdate(background=list(works)):
            return structs.replace(update, background=[_renamed_work(work, name) for work in works])
    return update


def _renamed_work(work: Any, name: Callable[[str], str]) -> Any:
    if isinstance(work, v2.BackgroundSubagent):
        return structs.replace(work, session_id=v2.SessionId(name(work.session_id)))
    return work
