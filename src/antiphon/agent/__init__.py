"""For people who write agents: an agent in a few lines, correct in every version and dialect."""

from antiphon.agent.agent import Agent, AgentOptions
from antiphon.agent.declarations import AnnotationNews
from antiphon.agent.elicitation import Answer, Consent, Email, Uri
from antiphon.agent.logins import Login
from antiphon.agent.mcp import mcp_headers
from antiphon.agent.open_turn import Prompt
from antiphon.agent.session import AgentSession, AgentTurn
from antiphon.agent.system_prompts import SystemPrompt
from antiphon.agent.tool_calls import ToolCallWriter
from antiphon.agent.turn_client import ClientOutput, ClientTerminal, TurnClient
from antiphon.agent.writers import MessageWriter
from antiphon.server.providers import Provider, ProviderSetting

__all__ = [
    "Agent",
    "AgentOptions",
    "AgentSession",
    "AgentTurn",
    "AnnotationNews",
    "Answer",
    "ClientOutput",
    "ClientTerminal",
    "Consent",
    "Email",
    "Login",
    "MessageWriter",
    "Prompt",
    "Provider",
    "ProviderSetting",
    "SystemPrompt",
    "ToolCallWriter",
    "TurnClient",
    "Uri",
    "mcp_headers",
]
