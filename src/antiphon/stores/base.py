"""The seam between a live session and its store, and the values that cross it.

A cursor is a position in a journal: 0 is before the first event, and "after c" means the events numbered
above c. `check_store` in `antiphon.testing` is the contract.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

import msgspec
from msgspec import UNSET, Struct, UnsetType

from antiphon.errors import AntiphonError, CursorInvalid, EventRefused

PAGE_BYTES = 1 << 20
LIST_LIMIT = 50
HIGHEST = (1 << 63) - 1
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999, the last time that RFC 3339 can express."""
Number = Annotated[int, msgspec.Meta(ge=-HIGHEST, le=HIGHEST)]


class Batch(Struct, frozen=True, gc=False):
    """Consecutive events of one session: the unit of commit, storage and reading.

    An event is one JSON object in UTF-8, without a newline (`joined_events`); a store does not interpret it.
    """

    first: int
    events: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if self.first < 1 or not self.events:
            raise ValueError(
                f"a batch needs events and a first number >= 1, got {len(self.events)} from {self.first}"
            )

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    def after(self, cursor: int) -> Batch:
        """Return the part of the batch after `cursor`, which is before its end."""
        return self if cursor < self.first else Batch(cursor + 1, self.events[cursor + 1 - self.first :])


class Page(Struct, frozen=True, gc=False):
    """A page of a journal. The next page begins at `cursor`, until that is `last`, the end of the journal."""

    batches: tuple[Batch, ...]
    cursor: int
    last: int


class FaultKind(StrEnum):
    """Why a session cannot be opened as it is kept."""

    DAMAGED = "damaged"
    """Something of it is missing or unreadable."""

    NEWER = "newer"
    """A later version of Antiphon wrote it."""


class Fault(Struct, frozen=True):
    """Why a session cannot be opened, in words that name no file of this machine."""

    kind: FaultKind
    found: str
    in_record: bool = False
    """Whether the record itself is damaged: then its fields are those that could be read."""


class SessionRecord(Struct, frozen=True, kw_only=True):
    """What a store has of a session besides its journal. Times are milliseconds since 1970; callers set them.

    `fault` is set by the store alone, if the session is damaged or newer.
    """

    session_id: str
    cwd: str
    additional_directories: tuple[str, ...] = ()
    title: str | None = None
    created_at: int
    updated_at: int
    state: str = "idle"
    last: int = 0
    meta: dict[str, Any] = {}
    fault: Fault | None = None


