"""Known agents: names with a launch command in `agents.toml`. Any other words are a command themselves."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from antiphon.cli.exit_codes import Exit, Failure
from antiphon.wire import ADDRESSES


@dataclass(frozen=True)
class KnownAgent:
    name: str
    title: str
    command: tuple[str, ...]
    install: str
    login: str

    @property
    def installed(self) -> bool:
        return shutil.which(self.command[0]) is not None


@cache
def known_agents() -> dict[str, KnownAgent]:
    import tomllib

    table = tomllib.loads((Path(__file__).parent / "agents.toml").read_text(encoding="utf-8"))
    return {
        name: KnownAgent(name, row["title"], tuple(row["command"]), row["install"], row["login"])
        for name, row in table.items()
    }


def known_agent(words: Sequence[str]) -> KnownAgent | None:
    """Return the known agent that the words name, if they are one name."""
    return known_agents().get(words[0]) if len(words) == 1 else None


def resolve(words: Sequence[str]) -> list[str] | str:
    """Return what to connect to for the words after `--`: a command or an address. Raises `Failure`."""
    if len(words) == 1 and words[0].startswith(ADDRESSES):
        return words[0]
    known = known_agent(words)
    if known is not None:
        if not known.installed:
            raise Failure(
                f"{known.name} is not installed: there is no {known.command[0]} on PATH. "
                f"To install it: {known.install}",
                Exit.NOT_FOUND,
            )
        return list(known.command)
    program = words[0]
    if shutil.which(program) is None:
        if os.path.isfile(program) and os.sep in program:
            raise Failure(f"{program} is not executable: set its mode with `chmod +x`", Exit.NOT_EXECUTABLE)
        raise Failure(_unknown(program), Exit.NOT_FOUND)
    return list(words)


def _unknown(program: str) -> str:
    names = list(known_agents())
    near = get_close_matches(program, names, n=1)
    if near:
        return f"there is no command {program!r} on PATH; did you mean {near[0]}?"
    return f"there is no command {program!r} on PATH, and no known agent of that name ({', '.join(names)})"
