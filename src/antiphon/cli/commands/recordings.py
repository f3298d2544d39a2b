"""The command lines of `antiphon tap` and `antiphon log`."""

from __future__ import annotations

import click

from antiphon.cli.commands import completion
from antiphon.cli.commands.help import HelpCommand
from antiphon.cli.commands.options import AgentCommand, runs
from antiphon.cli.commands.store_options import place_options


@click.command(cls=AgentCommand, short_help="Record what an editor and an agent say to each other.")
@click.option(
    "--log",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="The file to write. If it exists, a number is added to its name. Default: a new file in the data "
    "folder, named on stderr.",
)
@runs("judge.tap.run")
def tap() -> None:
    """Run an agent between this process's stdin and stdout, and record both directions.

    Configure this command as the agent in an editor. Every byte passes at once and unchanged; so do the
    agent's stderr, its exit code, signals and the end of input. `antiphon log` shows a recording, and
    `antiphon check recording` judges it. A recording has everything that was said: only you can read it.

    \b
    Examples:
      antiphon tap -- my-agent --acp
      antiphon tap --log talk.ndjson -- claude
      antiphon log talk.ndjson
    """


@click.command(cls=HelpCommand, short_help="Show a recording or a session as a timeline.")
@click.argument("source", metavar="FILE|SESSION", shell_complete=completion.sessions)
@click.option("--json", is_flag=True, help="Print one JSON object per entry and line.")
@click.option(
    "--html", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE", help="Write one HTML file."
)
@place_options
@runs("judge.log.run")
def log() -> None:
    """Show a recording or a session as a timeline: who said what, and when.

    FILE is a recording of `antiphon tap`, a session that `antiphon sessions export` wrote, or lines of JSON
    that name the direction of each frame. SESSION is a session of the hub, by its id or the beginning of it.
    The chunks of a message are one entry, and a request and its answer are one entry with the time between.

    \b
    Examples:
      antiphon log talk.ndjson
      antiphon log talk.ndjson --html talk.html
      antiphon log talk.ndjson --json | head -3
      antiphon log 4f2a                           a session of the hub
    """
