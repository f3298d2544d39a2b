"""StoreCheck: looks for damage in what a hub keeps when the hub starts, and reports it in the log.

A small store is checked before clients come. A large one is checked while they are served: the start waits
for a moment only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from antiphon.errors import StoreError
from antiphon.stores.base import CheckReport, ChecksItself, FaultKind, Store

logger = logging.getLogger("antiphon.hub")

LONGEST = 120.0
"""Seconds after which a check ends, whatever is left to be checked."""
WAIT = 0.5
"""Seconds for which the start of the hub waits for it."""
SHOWN = 20
"""How many damaged sessions are named in the log."""


class StoreCheck:
    def __init__(
        self,
        store: Store,
        noticed: Callable[[str], None],
        *,
        wait: float = WAIT,
        longest: float = LONGEST,
    ) -> None:
        """`noticed` is called with each session that was found to be damaged."""
        self._store = store
        self._noticed = noticed
        self._wait = wait
        self._longest = longest
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Begin, and wait for a moment. A store that cannot check itself is not checked."""
        if self._task is None and isinstance(self._store, ChecksItself):
            self._task = asyncio.get_running_loop().create_task(self._run(self._store))
            await asyncio.wait([self._task], timeout=self._wait)

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self, store: ChecksItself) -> None:
        try:
            report = await store.check(seconds=self._longest)
        except StoreError as error:
            logger.info("store check failed: %s", error)  # who uses the store meets it, and tells it
            return
        _log(report)
        for session_id in report.faults:
            self._noticed(session_id)


def _log(report: CheckReport) -> None:
    for problem in report.problems:
        logger.warning("store check: the file is damaged: %s", problem)
    damaged = {id: fault for id, fault in report.faults.items() if fault.kind is FaultKind.DAMAGED}
    for id, fault in list(damaged.items())[:SHOWN]:
        logger.warning("store check: session %s is damaged: %s", id, fault.found)
    if damaged or report.problems:
        logger.warning(
            "store check: %d damaged sessions found; the others are served and nothing was changed. "
            "`antiphon sessions export ID` writes what is readable of one",
            len(damaged),
        )
    if not report.whole:
        logger.warning("store check: not finished in time; the rest is checked when it is opened")
