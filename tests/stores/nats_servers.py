"""Real NATS servers on loopback: one, or a cluster whose servers can be killed and started again."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

SERVER = shutil.which("nats-server", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
STARTS_WITHIN = 60.0


def free_ports(count: int) -> list[int]:
    """Ports that are free now, below those that the system gives to connections: a server that was killed
    finds its port free again."""
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            each = socket.socket()
            try:
                each.bind(("127.0.0.1", 20_000 + secrets.randbelow(12_000)))
                sockets.append(each)
            except OSError:
                each.close()
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class NatsServer:
    """One server process with JetStream, its files in a folder."""

    def __init__(
        self, folder: Path, name: str, port: int, settings: str = "", *, jetstream: str = ""
    ) -> None:
        """`settings` of the server, and of JetStream, as in its configuration file."""
        self.name = name
        self.port = port
        self._config = folder / f"{name}.conf"
        self._log = folder / f"{name}.log"
        self._config.write_text(
            f'server_name: {name}\nlisten: "127.0.0.1:{port}"\n'
            f'jetstream {{ store_dir: "{folder / name}"\n{jetstream} }}\n{settings}\n'
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert SERVER is not None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([SERVER, "-c", str(self._config)], stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until it accepts connections."""
        until = time.monotonic() + STARTS_WITHIN
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > until:
                    raise AssertionError(f"nats-server did not start: {self._log.read_text()}") from None
                time.sleep(0.02)

    def ensure(self) -> None:
        """Start it, unless it runs."""
        if self._process is None:
            self.start()
            self.wait()

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None


class NatsCluster:
    """Servers that keep each stream three times."""

    def __init__(self, folder: Path, count: int = 3) -> None:
        ports = free_ports(3 * count)
        ports, routed, self._monitored = ports[:count], ports[count : 2 * count], ports[2 * count :]
        routes = ", ".join(f"nats://127.0.0.1:{port}" for port in routed)
        self.servers = [
            NatsServer(
                folder,
                f"n{n}",
                ports[n],
                # Clients stay with the addresses that they were given: there may be proxies in between.
                f'cluster {{ name: local, listen: "127.0.0.1:{routed[n]}", routes: [{routes}]\n'
                f'no_advertise: true }}\nhttp: "127.0.0.1:{self._monitored[n]}"',
            )
            for n in range(count)
        ]

    @property
    def address(self) -> str:
        return ",".join(f"nats://127.0.0.1:{server.port}" for server in self.servers)

    def named(self, name: str) -> NatsServer:
        return next(server for server in self.servers if server.name == name)

    def start(self) -> None:
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.wait()
        until = time.monotonic() + STARTS_WITHIN
        while not self._is_ready():
            assert time.monotonic() < until, "the servers did not become a cluster"
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        """Return whether a leader was chosen that has contact with all other servers."""
        for port in self._monitored:
            with urlopen(f"http://127.0.0.1:{port}/jsz", timeout=STARTS_WITHIN) as reply:
                others = json.load(reply).get("meta_cluster", {}).get("replicas", [])
            current = [each for each in others if each.get("current") and not each.get("offline")]
            if len(current) == len(self.servers) - 1:  # only the leader knows this
                return True
        return False

    def stop(self) -> None:
        for server in self.servers:
            server.kill()


@contextmanager
def one_server(folder: Path, settings: str = "", *, jetstream: str = "") -> Iterator[str]:
    """Run one server, and give its address."""
    server = NatsServer(folder, "alone", free_ports(1)[0], settings, jetstream=jetstream)
    server.start()
    try:
        server.wait()
        yield f"nats://127.0.0.1:{server.port}"
    finally:
        server.kill()


@contextmanager
def three_servers(folder: Path) -> Iterator[NatsCluster]:
    cluster = NatsCluster(folder)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()
