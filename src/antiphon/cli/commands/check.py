"""The command lines of `antiphon check`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from antiphon.cli.commands.help import CommandGroup, HelpCommand
from antiphon.cli.commands.options import AgentCommand, Command, runs
from antiphon.cli.judge.settings import Judged, Outputs, Settings


class CheckCommand(AgentCommand):
    usage: tuple[str, ...] = ("[OPTIONS]", "[ADDRESS]")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_exit_codes(formatter)


class CheckClientCommand(CheckCommand):
    usage = ("[OPTIONS]",)
    peer = "CLIENT"


class CheckHubCommand(CheckCommand):
    peer = "HUB"


class RecordingCommand(HelpCommand):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_exit_codes(formatter)


def write_exit_codes(formatter: click.HelpFormatter) -> None:
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(int(code)), code.meaning) for code in Judged])


@click.group(cls=CommandGroup, short_help="Judge whether an agent, a client or a hub keeps the protocol.")
def check() -> None:
    """Judge whether an agent, a client or a hub keeps the promises of the protocol.

    Each requirement of the catalogue gets a verdict: pass, fail (a MUST is broken), warn (a SHOULD is
    broken), not applicable, or not tested. A fail shows the frames that prove it.

    \b
    Examples:
      antiphon check agent -- my-agent --acp      a command that speaks ACP on stdio
      antiphon check agent ws://127.0.0.1:9000/acp
      antiphon check client -- my-client          a program that starts an agent and prompts it
      antiphon check hub ws://127.0.0.1:8642/acp
      antiphon check recording talk.ndjson        what `antiphon tap` has recorded
    """


def _revision(ctx: click.Context, param: click.Parameter, given: str | None) -> str | None:
    if given is None:
        return None
    from antiphon.conformance import REVISIONS

    if given not in REVISIONS:
        raise click.BadParameter(f"{given!r} is none of {', '.join(REVISIONS)}", ctx, param)
    return given


def _prompts(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    if not given:
        return {}
    from antiphon.conformance import read_prompts

    try:
        return read_prompts(given)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


_FILE = click.Path(dir_okay=False, allow_dash=True)
_OUTPUTS = (
    click.option("--json", type=_FILE, metavar="FILE", help="Write all verdicts and their frames as JSON."),
    click.option("--junit", type=_FILE, metavar="FILE", help="Write a JUnit report, which CI systems show."),
    click.option("--html", type=_FILE, metavar="FILE", help="Write one HTML file with every verdict."),
    click.option("--badge", type=_FILE, metavar="FILE", help="Write a small SVG, for a README."),
    click.option(
        "--expected-failures",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Requirements that may fail: one id per line, with an optional # reason. An entry that does not "
        "fail any more is an error.",
    ),
)
_REVISION = click.option(
    "--revision",
    metavar="R",
    callback=_revision,
    help="The revision of the v2 draft that the peer implements. A later rule is not applied to it.",
)
_PROMPT = click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="NAME=TEXT",
    callback=_prompts,
    help="What to ask of the agent to make it do what a scenario needs. NAME is plain, slow, tool, "
    "slow_tool, permission, failure or background. May be repeated.",
)
_SETTINGS = (
    click.option(
        "--only",
        multiple=True,
        metavar="NAME",
        help="Run only this scenario, area of scenarios, or what decides this requirement. May be repeated.",
    ),
    click.option("--list", is_flag=True, help="List the scenarios, and what each decides."),
    click.option("--explain", metavar="ID", help="Explain a requirement, e.g. PROMPT-V1-03."),
    _REVISION,
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="After this time a missing frame counts as missing.",
    ),
    click.option(
        "--deadline",
        type=click.FloatRange(min=0, min_open=True),
        default=180.0,
        show_default=True,
        metavar="SECONDS",
        help="The time of one scenario; what it has not decided then is not tested.",
    ),
    click.option(
        "--jobs", type=click.IntRange(1), default=4, show_default=True, metavar="N",
        help="Scenarios that run at the same time.",
    ),
    click.option("--seed", type=int, default=0, metavar="N", help="For what scenarios choose at random."),
)  # fmt: skip


def _grouped(name: str, kind: type[Any], options: tuple[Any, ...]) -> Callable[[Command], Command]:
    """Add options to a command, which gets them as one argument."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def grouped(*given: Any, **values: Any) -> Any:
            part = kind(**{field: values.pop(field) for field in kind._fields if field in values})
            return command(*given, **{name: part}, **values)

        for option in reversed(options):
            grouped = option(grouped)
        return grouped

    return decorate


