"""Command lines that a help text or a document shows: they can be said, as far as the parser goes."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile

import click

from antiphon.cli import main


def check_command_line(line: str) -> None:
    """What stands behind the last `antiphon` in it, up to a pipe, a redirection or a closing bracket."""
    ours = re.search(r"(?<![\w./-])antiphon( .*|$)", line)
    assert ours is not None, line
    lexer = shlex.shlex(ours[1].split(')"')[0], posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    words = list(takewhile(lambda word: not set(word) <= {"|", ">"}, lexer))
    _parse(main, "antiphon", words)


def _parse(command: click.Command, name: str, words: list[str], parent: click.Context | None = None) -> None:
    """As far as it goes without doing anything: options that are not there, or arguments too many, raise."""
    try:
        ctx = command.make_context(name, list(words), parent=parent)
    except click.BadParameter as error:
        if "does not exist" in str(error):  # a file of the example
            return
        raise
    if isinstance(command, click.Group) and words:
        name, found, rest = command.resolve_command(ctx, words)
        assert found is not None
        _parse(found, str(name), rest, ctx)
