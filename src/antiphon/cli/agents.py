"""Agents on a command line: the name of one in the catalogue. Any other words are a command themselves."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from difflib import get_close_matches

from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.program import command_line
from antiphon.hub import CatalogueAgent, catalogue
from antiphon.wire import ADDRESSES


def known_agent(words: Sequence[str]) -> CatalogueAgent | None:
    """Return the known agent that the words name, if they are one name."""
    return catalogue().get(words[0]) if len(words) == 1 else None


def adding(name: str, words: Sequence[str], data: str | None = None) -> str:
    """Return the command line that adds an agent to the running hub."""
    command = command_line(f"agents add {name}", data)
    return command if list(words) == [name] and name in catalogue() else f"{command} -- {shlex.join(words)}"


def resolve(words: Sequence[str]) -> list[str] | str:
    """Return what to connect to for the words after `--`: a command or an address. Raises `Failure`."""
    if len(words) == 1 and words[0].startswith(ADDRESSES):
        return words[0]
    known = known_agent(words)
    if known is not None:
        if not known.installed:
            raise Failure(
                f"{known.name} is not installed: there is no {known.command[0]} on PATH. "
                f"{known.install_advice()[0].upper()}{known.install_advice()[1:]}",
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
    names = list(catalogue())
    near = get_close_matches(program, names, n=1)
    if near:
        return f"there is no command {program!r} on PATH; did you mean {near[0]}?"
    return f"there is no command {program!r} on PATH, and no known agent of that name ({', '.join(names)})"