class RecordPatch(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Changes of a record; fields that are left out stay. `meta` is replaced as a whole."""

    cwd: str | UnsetType = UNSET
    additional_directories: tuple[str, ...] | UnsetType = UNSET
    title: str | UnsetType | None = UNSET
    updated_at: int | UnsetType = UNSET
    state: str | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET

    def changes(self) -> dict[str, Any]:
        """Return the fields that are set, with their values."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in fields.items() if value is not UNSET}


class Listing(NamedTuple):
    """A page of the list of sessions, and the cursor of the next one (None: this was the last)."""

    records: tuple[SessionRecord, ...]
    next: str | None


class Parts(NamedTuple):
    """A page of a snapshot: the snapshot's cursor, some of its parts in the order of their names, and the
    name after which the next page begins (None: this was the last)."""

    upto: int
    parts: dict[str, bytes]
    next: str | None


class Arrival(Protocol):
    """A session that is being imported into a store; it is not visible before it is finished."""

    async def append(self, batch: Batch) -> None:
        """Add the next batch of its journal; any other batch is refused with `StaleWriter`."""

    async def beside(self, record: SessionRecord) -> Arrival:
        """Import another session together with this one. It is finished with it, and not by itself."""

    async def finish(self) -> None:
        """Make the session and those imported with it visible, all in one moment; none of them is open then.
        Refused with `SessionExists`."""


@runtime_checkable
class Store(Protocol):
    """Keeps journals, and for each one a record and a snapshot in parts.

    A method that names an unknown session raises `SessionUnknown`. A call that is cancelled while it waits
    may still take effect, whole; the caller reads `get` before it continues.
    """

    async def create(self, record: SessionRecord, *, batch: Batch | None = None) -> None:
        """Begin a session with an empty journal, or with the first batch of it, in one commit; an id that
        exists is refused with `SessionExists`."""

    async def append(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> None:
        """Add a batch, and return once no crash takes it back. `record` changes in the same commit.

        Unless the journal ends right before the batch, nothing is written and `StaleWriter` is raised.
        """

    def arrival(self, record: SessionRecord) -> AbstractAsyncContextManager[Arrival]:
        """Import a session with its journal. If it is not finished inside the block, because of a failure or
        the end of the process, nothing of it is left and nothing of it was visible."""

    async def update(self, session_id: str, record: RecordPatch) -> None:
        """Change the record alone."""

    async def read(self, session_id: str, after: int, *, limit_bytes: int = PAGE_BYTES) -> Page:
        """Return the events after a cursor, in order: about `limit_bytes` of them, and at least one batch.

        No batches means the end of the journal. In a damaged journal everything before the damage is
        returned; reading on at the damage raises `StoreCorrupt`.
        """

    async def grown(self, session_id: str, after: int) -> int:
        """Wait until the journal has events after `after`, written by any process; return the number of the
        last one."""

    async def save_parts(self, session_id: str, upto: int, parts: Mapping[str, bytes | None]) -> None:
        """Move the snapshot to the cursor `upto`: parts given are put, parts given as None are removed.

        All of it or nothing; a snapshot older than the kept one is refused with `StaleWriter`.
        """

    async def load_parts(self, session_id: str, *, after: str = "", limit_bytes: int = PAGE_BYTES) -> Parts:
        """Return the snapshot's parts after a name: about `limit_bytes` of them, and at least one.

        Without a snapshot, return `(0, {}, None)`. Pages with the same `upto` are of the same snapshot.
        """

    async def get(self, session_id: str) -> SessionRecord | None:
        """Return the record of a session, with the number of its last event; `None` if there is no such
        session.

        A damaged record has the fields that can be read, and a `fault`.
        """

    async def list(
        self, *, cwd: str | None = None, after: str | None = None, limit: int = LIST_LIMIT
    ) -> Listing:
        """Sessions, the newest first by creation, `limit` at a time; with `cwd`, those of that directory.

        Creation does not change, so a session that is there all the while is listed exactly once, whatever
        happens between two pages. A cursor that no list gave out raises `CursorInvalid`. A damaged session is
        listed with its `fault`, and keeps no other one from being listed.
        """

    async def drop_snapshot(self, session_id: str) -> None:
        """Remove the snapshot, which cannot be used; the journal has all that was in it."""

    async def note_fault(self, session_id: str, fault: Fault | None) -> None:
        """Note the fault of a session (`None`: no fault) until the store is closed. Its record has the fault
        from then on; nothing else changes."""

    async def delete(self, session_id: str) -> bool:
        """Delete a session with everything that belongs to it; return whether it existed. A session that
        another process has claimed is refused with `SessionClaimed`.

        Only users delete sessions. A store never deletes one because it cannot be read.
        """

    async def claim(self, session_id: str, owner: str) -> None:
        """Become the one live writer of a session. `owner` names the claimant to people.

        Refused with `SessionClaimed` while another owner has it. A claim ends with `release`, with the store
        or with the process, however that ends. Claiming twice as one owner is the same as claiming once.
        """

    async def release(self, session_id: str, owner: str) -> None:
        """Release a claim. A claim that is not held, or of a session that is gone, is ignored."""

    async def aclose(self) -> None:
        """Finish all calls, release all claims and close everything. Safe to call twice."""


class CheckReport(NamedTuple):
    """The result of the check of a store."""

    problems: tuple[str, ...]
    """Problems of the file as a whole, in the words of the store."""
    faults: Mapping[str, Fault]
    """Faults of sessions, by id. The store notes them as `note_fault` does."""
    whole: bool
    """Whether everything was checked in the time that was given."""


@runtime_checkable
class ChecksItself(Protocol):
    """A store that can look for damage. Stores need not implement it."""

    async def check(self, *, seconds: float) -> CheckReport:
        """Check everything in the store while it is in use, for about `seconds` at most."""


@runtime_checkable
class CommitsInPlace(Protocol):
    """A store that can commit a small batch without waiting, most of the time. No store has to."""

    @property
    def free(self) -> bool:
        """Whether `append_in_place` is worth a try now. It is not while other writes are under way, because
        those that come together are committed together."""

    def append_in_place(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> bool:
        """Do what `append` does, now. Return `False` if that would have to wait; then nothing was done."""


def commits_in_place(store: Store) -> CommitsInPlace | None:
    """Return the store, if it commits in place. A class that overrides `append` has to override
    `append_in_place` too; if it does not, every batch goes through its `append`."""
    if not isinstance(store, CommitsInPlace):
        return None
    for kind in type(store).__mro__:
        if "append_in_place" in vars(kind):
            return store
        if "append" in vars(kind):
            return None
    return None


def joined_events(batch: Batch) -> bytes:
    """Join the events of a batch to lines. Raises `EventRefused` if they could not be read back as lines.

    Every store calls it before it writes. It costs about as much as joining the events.
    """
    lines = b"\n".join(batch.events)
    if lines.count(b"\n") != len(batch.events) - 1 or not all(batch.events):
        wrong = next(
            seq for seq, event in enumerate(batch.events, batch.first) if not event or b"\n" in event
        )
        raise EventRefused(f"event {wrong} is not one line of JSON; nothing of its batch was written")
    if not lines.isascii():
        try:
            lines.decode("utf-8")
        except UnicodeDecodeError as error:
            raise EventRefused(
                f"events {batch.first} to {batch.last} are not UTF-8: {error.reason}; none was written"
            ) from None
    return lines


class Waiters:
    """Calls that wait for journals to grow."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[tuple[int, asyncio.Future[int]]]] = {}

    def add(self, session_id: str, after: int) -> asyncio.Future[int]:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(session_id, []).append((after, future))
        future.add_done_callback(lambda _: self._discard(session_id, future))
        return future

    def _discard(self, session_id: str, future: asyncio.Future[int]) -> None:
        left = [entry for entry in self._waiting.get(session_id, ()) if entry[1] is not future]
        if left:
            self._waiting[session_id] = left
        else:
            self._waiting.pop(session_id, None)

    @property
    def sessions(self) -> Collection[str]:
        return self._waiting.keys()

    def wake(self, session_id: str, last: int) -> None:
        """Wake the calls that wait for events up to `last`, where the journal ends now."""
        for after, future in self._waiting.get(session_id, ()):
            if last > after and not future.done():
                future.set_result(last)

    def fail(self, session_id: str, error: AntiphonError) -> None:
        for _, future in self._waiting.get(session_id, ()):
            if not future.done():
                future.set_exception(error)
                future.exception()  # a caller that was cancelled meanwhile does not look at it


async def all_records(store: Store) -> AsyncIterator[SessionRecord]:
    """Yield the records of all sessions, page by page."""
    after: str | None = None
    while True:
        listing = await store.list(after=after)
        for record in listing.records:
            yield record
        if (after := listing.next) is None:
            return


def list_cursor(record: SessionRecord) -> str:
    """Return the cursor of the list after `record`."""
    place = msgspec.json.encode((record.created_at, record.session_id))
    return base64.urlsafe_b64encode(place).decode()


def list_place(cursor: str) -> tuple[int, str]:
    """Return the creation time and the id of the last listed session, from a cursor."""
    try:
        place = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)
        return msgspec.json.decode(place, type=tuple[Number, str])
    except (binascii.Error, UnicodeEncodeError, msgspec.DecodeError) as error:
        raise CursorInvalid(f"not a cursor of this list: {cursor[:60]!r}") from error


def check_reading(after: int, limit: int) -> None:
    """Check the arguments of a read. Raises `ValueError`."""
    if not 0 <= after <= HIGHEST or limit < 1:
        raise ValueError(f"cursor must be >= 0 and limit >= 1, got cursor {after} and limit {limit}")
