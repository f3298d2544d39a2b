"""`antiphon tap`: record what an editor and an agent say to each other, without changing it."""

from __future__ import annotations

import os
from datetime import datetime
from itertools import count
from pathlib import Path

from antiphon.cli.agents import resolve
from antiphon.cli.error_lines import print_error
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.program import print_note
from antiphon.conformance import RecordingWriter, end_like, run_tap
from antiphon.errors import SpawnFailed
from antiphon.paths import short_path


def run(*, agent: list[str], log: str | None) -> int:
    """Run the agent, and return its exit code; if a signal ended it, the same signal ends this process."""
    try:
        command = resolve(agent)
        if isinstance(command, str):
            raise Failure("tap records over stdio: give the command of an agent after --", Exit.USAGE)
        path = new_file(Path(log) if log is not None else _usual())
        if log is None:
            print_note(f"recording to {short_path(str(path))}")
        with RecordingWriter(path) as writer:
            code = run_tap(command, writer.frame, failed=_note_failure)
    except (Failure, SpawnFailed, OSError) as error:
        return print_error(error)
    return end_like(code)


def new_file(path: Path) -> Path:
    """Make a private file, with a number in its name if the name is taken: an editor may start two agents.

    Raises `OSError`.
    """
    for number in count(1):
        name = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            continue
        return name
    raise AssertionError


def _usual() -> Path:
    """Return the name of a recording in the data folder: an editor may start us in a folder of its user."""
    from antiphon.hub import HubFolder
    from antiphon.private_files import make_private_folder

    folder = HubFolder().path / "taps"
    make_private_folder(folder)
    return folder / f"{datetime.now():%Y-%m-%d-%H%M%S}.ndjson"


def _note_failure(error: OSError) -> None:
    print_note(f"recording stopped: {error.strerror or error}; the conversation continues")
