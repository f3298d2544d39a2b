"""The command line of `antiphon chat`."""

from __future__ import annotations

import click

from antiphon.cli.commands import completion
from antiphon.cli.commands.options import AgentCommand, hub_options, name_option, runs


class ChatCommand(AgentCommand):
    usage = ("[OPTIONS]", "[SESSION]")


@click.command(cls=ChatCommand, short_help="Show a session in a full-screen terminal UI.")
@click.argument("session", required=False, shell_complete=completion.sessions)
@name_option
@hub_options
@runs("chat.run_chat")
def chat() -> None:
    """Show a session in a full-screen terminal UI, live, together with the page and other terminals.

    SESSION is an id or a title, the beginning of one, or "new". Without it, the UI lists the sessions of the
    running hub; if no hub runs, the built-in agent answers. Everything after -- is an AGENT to talk with
    directly: the name of a known agent, a command, or a ws:// address. F1 shows the keys.

    \b
    Examples:
      antiphon chat                the hub's sessions, or the built-in agent
      antiphon chat 4f2a           the session whose id begins with 4f2a
      antiphon chat new            a new session on the hub
      antiphon chat -- claude      an agent of ACP 1 or 2, without a hub
    """
