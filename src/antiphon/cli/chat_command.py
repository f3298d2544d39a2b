"""`antiphon chat`: what can be said on its command line. What it does is loaded when it is called."""

from __future__ import annotations

from typing import Any

import click

from antiphon.cli import completing
from antiphon.cli.options import WithAgent, reaching_options

CHAT = """\
A session on the whole terminal: the same one as on the page and in other terminals, at the same time.

SESSION is an id, the beginning of one, or "new". Without it, the sessions of the hub that runs are listed;
where none runs, the built-in agent answers. Everything after -- is an AGENT to talk with directly: the name
of a known one, a command, or a ws:// address. F1 shows the keys.

\b
Examples:
  antiphon chat                the hub's sessions, or the built-in agent
  antiphon chat 4f2a           the one whose id begins so
  antiphon chat new            a new one, at the hub
  antiphon chat -- claude      an agent of ACP 1 or 2, without a hub
"""


class ChatCommand(WithAgent):
    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "[SESSION]", "[-- AGENT…]"]


@click.command(cls=ChatCommand, help=CHAT, short_help="A session on the whole terminal.")
@click.argument("session", required=False, shell_complete=completing.sessions)
@click.option(
    "--name", metavar="WHO", help="What the others see of you; your login name, unless said otherwise."
)
@reaching_options
@click.pass_context
def chat(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.chat import run_chat

    ctx.exit(run_chat(agent=ctx.meta["agent"], **given))
