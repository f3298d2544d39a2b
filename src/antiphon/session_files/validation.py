"""Checks of an imported session, before it is visible.

A file may come from anywhere. The properties that readers of a store rely on are checked here: times that can
be written, ids and paths that can be shown, numbers in order, and events that the engine folds.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from msgspec import structs

from antiphon.engine import events as e
from antiphon.engine.events import Event
from antiphon.engine.session import Session
from antiphon.engine.snapshot import parts
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import LocalError
from antiphon.jsonrpc.structure import EVENT_DEPTH, is_too_deep
from antiphon.session_files.format import FileRefused
from antiphon.stores.base import LATEST, SessionRecord

ID_LIMIT = 200
PATH_LIMIT = 4096
TITLE_LIMIT = 10_000
WORD_LIMIT = 100
FOLDERS = 1000
SESSIONS = 1000
"""How many sessions one file may hold."""
RECORD_BYTES = 1024 * 1024


def check_id(session_id: str) -> None:
    """Check an id that people type or a list shows. Raises `LocalError`."""
    if not (0 < len(session_id) <= ID_LIMIT and session_id.isprintable() and " " not in session_id):
        raise LocalError(
            f"a session id is 1 to {ID_LIMIT} printable characters without spaces, got {session_id[:60]!r}"
        )


def check_record(record: SessionRecord) -> None:
    """Raises `FileRefused`."""
    try:
        check_id(record.session_id)
    except LocalError as error:
        raise FileRefused(str(error)) from None
    for name, at in (("created_at", record.created_at), ("updated_at", record.updated_at)):
        _check_time(at, f"the session's {name}")
    _check_path(record.cwd, "cwd")
    if len(record.additional_directories) > FOLDERS:
        raise FileRefused(
            f"the session has {len(record.additional_directories)} folders; the limit is {FOLDERS}"
        )
    for folder in record.additional_directories:
        _check_path(folder, "additional_directories")
    if record.title is not None and len(record.title) > TITLE_LIMIT:
        raise FileRefused(
            f"the session's title has {len(record.title)} characters; the limit is {TITLE_LIMIT}"
        )
    if not 0 < len(record.state) <= WORD_LIMIT:
        raise FileRefused(
            f"the session's state has {len(record.state)} characters; expected 1 to {WORD_LIMIT}"
        )
    parent = record.meta.get(SUBAGENT_OF, "")
    if not isinstance(parent, str) or parent == record.session_id:
        raise FileRefused(
            f"session {record.session_id} names {str(parent)[:60]!r} as its parent, not another session"
        )


def check_depth(data: bytes, what: str) -> None:
    """Raise `FileRefused` for JSON that is nested so deep that readers could fail."""
    if is_too_deep(data, bound=EVENT_DEPTH):
        raise FileRefused(f"{what} is nested deeper than {EVENT_DEPTH} levels")


def _check_time(at: int, what: str) -> None:
    if not 0 <= at <= LATEST:
        raise FileRefused(f"{what} is {at}: a time is from 0 to {LATEST} milliseconds since 1970 (year 9999)")


def _check_path(path: str, what: str) -> None:
    """Check a path that clients see and agents start in. It may be of any system."""
    if not path or len(path) > PATH_LIMIT or any(unicodedata.category(letter) == "Cc" for letter in path):
        raise FileRefused(
            f"the session's {what} is no path; expected 1 to {PATH_LIMIT} characters, no controls"
        )


class JournalCheck:
    """The journal of one imported session, event by event. It is folded as it will be when it is opened."""

    def __init__(self, record: SessionRecord) -> None:
        self._record = record
        self._fold = Session()

    def read(self, line: bytes, seq: int) -> Event:
        """Return the event of a line, which has to be number `seq`. Raises `FileRefused`."""
        check_depth(line, f"event {seq}")
        try:
            line.decode()
            event = e.decode_event(line)
        except e.NewerEvent as error:
            raise FileRefused(f"event {seq} is {error}: a later Antiphon wrote it") from None
        except (e.UnreadableEvent, UnicodeDecodeError) as error:
            raise FileRefused(f"event {seq} cannot be read: {error}") from None
        if event.seq != seq:
            raise FileRefused(f"expected event {seq}, found event {event.seq}")
        _check_time(event.at, f"the time of event {seq}")
        if seq == 1:
            self._check_created(event.body)
        return event

    def _check_created(self, body: Any) -> None:
        if not isinstance(body, e.SessionCreated) or body.session_id != self._record.session_id:
            raise FileRefused("its first event is not session_created, or names another session")
        if body.format > e.FORMAT:
            raise FileRefused(f"its journal is of format {body.format}, which a later Antiphon wrote")
        if body.format < 1:
            raise FileRefused(f"its journal is of format {body.format}, which does not exist")
        _check_path(body.cwd, "cwd")
        parent = self._record.meta.get(SUBAGENT_OF)
        if parent is not None and body.meta.get(SUBAGENT_OF, parent) != parent:
            raise FileRefused("its record and its first event name different parent sessions")

    def fold(self, event: Event) -> None:
        """Take in the next event as it will be kept. Raises `FileRefused`."""
        try:
            self._fold.apply(event)
        except Exception as error:  # whatever the engine raises now, it would raise later
            raise FileRefused(f"event {self._fold.last_seq} cannot be folded: {_describe(error)}") from None

    def finish(self) -> None:
        """Check that the snapshot of the session can be made, after all events were folded."""
        try:
            parts(self._fold)
        except Exception as error:
            raise FileRefused(f"its snapshot cannot be made: {_describe(error)}") from None


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def without_parent(body: e.SessionCreated) -> e.SessionCreated:
    """Return the first event of a session without its parent."""
    return structs.replace(body, meta={key: value for key, value in body.meta.items() if key != SUBAGENT_OF})
