"""Slash commands as an agent declares them, and how a prompt names one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from msgspec import Struct

from antiphon.agent.session import AgentTurn
from antiphon.schema import v2
from antiphon.schema.v2.prompt import StopReason
from antiphon.server.checks import check_commands

CommandHandler: TypeAlias = Callable[[AgentTurn, str], Awaitable[StopReason | str | None]]

# CMD-03: the input is all text behind the name and the whitespace that follows it.
_CALLED = re.compile(r"/(\S+)(?:\s+(.*))?", re.DOTALL)


class SlashCommand(Struct, frozen=True):
    shown: v2.Command
    handler: Any


def make_command(name: str, description: str, hint: str | None) -> v2.Command:
    """Raises `LocalError` for a name that nobody could type."""
    command = v2.Command(
        name=name,
        description=description,
        input=None if hint is None else v2.TextCommandInput(hint=hint),
    )
    check_commands([command])
    return command


def called(text: str) -> tuple[str, str] | None:
    """The command that a prompt's text names, and its input; `None` if it names none."""
    found = _CALLED.fullmatch(text)
    return None if found is None else (found[1], found[2] or "")
