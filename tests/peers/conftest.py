"""Real agents for tests: started offline, each with a HOME of its own, and nothing of them left running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.peers import agents, install

OBSTACLES: set[str | None] = set()
"""Why agents could not be kept from the network, or None; gathered over the whole run."""


@pytest.fixture
def real_agent(tmp_path: Path) -> Iterator[Callable[[str], agents.Launch]]:
    """`real_agent(name)` prepares one of `agents.AGENTS`, or skips with the reason why it cannot be had.

    Asked twice for the same name it answers with the same launch: a restart finds the same HOME. At the end
    everything that was started must be gone; what is not is killed, and the test fails.
    """
    launches: dict[str, agents.Launch] = {}

    def prepared(name: str) -> agents.Launch:
        if name not in launches:
            try:
                launches[name] = agents.prepare(name, tmp_path / name)
            except install.PeerUnavailable as reason:
                pytest.skip(f"{name} cannot be had: {reason}")
        return launches[name]

    yield prepared
    left = [process for launch in launches.values() for process in launch.left_running()]
    left = agents.still_there(left, 20.0)  # on their way out, perhaps
    told = [_kill(process) for process in left]
    for launch in launches.values():
        if (launch.folder / "started.json").exists():
            OBSTACLES.add(launch.started["obstacle"])
    assert not told, f"still running: {told}"


def _kill(process: psutil.Process) -> str:
    try:
        told = f"{process.pid} {' '.join(process.cmdline())[:100]}"
        process.kill()
    except psutil.Error as error:
        return str(error)
    return told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for obstacle in sorted(OBSTACLES, key=str):
        how = "with loopback only" if obstacle is None else f"with this machine's network, for {obstacle}"
        terminalreporter.write_line(f"real agents ran {how}")
