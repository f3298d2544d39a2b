"""The `antiphon` command: one file per command, each loaded when it is called."""

import click

from antiphon.cli import completion as completion_script
from antiphon.cli import output
from antiphon.cli.chat_command import chat
from antiphon.cli.explaining import Menu
from antiphon.cli.hub_commands import acp, attach, serve, sessions
from antiphon.cli.link_command import link
from antiphon.cli.prompt import prompt
from antiphon.cli.signals import accept_stop_signals
from antiphon.cli.token_commands import token

HELP = """\
Antiphon: Agent Client Protocol sessions. One session, many voices.

\b
Examples:
  antiphon                                    what one can do with it
  antiphon prompt "plan"                      the built-in agent, offline
  antiphon prompt "Explain this" -- claude    a real agent at work
  antiphon chat -- claude                     the same, on the whole terminal
  antiphon serve -- claude                    behind a hub, for many clients
  antiphon attach                             a session of that hub, here
  antiphon acp                                the hub, as your editor's agent
  antiphon token create ann --role observer   let somebody else in

`antiphon COMMAND --help` has more of them.
"""
REHEARSE = """\
Run the built-in agent over stdin and stdout.

It is offline and deterministic, and no language model: something to try a client with.

\b
Examples:
  antiphon prompt "plan" -- antiphon rehearse   any client starts it so
  antiphon rehearse --data sessions             it keeps its sessions
"""


@click.group(
    cls=Menu,
    help=HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="antiphon")
@click.pass_context
def main(ctx: click.Context) -> None:
    output.install()
    accept_stop_signals()
    if ctx.invoked_subcommand is None:
        from antiphon.cli.front import show_front

        show_front()


for _command in (chat, prompt, serve, attach, acp, sessions, link, token):
    main.add_command(_command)


@main.command(help=REHEARSE, short_help="The built-in agent over stdio, to try a client with.")
@click.option(
    "--data",
    type=click.Path(file_okay=False),
    help="Keep sessions in this folder; without it they are gone with the process.",
)
def rehearse(data: str | None) -> None:
    from antiphon.cli.rehearse import run_rehearsal

    run_rehearsal(data)


@main.command(help=completion_script.HELP, short_help="Let your shell complete all this.")
@click.argument("shell", required=False, type=click.Choice(list(completion_script.SHELLS)))
def completion(shell: str | None) -> None:
    completion_script.run_completion(main, shell)
