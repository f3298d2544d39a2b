"""The command lines of `antiphon token`."""

from __future__ import annotations

import click

from antiphon.cli.commands import completion
from antiphon.cli.commands.help import CommandGroup
from antiphon.cli.commands.options import data_option, runs, sessions_option


@click.group(cls=CommandGroup, short_help="Give others access to a hub.")
def token() -> None:
    """Give others access to a hub: create, list and revoke tokens.

    A running hub applies changes at once. The hub's own token, in the file `token` of its data folder, is an
    owner's token.

    \b
    Examples:
      antiphon token create ann --role observer   she may watch
      antiphon token list
      antiphon token revoke ann                   ends her access
    """


def _span(ctx: click.Context, param: click.Parameter, given: str | None) -> float | None:
    from antiphon.cli.hub.tokens import read_span

    seconds = None if given is None else read_span(given)
    if given is not None and not seconds:
        raise click.BadParameter(f"{given!r} is not a time span; expected e.g. 30m, 8h or 7d", ctx, param)
    return seconds


@token.command(short_help="Create a token and print its secret.")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["observer", "controller", "owner", "metrics"]),
    default="controller",
    show_default=True,
    help="observer: watch. controller: also prompt, answer and configure. owner: also delete, close for "
    "all clients and log in. metrics: read /metrics and nothing else.",
)
@sessions_option
@click.option(
    "--expires", metavar="TIME", callback=_span, help="Expire after e.g. 30m, 8h, 7d. Default: never."
)
@data_option
@runs("hub.tokens.run_create")
def create() -> None:
    """Create a token called NAME and print its secret, once. The hub stores only a hash of the secret.

    \b
    Examples:
      antiphon token create ann --role observer                     she may watch
      antiphon token create bob --session sess_42 --expires 8h      one session, for eight hours
    """


@token.command("list", short_help="List the tokens.")
@data_option
@runs("hub.tokens.run_list")
def list_tokens() -> None:
    """List the tokens: name, role, sessions and expiry.

    \b
    Examples:
      antiphon token list
      antiphon token list --data /srv/hub   of a hub with its own data folder
    """


@token.command(short_help="Revoke a token.")
@click.argument("name", shell_complete=completion.tokens)
@data_option
@runs("hub.tokens.run_revoke")
def revoke() -> None:
    """Revoke a token. The hub disconnects the clients that use it.

    \b
    Examples:
      antiphon token revoke ann
    """
