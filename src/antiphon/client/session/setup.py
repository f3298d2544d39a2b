"""Settings of a session as they go on the wire: folders and the system prompt."""

from __future__ import annotations

import os

from antiphon.client.protocol.abilities import Abilities
from antiphon.errors import LocalError
from antiphon.schema import v2

Folder = str | os.PathLike[str]


def absolute_folder(path: Folder | None) -> str:
    """RPC-43: paths on the wire are absolute. None is the current folder."""
    return os.path.abspath(os.fspath(path) if path is not None else os.getcwd())


def system_prompt_for(given: str | v2.SystemPrompt | None, abilities: Abilities) -> v2.SystemPrompt | None:
    """The system prompt to send (SESS-58, unstable). A plain text is added to the agent's own. Raises
    `LocalError` for a prompt that the agent does not take."""
    if given is None:
        return None
    if isinstance(given, str):
        given = v2.SystemPrompt(mode=v2.SystemPromptMode.APPEND, content=[v2.TextContent(text=given)])
    if not abilities.system_prompt:
        raise LocalError("this agent takes no system prompt")
    if given.mode not in abilities.system_prompt:
        raise LocalError(f"this agent takes no system prompt of mode {str(given.mode)!r}")
    texts = [block.text for block in given.content if isinstance(block, v2.TextContent)]
    if not all(texts) or not texts or len(texts) != len(given.content):
        raise LocalError("a system prompt needs one or more text blocks, none of them empty")
    return given
