"""The context: how much was said in a session, counted in characters. No model reads it, nothing is paid."""

from __future__ import annotations

from antiphon.agent import AgentSession
from antiphon.rehearsal.memory import memory
from antiphon.schema import v2

SIZE = 32_000
"""The tokens that a model's window would have."""
CHARACTERS = 4
"""To a token: what English takes, roughly."""


def characters(session: AgentSession) -> int:
    """All that was said in a session, by the user, by the agent, and in tool calls."""
    said = sum(len(message.text) for message in session.fold.messages)
    shown = sum(_length(part) for call in session.fold.tool_calls for part in call.content)
    return said + shown


def used(session: AgentSession) -> int:
    """The tokens in the context now."""
    kept = max(characters(session) - memory(session).forgotten, 0)
    return -(-kept // CHARACTERS)


async def report(session: AgentSession) -> None:
    await session.report_usage(used=used(session), size=SIZE)


def _length(part: v2.ToolCallContent) -> int:
    if isinstance(part, v2.Content) and isinstance(part.content, v2.TextContent):
        return len(part.content.text)
    return 0
