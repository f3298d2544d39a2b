"""Remarks: one line for each update that is not a message, a tool call or a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from antiphon.client import ClientSession
from antiphon.schema import UNSET, v2
from antiphon.text_safety import safe_line
from antiphon.transcripts import block_text, ending_text, notice_text, option_value

_COMPACTION = {
    "in_progress": "compacting the context",
    "completed": "context compacted",
    "failed": "the agent failed to compact its context",
    "cancelled": "compacting the context was cancelled",
}


class Remarks:
    """Reads updates in order, and gives a line for what has changed."""

    def __init__(self) -> None:
        self._session_id = ""
        self._title: str | None = None
        self._options: dict[str, str] = {}
        self._compactions: dict[str, tuple[str, str]] = {}
        """The status and the summary of each."""
        self._subagents: dict[str, tuple[str, str]] = {}
        """The name and the state of each."""
        self._note: tuple[str, str, str] | None = None
        """The message between sessions that is being written: id, sender or recipient, and text."""

    def begin(self, session: ClientSession) -> None:
        """Take the initial title and options as known."""
        self._session_id = session.id
        self._title = session.title
        self._options = dict(map(_chosen, session.config_options))

    def of(self, update: Any) -> Iterator[str]:
        """Yield the remarks about an update."""
        if isinstance(update, v2.SessionMessageChunk):
            yield from self._write(update.message_id, block_text(update.content))
            return
        yield from self.rest()
        if isinstance(update, v2.Notice):
            yield notice_text(update)
        elif isinstance(update, v2.SessionInfoUpdate):
            yield from self._titled(update.title)
        elif isinstance(update, v2.ConfigOptionUpdate):
            yield from self._configured(update.config_options)
        elif isinstance(update, v2.CompactionUpdate | v2.CompactionSummaryChunk):
            yield from self._compacted(update)
        elif isinstance(update, v2.SubagentUpdate):
            yield from self._delegated(update)
        elif isinstance(update, v2.SessionMessage):
            yield from self._message(update)

    def rest(self) -> Iterator[str]:
        """Yield the message between sessions that is complete now."""
        if self._note is not None:
            _, whose, text = self._note
            self._note = None
            if text.strip():
                yield f"{whose}: {safe_line(text)}"

    def _titled(self, title: Any) -> Iterator[str]:
        if title is not UNSET and title != self._title:
            self._title = title
            if title:
                yield f"the session has the title {safe_line(title)}"

    def _configured(self, options: Sequence[Any]) -> Iterator[str]:
        before, self._options = self._options, dict(map(_chosen, options))
        for name, value in self._options.items():
            if before.get(name, value) != value:  # an option that was not known before has not changed
                yield f"{name}: {value}"

    def _compacted(self, update: v2.CompactionUpdate | v2.CompactionSummaryChunk) -> Iterator[str]:
        before, summary = self._compactions.get(update.compaction_id, ("", ""))
        if isinstance(update, v2.CompactionSummaryChunk):
            self._compactions[update.compaction_id] = before, summary + block_text(update.content)
            return
        if isinstance(update.summary, list):
            summary = "\n".join(map(block_text, update.summary))
        status = str(update.status)
        self._compactions[update.compaction_id] = status, summary
        if status != before and status in _COMPACTION:
            about = update.error or "" if status == "failed" else summary
            yield _COMPACTION[status] + (f": {safe_line(about)}" if about else "")

    def _delegated(self, update: v2.SubagentUpdate) -> Iterator[str]:
        name, before = self._subagents.get(update.session_id, ("", ""))
        name = safe_line(update.title) if update.title else name or "a subagent"
        now = before or "working"
        if isinstance(update.state, v2.StateUpdate):
            idle = update.state.state == v2.State.IDLE
            now = ending_text(update.state.stop_reason or None) if idle else "working"
        self._subagents[update.session_id] = name, now
        if now != before:
            about = f" ({safe_line(update.description)})" if update.description else ""
            yield f"subagent {name}{about}: {now}"

    def _message(self, update: v2.SessionMessage) -> Iterator[str]:
        whose = "between subagents"
        if update.sender_session_id == self._session_id:
            whose = f"to {self._called(update.recipient_session_id)}"
        elif update.sender_session_id is not UNSET:
            whose = f"from {self._called(update.sender_session_id)}"
        self._note = update.message_id, whose, ""
        yield from self._write(update.message_id, "\n".join(map(block_text, update.content or ())))

    def _write(self, message_id: str, text: str) -> Iterator[str]:
        if self._note is None or self._note[0] != message_id:
            yield from self.rest()
            self._note = message_id, "between subagents", ""
        self._note = message_id, self._note[1], self._note[2] + text

    def _called(self, session_id: Any) -> str:
        return self._subagents.get(session_id, ("a subagent", ""))[0]


def _chosen(option: Any) -> tuple[str, str]:
    """Return the name of a config option and the name of its value."""
    name = str(option.get("name", "")) if isinstance(option, dict) else option.name
    return safe_line(name), option_value(option)
