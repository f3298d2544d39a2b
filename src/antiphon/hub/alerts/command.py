"""Notify commands: run a program of the operator for each alert (`antiphon serve --notify`).

The program gets the alert as JSON on stdin, and its most important parts as environment variables. It gets no
secrets: the hub's own variables are not inherited (`child_environment`).
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Sequence

from antiphon.errors import SpawnFailed
from antiphon.hub.alerts.alert import Alert
from antiphon.hub.alerts.channel import DeliveryFailed
from antiphon.transports.processes.groups import signal_group, start_process, watch_exit

SECONDS = 30.0
"""How long the program may run. Then its process group is killed."""
STDERR = 2


class NotifyCommand:
    def __init__(self, command: Sequence[str], *, seconds: float = SECONDS) -> None:
        self._command = tuple(command)
        self._seconds = seconds

    async def deliver(self, alert: Alert) -> None:
        """Run the program and wait for its end. Raises `DeliveryFailed`."""
        try:
            process = start_process(
                self._command,
                cwd=None,
                env=variables(alert),
                stdin=subprocess.PIPE,
                stdout=STDERR,  # what it prints is for the operator
                stderr=STDERR,
            )
        except SpawnFailed as error:
            raise DeliveryFailed(str(error)) from error
        exited = asyncio.Event()
        watch_exit(process, exited.set)
        try:
            # It may read nothing, and the pipe may hold less than the alert: the system gives a user who has
            # many pipes smaller ones.
            stdin, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.Protocol, process.stdin)
            stdin.write(alert.to_json())
            stdin.close()
            async with asyncio.timeout(self._seconds):
                await exited.wait()
        except TimeoutError:
            raise DeliveryFailed(f"killed after {self._seconds:g} seconds") from None
        finally:
            if not exited.is_set():
                signal_group(process.pid, signal.SIGKILL)
                await exited.wait()
        if process.returncode != 0:
            raise DeliveryFailed(f"the command ended with code {process.returncode}")


def variables(alert: Alert) -> dict[str, str]:
    """Return the environment variables of an alert. Values hold no NUL, which `safe_line` replaces."""
    return {
        "ANTIPHON_ALERT": str(alert.kind),
        "ANTIPHON_TITLE": alert.session.title,
        "ANTIPHON_TEXT": alert.text,
        "ANTIPHON_SESSION": alert.session.id,
    }
