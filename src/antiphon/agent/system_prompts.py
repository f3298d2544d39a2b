"""System prompts that a client gives a session, where the agent takes them (SESS-58, unstable)."""

from __future__ import annotations

from msgspec import Struct

from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.server.offer import APPEND, OVERRIDE


class SystemPrompt(Struct, frozen=True):
    """What a client wants the model to read before the conversation."""

    text: str
    override: bool
    """Whether it replaces the agent's own, and is not appended to it."""


def modes(given: bool | str) -> frozenset[v2.SystemPromptMode]:
    """Which modes an agent takes: `True` and `append` mean one that can be added to its own, `override` also
    one in its place."""
    if isinstance(given, bool):
        return frozenset({APPEND} if given else ())
    if given not in (APPEND, OVERRIDE):
        raise LocalError(f"`system_prompt` is True, 'append' or 'override', not {given!r}")
    return frozenset({APPEND, v2.SystemPromptMode(given)})


def read_system_prompt(given: v2.SystemPrompt) -> SystemPrompt:
    text = "\n".join(block.text for block in given.content if isinstance(block, v2.TextContent))
    return SystemPrompt(text=text, override=given.mode == OVERRIDE)
