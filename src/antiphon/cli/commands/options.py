"""Options and arguments that several commands share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, Literal, NamedTuple

import click
from click.shell_completion import CompletionItem

from antiphon.cli.commands import completion
from antiphon.cli.commands.help import HelpCommand

Command = Callable[..., Any]
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
_COMPLETED = "antiphon.completed"
"""The key of a context under which the words after `--` are, while a shell completes them."""


class StorePlace(NamedTuple):
    """A shared store, as the options name it."""

    servers: str
    """As given: it may have a password."""
    name: str
    credentials: str | None
    ca: str | None
    replicas: int = 1
    lease: float = 10.0


class HubPlace(NamedTuple):
    """Where a command finds its hub, or its sessions."""

    hub: str | None = None
    """`HOST:PORT` or an address; without it, the hub that runs in the data folder."""
    token: str | None = None
    data: str | None = None
    """The data folder; without it, the platform's default."""
    store: StorePlace | None = None
    """A shared store, on which the command works without a hub."""


class AgentCommand(HelpCommand):
    """A command that takes the command of an agent after `--`, as its parameter `agent`."""

    usage: tuple[str, ...] = ()
    """The usage line before the agent, if it differs from the one that click makes."""
    peer = "AGENT"
    """What the words after `--` are called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        agent: list[str] = []
        dashes = "--" in args
        if dashes:
            at = args.index("--")
            args, agent = args[:at], args[at + 1 :]
            if not agent and not ctx.resilient_parsing:
                raise click.UsageError(
                    f"there is no {self.peer} after --; expected a name, a command or an address", ctx
                )
        rest = super().parse_args(ctx, args)
        ctx.params["agent"] = agent
        if dashes and ctx.resilient_parsing:
            ctx.meta[_COMPLETED] = agent
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [] if _COMPLETED in ctx.meta else super().get_params(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if _COMPLETED in ctx.meta:
            return completion.agents(ctx.meta[_COMPLETED], incomplete)
        return super().shell_complete(ctx, incomplete)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*(self.usage or super().collect_usage_pieces(ctx)), f"[-- {self.peer}…]"]


def runs(work: str) -> Callable[[Command], Command]:
    """Make a command run `work`, a function in a module of `cli`, and exit with the code that it returns.

    The module is imported when the command is called, so that help and completion are quick. The decorated
    function only gives the command its name and its help.
    """
    module, _, name = work.rpartition(".")

    def decorate(described: Command) -> Command:
        @wraps(described)
        @click.pass_context
        def run(ctx: click.Context, /, **given: Any) -> None:
            ctx.exit(getattr(import_module(f"antiphon.cli.{module}"), name)(**given))

        return run

    return decorate


data_option = click.option(
    "--data",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="The data folder of the hub. Default: the platform's folder for application data.",
)
name_option = click.option(
    "--name", metavar="WHO", help="The name that other clients see. Default: your login name."
)
sessions_option = click.option(
    "--session",
    "sessions",
    multiple=True,
    metavar="ID",
    help="Limit it to this session. May be repeated.",
    shell_complete=completion.sessions,
)
busy_option = click.option(
    "--busy",
    type=click.Choice(["queue", "steer", "interrupt", "agent"]),
    default="queue",
    show_default=True,
    help="What a plain prompt does while its session works. queue: it waits. steer: it joins the turn, if "
    "the agent supports that. interrupt: it cancels the turn first. agent: the hub delivers it at once and "
    "the agent decides, if it accepts prompts while it works (v2). Only a hub that starts reads this option.",
)


def _trust(ctx: click.Context, param: click.Parameter, file: str | None) -> None:
    if file:
        from antiphon.cli.hub_client import trust

        trust(file)


ca_option = click.option(
    "--ca",
    envvar="ANTIPHON_CA",
    type=click.Path(exists=True, dir_okay=False),
    metavar="F",
    callback=_trust,
    expose_value=False,
    help="Also trust the certificates in this file (or ANTIPHON_CA).",
)


def hub_options(command: Command) -> Command:
    """Add the options that lead to a hub. The command gets them as `place`."""

    @wraps(command)
    def placed(*given: Any, hub: str | None, token: str | None, data: str | None, **options: Any) -> Any:
        return command(*given, place=HubPlace(hub, token, data), **options)

    found = click.option(
        "--token", envvar="ANTIPHON_TOKEN", metavar="T", help="Its token. ANTIPHON_TOKEN is safer."
    )(placed)
    found = click.option(
        "--hub",
        envvar="ANTIPHON_HUB",
        metavar="ADDR",
        help="HOST:PORT or the address of a hub (or ANTIPHON_HUB).",
    )(found)
    return data_option(ca_option(found))


def read_agents(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> list[tuple[str, list[str]]]:
    """Read `NAME=CMD`, and `CMD` alone, into names and the words of commands."""
    from antiphon.hub import default_agent_name

    agents: dict[str, list[str]] = {}
    for each in given:
        name, equals, command = each.partition("=")
        if not equals:
            name, command = default_agent_name(each) if each.strip() else "", each
        if not _NAME.fullmatch(name):
            rule = "expected a letter or digit, then letters, digits, . _ or -"
            raise click.BadParameter(f"{name!r} is not a name for an agent: {rule}", ctx, param)
        if name in agents:
            raise click.BadParameter(f"two agents have the name {name!r}", ctx, param)
        try:
            agents[name] = shlex.split(command)
        except ValueError as error:
            raise click.BadParameter(f"cannot parse the command of {name!r}: {error}", ctx, param) from None
        if not agents[name]:
            raise click.BadParameter(f"the command of {name!r} is empty", ctx, param)
    return list(agents.items())


def read_command(ctx: click.Context, param: click.Parameter, given: str | None) -> list[str]:
    """Read a command into its words. There is no shell."""
    try:
        words = shlex.split(given or "")
    except ValueError as error:
        raise click.BadParameter(f"cannot parse the command: {error}", ctx, param) from None
    if given is not None and not words:
        raise click.BadParameter("the command is empty", ctx, param)
    return words


def read_versions(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, Literal[1, 2]]:
    """Read `[NAME=]N` options into versions by agent. The version for all agents has the name ""."""
    versions: dict[str, Literal[1, 2]] = {}
    for each in given:
        name, _, number = each.rpartition("=")
        if number not in ("1", "2"):
            raise click.BadParameter(f"{each!r} is not 1, 2, NAME=1 or NAME=2", ctx, param)
        versions[name] = 1 if number == "1" else 2
    return versions


_FILE = click.Path(exists=True, dir_okay=False)
_COUNT = click.IntRange(1)
_ACCESS = (
    click.option("--tls-cert", type=_FILE, metavar="F", help="Serve over TLS with this certificate."),
    click.option(
        "--tls-key", type=_FILE, metavar="F", help="The certificate's key, if it is in another file."
    ),
    click.option(
        "--insecure-bind",
        is_flag=True,
        help="Listen without TLS where other machines can connect. Others can then read everything.",
    ),
    click.option(
        "--allow-host", "hosts", multiple=True, metavar="NAME", help="A host name by which clients reach it."
    ),
    click.option(
        "--allow-origin",
        "origins",
        multiple=True,
        metavar="URL",
        help="A web page of another origin that may connect.",
    ),
    click.option(
        "--public-url", metavar="URL", help="The address that browsers use: that of a proxy before the hub."
    ),
    click.option(
        "--trusted-proxy",
        "trusted_proxies",
        multiple=True,
        metavar="ADDRESS[,…]",
        help="A proxy, or a CIDR block of proxies, whose forwarded addresses are believed. Default: none.",
    ),
    click.option(
        "--questions",
        type=click.Choice(["first", "owner", "designated"]),
        default="first",
        show_default=True,
        help="Who answers agents: the first client that does, an owner, or the client that sent the prompt.",
    ),
    click.option(
        "--question-expiry",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Expire an unanswered question after this time. Default: never.",
    ),
    click.option(
        "--max-frame",
        type=click.IntRange(1024),
        metavar="BYTES",
        help="The largest message that a client may send.",
    ),
    click.option("--max-connections", type=_COUNT, metavar="N", help="Connections of all clients together."),
    click.option(
        "--max-connections-per-token", type=_COUNT, metavar="N", help="Connections with the same token."
    ),
    click.option("--max-sessions", type=_COUNT, metavar="N", help="Sessions that are open at the same time."),
    click.option(
        "--prompts-per-minute", type=_COUNT, metavar="N", help="Prompts of all clients with the same token."
    ),
)


def access_options(command: Command) -> Command:
    """Add the options of `antiphon serve` that say who may connect, and how much they may do."""
    for option in reversed(_ACCESS):
        command = option(command)
    return command
