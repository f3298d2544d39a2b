"""The conversation so far as text, for an agent that does not have it."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.engine.session import Session
from antiphon.engine.transcript import MessageType
from antiphon.schema import v2

TOLD = 60_000
"""How many characters of the conversation a new session at the agent gets: the last ones."""
LOST = v2.Notice(
    severity=v2.NoticeSeverity.WARNING,
    title="The agent could not bring this session back",
    description="It goes on in a new one, which is told what was said. What the agent itself remembered of "
    "tools, files and thoughts is lost.",
)
RETOLD = v2.Notice(
    severity=v2.NoticeSeverity.WARNING,
    title="The agent cannot fork this session",
    description="The fork is a new session, which is told what was said. What the agent itself remembers of "
    "tools, files and thoughts stays with the other one.",
)
PREAMBLE = """\
This conversation began earlier, in a session that you cannot remember. What was said so far stands between \
the lines. Go on from there; do not repeat it.
--------
"""
SPEAKERS = {MessageType.USER: "User", MessageType.AGENT: "You"}


def is_command(content: Sequence[v2.ContentBlock], fold: Session) -> bool:
    """Whether a prompt is a slash command of the agent. A command must be first in the prompt, so nothing may
    be put before it."""
    commands = fold.facts.commands
    first = content[0] if content else None
    if commands is None or not isinstance(first, v2.TextContent) or not first.text.startswith("/"):
        return False
    word = first.text[1:].split(maxsplit=1)[:1]
    return word in [[getattr(command, "name", None)] for command in commands.latest.available_commands]


def story(fold: Session) -> str | None:
    """Return the conversation so far as text; `None` if it is empty."""
    lines = [
        f"{SPEAKERS[message.type]}: {message.text}"
        for message in fold.messages
        if message.type in SPEAKERS and message.text
    ]
    if not lines:
        return None
    said = "\n\n".join(lines)
    if len(said) > TOLD:
        said = "[…]" + said[-TOLD:]
    return f"{PREAMBLE}{said}\n--------\n"
