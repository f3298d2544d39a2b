"""`make cluster`: three NATS servers and three hubs on this machine, until Ctrl-C.

Parts of it may be killed to see what happens: the others go on. At the end nothing of it is left.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from antiphon.hub.process import reap

COUNT = 3
STARTS_WITHIN = 60.0
ENDS_WITHIN = 20.0
"""Seconds: a hub lets running turns end for ten."""
BIN = Path(sys.executable).parent
PR_SET_PDEATHSIG = 1


class Failed(Exception):
    """A part could not be started."""


class Part:
    """One process of the stand. Its output is in a file."""

    def __init__(self, name: str, folder: Path, command: list[str]) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            # A session of its own: Ctrl-C reaches the stand alone, which ends the parts in order.
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_us,
            )

    def wait_until(self, ready: Callable[[], bool]) -> None:
        until = time.monotonic() + STARTS_WITHIN
        while not ready():
            if self.process.poll() is not None or time.monotonic() > until:
                raise Failed(f"{self.name} did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.05)

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)


def _die_with_us() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Stand:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: list[Part] = []
        self._hubs: list[Part] = []
        self.store = ""

    def hub_folder(self, number: int) -> Path:
        return self._folder / f"hub{number + 1}"

    def start(self) -> None:
        """Start everything, and return when clients can connect. Raises `Failed`."""
        self._start_servers()
        ready_files = [self._folder / f"hub{n + 1}.json" for n in range(COUNT)]
        for n, ready in enumerate(ready_files):
            name = f"hub{n + 1}"
            command = [
                sys.executable,
                "-m",
                "antiphon",
                "serve",
                "--data",
                str(self.hub_folder(n)),
                "--port",
                "0",
            ]
            command += ["--ready-file", str(ready), "--store", self.store, "--replicas", str(COUNT)]
            self._hubs.append(Part(name, self._folder, [*command, "--label", name, "--movable"]))
        for hub, ready in zip(self._hubs, ready_files, strict=True):
            hub.wait_until(ready.exists)

    def _start_servers(self) -> None:
        program = shutil.which("nats-server", path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
        if program is None:
            raise Failed("nats-server is not installed: `make setup` installs it")
        ports = _free_ports(3 * COUNT)
        clients, routes, monitors = ports[:COUNT], ports[COUNT : 2 * COUNT], ports[2 * COUNT :]
        self.store = "nats://" + ",".join(f"127.0.0.1:{port}" for port in clients)
        others = ", ".join(f"nats://127.0.0.1:{port}" for port in routes)
        for n in range(COUNT):
            name = f"nats{n + 1}"
            config = self._folder / f"{name}.conf"
            config.write_text(
                f'server_name: {name}\nlisten: "127.0.0.1:{clients[n]}"\nhttp: "127.0.0.1:{monitors[n]}"\n'
                f'jetstream {{ store_dir: "{self._folder / name}" }}\n'
                f'cluster {{ name: local, listen: "127.0.0.1:{routes[n]}", routes: [{others}] }}\n'
            )
            self._servers.append(Part(name, self._folder, [program, "-c", str(config)]))
        for server, port in zip(self._servers, monitors, strict=True):
            server.wait_until(partial(_is_complete, port))

    def watch(self) -> None:
        """Report each part that ends, until none is left."""
        parts = {part.process.pid: part for part in [*self._servers, *self._hubs]}
        while parts:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            assert ended is not None
            part = parts.pop(ended.si_pid)
            print(f"{part.name} ended with code {part.process.wait()}", flush=True)

    def stop(self) -> None:
        """End the hubs, then the servers, and what a killed hub left."""
        _end(self._hubs, ENDS_WITHIN)
        for n in range(COUNT):
            with suppress(FileNotFoundError):
                reap((self.hub_folder(n) / "mark").read_text())
        _end(self._servers, ENDS_WITHIN)

    def kill(self) -> None:
        for part in [*self._hubs, *self._servers]:
            part.signal(signal.SIGKILL)


def _end(parts: list[Part], patience: float) -> None:
    for part in parts:
        part.signal(signal.SIGTERM)
    until = time.monotonic() + patience
    for part in parts:
        try:
            part.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            part.process.kill()
            part.process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _is_complete(monitor: int) -> bool:
    """Return whether a server knows all others, and who leads them."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/jsz", timeout=2) as answer:
            found = json.load(answer).get("meta_cluster", {})
    except OSError:
        return False
    return bool(found.get("leader")) and found.get("cluster_size") == COUNT


def _instructions(stand: Stand) -> str:
    program = os.path.relpath(BIN / "antiphon")
    lines = ["", "  Three hubs on three NATS servers. The session list is the same on each.", ""]
    for n in range(COUNT):
        data = f"--data {stand.hub_folder(n)}"
        lines.append(f"  hub {n + 1}   {program} attach {data}")
        page = f"{program} link {data}"
        # A link makes its reader an owner, so it must not get into a log file.
        if sys.stdout.isatty():
            page = subprocess.run(
                [BIN / "antiphon", "link", *data.split()], capture_output=True, text=True
            ).stdout.strip()
        lines.append(f"  page    {page}")
    lines += ["", f"  {program} cluster status --store {stand.store}", "", "  Ctrl-C ends everything.", ""]
    return "\n".join(lines)


def main() -> int:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    with tempfile.TemporaryDirectory(prefix="antiphon-cluster-") as folder:
        stand = Stand(Path(folder))
        try:
            print("Starting three NATS servers and three hubs…", flush=True)
            stand.start()
            print(_instructions(stand), flush=True)
            stand.watch()
            print("Every part has ended.")
            return 1
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("Ending; Ctrl-C again kills.", flush=True)
            return 0
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, lambda *_: stand.kill())
            stand.stop()


if __name__ == "__main__":
    sys.exit(main())
