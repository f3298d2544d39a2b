"""What `antiphon` says to who calls it without a word: the four things that one can do with it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from dataclasses import dataclass

import click

from antiphon.cli.agents import known_agents
from antiphon.cli.output.streams import write_styled
from antiphon.cli.program import own_command

WIDEST = 88
PROGRAM = "antiphon"


@dataclass(frozen=True)
class Way:
    title: str
    command: str
    """With `AGENT` for one that is installed here, if any is."""
    about: str


WAYS = (
    Way(
        "Try it now",
        "antiphon chat",
        "The built-in agent in this terminal: offline, no account, no language model. Type /tour.",
    ),
    Way(
        "Share one session: browser, terminals, editor",
        "antiphon serve -- AGENT",
        "An agent behind a hub. It prints a link to open and what to tell your editor; close them all, and "
        "the session goes on.",
    ),
    Way(
        "Drive an agent, or script it",
        'antiphon prompt "Explain this" -- AGENT',
        "One turn, and an exit code that says how it ended; with --json, an event a line.",
    ),
    Way(
        "Write your own agent",
        'antiphon prompt "hello" -- python agent.py',
        "Ten lines of Python are an agent that every ACP client can use: the README has them.",
    ),
)


def start_screen(*, width: int | None = None) -> str:
    """The screen, styled: whoever prints it takes the style out where it is not wanted."""
    width = min(width or shutil.get_terminal_size().columns, WIDEST)
    program, agents = " ".join(own_command()), [one.name for one in known_agents().values() if one.installed]
    lines = ["", f"  {click.style('Antiphon', bold=True)}  One session, many voices.", ""]
    for number, way in enumerate(WAYS, 1):
        command = way.command.replace(PROGRAM, program, 1)
        command = command.replace("AGENT", agents[0]) if agents else command.replace(" -- AGENT", "")
        lines += [
            f"  {click.style(str(number), dim=True)}  {click.style(way.title, bold=True)}",
            f"     {click.style(command, fg='cyan')}",
            *_paragraph(way.about, width),
            "",
        ]
    lines += _paragraph(_known(agents), width, indent=2)
    lines += _paragraph(f"`{program} --help` lists all commands, and each has a --help.", width, indent=2)
    return "\n".join(lines) + "\n"


def _known(installed: list[str]) -> str:
    if installed:
        return f"Agents that are installed here: {', '.join(installed)}."
    names = ", ".join(known_agents())
    return f"Agents known by name, none of which is installed here: {names}. Any other is a command after --."


def _paragraph(text: str, width: int, *, indent: int = 5) -> list[str]:
    before = " " * indent
    return textwrap.wrap(text, max(width - 1, 30), initial_indent=before, subsequent_indent=before)


def print_start_screen() -> None:
    write_styled(sys.stdout, click.unstyle(start_screen()) if os.environ.get("NO_COLOR") else start_screen())
