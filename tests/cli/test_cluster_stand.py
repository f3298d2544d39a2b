"""`make cluster` starts everything, and leaves nothing."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.hub.running import DEADLINE, ROOT
from tests.stores.nats_servers import SERVER

pytestmark = pytest.mark.skipif(SERVER is None, reason="nats-server is not installed")


def running(mark: str, named: str = "") -> dict[int, str]:
    """What runs with this in its environment, and has the name in its command."""
    found = {}
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if named in command:
                    found[int(process.name)] = command
    return found


@pytest.mark.parametrize("kill", [False, True], ids=["whole", "parts killed"])
def test_a_stand_serves_and_leaves_nothing(kill: bool, tmp_path: Path) -> None:
    mark = f"TMPDIR={tmp_path}"
    stand = subprocess.Popen(
        [sys.executable, "-m", "tools.cluster"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert stand.stdout is not None
        shown = ""
        for line in stand.stdout:
            shown += line
            if "Ctrl-C ends everything" in line:
                break
        attach = re.findall(r"hub \d +(\S+ attach .*)", shown)
        assert len(attach) == 3, shown
        command = [*shlex.split(attach[1]), "new"]
        done = subprocess.run(
            command, cwd=ROOT, input="plan\n", capture_output=True, text=True, timeout=DEADLINE, check=False
        )
        assert "All three steps are done." in done.stdout, done.stderr
        status = shlex.split(re.findall(r"(\S+ cluster status .*)", shown)[0])
        listed = subprocess.run(
            status, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE, check=True
        )
        assert re.search(r"antiphon-index +1 +\d+ B +3 +nats\d", listed.stdout), listed.stdout
        if kill:
            for part in ("--label hub2", "nats1.conf"):
                [pid] = running(mark, part)
                os.kill(pid, signal.SIGKILL)
                assert any("ended with code -9" in line for line in stand.stdout)
        stand.send_signal(signal.SIGINT)
        assert stand.wait(DEADLINE) == 0
    finally:
        stand.kill()
        stand.wait()
        assert stand.stdout is not None
        stand.stdout.close()
    until = time.monotonic() + DEADLINE
    while (left := running(mark)) and time.monotonic() < until:
        time.sleep(0.02)
    assert left == {}
    assert list(tmp_path.iterdir()) == []
