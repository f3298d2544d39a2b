"""The commands of the hub: what can be said on their command lines. What they do is loaded when called."""

from __future__ import annotations

import sys
from typing import Any

import click

from antiphon.cli import completing
from antiphon.cli.access_options import access_options
from antiphon.cli.explaining import Explained, Menu
from antiphon.cli.moving_commands import export, fork, import_
from antiphon.cli.options import (
    WithAgent,
    busy_option,
    data_option,
    reaching_options,
    read_agents,
    read_versions,
)

SERVE = """\
Put agents behind a hub, which many clients attach to at once.

Sessions are kept, and outlive clients, connections and the hub itself. Everything after -- is the AGENT: the
name of a known one, a command, or a ws:// address. Without any, the built-in agent is served.

\b
Examples:
  antiphon serve                                  the built-in agent, to try it
  antiphon serve -- claude
  antiphon serve --agent claude=claude-agent-acp --agent mine="./my-agent --acp"
  antiphon serve --port 0 --ready-file hub.json   any port; where it is stands in the file

A client needs the token, which stands in the file `token` of the data folder; the commands here find it by
themselves. SIGTERM lets turns at work end, then ends the agents.
"""
ACP = """\
Be an agent to an editor, over stdio, and an attachment to the hub behind it.

Give this as the agent's command to an editor that speaks ACP. The hub is found by its data folder, or by
--hub and --token (ANTIPHON_HUB, ANTIPHON_TOKEN); if none runs, one is started, with AGENT behind it.

\b
Examples:
  antiphon acp                        the hub's sessions, in the editor
  antiphon acp -- claude              sessions of that agent
  antiphon acp --session sess_42      the editor's new session is that one
"""
ATTACH = """\
Follow a session of the hub in the terminal, together with whoever else does.

SESSION is an id, the beginning of one, or "new"; without it, the latest one, or a new one if there is none.
Lines you type are prompts, or answers to what the agent asks. Ctrl-C cancels a turn of yours, and leaves
otherwise; Ctrl-D leaves. The session goes on.

\b
Examples:
  antiphon attach                        the latest session
  antiphon attach new --agent claude     a new one, with one of the hub's agents
  antiphon attach 4f2a                   the one whose id begins so
  echo "plan" | antiphon attach          prompts, shows the turn, and ends with it
"""
SESSIONS = """\
What a hub keeps, whether it runs or not: list sessions, show one, rename or delete it, move it elsewhere, or
fork it.

A session is named by its id, or by the first letters of it.

\b
Examples:
  antiphon sessions list                       the newest first
  antiphon sessions show 4f2a                  what was said in the one whose id begins so
  antiphon sessions export 4f2a -o talk.html   a page to read
"""
LIST = """\
List the sessions, the newest first: id, time, agent, state, clients, title and folder.

\b
Examples:
  antiphon sessions list
  antiphon sessions list --json | head -1      the newest, for a script
  antiphon sessions list --hub 192.0.2.7:8642  those of a hub elsewhere, with its token in ANTIPHON_TOKEN
"""
SHOW = """\
Print what was said in a session, its tool calls, and its turns with the requests that they answer.

\b
Examples:
  antiphon sessions show 4f2a
  antiphon sessions show 4f2a | less
"""
RENAME = """\
Give a session another title.

\b
Examples:
  antiphon sessions rename 4f2a "The red build"
"""
DELETE = """\
Delete a session with all that was said in it.

\b
Examples:
  antiphon sessions delete 4f2a         asks before it does
  antiphon sessions delete 4f2a --yes   does not, for a script
"""


