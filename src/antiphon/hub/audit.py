"""Audit: one JSON line for each act: who did what, in which session, when, and what came of it.

Names and ids only: no secret, and nothing of what was said. Each token has a budget of lines of its own
(`audit_budget`): what is over it is counted, and the counts are written as a line of their own.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from antiphon.hub.audit_budget import AuditBudget
from antiphon.live.presence import rfc3339
from antiphon.private_files import NotPrivate, open_private

logger = logging.getLogger("antiphon.hub")

SIZE = 8 * 1024 * 1024
OLD = 3
"""How many full files stay beside the one that is written."""
CLIP = 200
"""Characters of one value."""


class Audit:
    """Without a path, nothing is kept. What cannot be written is told in the log, once, and lost."""

    def __init__(
        self, path: Path | None = None, *, size: int = SIZE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._size = size
        self._budget = AuditBudget(clock=clock)
        self._fd: int | None = None
        self._written = 0
        self._failed = False

    def note(
        self, act: str, outcome: str, *, token: str | None = None, session: str | None = None, **about: Any
    ) -> bool:
        """Write a line, if the budget of the token has room for it; else count it. Return which of them.

        An act without a token is the hub's own, and goes by its session. What is `None` is left out.
        """
        if self._path is None:
            return True
        listed = self._budget.take(act, outcome, token=token, session=session)
        if listed:
            self._write(act, outcome, token=token, session=session, **about)
        self.tell_unlisted()
        return listed

    def tell_unlisted(self, *, all: bool = False) -> None:
        """Write what was counted and not listed: of a token once a minute, unless `all` is asked for."""
        for who, counts in self._budget.due(all=all) if self._path is not None else ():
            self._write("unlisted", "counted", **who, counts=counts)

    def close(self) -> None:
        self.tell_unlisted(all=True)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write(self, act: str, outcome: str, **about: Any) -> None:
        at = rfc3339(time.time_ns() // 1_000_000)
        told = {name: _harmless(value) for name, value in about.items() if value is not None}
        line = msgspec.json.encode({"at": at, "act": act, "outcome": _harmless(outcome), **told}) + b"\n"
        try:
            os.write(self._open(len(line)), line)
        except (OSError, NotPrivate) as error:
            if not self._failed:
                why = error.strerror if isinstance(error, OSError) else error
                logger.warning("the audit log cannot be written: %s", why)
            self._failed = True

    def _open(self, more: int) -> int:
        assert self._path is not None
        if self._fd is not None and self._written + more > self._size:
            os.close(self._fd)
            self._fd = None
            _rotate(self._path)
        if self._fd is None:
            self._fd = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._written = os.fstat(self._fd).st_size
        self._written += more
        return self._fd


def _rotate(path: Path) -> None:
    files = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, OLD + 1))]
    for newer, older in reversed(list(itertools.pairwise(files))):
        if newer.exists():
            os.replace(newer, older)


def _harmless(value: Any) -> Any:
    """Return a value that is short and shows as what it is, whatever a client put into it."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, dict):
        return {_harmless(key): _harmless(each) for key, each in value.items()}
    text = str(value)[:CLIP]
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    )
