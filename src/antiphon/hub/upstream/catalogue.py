"""The catalogue: agents that are known by name, each with its launch command, how to install it and how to
log in. `agents.toml` has the rows.

Advice is text of this program, never of an agent: a client may show it as an instruction.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

_BROUGHT_BY = {
    "npm": "Node.js",
    "npx": "Node.js",
    "node": "Node.js",
    "uv": "uv",
    "uvx": "uv",
    "brew": "Homebrew",
    "bun": "Bun",
    "bunx": "Bun",
    "deno": "Deno",
}
"""What to install where a program is missing."""
_NO_INTERPRETER = re.compile(r"env: \W?([\w.+-]+)\W?: No such file or directory")
"""What `env` writes if the interpreter of a script is missing."""
_LOGIN = re.compile(
    r"\blog(?:ged)?[ -]?in\b|\bsign(?:ed)?[ -]?in\b|\bunauthori[sz]ed\b|\bnot authenticated\b"
    r"|\bauthenticat(?:e|ion)\b|\bcredentials?\b|\bapi[ _-]?key\b|\w+_API_KEY\b|\b401\b",
    re.IGNORECASE,
)
HERE = ""
ON_HUB = " on the hub's machine"
"""Where advice is to be followed: on this machine, or on the hub's."""


class CatalogueAgent(Struct, frozen=True):
    """An agent that is known by its name."""

    name: str
    title: str
    command: tuple[str, ...]
    install: str
    """The command that installs it."""
    login: str
    """The command that logs in."""

    @property
    def installed(self) -> bool:
        return shutil.which(self.command[0]) is not None

    def install_advice(self, where: str = HERE) -> str:
        """Say how to install it, and what has to be installed before."""
        first = _missing_program(self.install.split()[0])
        first = f"install {first}, then " if first else ""
        return f"to install it, {first}run `{self.install}`{where}"

    def login_advice(self, where: str = HERE) -> str:
        return f"to log in, run `{self.login}`{where}, then try again"


@cache
def catalogue() -> dict[str, CatalogueAgent]:
    """Return the known agents by name, in the order to offer them."""
    rows = tomllib.loads((Path(__file__).parent / "agents.toml").read_text(encoding="utf-8"))
    return {
        name: CatalogueAgent(name, row["title"], tuple(row["command"]), row["install"], row["login"])
        for name, row in rows.items()
    }


def find_agent(name: str, target: Any) -> CatalogueAgent | None:
    """Return the known agent that a command starts, by its program or by the name that a user gave it."""
    words = target.split() if isinstance(target, str) else target
    programs = {re.split(r"[/\\]", word)[-1] for word in words} if isinstance(words, list | tuple) else set()
    found = (known for known in catalogue().values() if known.command[0] in programs)
    return next(found, None) or catalogue().get(name)


def wants_login(said: str) -> bool:
    """Whether an agent's own words are about a login that is missing."""
    return _LOGIN.search(said) is not None


def start_advice(
    agent: CatalogueAgent | None, program: str | None, stderr: Sequence[str], where: str = HERE
) -> str | None:
    """Say what to install where an agent did not start.

    program: the command, if it is missing
    stderr: what the agent wrote before it ended
    """
    if program is None:
        said = _NO_INTERPRETER.search("\n".join(stderr))
        if said is None:
            return None
        program, agent = said[1], None  # the agent is installed, what runs it is not
    if agent is not None and program == agent.command[0]:
        return agent.install_advice(where)
    brought = _missing_program(program)
    return f"install {brought}{where}, then try again" if brought else None


def _missing_program(program: str) -> str | None:
    """Return what brings a program, if the program is missing."""
    return _BROUGHT_BY.get(program) if shutil.which(program) is None else None
