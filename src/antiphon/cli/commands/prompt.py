"""The command line of `antiphon prompt`."""

from __future__ import annotations

import sys
from typing import Any, Literal

import click

from antiphon.cli.commands.options import AgentCommand, ca_option
from antiphon.cli.exit_codes import Exit


class PromptCommand(AgentCommand):
    usage = ("[OPTIONS]", "[TEXT]")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from antiphon.hub import catalogue

        with formatter.section("Known agents"):
            formatter.write_dl(
                [
                    (one.name, " ".join(one.command) + "  (installed)" * one.installed)
                    for one in catalogue().values()
                ]
            )
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), code.meaning) for code in Exit])


@click.command(cls=PromptCommand, short_help="Send one prompt to an agent and show its turn.")
@click.argument("words", metavar="[TEXT]", nargs=-1)
@click.option(
    "--cwd",
    default=".",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="The folder that the session works in. Default: the current one.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True, dir_okay=False, readable=True),
    help="Attach a file, embedded or as a link, whichever the agent supports. May be repeated.",
)
@click.option("--version", type=click.Choice(["1", "2"]), help="Require this version of ACP.")
@click.option(
    "--allow",
    type=click.Choice(["none", "read", "edit", "all", "ask"]),
    help="Permissions to grant. none: nothing. read: read and search. edit: also edit, delete and move "
    "files. all: everything. ask: ask you each time. Default: ask on a terminal, otherwise none.",
)
@click.option(
    "--json",
    is_flag=True,
    help="Print one JSON object per event and line: kind, seq, whether it belongs to this turn, and the "
    "update as in ACP 2. The last line is the end of the turn.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Cancel the turn if it has not ended after this time.",
)
@click.option(
    "--continue",
    "continued",
    is_flag=True,
    help="Continue the session that was used last in the folder: of AGENT, or of the running hub.",
)
@ca_option
@click.option("-v", "--verbose", is_flag=True, help="Also print what the agent writes to stderr.")
@click.pass_context
def prompt(
    ctx: click.Context, /, words: tuple[str, ...], version: Literal["1", "2"] | None, **given: Any
) -> None:
    """Send one prompt to an agent and show its turn.

    TEXT is the prompt. Without it, or with "-", the prompt is read from stdin. Everything after -- is the
    AGENT: the name of a known agent, a command, or a ws:// address. Without AGENT the built-in agent answers,
    offline.

    \b
    Examples:
      antiphon prompt "plan"                             the built-in agent
      antiphon prompt "Why is the build red?" -- claude
      antiphon prompt "Add a test" --allow edit -- codex
      antiphon prompt "Now run it" --continue -- codex
      git diff | antiphon prompt - -- gemini > review.md
      antiphon prompt "What is this?" --file plan.png -- opencode
      antiphon prompt "hello" --json -- ./my-agent --acp

    On a terminal the turn is rendered as it streams. Otherwise messages go to stdout, and tool calls and
    plans to stderr. Questions of the agent are asked on the terminal, if there is one. Ctrl-C cancels the
    turn and waits for the agent; a second Ctrl-C kills the agent.
    """
    if len(words) > 1:
        raise click.UsageError(f"TEXT is one argument: quote it; an agent comes after --: -- {words[-1]}")
    text = _text(words)
    from antiphon.cli.prompt import PromptRequest, run_prompt

    wanted: dict[str | None, Literal[1, 2]] = {"1": 1, "2": 2}
    ctx.exit(run_prompt(PromptRequest(text=text, version=wanted.get(version), **given)))


def _text(words: tuple[str, ...]) -> str:
    if words and words[0] != "-":
        text = words[0]
    elif not words and sys.stdin.isatty():
        raise click.UsageError('there is no prompt: give one as antiphon prompt "TEXT", or on stdin')
    else:
        text = sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
    if not text.strip():
        raise click.UsageError("the prompt is empty")
    return text
