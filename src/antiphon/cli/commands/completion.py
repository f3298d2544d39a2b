"""Shell completion: the script of `antiphon completion`, and the values it offers for each argument."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

Items = list[CompletionItem]  # generic in later versions of click only
Completer = Callable[[click.Context, click.Parameter, str], Items]

PATIENCE = 1.0
"""Seconds that a remote hub has to answer while the user waits after Tab."""


def silent(completer: Callable[[click.Context, str], Iterable[CompletionItem]]) -> Completer:
    """Make a completer that offers nothing on an error, instead of printing over the user's command line."""

    @wraps(completer)
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        try:
            return list(completer(ctx, incomplete))
        except Exception:
            return []

    return complete


@silent
def sessions(ctx: click.Context, incomplete: str) -> Iterable[CompletionItem]:
    """Complete session ids, by the beginning of the id or by words of the title."""
    from antiphon.text_safety import safe_line

    # Bash inserts an id as it is, so one that a shell would read as more than one word is not offered.
    found = [one for one in _sessions(ctx) if shlex.quote(one[0]) == one[0] and not one[0].startswith("-")]
    starting = [one for one in found if one[0].startswith((incomplete, f"sess_{incomplete}"))]
    titled = [one for one in found if incomplete.lower() in one[1].lower()]
    return [CompletionItem(id, help=safe_line(title, limit=60)) for id, title in starting or titled]


def _sessions(ctx: click.Context) -> Iterable[tuple[str, str]]:
    """Yield ids and titles, the newest first: from the named hub, or from the data folder."""
    if ctx.params.get("store"):
        return  # to connect to it takes too long
    running = _folder(ctx).running()
    if ctx.params.get("hub") or (running is not None and running.store):
        yield from _from_hub(ctx.params)
        return
    from antiphon.stores import glance

    for one in glance(_folder(ctx).sessions):
        if not one.meta.keys() & {"subagentOf", "archived"}:
            yield one.session_id, one.title or one.cwd


def _from_hub(given: dict[str, Any]) -> list[tuple[str, str]]:
    import asyncio
    import logging

    from antiphon.cli.commands.options import HubPlace
    from antiphon.cli.hub_client import open_client

    logging.disable()
    place = HubPlace(given.get("hub"), given.get("token"), given.get("data"))

    async def ask() -> list[tuple[str, str]]:
        async with (
            asyncio.timeout(PATIENCE),
            open_client(place, notes=False) as client,
        ):
            return [(info.session_id, info.title or info.cwd) async for info in client.list_sessions()]

    return asyncio.run(ask())


@silent
def tokens(ctx: click.Context, incomplete: str) -> Iterable[CompletionItem]:
    from antiphon.hub import read_tokens

    for token in read_tokens(_folder(ctx).tokens):
        if token.name.startswith(incomplete):
            yield CompletionItem(token.name, help=str(token.role))


@silent
def agents_of_hub(ctx: click.Context, incomplete: str) -> Iterable[CompletionItem]:
    """Complete the agents of the hub that runs here."""
    running = _folder(ctx).running()
    names = [] if running is None else running.agents
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def agents(words: list[str], incomplete: str) -> Items:
    """Complete the words after `--`: a known agent, installed ones first, or a file."""
    from antiphon.hub import catalogue

    if words:
        return [CompletionItem(incomplete, type="file")]
    known = sorted(catalogue().values(), key=lambda one: not one.installed)
    found = [
        CompletionItem(one.name, help=one.title if one.installed else f"{one.title} (not installed)")
        for one in known
        if one.name.startswith(incomplete)
    ]
    return found or [CompletionItem(incomplete, type="file")]


def _folder(ctx: click.Context) -> Any:
    from antiphon.hub import HubFolder

    return HubFolder(ctx.params.get("data"))


HELP = """\
Print the script that lets a shell complete `antiphon` commands with Tab.

It completes commands and options, the ids of sessions (also by words of their titles), agents after -- and
the names of tokens. Without SHELL, the script is for the shell that you use.

\b
Examples:
  eval "$(antiphon completion bash)"    in ~/.bashrc
  eval "$(antiphon completion zsh)"     in ~/.zshrc, after compinit
  antiphon completion fish | source     in ~/.config/fish/config.fish
"""
SHELLS = {
    "bash": 'put  eval "$(antiphon completion bash)"  into ~/.bashrc',
    "zsh": 'put  eval "$(antiphon completion zsh)"  into ~/.zshrc, after compinit',
    "fish": "put  antiphon completion fish | source  into ~/.config/fish/config.fish",
}
"""The supported shells, and where each script goes."""


def run_completion(main: click.Command, shell: str | None) -> None:
    shell = shell or os.path.basename(os.environ.get("SHELL", ""))
    found = get_completion_class(shell) if shell in SHELLS else None
    if found is None:
        raise click.UsageError(f"cannot complete in {shell!r}: name one of {', '.join(SHELLS)}")
    click.echo(found(main, {}, "antiphon", "_ANTIPHON_COMPLETE").source())
    if sys.stdout.isatty():
        click.echo(f"To load it in every shell, {SHELLS[shell]}.", err=True)
