"""The `antiphon` command. `commands` has the command lines; the work is loaded when one is called."""

from pathlib import Path

import click

from antiphon import __version__
from antiphon.cli.commands import completion as shell_completion
from antiphon.cli.commands.agents import agents
from antiphon.cli.commands.chat import chat
from antiphon.cli.commands.check import check
from antiphon.cli.commands.cluster import cluster
from antiphon.cli.commands.help import CommandGroup
from antiphon.cli.commands.hub import acp, attach, link, serve
from antiphon.cli.commands.prompt import prompt
from antiphon.cli.commands.recordings import log, tap
from antiphon.cli.commands.sessions import sessions
from antiphon.cli.commands.token import token
from antiphon.cli.output import streams
from antiphon.cli.program import accept_stop_signals, note_protocol_on_stdin


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Antiphon runs Agent Client Protocol sessions: one session, many clients.

    \b
    Examples:
      antiphon                                    the first steps
      antiphon prompt "plan"                      the built-in agent, offline
      antiphon prompt "Explain this" -- claude    one turn of a real agent
      antiphon chat -- claude                     the same in a full-screen terminal UI
      antiphon serve                              a hub that serves every installed agent to many clients
      antiphon attach                             a session of that hub in this terminal
      antiphon acp                                the hub as the agent of your editor
      antiphon token create ann --role observer   access for another user
      antiphon check agent -- ./my-agent          does it keep the protocol?
      antiphon tap --log talk.ndjson -- claude    records what an editor and an agent say

    `antiphon COMMAND --help` shows more.
    """
    streams.install()
    accept_stop_signals()
    if ctx.invoked_subcommand is None:
        from antiphon.cli.hub.start_screen import print_start_screen

        print_start_screen()


for _command in (chat, prompt, serve, agents, attach, acp, sessions, link, token, cluster, check, tap, log):
    main.add_command(_command)


@main.command(short_help="Run the built-in agent over stdio, to try a client with.")
@click.option(
    "--data",
    type=click.Path(file_okay=False),
    help="Store sessions in this folder. Without it they end with the process.",
)
def rehearse(data: str | None) -> None:
    """Run the built-in agent over stdin and stdout, to try a client with.

    The agent is offline and deterministic. It is not a language model.

    \b
    Examples:
      antiphon prompt "plan" -- antiphon rehearse   any client can start it like this
      antiphon rehearse --data sessions             it stores its sessions
    """
    from antiphon.private_files import make_private_folder
    from antiphon.rehearsal import make_agent
    from antiphon.stores import SQLiteStore

    note_protocol_on_stdin("prompt plan")
    store = None
    if data is not None:
        make_private_folder(Path(data), ours=("sessions.db",))
        store = SQLiteStore(Path(data) / "sessions.db")
    make_agent(store=store, may_exit=True).run()


@main.command(help=shell_completion.HELP, short_help="Print the completion script for your shell.")
@click.argument("shell", required=False, type=click.Choice(list(shell_completion.SHELLS)))
def completion(shell: str | None) -> None:
    shell_completion.run_completion(main, shell)
