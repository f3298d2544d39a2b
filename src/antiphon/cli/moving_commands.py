"""The commands that move sessions: what can be said on their command lines."""

from __future__ import annotations

from typing import Any

import click

from antiphon.cli import completing
from antiphon.cli.explaining import Explained
from antiphon.cli.options import reaching_options

EXPORT = """\
Write a session into one file: to be imported elsewhere, or to be read.

The hub may run, and the session work; what comes meanwhile is not in the file. Without --format, the name of
the file says what is meant; without -o, the file is named for the session. Of a damaged session, what is
readable is written, and what is missing is named.

\b
Examples:
  antiphon sessions export 4f2a                    to move it: import it on the other machine
  antiphon sessions export 4f2a -o talk.html       a page to read and to pass on
  antiphon sessions export 4f2a --format markdown -o -
"""
IMPORT = """\
Take a session in that was exported elsewhere; prints its id.

All of it or nothing: a file that is damaged is refused, and it is said where. The hub may run: the session is
in its list at once. Its agent brings it back where it knows it; else it is told what was said.

\b
Examples:
  antiphon sessions import 4f2a.antiphon
  antiphon sessions import 4f2a.antiphon --partial           what comes before a damage
  antiphon sessions import 4f2a.antiphon --as copy --cwd .   a copy beside the first, which works here
  ssh HOST antiphon sessions export 4f2a -o - | antiphon sessions import -
"""
FORK = """\
Begin a session that goes on from another one; prints its id.

Without --at it begins where the session was last at rest.

\b
Examples:
  antiphon sessions fork 4f2a
  antiphon sessions fork 4f2a --at msg_31c0   after that message
"""


@click.command(
    cls=Explained, help=EXPORT, short_help="Write a session into one file, to move it or to read it."
)
@click.argument("session", shell_complete=completing.sessions)
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Where to; - for stdout.")
@click.option(
    "--format",
    type=click.Choice(["antiphon", "markdown", "html"]),
    help="To be imported again, or a transcript.",
)
@reaching_options
@click.pass_context
def export(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.moving import run_export

    ctx.exit(run_export(**given))


@click.command("import", cls=Explained, help=IMPORT, short_help="Take in a session that was exported.")
@click.argument("file", type=click.Path())
@click.option("--as", "named", metavar="ID", help="Under another id: a copy, which has a session of its own.")
@click.option(
    "--agent",
    metavar="NAME",
    help="Which of the hub's agents works for it from now on.",
    shell_complete=completing.agents_of_hub,
)
@click.option(
    "--cwd",
    type=click.Path(file_okay=False, resolve_path=True),
    metavar="DIR",
    help="Its folder here, where that is another one.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Of a session that was damaged when it was exported, take what comes before the damage.",
)
@reaching_options
@click.pass_context
def import_(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.moving import run_import

    ctx.exit(run_import(**given))


@click.command(cls=Explained, help=FORK, short_help="Begin a session that goes on from another one.")
@click.argument("session", shell_complete=completing.sessions)
@click.option("--at", metavar="MESSAGE", help="The id of the message after which it begins.")
@reaching_options
@click.pass_context
def fork(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.moving import run_fork

    ctx.exit(run_fork(**given))
