"""The official SDKs, installed by package name into a cache folder of their own.

`python -m tests.peers.install` installs all of them and prints what it has. Nothing of them reaches the
project's environment: each lives under `<repo>/.cache/peers/`, and one that cannot be had is a
`PeerUnavailable` with the reason, which the tests turn into a skip.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "peers"
PYTHON_SDK = "agent-client-protocol==0.12.1"
TS_SDK = ("@agentclientprotocol/sdk@2.4.0", "zod", "ws")
OLDEST_NODE = 20

INSTALL_DEADLINE = 300.0  # seconds for one installer command, and for another process's whole install
FAILED: dict[str, PeerUnavailable] = {}  # a registry that is not there is asked once per process


class PeerUnavailable(Exception):
    """A peer cannot be had on this machine; the message says why."""


def python_sdk() -> Path:
    """The Python executable of an environment that holds the official Python SDK."""
    folder = _installed("python-sdk-0.12.1", _install_python_sdk)
    return _venv_python(folder)


def ts_sdk() -> Path:
    """A folder whose `node_modules` holds the official TypeScript SDK; the peers take it as `ACP_TS_SDK`."""
    node()
    return _installed("ts-sdk-2.4.0", _install_ts_sdk)


def node() -> str:
    """The node executable, if there is one that is new enough."""
    found = shutil.which("node")
    if found is None:
        raise PeerUnavailable("there is no node on PATH")
    asked = [found, "--version"]
    version = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False).stdout
    major = re.match(r"v(\d+)\.", version)
    if major is None or int(major[1]) < OLDEST_NODE:
        raise PeerUnavailable(f"node {version.strip() or 'of unknown version'} is older than {OLDEST_NODE}")
    return found


def _install_python_sdk(folder: Path) -> None:
    uv = shutil.which("uv")
    if uv is not None:
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], "uv venv")
        install = [uv, "pip", "install", "--quiet", "--python", str(_venv_python(folder)), PYTHON_SDK]
        _run(install, "uv pip install")
        return
    try:
        venv.create(folder, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerUnavailable(f"no virtual environment could be made: {error}") from error
    pip = [str(_venv_python(folder)), "-m", "pip", "--disable-pip-version-check", "--retries", "1"]
    _run([*pip, "install", "--quiet", PYTHON_SDK], "pip install")


def _install_ts_sdk(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PeerUnavailable("there is no npm on PATH")
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--logs-max=0"]
    patience = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
    _run([npm, "install", *flags, *patience, *TS_SDK], "npm install", cwd=folder)


def _installed(name: str, install: Callable[[Path], None]) -> Path:
    """The folder of that name, complete: installed by us, or by whoever held the lock before us."""
    folder = CACHE / name
    marker = folder / ".complete"
    if marker.exists():
        return folder
    if name in FAILED:
        raise FAILED[name]
    CACHE.mkdir(parents=True, exist_ok=True)
    with _lock(CACHE / f"{name}.lock"):
        if marker.exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)  # what an interrupted install left behind
        try:
            install(folder)
        except PeerUnavailable as unavailable:
            shutil.rmtree(folder, ignore_errors=True)
            FAILED[name] = unavailable
            raise
        fresh = folder / ".complete.new"
        fresh.write_text("")
        fresh.replace(marker)
    return folder


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError as error:
        raise PeerUnavailable("peers are installed under a file lock, which this system lacks") from error
    deadline = time.monotonic() + INSTALL_DEADLINE
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    message = f"another process holds {path.name} since {INSTALL_DEADLINE:.0f} s"
                    raise PeerUnavailable(message) from None
                time.sleep(0.1)
        yield  # closing the file lets the lock go, also when we are killed


def _run(argv: list[str], what: str, *, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_DEADLINE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PeerUnavailable(f"{what} took longer than {INSTALL_DEADLINE:.0f} s") from None
    except OSError as error:
        raise PeerUnavailable(f"{what} could not be started: {error}") from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if re.match(r"(npm )?error\b", line, re.IGNORECASE)]
        raise PeerUnavailable(f"{what} failed: {said[0] if said else f'exit {done.returncode}'}")


def _venv_python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _python_versions(python: Path) -> dict[str, str]:
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({n: m.version(n) for n in ('agent-client-protocol', 'pydantic')}))"
    )
    said = subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return dict(json.loads(said.stdout))


def _node_versions(folder: Path) -> dict[str, str]:
    names = ("@agentclientprotocol/sdk", "zod", "ws")
    files = {name: folder / "node_modules" / name / "package.json" for name in names}
    return {name: json.loads(file.read_text())["version"] for name, file in files.items()}


def main() -> int:
    for name, get, versions in (
        ("Python SDK", python_sdk, _python_versions),
        ("TypeScript SDK", ts_sdk, _node_versions),
    ):
        try:
            has = versions(get())
        except PeerUnavailable as reason:
            print(f"{name}: not available: {reason}")
        else:
            print(f"{name}: " + ", ".join(f"{package} {version}" for package, version in has.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
