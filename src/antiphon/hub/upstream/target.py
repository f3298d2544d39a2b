"""Reads the agents and the address that a hub is given at its start."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from antiphon.errors import LocalError
from antiphon.transports.base import ADDRESSES

Target = Sequence[str] | str | Any
"""What `connect` reaches: a command, an address, or an agent in this process."""


_RUNNERS = re.compile(r"(python|pypy|node|bun|deno|npx|uvx|uv|env|sh|bash|run|exec|-.*|\w+=.*)[\d.]*")
"""Words of a command line that run a program and do not name it."""


def default_agent_name(target: Target) -> str:
    """Name an agent after its program, or after the script that the program runs."""
    words = read_target(target)
    if not isinstance(words, list):
        return "agent"
    names = [word.rpartition("/")[2] for word in words]
    meant = next((name for name in names if not _RUNNERS.fullmatch(name)), names[0])
    return re.sub(r"\.(py|mjs|js|ts|sh|exe)$|[^\w.-]", "", meant.rpartition("@")[0] or meant) or "agent"


def read_target(target: Target) -> Target:
    if isinstance(target, str):
        return target if target.startswith(ADDRESSES) else shlex.split(target)
    return list(target) if isinstance(target, list | tuple) else target


def read_address(address: str) -> tuple[str, int]:
    """`HOST:PORT`, or only one of them."""
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise LocalError(f"{address!r} is no address to serve at: it looks like 127.0.0.1:8642")
    return host.strip("[]") or "127.0.0.1", int(port)
