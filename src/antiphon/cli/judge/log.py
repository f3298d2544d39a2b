"""`antiphon log`: a recording or a session as a timeline, on the terminal, as JSON or as one HTML file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from antiphon.cli.commands.options import HubPlace
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub_client import reporting
from antiphon.cli.output.streams import write_styled
from antiphon.cli.program import print_note
from antiphon.cli.timeline import journaled, recorded
from antiphon.cli.timeline.entries import Timeline
from antiphon.cli.timeline.lines import to_json_lines, to_lines
from antiphon.cli.timeline.page import to_html
from antiphon.cli.transfer import find_account
from antiphon.conformance import RecordingRefused, read_recording
from antiphon.hub import recorded_agent
from antiphon.session_files import FileRefused, import_session, read_account
from antiphon.stores import MemoryStore
from antiphon.text_safety import safe_text
from antiphon.transcripts import Account
from antiphon.transcripts import to_html as transcript_page

HEAD = 4096
"""Bytes in which a session file says that it is one."""


@reporting
async def run(*, source: str, json: bool, html: str | None, place: HubPlace) -> Exit | None:
    found = await _find(source, place)
    if html is not None:
        _write_page(found, html)
        return None
    timeline = found if isinstance(found, Timeline) else journaled.timeline_of(found)
    if json:
        _write_bytes(to_json_lines(timeline))
    else:
        text = "".join(f"{line}\n" for line in to_lines(timeline, width=shutil.get_terminal_size().columns))
        write_styled(sys.stdout, click.unstyle(text) if os.environ.get("NO_COLOR") else text)
    return None


async def _find(source: str, place: HubPlace) -> Account | Timeline:
    """Return what a file or a session of the hub holds. Raises `Failure`."""
    file = _file(source)
    if file is None:
        return await find_account(source, place)
    return await _read_session(file) if _is_session(file) else _read_recording(file)


def _file(source: str) -> Path | None:
    """Return the file that a word names, `None` if it names a session. Raises `Failure`."""
    path = Path(source)
    if path.is_file():
        return path
    if os.sep in source or path.suffix:
        raise Failure(f"cannot read {source}: there is no such file", Exit.USAGE)
    return None


def _is_session(path: Path) -> bool:
    with path.open("rb") as file:
        return b'"format":"antiphon session"' in file.read(HEAD).partition(b"\n")[0]


async def _read_session(path: Path) -> Account:
    """Read an exported session. Of a damaged one, the part before the damage is read."""
    store = MemoryStore()
    try:
        with path.open("rb") as file:
            record = await import_session(store, file, partial=True)
    except FileRefused as refused:
        raise Failure(f"cannot read {path}: {refused}") from None
    return await read_account(store, record.session_id, agent=recorded_agent(record))


def _read_recording(path: Path) -> Timeline:
    try:
        return recorded.timeline_of(read_recording(path), path.name)
    except RecordingRefused as refused:
        raise Failure(f"cannot read {path}: {refused}") from None


def _write_page(found: Account | Timeline, output: str) -> None:
    pieces = to_html(found) if isinstance(found, Timeline) else transcript_page(found)
    if output == "-":
        _write_bytes(pieces, end="")
        return
    with open(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.writelines(safe_text(piece).encode() for piece in pieces)
    print_note(f"wrote {output}")


def _write_bytes(pieces: Iterable[str], *, end: str = "\n") -> None:
    for piece in pieces:
        sys.stdout.buffer.write(f"{piece}{end}".encode())
    sys.stdout.buffer.flush()
