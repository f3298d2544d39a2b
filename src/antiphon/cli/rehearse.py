"""`antiphon rehearse`: run the built-in agent over stdio."""

from __future__ import annotations

import sys
from pathlib import Path

from antiphon.cli.program import command_line
from antiphon.private_files import make_private_folder
from antiphon.rehearsal import make_agent
from antiphon.stores import SQLiteStore, Store


def run_rehearsal(data: str | None) -> None:
    if sys.stdin.isatty():
        advice = f"try `{command_line('prompt')} plan` instead, or end it with Ctrl-C"
        print(f"antiphon: this command speaks ACP on stdin and stdout; {advice}", file=sys.stderr)
    store: Store | None = None
    if data is not None:
        folder = Path(data)
        make_private_folder(folder, ours=("sessions.db",))
        store = SQLiteStore(folder / "sessions.db")
    make_agent(store=store, may_exit=True).run()
