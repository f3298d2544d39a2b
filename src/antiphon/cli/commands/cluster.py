"""The command lines of `antiphon cluster`."""

from __future__ import annotations

import click

from antiphon.cli.commands.help import CommandGroup
from antiphon.cli.commands.options import runs
from antiphon.cli.commands.store_options import store_options


@click.group(cls=CommandGroup, short_help="Look at hubs that share a store.")
def cluster() -> None:
    """Look at the hubs that keep their sessions in the same store (`antiphon serve --store`).

    \b
    Examples:
      antiphon cluster status --store nats://a:4222,b:4222,c:4222
    """


@cluster.command(short_help="Show the hubs, their sessions and the streams of a shared store.")
@click.option("--json", is_flag=True, help="Print one JSON object.")
@store_options
@runs("cluster.run_status")
def status() -> None:
    """Show the hubs on a shared store, the sessions that each of them runs, and the streams.

    It asks the NATS servers and needs no hub. A session whose hub is gone is taken over when a client needs
    it. LAG is the number of writes that the slowest replica of a stream does not have yet.

    \b
    Examples:
      antiphon cluster status --store nats://a:4222,b:4222,c:4222
      antiphon cluster status --store tls://a --nats-creds hub.creds --json
    """
