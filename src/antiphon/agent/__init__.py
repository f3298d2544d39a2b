"""For people who write agents: an agent in a few lines, correct in every version and dialect."""

from antiphon.agent.agent import Agent
from antiphon.agent.asking import Answer, Consent
from antiphon.agent.forms import Email, Uri
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn, Prompt
from antiphon.agent.writers import MessageWriter, ToolCallWriter

__all__ = [
    "Agent",
    "AgentSession",
    "AgentTurn",
    "Answer",
    "Consent",
    "Email",
    "MessageWriter",
    "Prompt",
    "ToolCallWriter",
    "Uri",
]