@click.command(cls=WithAgent, help=SERVE, short_help="Put agents behind a hub.")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="NAME=CMD",
    callback=read_agents,
    help="An agent by name; several may be given, and clients choose.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="0 picks a free one. Without it: 8642, or a free one where that is taken.",
)
@data_option
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False),
    metavar="F",
    help="Written once clients can come: JSON with `url`, `acp` and `token`, for your eyes alone.",
)
@click.option("--turn-complete", is_flag=True, help="Send `turn_complete` to every v1 client.")
@click.option(
    "--unattended",
    type=click.Choice(["wait", "reject", "allow-read"]),
    default="wait",
    show_default=True,
    help="What becomes of an agent's question with nobody there who may answer; allow-read approves what "
    "only reads (read, search, think).",
)
@busy_option
@click.option("--share", is_flag=True, help="One process for all sessions of an agent, not one for each.")
@click.option(
    "--idle",
    type=click.FloatRange(min=0),
    default=900,
    show_default=True,
    metavar="SECONDS",
    help="Stop an agent after this much rest, if it can bring its session back; 0 for never.",
)
@click.option(
    "--start",
    type=click.FloatRange(min=0, min_open=True),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How long an agent may take to start.",
)
@click.option(
    "--files",
    type=click.Choice(["editor", "hub", "none"]),
    default="editor",
    show_default=True,
    help="Whose files and terminals v1 agents use: an attached editor's, where it offers them, otherwise the "
    "hub's; always the hub's; or none, so that the agent uses its own.",
)
@click.option(
    "--acp-version",
    "version",
    multiple=True,
    metavar="[NAME=]N",
    callback=read_versions,
    help="Insist on ACP 1 or 2, with all agents or with one.",
)
@access_options
@click.option("-v", "--verbose", is_flag=True, help="Also show what the agents write to their stderr.")
@click.pass_context
def serve(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.serve import Serving, run_serve

    ctx.exit(run_serve(Serving(agent=ctx.meta["agent"], **given)))


@click.command(cls=WithAgent, help=ACP, short_help="The hub as an agent over stdio, for editors.")
@click.option(
    "--session",
    metavar="ID",
    help="The editor's new session is this one.",
    shell_complete=completing.sessions,
)
@busy_option
@reaching_options
@click.pass_context
def acp(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.acp import run_acp

    ctx.exit(run_acp(agent=ctx.meta["agent"], **given))


@click.command(cls=Explained, help=ATTACH, short_help="Follow a session of the hub in the terminal.")
@click.argument("session", required=False, shell_complete=completing.sessions)
@click.option(
    "--agent",
    metavar="NAME",
    help="Begin a session with this one of the hub's agents.",
    shell_complete=completing.agents_of_hub,
)
@click.option(
    "--name", metavar="WHO", help="What the others see of you; your login name, unless said otherwise."
)
@reaching_options
@click.pass_context
def attach(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.attach import run_attach

    ctx.exit(run_attach(**given))


@click.group(cls=Menu, help=SESSIONS, short_help="List, show, rename, delete, move or fork sessions.")
def sessions() -> None:
    pass


@sessions.command("list", help=LIST, short_help="List the sessions, the newest first.")
@click.option("--json", is_flag=True, help="One session a line, as JSON.")
@reaching_options
@click.pass_context
def list_sessions(ctx: click.Context, /, json: bool, **given: Any) -> None:
    from antiphon.cli.sessions import run_list

    ctx.exit(run_list(json=json, **given))


@sessions.command(help=SHOW, short_help="Print what was said in a session.")
@click.argument("session", shell_complete=completing.sessions)
@reaching_options
@click.pass_context
def show(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.sessions import run_show

    ctx.exit(run_show(**given))


@sessions.command(help=RENAME, short_help="Give a session another title.")
@click.argument("session", shell_complete=completing.sessions)
@click.argument("title")
@reaching_options
@click.pass_context
def rename(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.sessions import run_rename

    ctx.exit(run_rename(**given))


@sessions.command(help=DELETE, short_help="Delete a session.")
@click.argument("session", shell_complete=completing.sessions)
@click.option("--yes", is_flag=True, help="Do not ask.")
@reaching_options
@click.pass_context
def delete(ctx: click.Context, /, session: str, yes: bool, **given: Any) -> None:
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("nobody can be asked here, as this is no terminal: say --yes")
        click.confirm(f"Delete {session} for ever?", abort=True)
    from antiphon.cli.sessions import run_delete

    ctx.exit(run_delete(session=session, **given))


for _command in (export, import_, fork):
    sessions.add_command(_command)
