"""nginx and Caddy, as `docs/proxy.md` sets them up, in front of a hub of a test.

The files of `examples/proxy` run as they are, with the test's ports, name and certificate filled in.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.hub.running import ROOT
from tests.transports.certificates import certificates

NAME = "hub.test"
"""The public name. No name server knows it: the fixture `names` does."""
EXAMPLES = ROOT / "examples" / "proxy"
PROGRAMS = ("nginx", "caddy")
DEADLINE = 20.0


@dataclass(frozen=True)
class Proxy:
    program: str
    port: int
    tls: ssl.SSLContext
    """Trusts the proxy's certificate."""

    @property
    def host(self) -> str:
        return f"{NAME}:{self.port}"

    @property
    def origin(self) -> str:
        return f"https://{self.host}"

    @property
    def acp(self) -> str:
        return f"{self.origin}/acp"


def find_program(program: str) -> str | None:
    """nginx is in a folder that only root has in its path."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def filled(path: Path, values: dict[str, str]) -> str:
    """A file of the examples with other values. Each has to be in it."""
    text = path.read_text()
    for written, value in values.items():
        assert written in text, f"{path.name} has no {written!r}"
        text = text.replace(written, value)
    return text


def nginx_command(folder: Path, port: int, hub: int, more: str) -> list[str]:
    site = filled(
        EXAMPLES / "nginx.conf",
        {
            "listen 443 ssl http2;": f"listen 127.0.0.1:{port} ssl http2;",
            "server_name hub.example;": f"server_name {NAME};",
            "/etc/ssl/hub.example/": f"{folder}/",
            "127.0.0.1:8642": f"127.0.0.1:{hub}",
            "        proxy_buffering off;\n": f"        proxy_buffering off;\n{more}",
        },
    )
    (folder / "site.conf").write_text(site)
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"  {place}_temp_path {folder}/{place};" for place in places)
    (folder / "nginx.conf").write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log stderr;\n"
        f"events {{}}\nhttp {{\n  access_log off;\n{temporary}\n  include {folder}/site.conf;\n}}\n"
    )
    return ["-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy_command(folder: Path, port: int, hub: int, more: str) -> list[str]:
    site = filled(
        EXAMPLES / "Caddyfile",
        {
            "\nhub.example {\n": f"\nhttps://{NAME}:{port} {{\n\ttls {folder}/cert.pem {folder}/key.pem\n",
            "127.0.0.1:8642": f"127.0.0.1:{hub}",
            "\t\tflush_interval -1\n": f"\t\tflush_interval -1\n{more}",
        },
    )
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n"
    (folder / "Caddyfile").write_text(options + site)
    return ["run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


COMMANDS: dict[str, Callable[[Path, int, int, str], list[str]]] = {
    "nginx": nginx_command,
    "caddy": caddy_command,
}


@contextlib.contextmanager
def proxy_before(program: str, hub: int, folder: Path, port: int, *, more: str = "") -> Iterator[Proxy]:
    """Run a proxy at a port, in front of the hub at another; with `more` said about how it passes on."""
    found = find_program(program)
    assert found is not None
    trusting, _ = certificates(folder, NAME)
    arguments = COMMANDS[program](folder, port, hub, more)
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with open(folder / "proxy.log", "w+b") as log:
        process = subprocess.Popen([found, *arguments], stdout=log, stderr=log, env=environment)
        try:
            until = time.monotonic() + DEADLINE
            while not listens(port):
                told = (folder / "proxy.log").read_text()
                assert process.poll() is None, told
                assert time.monotonic() < until, told
                time.sleep(0.02)
            yield Proxy(program, port, trusting)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
