"""Becomes a real agent, where only loopback exists and the stand-in model is the whole world.

    python offline.py FOLDER

`FOLDER/launch.json` (see `agents.py`) has the command and its environment; `@MODEL@` in either stands for
the model's address. In this order: a network namespace with nothing but `lo` is entered, the model is started
in it on a free port, `FOLDER/started.json` says how that went, and this process becomes the agent: same pid,
same stdin, stdout and stderr. The model is its child, which the kernel kills as soon as the agent is gone.

Where a namespace is not permitted it goes on with the network of the machine, and says so on stderr and in
`started.json`. The standard library only: this runs in front of every agent.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
MODEL = "@MODEL@"
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT")
"""What an agent sees of our own environment; no keys and no proxies."""

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_IFREQ = "16sh22x"


def isolate() -> None:
    """Enter a network namespace with only `lo`, which is up. Raises `OSError`, perhaps half-way."""
    if sys.platform != "linux":
        raise OSError(f"there are no network namespaces on {sys.platform}")
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWNET) != 0:
        # Whoever is not root may be so in a user namespace of its own.
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            raise OSError(f"unshare: {os.strerror(ctypes.get_errno())}")
        for name, value in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            Path(f"/proc/self/{name}").write_text(value)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack(_IFREQ, b"lo", 0))
        flags = struct.unpack(_IFREQ, asked)[1] | _IFF_UP
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack(_IFREQ, b"lo", flags))


def obstacle() -> str | None:
    """Why `isolate` would fail here, or None. Tried in a child: half a namespace cannot be left again."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        why = "it could not be tried"
        try:
            isolate()
            why = ""
        except OSError as error:
            why = str(error)
        finally:
            os.write(writer, why.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        why = said.read()
    os.waitpid(child, 0)
    return why or None


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(127)


def start_model(folder: Path) -> str:
    """Start the stand-in model in a child process, and return its address."""
    if os.fspath(HERE.parents[1]) not in sys.path:
        sys.path.insert(0, os.fspath(HERE.parents[1]))
    from tests.peers import stand_in_model  # before the fork, so that it is loaded once

    reader, writer = os.pipe()
    agent = os.getpid()
    if os.fork() == 0:
        status = 1
        try:
            die_with_parent(agent)
            nothing = os.open(os.devnull, os.O_RDWR)
            errors = os.open(folder / "model.stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for taken, into in ((nothing, 0), (nothing, 1), (errors, 2)):  # the agent's own are not ours
                os.dup2(taken, into)
            os.close(reader)
            server = stand_in_model.listen(0, log_file=os.fspath(folder / "model.jsonl"))
            os.write(writer, stand_in_model.address(server).encode())
            os.close(writer)
            server.serve_forever()
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as said:
        at = said.read()
    if not at:
        raise SystemExit(f"offline: the stand-in model did not start: see {folder / 'model.stderr'}")
    return at


def become_agent(folder: Path) -> NoReturn:
    launch: dict[str, Any] = json.loads((folder / "launch.json").read_text())
    parent = os.getppid()
    why_not = obstacle()
    if why_not is None:
        isolate()
    else:
        print(f"offline: the agent sees the network of this machine: {why_not}", file=sys.stderr, flush=True)
    die_with_parent(parent)  # entering a namespace may have cleared what the spawner asked for
    model = start_model(folder)
    started = {"isolated": why_not is None, "obstacle": why_not, "model": model, "pid": os.getpid()}
    fresh = folder / "started.json.new"
    fresh.write_text(json.dumps(started))
    fresh.replace(folder / "started.json")
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    env = {**passed_on, **{name: value.replace(MODEL, model) for name, value in launch["env"].items()}}
    command = [word.replace(MODEL, model) for word in launch["command"]]
    os.execvpe(command[0], command, env)


if __name__ == "__main__":
    become_agent(Path(sys.argv[1]).resolve())
