"""Account: the contents of a session in order. Transcripts of both formats are written from it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from antiphon.engine.annotations import Annotation
from antiphon.engine.events import Event, QuestionClosed, QuestionEnd, RequestId, Updated
from antiphon.engine.fold import SessionFold, is_state
from antiphon.engine.items import ContextUsage, Info, Latest
from antiphon.engine.questions import CREATE_ELICITATION, Question
from antiphon.engine.session import Session
from antiphon.engine.tools import Terminal
from antiphon.engine.turn import Effect, is_interruption
from antiphon.engine.who import who_of
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.schema import v2
from antiphon.schema.repair import Malformed

TIME_STEP = 1000
"""Milliseconds between two recorded times."""


class Ended(NamedTuple):
    """The end of a turn."""

    stop_reason: str | None
    error: str | None
    usage: v2.Usage | None
    took: int
    """Milliseconds, as far as is known."""
    requests: tuple[RequestId, ...] = ()
    """The ids of the prompt requests that the turn answers."""
    cut: v2.Error | None = None
    """The error of a turn that was cut short, which says by what."""


class Asked(NamedTuple):
    """A question that has ended: its title, its outcome and who answered."""

    title: str
    outcome: str
    by: str | None
    tool_call_id: str | None
    cause: str | None = None
    """What cut the turn short with which it expired."""


class Entry(NamedTuple):
    """One part of an account: an item of the fold, an `Ended`, an `Asked` or a notice."""

    position: int
    at: int | None
    """Milliseconds since 1970, if known."""
    what: Any


class Account(Struct, kw_only=True):
    session_id: str
    title: str | None
    agent: str | None
    cwd: str
    fold: SessionFold
    entries: list[Entry]
    answers: dict[str, list[Asked]]
    """The questions about each tool call, by its id."""

    @property
    def began(self) -> int | None:
        return next((entry.at for entry in self.entries if entry.at is not None), None)

    @property
    def tokens(self) -> tuple[int, int]:
        """Return the tokens of all turns, in and out."""
        used = [entry.what.usage for entry in self.entries if isinstance(entry.what, Ended)]
        known = [usage for usage in used if usage is not None]
        return sum(usage.input_tokens for usage in known), sum(usage.output_tokens for usage in known)


class AccountBuilder:
    """Folds a journal, and records the times, turn ends, answers and notices that a fold does not keep."""

    def __init__(self) -> None:
        self.fold = Session()
        self.marks: list[tuple[int, Any]] = []
        self._times: list[tuple[int, int]] = []
        self._opened = 0

    def add(self, events: Iterable[Event]) -> None:
        run: list[Event] = []
        for event in events:
            if not self._times or event.at - self._times[-1][1] >= TIME_STEP:
                self._times.append((event.seq, event.at))
            update = _update(event)
            if isinstance(event.body, QuestionClosed):
                self.fold.fold(run)
                self._question(event.body, event.seq)
                run = [event]
            elif isinstance(update, v2.Notice):
                self.marks.append((event.seq, update))
                run.append(event)
            elif update is not None and is_state(update):
                self.fold.fold(run)
                self._state(update, event)
                run = [event]
            else:
                run.append(event)
        self.fold.fold(run)

    def skip(self, last: int, found: str) -> None:
        """Skip the events up to `last`, which cannot be read; `found` says why."""
        self.fold.last_seq = last
        notice = v2.Notice(severity=v2.NoticeSeverity.WARNING, title=f"Events are missing here: {found}")
        self.marks.append((last, notice))

    def time_of(self, position: int) -> int | None:
        at = bisect_right(self._times, position, key=lambda known: known[0])
        return self._times[at - 1][1] if at else None

    def _state(self, update: Any, event: Event) -> None:
        effect = self.fold.turns.effect_of(update)
        if effect is Effect.OPENED:
            self._opened = event.at
        elif effect is Effect.ENDED:
            reason = getattr(update, "stop_reason", None) or getattr(update, "proposed_reason", None)
            error = getattr(update, "error", None)
            cut = is_interruption(error)
            ended = Ended(
                stop_reason=None if reason is None else str(reason),
                error=None if error is None or cut else error.message,
                usage=getattr(update, "usage", None),
                took=event.at - self._opened,
                requests=self._requests(),
                cut=error if cut else None,
            )
            self.marks.append((event.seq, ended))

    def _requests(self) -> tuple[RequestId, ...]:
        turn = self.fold.turn
        return () if turn is None else tuple(self.fold.prompts.requests_of(turn))

    def _question(self, closed: QuestionClosed, seq: int) -> None:
        question = self.fold.questions.get(closed.question_id)
        if question is not None and not question.ended:
            self.marks.append((seq, _asked(question, closed)))


def _update(event: Event) -> Any:
    try:
        return event.body.update if isinstance(event.body, Updated) else None
    except Malformed:
        return None


def _asked(question: Question, closed: QuestionClosed) -> Asked:
    permission, call = question.permission, question.tool_call_id
    if permission is None:
        title, outcome = _message(question), str(_plain(closed.result).get("action", "answered"))
    else:
        chosen = question.chosen(closed.result)
        title, outcome = permission.title, "refused" if chosen is None else chosen.name
        if isinstance(permission.subject, v2.ToolCallPermissionSubject):
            call = permission.subject.tool_call.tool_call_id
    if closed.end is not QuestionEnd.ANSWERED:
        outcome = str(closed.end)
    return Asked(title, outcome, None if closed.by is None else who_of(closed.by).name, call, closed.cause)


def _message(question: Question) -> str:
    if question.method != CREATE_ELICITATION:
        return question.method
    return str(_plain(question.params).get("message", ""))


def _plain(raw: Raw) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(raw)
    except UNREADABLE:
        return {}
    return found if isinstance(found, dict) else {}


def account(
    source: AccountBuilder | SessionFold, *, title: str | None = None, agent: str | None = None
) -> Account:
    """Make the account of a journal, or of a fold alone, which has no times."""
    fold = source.fold if isinstance(source, AccountBuilder) else source
    marks = source.marks if isinstance(source, AccountBuilder) else []
    answers: dict[str, list[Asked]] = {}
    for _, mark in marks:
        if isinstance(mark, Asked) and mark.tool_call_id is not None and fold.tools.get(mark.tool_call_id):
            answers.setdefault(mark.tool_call_id, []).append(mark)
    found = [(item.position, item) for item in _shown_items(fold)]
    found += [
        (seq, mark)
        for seq, mark in marks
        if not (isinstance(mark, Asked) and mark.tool_call_id in answers)  # shown with its tool call
    ]
    created, info = fold.created, fold.facts.info
    return Account(
        session_id="" if created is None else created.session_id,
        title=title or (None if info is None else info.title),
        agent=agent,
        cwd="" if created is None else created.cwd,
        fold=fold,
        entries=[
            Entry(position, source.time_of(position) if isinstance(source, AccountBuilder) else None, what)
            for position, what in sorted(found, key=lambda pair: pair[0])
        ],
        answers=answers,
    )


def _shown_items(fold: SessionFold) -> Sequence[Any]:
    """Return the items of a fold, without facts and without terminals that are part of a tool call."""
    shown = {
        content.terminal_id
        for call in fold.tools
        for content in call.content
        if isinstance(content, v2.Terminal)
    }
    return [
        item
        for item in fold.items
        if not isinstance(item, Latest | Info | ContextUsage | Annotation)
        and not (isinstance(item, Terminal) and item.id in shown)
    ]
