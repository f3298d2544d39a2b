"""The commands of the hub: what can be said on their command lines. What they do is loaded when called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

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

SESSION is an id, the beginning of one, or "new". Lines you type are prompts. Ctrl-C leaves; the session
goes on.
"""
SESSIONS = "What a hub keeps: list sessions, show one, rename or delete it."


class WithAgent(click.Command):
    """A command with words behind `--` that are another command's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        agent: list[str] = []
        if "--" in args:
            at = args.index("--")
            args, agent = args[:at], args[at + 1 :]
            if not agent:
                raise click.UsageError("there is no AGENT after --", ctx)
        ctx.meta["agent"] = agent
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- AGENT…]"]


def _pair(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for each in given:
        name, equals, command = each.partition("=")
        if not equals or not name or not command.strip():
            raise click.BadParameter(f"{each!r} is not NAME=COMMAND", ctx, param)
        pairs.append((name, command))
    return pairs


def _data(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--data",
        type=click.Path(file_okay=False),
        metavar="FOLDER",
        help="The data folder of the hub; the platform's usual one, unless said otherwise.",
    )(command)


def _reaching(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that lead to a hub."""
    command = click.option(
        "--token", envvar="ANTIPHON_TOKEN", metavar="T", help="Its token (or ANTIPHON_TOKEN)."
    )(command)
    command = click.option(
        "--hub", envvar="ANTIPHON_HUB", metavar="ADDR", help="A ws:// address of a hub (or ANTIPHON_HUB)."
    )(command)
    return _data(command)


@click.command(cls=WithAgent, help=SERVE, short_help="Put agents behind a hub.")
@click.option("--agent", "agents", multiple=True, metavar="NAME=CMD", callback=_pair, help="One of several.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="0 picks a free one."
)
@_data
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False),
    metavar="F",
    help="Written once clients can come: JSON with `url`, `acp` and `token`, for your eyes alone.",
)
@click.option("--turn-complete", is_flag=True, help="Send `turn_complete` to every v1 client.")
@click.option(
    "--unattended",
    type=click.Choice(["wait", "reject"]),
    default="wait",
    show_default=True,
    help="What becomes of an agent's question with nobody attached.",
)
@click.option("--acp-version", type=click.Choice(["1", "2"]), help="Insist on this version with the agents.")
@click.option("-v", "--verbose", is_flag=True, help="Also show what the agents write to their stderr.")
@click.pass_context
def serve(ctx: click.Context, /, acp_version: str | None, **given: Any) -> None:
    from antiphon.cli.serve import Serving, run_serve

    version = None if acp_version is None else int(acp_version)
    ctx.exit(run_serve(Serving(agent=ctx.meta["agent"], version=version, **given)))


@click.command(cls=WithAgent, help=ACP, short_help="The hub as an agent over stdio, for editors.")
@click.option("--session", metavar="ID", help="The editor's new session is this one.")
@_reaching
@click.pass_context
def acp(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.acp import run_acp

    ctx.exit(run_acp(agent=ctx.meta["agent"], **given))


@click.command(help=ATTACH, short_help="Follow a session of the hub in the terminal.")
@click.argument("session")
@_reaching
@click.pass_context
def attach(ctx: click.Context, /, **given: Any) -> None:
    from antiphon.cli.attach import run_attach

    ctx.exit(run_attach(**given))


@click.group(help=SESSIONS)
def sessions() -> None:
    pass


@sessions.command("list")
@click.option("--json", is_flag=True, help="One session a line, as JSON.")
@_reaching
@click.pass_context
def list_sessions(ctx: click.Context, /, json: bool, **given: Any) -> None:
    """List the sessions, the newest first."""
    from antiphon.cli.sessions import run_list

    ctx.exit(run_list(json=json, **given))


@sessions.command()
@click.argument("session")
@_reaching
@click.pass_context
def show(ctx: click.Context, /, **given: Any) -> None:
    """Print what was said in a session."""
    from antiphon.cli.sessions import run_show

    ctx.exit(run_show(**given))


@sessions.command()
@click.argument("session")
@click.argument("title")
@_reaching
@click.pass_context
def rename(ctx: click.Context, /, **given: Any) -> None:
    """Give a session another title."""
    from antiphon.cli.sessions import run_rename

    ctx.exit(run_rename(**given))


@sessions.command()
@click.argument("session")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_reaching
@click.pass_context
def delete(ctx: click.Context, /, session: str, yes: bool, **given: Any) -> None:
    """Delete a session with all that was said in it."""
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("say --yes, as nobody can be asked here")
        click.confirm(f"Delete {session} for ever?", abort=True)
    from antiphon.cli.sessions import run_delete

    ctx.exit(run_delete(session=session, **given))
