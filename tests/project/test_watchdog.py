"""What a test run has started ends with it, also when the run is killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0
STARTS_A_PROCESS = """
import subprocess, time

def test_that_does_not_end():
    # A session of its own: neither a hangup nor the process group reaches it.
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open({told!r}, "w") as told:
        told.write(f"{{child.pid}}\\n")
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the watchdog reads /proc")
@pytest.mark.parametrize(
    ("number", "workers"),
    [(signal.SIGTERM, []), (signal.SIGKILL, ["-p", "xdist.plugin", "-n", "1"])],
    ids=["terminated", "killed, with workers"],
)
def test_what_a_test_started_ends_when_the_run_is_killed(
    tmp_path: Path, number: signal.Signals, workers: list[str]
) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    (tmp_path / "test_it.py").write_text(STARTS_A_PROCESS.format(told=str(told)))
    (tmp_path / "conftest.py").write_text("from tests.watchdog import pytest_configure\n")
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", tmp_path, *workers, tmp_path],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    try:
        child = os.pidfd_open(int(told.read_text()))  # reading waits for the test to write
        run.send_signal(number)
        run.wait(DEADLINE)
        ended, _, _ = select.select([child], [], [], DEADLINE)
        os.close(child)
        assert ended
    finally:
        run.kill()
        run.wait()
