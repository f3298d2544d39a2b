"""The output of `antiphon` without arguments: the four ways to use it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from dataclasses import dataclass

import click

from antiphon.cli.output.streams import write_styled
from antiphon.cli.program import own_command
from antiphon.hub import catalogue

WIDEST = 88
PROGRAM = "antiphon"


@dataclass(frozen=True)
class Way:
    title: str
    command: str
    """`AGENT` is replaced by an installed agent, if there is one."""
    about: str


WAYS = (
    Way(
        "Try it now",
        "antiphon chat",
        "Talk with the built-in agent: offline, no account, no language model. Type /tour.",
    ),
    Way(
        "Share one session: browser, terminals, editor",
        "antiphon serve -- AGENT",
        "Run an agent behind a hub. The hub prints a link for the browser and the setting for an editor. The "
        "session continues when you close them all.",
    ),
    Way(
        "Drive an agent, or script it",
        'antiphon prompt "Explain this" -- AGENT',
        "Run one turn. The exit code says how it ended; --json prints one event per line.",
    ),
    Way(
        "Write your own agent",
        'antiphon prompt "hello" -- python agent.py',
        "Ten lines of Python make an agent for every ACP client. The README shows them.",
    ),
)


def start_screen(*, width: int | None = None) -> str:
    """Return the screen with styles. The caller removes them where they are not wanted."""
    width = min(width or shutil.get_terminal_size().columns, WIDEST)
    program, agents = " ".join(own_command()), [one.name for one in catalogue().values() if one.installed]
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
    lines += _paragraph(f"`{program} --help` lists all commands; each has its own --help.", width, indent=2)
    return "\n".join(lines) + "\n"


def _known(installed: list[str]) -> str:
    if installed:
        return f"Known agents that are installed here: {', '.join(installed)}."
    names = ", ".join(catalogue())
    return f"Known agents, none of them installed here: {names}. Any other agent is a command after --."


def _paragraph(text: str, width: int, *, indent: int = 5) -> list[str]:
    before = " " * indent
    return textwrap.wrap(text, max(width - 1, 30), initial_indent=before, subsequent_indent=before)


def print_start_screen() -> None:
    write_styled(sys.stdout, click.unstyle(start_screen()) if os.environ.get("NO_COLOR") else start_screen())
