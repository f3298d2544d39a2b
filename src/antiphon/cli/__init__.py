"""The `antiphon` command: one file per command, each loaded when it is called."""

import click

from antiphon.cli.hub_commands import acp, attach, serve, sessions
from antiphon.cli.prompt import prompt
from antiphon.cli.token_commands import token

HELP = """\
Antiphon: Agent Client Protocol sessions. One session, many voices.

\b
What you can do now:
  antiphon prompt "plan"                      try it: the built-in agent answers, offline
  antiphon prompt "Explain this" -- claude    ask a real agent, and watch it work
  antiphon prompt --help                      agents by name, permissions, JSON, exit codes
  antiphon rehearse                           the built-in agent over stdio, for your own client
  antiphon serve -- claude                    a hub: sessions that many clients follow, and that stay
  antiphon attach                             the latest session of that hub, here; or a new one
  antiphon sessions list                      all of them; also show, export, import, fork, …
  antiphon token create ann --role observer   let somebody else in
  antiphon acp                                for editors: the hub, as an agent over stdio
"""


@click.group(help=HELP, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="antiphon")
@click.pass_context
def main(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (prompt, serve, acp, sessions, attach, token):
    main.add_command(_command)


@main.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False),
    help="Keep sessions in this folder; without it they are gone with the process.",
)
def rehearse(data: str | None) -> None:
    """Run the built-in agent over stdin and stdout.

    It is offline and deterministic, and no language model: something to try a client with.
    """
    from antiphon.cli.rehearse import run_rehearsal

    run_rehearsal(data)
