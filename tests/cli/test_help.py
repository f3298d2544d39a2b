"""The help of every command: examples that can be run, at every width; and what is said to who mistypes."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from antiphon.cli import main
from antiphon.cli.commands.help import read_help, set_examples
from tests.cli.command_lines import check_command_line

Path = tuple[str, ...]


def walk(command: click.Command, path: Path = ()) -> Iterator[tuple[Path, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from walk(each, (*path, name))


COMMANDS = [pytest.param(path, command, id=" ".join(path) or "antiphon") for path, command in walk(main)]


def said(*arguments: str, width: int = 80) -> click.testing.Result:
    return CliRunner().invoke(main, arguments, prog_name="antiphon", terminal_width=width)


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_every_help_has_examples_and_they_can_be_said(path: Path, command: click.Command) -> None:
    _, examples, _ = read_help(command.help or "")
    assert examples
    for line, _ in examples:
        check_command_line(line)


@pytest.mark.parametrize("width", [50, 80, 120])
@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_every_help_fits_the_terminal(path: Path, command: click.Command, width: int) -> None:
    shown = said(*path, "--help", width=width)
    assert shown.exit_code == 0
    assert "Examples:" in shown.output
    too_long = [line for line in shown.output.splitlines() if len(line) > width]
    assert not too_long


def test_examples_stand_in_columns_where_they_fit_and_below_each_other_elsewhere() -> None:
    examples = [
        ("antiphon a", "first"),
        ("antiphon second --long 'two words'", "the second"),
        ("antiphon c", ""),
    ]
    assert set_examples(examples, 60) == [
        "antiphon a                           first",
        "antiphon second --long 'two words'   the second",
        "antiphon c",
    ]
    assert set_examples(examples, 30) == [
        "antiphon a   first",
        "antiphon second --long \\",
        "    'two words'",
        "    the second",
        "antiphon c",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sesions"], "did you mean 'sessions'?"),
        (["Serve"], "did you mean 'serve'?"),
        (["sessions", "lst"], "did you mean 'list'?"),
        (["token", "remove"], "did you mean 'revoke'?"),
        (["claude"], 'claude is an agent: run `antiphon prompt "TEXT" -- claude`'),
        (
            ["sessions", "xyzzy"],
            "the commands are list, search, show, status, cancel",
        ),
        (["prompt", "hi", "claude"], "an agent comes after --: -- claude"),
    ],
)
def test_who_mistypes_is_told_what_was_meant(words: list[str], told: str) -> None:
    result = said(*words)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())
