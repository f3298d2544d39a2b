"""`antiphon completion`: the script by which a shell completes commands, sessions, agents and tokens."""

from __future__ import annotations

import os
import sys

import click
from click.shell_completion import get_completion_class

HELP = """\
Print the script that lets a shell complete `antiphon` commands with Tab.

It completes commands and options, the ids of sessions (also by words of their titles), agents behind -- and
the names of tokens. Without SHELL, it is the one you use.

\b
Examples:
  eval "$(antiphon completion bash)"    in ~/.bashrc
  eval "$(antiphon completion zsh)"     in ~/.zshrc, behind compinit
  antiphon completion fish | source     in ~/.config/fish/config.fish
"""
SHELLS = {
    "bash": 'put  eval "$(antiphon completion bash)"  into ~/.bashrc',
    "zsh": 'put  eval "$(antiphon completion zsh)"  into ~/.zshrc, behind compinit',
    "fish": "put  antiphon completion fish | source  into ~/.config/fish/config.fish",
}
"""The shells there is a script for, and where it goes."""


def run_completion(main: click.Command, shell: str | None) -> None:
    shell = shell or os.path.basename(os.environ.get("SHELL", ""))
    found = get_completion_class(shell) if shell in SHELLS else None
    if found is None:
        raise click.UsageError(f"say which shell: {', '.join(SHELLS)}")
    click.echo(found(main, {}, "antiphon", "_ANTIPHON_COMPLETE").source())
    if sys.stdout.isatty():
        click.echo(f"To have it in every shell, {SHELLS[shell]}.", err=True)
