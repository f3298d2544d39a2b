"""`antiphon sessions export|import|fork`: copy sessions between hubs and files."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from antiphon.cli.commands.options import HubPlace
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub_client import find_named, find_session, open_client, reporting, stored_sessions
from antiphon.cli.program import print_note
from antiphon.cli.shared_store import make_store
from antiphon.client import Client
from antiphon.errors import CallFailed, ResourceNotFound, SessionExists, StoreCorrupt, StoreFull
from antiphon.hub import HubFolder, imported_record, recorded_agent
from antiphon.schema.antiphon import hub as wire
from antiphon.session_files import FileRefused, Missing, export_session, import_session, read_account
from antiphon.stores import PAGE_BYTES, Batch, Page, SessionRecord, SQLiteStore, Store, all_records
from antiphon.text_safety import safe_line, safe_text
from antiphon.transcripts import Account, to_html, to_markdown

if TYPE_CHECKING:
    from antiphon.stores import JetStreamStore

ENDINGS = {"antiphon": ".antiphon", "markdown": ".md", "html": ".html"}
WRITERS: dict[str, Callable[[Account], Iterator[str]]] = {"markdown": to_markdown, "html": to_html}
RESERVE = 256 * 1024 * 1024
"""Bytes of the disk that an import leaves free for a running hub."""


@reporting
async def run_export(*, session: str, output: str | None, format: str | None, place: HubPlace) -> None:
    kind = format or _format_of(output)
    if place.hub is not None or (place.store is None and _shared_store_of(place)):
        await _export_from_hub(session, output, kind, place)
        return
    async with _stored(place) as store:
        record = await _find(store, session)
        with _written(output, record.session_id + ENDINGS[kind]) as file:
            missing = _Missing()
            if kind == "antiphon":
                await export_session(store, record.session_id, file.write, report=missing.add)
            else:
                agent = recorded_agent(record)
                found = await read_account(store, record.session_id, agent=agent, report=missing.add)
                _write_text(file, WRITERS[kind](found))
        missing.report()


async def find_account(session: str, place: HubPlace) -> Account:
    """Return the account of a session: from the data folder, a shared store or a running hub."""
    missing = _Missing()
    if place.hub is not None or (place.store is None and _shared_store_of(place)):
        async with open_client(place) as client:
            id = (await find_session(client, session)).session_id
            found = await read_account(HubJournals(client), id, report=missing.add)
    else:
        async with _stored(place) as store:
            record = await _find(store, session)
            agent = recorded_agent(record)
            found = await read_account(store, record.session_id, agent=agent, report=missing.add)
    missing.report()
    return found


def _shared_store_of(place: HubPlace) -> str:
    """Return the shared store of the hub that runs in the data folder; empty if there is none."""
    running = HubFolder(place.data).running()
    return "" if running is None else running.store


def _stored(place: HubPlace) -> JetStreamStore | SQLiteStore:
    """Return the store to export from. Raises `Failure`."""
    if place.store is not None:
        return make_store(place.store)
    return SQLiteStore(stored_sessions(place).sessions, read_only=True)


async def _export_from_hub(session: str, output: str | None, kind: str, place: HubPlace) -> None:
    """Export from a running hub. Owners can read the journal; every client can get a transcript."""
    async with open_client(place) as client:
        info = await find_session(client, session)
        missing = _Missing()
        with _written(output, info.session_id + ENDINGS[kind]) as file:
            if kind == "antiphon":
                await export_session(HubJournals(client), info.session_id, file.write, report=missing.add)
            else:
                asked = wire.TranscriptRequest(session_id=info.session_id, format=wire.TranscriptFormat(kind))
                answer: wire.TranscriptResponse = await client.connection.call("_antiphon/transcript", asked)
                _write_text(file, iter([answer.content]))
                missing.lines += [f"session {info.session_id}: {gap}" for gap in answer.missing]
        missing.report()


class _Missing:
    """The parts that an export could not read, reported on stderr after the file is written."""

    SHOWN = 20

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, missing: Missing) -> None:
        self.lines.append(f"session {missing.session_id}: {missing}")

    def report(self) -> None:
        if not self.lines:
            return
        lines = ["the session is damaged: the file has the readable part", *self.lines[: self.SHOWN]]
        if len(self.lines) > self.SHOWN:
            lines.append(f"and {len(self.lines) - self.SHOWN} more places")
        for line in lines:
            print_note(safe_line(line, limit=300))


def _format_of(output: str | None) -> str:
    """Return the format for the ending of a file name."""
    ending = "" if output is None else Path(output).suffix.lower()
    return {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html"}.get(
        ending, "antiphon"
    )


@reporting
async def run_import(
    *,
    file: str,
    named: str | None,
    agent: str | None,
    cwd: str | None,
    partial: bool,
    place: HubPlace,
) -> None:
    if place.hub is not None:
        raise Failure(
            "import works on the data folder of a hub, or on a shared store: run it without --hub",
            Exit.USAGE,
        )
    store, check = _importing(place)
    with _opened(file) as source:
        async with store:
            try:
                record = await import_session(
                    store,
                    source,
                    session_id=named,
                    cwd=cwd,
                    partial=partial,
                    settle=lambda record: imported_record(record, agent=agent, copy=named is not None),
                    check=check,
                )
            except FileRefused as refused:
                raise Failure(f"cannot import {file}: {refused}") from None
            except SessionExists as exists:
                raise Failure(f"{exists}: give it another id with --as ID") from None
    sys.stdout.write(safe_line(record.session_id) + "\n")
    _note_folder(record)


def _importing(place: HubPlace) -> tuple[JetStreamStore | SQLiteStore, Callable[[], None]]:
    """Return the store to import into, and a check that it has room. Raises `Failure`."""
    if place.store is not None:
        return make_store(place.store), lambda: None  # NATS refuses what it has no room for
    shared = _shared_store_of(place)
    if shared:
        raise Failure(f"the hub keeps its sessions in {shared}: name these servers with --store", Exit.USAGE)
    folder = HubFolder(place.data)
    folder.make()

    def check() -> None:
        if shutil.disk_usage(folder.path).free < RESERVE:
            raise StoreFull(f"too little disk space for this session in {folder.path}")

    return SQLiteStore(folder.sessions), check


def _note_folder(record: SessionRecord) -> None:
    if not os.path.isdir(record.cwd):
        note = f"its folder {record.cwd} does not exist here: import it with --cwd DIR to use another one"
        print_note(safe_line(note, limit=600))


@reporting
async def run_fork(*, session: str, at: str | None, place: HubPlace) -> None:
    async with open_client(place, store=True) as client:
        info = await find_session(client, session)
        async with client.attach(info.session_id, cwd=info.cwd) as opened:
            message = None if at is None else _message(opened, at)
            forked = await opened.fork(at=message)
            sys.stdout.write(safe_line(forked.id) + "\n")


def _message(session: Any, named: str) -> str:
    """Return the id of the message that `named` is, or begins. Raises `Failure`."""
    ids = list(dict.fromkeys(str(message.id) for message in session.messages))
    near = [id for id in ids if id == named] or [id for id in ids if id.startswith(named) and len(named) >= 4]
    if len(near) == 1:
        return near[0]
    if near:
        raise Failure(f"{len(near)} message ids begin with {named!r}: give more characters", Exit.USAGE)
    last = "; ".join(
        f"{message.id} {safe_line(message.text, limit=40)!r}" for message in session.messages[-4:]
    )
    raise Failure(
        f"there is no message {named!r}; the last ones are {last}" if last else "the session has no messages"
    )


async def _find(store: Store, named: str) -> SessionRecord:
    exact = await store.get(named)
    return exact or find_named([record async for record in all_records(store)], named)


_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]")
LONGEST_NAME = 200
"""Characters of a file name that is made from a session id."""


@contextmanager
def _written(output: str | None, usual: str) -> Iterator[BinaryIO]:
    """Open the output: stdout for `-`, otherwise a private file that appears when it is complete."""
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(_UNUSUAL.sub("_", usual)[-LONGEST_NAME:] if output is None else output)
    if output is None and path.exists():
        raise Failure(f"{path} exists: give another name with -o, or the same name to replace it", Exit.USAGE)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
        os.replace(draft, path)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    print_note(f"wrote {path}")


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with open(file, "rb") as opened:
            yield opened
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}") from error


def _write_text(file: BinaryIO, pieces: Iterator[str]) -> None:
    file.writelines(safe_text(piece).encode() for piece in pieces)


class HubJournals:
    """The methods of a store that an export needs, over a connection to a hub."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, session_id: str) -> SessionRecord | None:
        try:
            page = await self._page(session_id, 0)
        except CallFailed as error:
            if error.error.code == ResourceNotFound.code:
                return None
            raise
        return msgspec.convert(page.record, SessionRecord)

    async def read(self, session_id: str, after: int, *, limit_bytes: int = PAGE_BYTES) -> Page:
        """Read a page. The hub decides how large it is."""
        page = await self._page(session_id, after)
        damage = page.damage
        if damage is not None:
            raise StoreCorrupt(
                f"session {session_id} is damaged: {damage.found}", found=damage.found, resume=damage.resume
            )
        events = tuple(line.encode() for line in page.events)
        batches = (Batch(after + 1, events),) if events else ()
        return Page(batches, after + len(events), page.last)

    async def _page(self, session_id: str, after: int) -> wire.JournalResponse:
        asked = wire.JournalRequest(session_id=session_id, after=after)
        page: wire.JournalResponse = await self._client.connection.call("_antiphon/journal", asked)
        return page
