"""The command lines of `antiphon sessions`."""

from __future__ import annotations

import sys
from typing import Any

import click

from antiphon.cli.commands import completion
from antiphon.cli.commands.help import CommandGroup
from antiphon.cli.commands.options import hub_options, runs
from antiphon.cli.commands.store_options import place_options

session_argument = click.argument("session", shell_complete=completion.sessions)


@click.group(cls=CommandGroup, short_help="List, search, show, cancel, rename, delete or move sessions.")
def sessions() -> None:
    """List, search, show, cancel, rename, delete, export, import and fork the sessions of a hub.

    A session is named by its id or its title, or by the beginning of one. Only `cancel` needs a running hub.

    \b
    Examples:
      antiphon sessions list                       the one used last first
      antiphon sessions search red build           the places with both words, in all sessions
      antiphon sessions show 4f2a                  the conversation of the session whose id begins with 4f2a
      antiphon sessions export 4f2a -o talk.html   a page to read
    """


@sessions.command("list", short_help="List the sessions, the one used last first.")
@click.option("--json", is_flag=True, help="Print one JSON object per session and line.")
@place_options
@runs("sessions.run_list")
def list_sessions() -> None:
    """List the sessions, the one used last first: id, time, agent, state, clients, title and folder.

    \b
    Examples:
      antiphon sessions list
      antiphon sessions list --json | head -1      the one used last, for a script
      antiphon sessions list --hub 192.0.2.7:8642  another machine's hub, with its token in ANTIPHON_TOKEN
    """


@sessions.command(short_help="Find words in the contents of all sessions.")
@click.argument("words", nargs=-1, required=True)
@click.option("--json", is_flag=True, help="Print one JSON object per match and line.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    metavar="N",
    help="The most matches, the newest first.",
)
@place_options
@runs("search.run_search")
def search() -> None:
    """Find words in the messages, tool calls and titles of all sessions, the newest first.

    A text has to have all the words; the last one may be the beginning of a word. Case and accents do not
    matter. Words in double quotes have to follow each other.

    \b
    Examples:
      antiphon sessions search red build
      antiphon sessions search '"the red build"'   these words in this order
      antiphon sessions search red --json | jq -r .sessionId
    """


@sessions.command(short_help="Print the conversation of a session.")
@session_argument
@place_options
@runs("sessions.run_show")
def show() -> None:
    """Print the messages and tool calls of a session, and its turns with the requests that they answer.

    \b
    Examples:
      antiphon sessions show 4f2a
      antiphon sessions show 4f2a | less
    """


@sessions.command(short_help="Print what a session does.")
@session_argument
@place_options
@runs("sessions.run_status")
def status() -> None:
    """Print what a session does: its state, agent, clients, open questions and queued prompts.

    \b
    Examples:
      antiphon sessions status 4f2a
      antiphon sessions status "The red build"
    """


@sessions.command(short_help="Cancel what a session works on.")
@session_argument
@hub_options
@runs("sessions.run_cancel")
def cancel() -> None:
    """Cancel the turn that a session works on, and wait for its end. Queued prompts stay.

    \b
    Examples:
      antiphon sessions cancel 4f2a
    """


@sessions.command(short_help="Change the title of a session.")
@session_argument
@click.argument("title")
@place_options
@runs("sessions.run_rename")
def rename() -> None:
    """Change the title of a session.

    \b
    Examples:
      antiphon sessions rename 4f2a "The red build"
    """


@sessions.command(short_help="Delete a session.")
@session_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@place_options
@click.pass_context
def delete(ctx: click.Context, /, session: str, yes: bool, **given: Any) -> None:
    """Delete a session and its whole conversation.

    \b
    Examples:
      antiphon sessions delete 4f2a         asks before it deletes
      antiphon sessions delete 4f2a --yes   does not ask, for a script
    """
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("cannot ask for confirmation, because stdin is not a terminal: give --yes")
        click.confirm(f"Delete session {session} and its conversation for all clients?", abort=True)
    from antiphon.cli.sessions import run_delete

    ctx.exit(run_delete(session=session, **given))


@sessions.command(short_help="Write a session to one file, to move or read it.")
@session_argument
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="The file to write; - for stdout.")
@click.option(
    "--format",
    type=click.Choice(["antiphon", "markdown", "html"]),
    help="antiphon: a file to import. markdown, html: a transcript to read.",
)
@place_options
@runs("transfer.run_export")
def export() -> None:
    """Write a session to one file, to import it elsewhere or to read it.

    The hub may run and the session may work; later events are not in the file. Without --format, the ending
    of the file's name decides; without -o, the file is named after the session. Of a damaged session, the
    readable part is written and the missing parts are named.

    \b
    Examples:
      antiphon sessions export 4f2a                    a file to import on another machine
      antiphon sessions export 4f2a -o talk.html       a page to read and to pass on
      antiphon sessions export 4f2a --format markdown -o -
    """


@sessions.command("import", short_help="Import a session from an exported file.")
@click.argument("file", type=click.Path())
@click.option("--as", "named", metavar="ID", help="Import it as a copy with this session id.")
@click.option(
    "--agent",
    metavar="NAME",
    help="The agent of the hub that works for it from now on.",
    shell_complete=completion.agents_of_hub,
)
@click.option(
    "--cwd",
    type=click.Path(file_okay=False, resolve_path=True),
    metavar="DIR",
    help="The session's folder on this machine, if it is another one.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="If the session was damaged when it was exported, import the part before the damage.",
)
@place_options
@runs("transfer.run_import")
def import_() -> None:
    """Import a session from an exported file and print its id.

    A damaged file is refused as a whole, with the place of the damage. The hub may run; it lists the session
    at once. The session's agent loads it if it knows it. Otherwise the agent gets the conversation as text.

    \b
    Examples:
      antiphon sessions import 4f2a.antiphon
      antiphon sessions import 4f2a.antiphon --partial           the part before the damage
      antiphon sessions import 4f2a.antiphon --as copy --cwd .   a copy that works in this folder
      ssh HOST antiphon sessions export 4f2a -o - | antiphon sessions import -
    """


@sessions.command(short_help="Start a session that continues from another one.")
@session_argument
@click.option("--at", metavar="MESSAGE", help="The id of the message after which it continues.")
@place_options
@runs("transfer.run_fork")
def fork() -> None:
    """Start a new session that continues from another one, and print its id.

    Without --at it continues from the last point at which the session was idle.

    \b
    Examples:
      antiphon sessions fork 4f2a
      antiphon sessions fork 4f2a --at msg_31c0   after that message
    """
