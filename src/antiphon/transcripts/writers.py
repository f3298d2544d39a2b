"""Writers: what a format needs a writer for, by the kind of an entry. The one table of both formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from antiphon.engine.items import Compaction, Plan, UnknownUpdate
from antiphon.engine.subagents import SessionNote, SubagentInfo
from antiphon.engine.terminals import Terminal
from antiphon.engine.tools import ToolCall
from antiphon.engine.transcript import Message
from antiphon.schema import v2
from antiphon.transcripts.accounts import Account, Asked, Ended, Entry

Write = Callable[[Entry, Account], Iterator[str]]

_KINDS = {
    Message: "message",
    ToolCall: "call",
    Plan: "plan",
    Terminal: "lone_terminal",
    Compaction: "compaction",
    SubagentInfo: "subagent",
    SessionNote: "session_note",
    UnknownUpdate: "unknown",
    v2.Notice: "notice",
    Asked: "asked",
    Ended: "ended",
}


class Writers(NamedTuple):
    message: Write
    call: Write
    plan: Write
    lone_terminal: Write
    compaction: Write
    subagent: Write
    session_note: Write
    unknown: Write
    notice: Write
    asked: Write
    ended: Write

    def write(self, entry: Entry, account: Account) -> Iterator[str]:
        write: Write = getattr(self, _KINDS[type(entry.what)])
        return write(entry, account)
