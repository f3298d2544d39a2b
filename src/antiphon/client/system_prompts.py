"""A system prompt for a session, where the agent takes one (SESS-58, unstable)."""

from __future__ import annotations

from antiphon.client.abilities import Abilities
from antiphon.errors import LocalError
from antiphon.schema import v2


def system_prompt(given: str | v2.SystemPrompt | None, able: Abilities) -> v2.SystemPrompt | None:
    """What is sent: a plain text is added to the agent's own. Refuses what the agent did not offer."""
    if given is None:
        return None
    if isinstance(given, str):
        given = v2.SystemPrompt(mode=v2.SystemPromptMode.APPEND, content=[v2.TextContent(text=given)])
    if not able.system_prompt:
        raise LocalError("this agent takes no system prompt")
    if given.mode not in able.system_prompt:
        raise LocalError(f"this agent takes no system prompt of mode {str(given.mode)!r}")
    texts = [block.text for block in given.content if isinstance(block, v2.TextContent)]
    if not all(texts) or not texts or len(texts) != len(given.content):
        raise LocalError("a system prompt is one or more blocks of text, and none is empty")
    return given
