"""Commands that explain themselves: help set for the width there is, and a hint for who mistypes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import click

NARROW = 64
"""Columns below which two columns are one too many."""
SHORT = 12
"""Characters of words that leave room beside them even there."""

_EXAMPLES = "\b\nExamples:\n"
_ABOUT = re.compile(r" {2,}")
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")

Example = tuple[str, str]
"""A command line, and what it does; "" where it says so itself."""


class HelpLayout(click.HelpFormatter):
    """Where a line is too short for two columns, what something means stands below it."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        rows = list(rows)
        roomy = self.width >= NARROW or max(len(term) for term, _ in rows) <= SHORT
        super().write_dl(rows, col_max if roomy else 4, col_spacing)


class HelpContext(click.Context):
    formatter_class = HelpLayout


class HelpCommand(click.Command):
    """Its help may have a block `Examples:`, one a line: a command, at least two spaces, and what it does."""

    context_class = HelpContext

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        before, examples, after = read_help(self.help or "")
        _write(formatter, before)
        if examples:
            with formatter.section("Examples"):
                width = formatter.width - formatter.current_indent
                for line in set_examples(examples, width):
                    formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        _write(formatter, after)


class CommandGroup(HelpCommand, click.Group):
    """A group that knows what is meant by a word that is nearly a command, or an agent."""

    command_class = HelpCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which one needs them

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            ctx.fail(self._hint(ctx, name))
        return super().resolve_command(ctx, args)

    def _hint(self, ctx: click.Context, name: str) -> str:
        commands = self.list_commands(ctx)
        near = get_close_matches(name.lower(), commands, n=1, cutoff=0.5)
        if near:
            return f"there is no command {name!r}; did you mean {near[0]!r}?"
        if ctx.parent is None:
            from antiphon.cli.agents import known_agents

            if name in known_agents():
                return f'{name} is an agent: say `antiphon prompt "TEXT" -- {name}`, or `serve -- {name}`'
        return f"there is no command {name!r}; there are {', '.join(commands)}"


def read_help(text: str) -> tuple[str, list[Example], str]:
    """What stands before the examples, the examples, and what stands behind them."""
    before, found, rest = inspect.cleandoc(text).partition(_EXAMPLES)
    if not found:
        return before, [], ""
    block, _, after = rest.partition("\n\n")
    return before, [_example(line.strip()) for line in block.splitlines()], after


def _example(line: str) -> Example:
    command, *about = _ABOUT.split(line, maxsplit=1)
    return command, about[0] if about else ""


def set_examples(examples: Sequence[Example], width: int) -> list[str]:
    """In two columns; of one that is too long for that, what it does stands below it."""
    told = sorted((len(command) + 3, len(about)) for command, about in examples if about)
    while told and told[-1][0] + max(about for _, about in told) > width:
        told.pop()
    column = told[-1][0] if told else 0
    lines: list[str] = []
    for command, about in examples:
        if about and len(command) < column:
            lines.append(f"{command:<{column}}{about}")
        else:
            lines += _set_below(command, about, width)
    return lines


def _set_below(command: str, about: str, width: int) -> Iterable[str]:
    lines = _wrap(_WORD.findall(command), width - 2, later="    ")
    yield from (f"{line} \\" for line in lines[:-1])  # so that it still works when it is copied
    yield lines[-1]
    yield from (f"    {line}" for line in _wrap(about.split(), width - 4) if about)


def _wrap(words: Iterable[str], width: int, *, later: str = "") -> list[str]:
    """Break words into lines. A word that is longer than a line stays whole."""
    lines = [""]
    for word in words:
        if lines[-1].strip() and len(lines[-1]) + 1 + len(word) > width:
            lines.append(later + word)
        else:
            lines[-1] += f" {word}" if lines[-1].strip() else word
    return lines


def _write(formatter: click.HelpFormatter, text: str) -> None:
    if text.strip():
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text.strip())
