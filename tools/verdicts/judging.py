"""Judge one peer: start what it needs, run the suite of its party, and clean up."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from antiphon.conformance import Options, Progress, Prompts, Report, check, check_client, check_hub
from antiphon.conformance.targets import CommandTarget
from antiphon.hub import HubFolder
from tools.verdicts.peers import Peer, environment

TIMEOUT = 60.0
DEADLINE = 600.0
"""Seconds of one scenario: real agents take long to start on a busy machine."""
ENDS_WITHIN = 20.0
"""Seconds that a hub has to end: it lets running turns end for ten."""


async def judge(
    peer: Peer,
    folder: Path,
    *,
    only: tuple[str, ...] = (),
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> Report:
    """Judge a peer. Raises `PeerUnavailable`, and what `check` and `check_client` raise."""
    options = Options(
        revision=peer.revision,
        prompts=Prompts(**peer.prompts),
        only=only,
        timeout=timeout,
        deadline=DEADLINE,
        jobs=peer.jobs,
    )
    command = peer.command(folder)
    if peer.party == "client":
        return await check_client(command, options, versions=peer.versions, progress=progress)
    if peer.party == "hub":
        return await check_hub(command, options, versions=peer.versions, progress=progress)
    target = CommandTarget(command, cwd=str(folder), env=environment(peer))
    return await check(target, options=options, progress=progress)


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder for one peer, and end the hub that a peer may have started in it."""
    with tempfile.TemporaryDirectory(prefix="antiphon-verdicts-", ignore_cleanup_errors=True) as name:
        try:
            yield Path(name)
        finally:
            _end_hub(Path(name) / "hub")


def _end_hub(folder: Path) -> None:
    running = HubFolder(folder).running() if folder.exists() else None
    if running is None:
        return
    hub = psutil.Process(running.pid)
    os.kill(running.pid, signal.SIGTERM)
    psutil.wait_procs([hub], ENDS_WITHIN)
