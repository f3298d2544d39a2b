"""`antiphon prompt`: what can be said on its command line. What it does is loaded when it is called."""

from __future__ import annotations

import sys

import click

from antiphon.cli.exits import Exit
from antiphon.cli.options import WithAgent, ca_option

HELP = """\
Ask an agent something, and watch it work.

TEXT is the prompt. Without it, or as "-", it is read from stdin. Everything after -- is the AGENT: the name
of a known one, a command to run, or a ws:// address. Without AGENT the built-in one answers, offline.

\b
Examples:
  antiphon prompt "plan"                             the built-in agent
  antiphon prompt "Why is the build red?" -- claude
  antiphon prompt "Add a test" --allow edit -- codex
  git diff | antiphon prompt - -- gemini > review.md
  antiphon prompt "What is this?" --file plan.png -- opencode
  antiphon prompt "hello" --json -- ./my-agent --acp

On a terminal the answer is painted as it streams. Elsewhere what the agent says goes to stdout and what it
does to stderr. What it asks is asked on the terminal, where there is one. Ctrl-C cancels the turn and waits
for the agent; a second one kills it.
"""


class PromptCommand(WithAgent):
    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "[TEXT]", "[-- AGENT…]"]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from antiphon.cli.agents import known_agents

        with formatter.section("Known agents"):
            formatter.write_dl(
                [
                    (one.name, " ".join(one.command) + "  (installed)" * one.installed)
                    for one in known_agents().values()
                ]
            )
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), code.meaning) for code in Exit])


@click.command(cls=PromptCommand, help=HELP, short_help="Ask an agent something, and watch it work.")
@click.argument("words", metavar="[TEXT]", nargs=-1)
@click.option(
    "--cwd",
    default=".",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Where the session works; here, unless said otherwise.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True, dir_okay=False, readable=True),
    help="Attach a file: embedded or linked, as the agent can take it. Can be given again.",
)
@click.option("--version", type=click.Choice(["1", "2"]), help="Insist on this version of ACP.")
@click.option(
    "--allow",
    type=click.Choice(["none", "read", "edit", "all", "ask"]),
    help="What the agent may do when it asks: nothing; read and search; also edit, delete and move files; "
    "everything; or ask you each time. Without it: ask on a terminal, none elsewhere.",
)
@click.option(
    "--json",
    is_flag=True,
    help="Print one event a line as JSON: kind, seq, whether it is of this turn, and the update as in "
    "ACP 2; the end last.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Cancel the turn if it has not ended by then.",
)
@ca_option
@click.option("-v", "--verbose", is_flag=True, help="Also show what the agent writes to its stderr.")
@click.pass_context
def prompt(
    ctx: click.Context,
    words: tuple[str, ...],
    cwd: str,
    files: tuple[str, ...],
    version: str | None,
    allow: str | None,
    json: bool,
    timeout: float | None,
    verbose: bool,
) -> None:
    if len(words) > 1:
        raise click.UsageError(f"TEXT is one argument, so quote it; an agent comes after --: -- {words[-1]}")
    text = _text(words)
    from antiphon.cli.prompting import Request, run_prompt

    code = run_prompt(
        Request(
            text=text,
            files=files,
            agent=ctx.meta["agent"],
            cwd=cwd,
            version=None if version is None else int(version),
            allow=allow,
            json=json,
            timeout=timeout,
            verbose=verbose,
        )
    )
    ctx.exit(code)


def _text(words: tuple[str, ...]) -> str:
    if words and words[0] != "-":
        text = words[0]
    elif not words and sys.stdin.isatty():
        raise click.UsageError('say something: antiphon prompt "TEXT", or pipe it in')
    else:
        text = sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
    if not text.strip():
        raise click.UsageError("the prompt is empty")
    return text
