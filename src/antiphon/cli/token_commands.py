"""The commands of tokens: what can be said on their command lines."""

from __future__ import annotations

from typing import Any

import click

from antiphon.cli import completing
from antiphon.cli.explaining import Menu
from antiphon.cli.options import data_option

TOKEN = """\
Who else gets into a hub: make a token, list them, revoke one.

A hub that runs takes note at once. Its own token, in the file `token` of its data folder, is an owner's.

\b
Examples:
  antiphon token create ann --role observer   she may look on
  antiphon token list
  antiphon token revoke ann                   and she is out
"""
LIST = """\
List the tokens: name, role, sessions and end.

\b
Examples:
  antiphon token list
  antiphon token list --data /srv/hub   of a hub with a folder of its own
"""
REVOKE = """\
Make a token void; who is in with it is sent away.

\b
Examples:
  antiphon token revoke ann
"""
CREATE = """\
Make a token of this NAME, and print its secret, once: only a hash of it is kept.

\b
Examples:
  antiphon token create ann --role observer                     she may look on
  antiphon token create bob --session sess_42 --expires 8h      one session, for a day's work
"""


@click.group(cls=Menu, help=TOKEN, short_help="Who else gets into a hub.")
def token() -> None:
    pass


def _span(ctx: click.Context, param: click.Parameter, given: str | None) -> float | None:
    from antiphon.cli.tokens import read_span

    seconds = None if given is None else read_span(given)
    if given is not None and not seconds:
        raise click.BadParameter(f"{given!r} is no time: it looks like 30m, 8h or 7d", ctx, param)
    return seconds


@token.command(help=CREATE, short_help="Make a token, and print its secret.")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["observer", "controller", "owner", "metrics"]),
    default="controller",
    show_default=True,
    help="Look on; also prompt, answer and configure; also delete, close for all and log in. Or metrics: "
    "read /metrics, and nothing else.",
)
@click.option(
    "--session",
    "sessions",
    multiple=True,
    metavar="ID",
    help="For this session only; may be repeated.",
    shell_complete=completing.sessions,
)
@click.option("--expires", metavar="TIME", callback=_span, help="After 30m, 8h, 7d; never, unless said.")
@data_option
@click.pass_context
def create(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.tokens import run_create

    ctx.exit(run_create(**given))


@token.command("list", help=LIST, short_help="List the tokens.")
@data_option
@click.pass_context
def list_tokens(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.tokens import run_list

    ctx.exit(run_list(**given))


@token.command(help=REVOKE, short_help="Make a token void.")
@click.argument("name", shell_complete=completing.tokens)
@data_option
@click.pass_context
def revoke(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.tokens import run_revoke

    ctx.exit(run_revoke(**given))
