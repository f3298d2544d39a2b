"""The timeline of a journal, from the account of its session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antiphon.cli.timeline.entries import Entry, Timeline
from antiphon.engine import Compaction, Message, MessageType, Plan, Terminal, ToolCall
from antiphon.schema import v2
from antiphon.transcripts import (
    DELETED,
    Account,
    Asked,
    Ended,
    call_parts,
    call_title,
    content_text,
    ending_text,
    exit_text,
    notice_text,
    plan_entries,
    unanswered_text,
)

Fields = dict[str, Any]


def timeline_of(account: Account) -> Timeline:
    """Make the timeline of an account. An entry without a time has that of the entry before it."""
    entries: list[Entry] = []
    at = 0.0
    for each in account.entries:
        at = at if each.at is None else each.at / 1000
        describe = _DESCRIPTIONS.get(type(each.what), _other)
        fields = {"at": at, "who": account.agent or "agent", **describe(each.what, account)}
        entries.append(Entry(**fields, session=account.session_id, frames=0))
    return Timeline(name=account.title or account.session_id, entries=entries, dated=True)


def _message(message: Message, account: Account) -> Fields:
    kind = "thought" if message.type is MessageType.THOUGHT else "message"
    fields = {"kind": kind, "text": DELETED if message.deleted else content_text(message.content)}
    if message.type is MessageType.USER:
        fields["who"] = "user" if message.sender is None else message.sender.name
    return fields


def _call(call: ToolCall, account: Account) -> Fields:
    parts = [part for part in call_parts(call, account.fold) if not isinstance(part, v2.Diff | Terminal)]
    answers = [
        f"{_outcome(asked)}{f' by {asked.by}' if asked.by else ''}"
        for asked in account.answers.get(call.id, ())
    ]
    status = ", ".join([*answers, str(call.status)])
    return {"kind": "tool call", "title": call_title(call), "status": status, "text": content_text(parts)}


def _ended(ended: Ended, account: Account) -> Fields:
    text = "" if ended.error is None else ended.error
    how = ending_text(ended.stop_reason, error=ended.cut)
    return {"kind": "turn", "status": how, "took": ended.took / 1000, "text": text}


def _asked(asked: Asked, account: Account) -> Fields:
    by = {} if asked.by is None else {"who": asked.by}
    return {"kind": "question", "title": asked.title, "status": _outcome(asked), **by}


def _outcome(asked: Asked) -> str:
    return unanswered_text(asked.cause) if asked.outcome == "expired" else asked.outcome


def _plan(plan: Plan, account: Account) -> Fields:
    rows = plan_entries(plan.latest.plan)
    return {"kind": "plan", "text": "\n".join(f"[{status}] {text}" for status, text in rows)}


def _terminal(terminal: Terminal, account: Account) -> Fields:
    title = terminal.command or ""
    return {"kind": "terminal", "title": title, "text": terminal.text, "status": exit_text(terminal)}


def _other(what: Any, account: Account) -> Fields:
    return {"kind": type(what).__name__.lower(), "title": str(getattr(what, "title", "") or "")}


_DESCRIPTIONS: dict[type, Callable[[Any, Account], Fields]] = {
    Message: _message,
    ToolCall: _call,
    Ended: _ended,
    Asked: _asked,
    Plan: _plan,
    Terminal: _terminal,
    Compaction: lambda item, account: {"kind": "compaction", "text": content_text(item.summary)},
    v2.Notice: lambda notice, account: {"kind": "notice", "title": notice_text(notice)},
}
