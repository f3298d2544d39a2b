"""`antiphon rehearse`: the built-in agent over stdio."""

from __future__ import annotations

import sys
from pathlib import Path

from antiphon.rehearsal import make_agent
from antiphon.stores.base import Store
from antiphon.stores.sqlite import SQLiteStore


def run_rehearsal(data: str | None) -> None:
    if sys.stdin.isatty():
        print(
            "This speaks the Agent Client Protocol over stdin and stdout: start it from a client.",
            file=sys.stderr,
        )
    store: Store | None = None
    if data is not None:
        folder = Path(data)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        store = SQLiteStore(folder / "sessions.db")
    make_agent(store=store).run()