settings_options = _grouped("settings", Settings, (*_SETTINGS, _PROMPT))
client_settings_options = _grouped("settings", Settings, _SETTINGS)
output_options = _grouped("outputs", Outputs, _OUTPUTS)
token_option = click.option(
    "--token",
    envvar="ANTIPHON_TOKEN",
    default="",
    metavar="T",
    help="The token for ADDRESS. ANTIPHON_TOKEN is safer.",
)


def _address(ctx: click.Context, param: click.Parameter, given: str | None) -> str | None:
    from antiphon.wire import ADDRESSES

    if given is not None and not given.startswith(ADDRESSES):
        expected = f"expected one that begins with {', '.join(ADDRESSES)}; a command comes after --"
        raise click.BadParameter(f"{given!r} is not an address: {expected}", ctx, param)
    return given


address_argument = click.argument("address", required=False, callback=_address)


def _version(ctx: click.Context, param: click.Parameter, given: str | None) -> int | None:
    return None if given is None else int(given)


version_option = click.option(
    "--acp-version",
    "version",
    type=click.Choice(["1", "2"]),
    callback=_version,
    help="Judge this version of ACP. Default: every version that the peer speaks.",
)


@check.command(cls=CheckCommand, short_help="Judge an agent.")
@address_argument
@version_option
@settings_options
@token_option
@output_options
@runs("judge.check.run_agent")
def agent() -> None:
    """Judge an agent: a command after --, or the ADDRESS of a server.

    The judge starts the command several times, with an empty folder as the session's folder. It sends
    prompts, cancels turns and sends malformed frames. It answers permission requests with the first option
    that allows.

    \b
    Examples:
      antiphon check agent -- my-agent --acp
      antiphon check agent --acp-version 2 --html report.html -- my-agent
      antiphon check agent --only PROMPT-V1-03 -- my-agent
      antiphon check agent --prompt "tool=/read README.md" -- my-agent
      antiphon check agent --explain PROMPT-V1-03
      antiphon check agent ws://127.0.0.1:9000/acp
    """


@check.command(cls=CheckClientCommand, short_help="Judge a client.")
@version_option
@client_settings_options
@output_options
@runs("judge.check.run_client")
def client() -> None:
    """Judge a client: a program that starts an agent, sends one prompt and prints the answer.

    The judge starts the command after -- once per scenario, and plays the agent. {agent} in an argument is
    replaced by the command line of that agent, quoted for a shell; without {agent}, that command line is one
    more argument at the end. The client should make a session, send one prompt, print the answer and end by
    itself.

    \b
    Examples:
      antiphon check client -- my-client --agent
      antiphon check client -- my-client --agent={agent} --once "hello"
      antiphon check client -- sh -c 'antiphon prompt hello -- {agent}'
    """


@check.command(cls=CheckHubCommand, short_help="Judge a hub.")
@address_argument
@version_option
@settings_options
@token_option
@click.option(
    "--other-token", default="", metavar="T", help="A token that may not open the judge's sessions."
)
@output_options
@runs("judge.check.run_hub")
def hub() -> None:
    """Judge a hub with several clients of both versions: a command after --, or the ADDRESS of a hub.

    The judge plays the agents behind a hub that it starts, and may kill it and start it again. In its command
    {port} is replaced by a free port, {agent} by the command line of the judge's agent, {folder} by the path
    of a new folder, and {token} by a token that the hub should require. To a hub at an address the judge has
    only clients and prompts.

    \b
    Examples:
      antiphon check hub ws://127.0.0.1:8642/acp
      antiphon check hub ws://127.0.0.1:8642/acp --token T --html report.html
      antiphon check hub -- my-hub --port {port} --token {token} --agent {agent}
    """


@check.command(cls=RecordingCommand, short_help="Judge both sides of a recorded conversation.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@_REVISION
@output_options
@runs("judge.check.run_recording")
def recording() -> None:
    """Judge both sides of a recorded conversation, by what its frames alone show.

    FILE is a recording of `antiphon tap`, a session that `antiphon sessions export` wrote, or lines of JSON
    that name the direction of each frame.

    \b
    Examples:
      antiphon check recording talk.ndjson
      antiphon check recording talk.ndjson --json verdicts.json
    """
