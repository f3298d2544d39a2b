"""What command lines have in common: words behind `--` that are an agent, and options that lead to a hub."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from antiphon.cli import completing
from antiphon.cli.explaining import Explained
from antiphon.cli.trust import trusted

Command = Callable[..., Any]
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")


_COMPLETING = "antiphon.completing"
"""Where a context has the words behind `--` while a shell asks how they go on."""


class WithAgent(Explained):
    """A command with words behind `--` that are another command's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        agent: list[str] = []
        behind = "--" in args
        if behind:
            at = args.index("--")
            args, agent = args[:at], args[at + 1 :]
            if not agent and not ctx.resilient_parsing:
                raise click.UsageError("there is no AGENT after --: a name, a command or an address", ctx)
        ctx.meta["agent"] = agent
        rest = super().parse_args(ctx, args)
        if behind and ctx.resilient_parsing:
            ctx.meta[_COMPLETING] = agent
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [] if _COMPLETING in ctx.meta else super().get_params(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if _COMPLETING in ctx.meta:
            return completing.agents(ctx.meta[_COMPLETING], incomplete)
        return super().shell_complete(ctx, incomplete)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- AGENT…]"]


def data_option(command: Command) -> Command:
    return click.option(
        "--data",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="The data folder of the hub; the platform's usual one, unless said otherwise.",
    )(command)


def busy_option(command: Command) -> Command:
    return click.option(
        "--busy",
        type=click.Choice(["queue", "steer", "interrupt", "agent"]),
        default="queue",
        show_default=True,
        help="What a plain prompt does while its session works: it waits; it joins the turn, where the agent "
        "offers that; it cancels the turn first; or it is handed over at once and the agent decides, where "
        "that takes prompts while it works (v2). A hub that runs already keeps its own.",
    )(command)


def reaching_options(command: Command) -> Command:
    """Options that lead to a hub."""
    command = click.option(
        "--token", envvar="ANTIPHON_TOKEN", metavar="T", help="Its token; better in ANTIPHON_TOKEN."
    )(command)
    command = click.option(
        "--hub",
        envvar="ANTIPHON_HUB",
        metavar="ADDR",
        help="HOST:PORT of a hub, or its address (or ANTIPHON_HUB).",
    )(command)
    return data_option(ca_option(command))


def ca_option(command: Command) -> Command:
    return click.option(
        "--ca",
        envvar="ANTIPHON_CA",
        type=click.Path(exists=True, dir_okay=False),
        metavar="F",
        callback=trusted,
        expose_value=False,
        help="Trust the certificates in this file, too (or ANTIPHON_CA).",
    )(command)


def read_agents(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> list[tuple[str, list[str]]]:
    """`NAME=CMD`, each as the name and the words of the command."""
    agents: dict[str, list[str]] = {}
    for each in given:
        name, equals, command = each.partition("=")
        if not equals:
            raise click.BadParameter(f"{each!r} is not NAME=CMD", ctx, param)
        if not _NAME.fullmatch(name):
            rule = "letters and digits, and behind the first also . _ -"
            raise click.BadParameter(f"{name!r} is no name for an agent: {rule}", ctx, param)
        if name in agents:
            raise click.BadParameter(f"there are two agents of the name {name!r}", ctx, param)
        try:
            agents[name] = shlex.split(command)
        except ValueError as error:
            raise click.BadParameter(f"the command of {name!r} cannot be read: {error}", ctx, param) from None
        if not agents[name]:
            raise click.BadParameter(f"the command of {name!r} is empty", ctx, param)
    return list(agents.items())


def read_versions(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    """`[NAME=]N`: versions by the names of agents; that for all of them has the name ""."""
    versions = {}
    for each in given:
        name, _, number = each.rpartition("=")
        if number not in ("1", "2"):
            raise click.BadParameter(f"{each!r} is not 1 or 2, or NAME=1 or NAME=2", ctx, param)
        versions[name] = int(number)
    return versions
