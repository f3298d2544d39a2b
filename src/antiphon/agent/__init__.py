"""For people who write agents: an agent in a few lines, correct in every version and dialect."""

from antiphon.agent.agent import Agent, AgentOptions
from antiphon.agent.asking import Answer, Consent
from antiphon.agent.client_terminals import ClientOutput, ClientTerminal
from antiphon.agent.declarations import AnnotationNews
from antiphon.agent.formats import Email, Uri
from antiphon.agent.logins import Login
from antiphon.agent.mcp_headers import mcp_headers
from antiphon.agent.open_turn import Prompt
from antiphon.agent.providers import Provider, ProviderSetting
from antiphon.agent.reaching import TurnClient
from antiphon.agent.session import AgentSession, AgentTurn
from antiphon.agent.system_prompts import SystemPrompt
from antiphon.agent.writers import MessageWriter, ToolCallWriter

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
