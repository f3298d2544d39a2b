"""Help texts that fit the width of the terminal, and hints for mistyped commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

import click

NARROW = 64
"""Columns below which help is set in one column."""
SHORT = 12
"""Characters of terms that leave room for two columns even then."""

_EXAMPLES = "\b\nExamples:\n"
_ABOUT = re.compile(r" {2,}")
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")

Example = tuple[str, str]
"""A command line, and what it does; "" if that is obvious."""


class HelpLayout(click.HelpFormatter):
    """Puts explanations below their terms if a line is too short for two columns."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        rows = list(rows)
        roomy = self.width >= NARROW or max(len(term) for term, _ in rows) <= SHORT
        super().write_dl(rows, col_max if roomy else 4, col_spacing)


class HelpContext(click.Context):
    formatter_class = HelpLayout


class HelpCommand(click.Command):
    """A command whose help may have a block `Examples:`, with a command and an explanation per line."""

    context_class = HelpContext
    option_groups: Mapping[str, Sequence[str]] = {}
    """Options by what they are about: their parameters, by the title of the group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups, where there are groups."""
        if not self.option_groups:
            super().format_options(ctx, formatter)
            return
        records = {
            param.name or "": record
            for param in self.get_params(ctx)
            if (record := param.get_help_record(ctx)) is not None
        }
        for title, names in self.option_groups.items():
            rows = [records.pop(name) for name in names if name in records]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if records:
            with formatter.section("Other options"):
                formatter.write_dl(list(records.values()))

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
    """A group that suggests a command for a mistyped one."""

    command_class = HelpCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which users need them

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            ctx.fail(self._hint(ctx, name))
        return super().resolve_command(ctx, args)

    def _hint(self, ctx: click.Context, name: str) -> str:
        commands = self.list_commands(ctx)
        if ctx.parent is None:
            from antiphon.hub import catalogue

            if name in catalogue():
                return f'{name} is an agent: run `antiphon prompt "TEXT" -- {name}`, or `serve -- {name}`'
        near = get_close_matches(name.lower(), commands, n=1, cutoff=0.5)
        if near:
            return f"there is no command {name!r}; did you mean {near[0]!r}?"
        return f"there is no command {name!r}; the commands are {', '.join(commands)}"


def read_help(text: str) -> tuple[str, list[Example], str]:
    """Return the text before the examples, the examples, and the text after them."""
    before, found, rest = inspect.cleandoc(text).partition(_EXAMPLES)
    if not found:
        return before, [], ""
    block, _, after = rest.partition("\n\n")
    return before, [_example(line.strip()) for line in block.splitlines()], after


def _example(line: str) -> Example:
    command, *about = _ABOUT.split(line, maxsplit=1)
    return command, about[0] if about else ""


def set_examples(examples: Sequence[Example], width: int) -> list[str]:
    """Set examples in two columns. The explanation of an example that is too long goes below it."""
    widths = sorted((len(command) + 3, len(about)) for command, about in examples if about)
    while widths and widths[-1][0] + max(about for _, about in widths) > width:
        widths.pop()
    column = widths[-1][0] if widths else 0
    lines: list[str] = []
    for command, about in examples:
        if about and len(command) < column:
            lines.append(f"{command:<{column}}{about}")
        else:
            lines += _set_below(command, about, width)
    return lines


def _set_below(command: str, about: str, width: int) -> Iterable[str]:
    lines = _wrap(_WORD.findall(command), width - 2, later="    ")
    yield from (f"{line} \\" for line in lines[:-1])  # it works when it is copied
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
