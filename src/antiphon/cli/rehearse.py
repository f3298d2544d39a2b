"""`antiphon rehearse`: the built-in agent over stdio."""

from __future__ import annotations

import sys
from pathlib import Path

from antiphon.cli.own_command import here
from antiphon.private_files import make_private_folder
from antiphon.rehearsal import make_agent
from antiphon.stores.base import Store
from antiphon.stores.sqlite import SQLiteStore


def run_rehearsal(data: str | None) -> None:
    if sys.stdin.isatty():
        print(
            f"antiphon: it speaks ACP, for clients; `{here('prompt')} plan` is for people, Ctrl-C ends this",
            file=sys.stderr,
        )
    store: Store | None = None
    if data is not None:
        folder = Path(data)
        make_private_folder(folder, ours=("sessions.db",))
        store = SQLiteStore(folder / "sessions.db")
    make_agent(store=store, may_exit=True).run()
