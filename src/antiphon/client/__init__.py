"""For people who drive agents: any agent, of whichever version, in a few lines and without a sleep."""

from antiphon.client.abilities import Abilities
from antiphon.client.answers import Permission, Permissions
from antiphon.client.client import Client
from antiphon.client.configuring import arranged
from antiphon.client.connect import connect
from antiphon.client.content import File
from antiphon.client.elicitation import Elicitation
from antiphon.client.icons import IconImage, fetch_icon, icon_data, usable_icons
from antiphon.client.links import Link, LinkState
from antiphon.client.mcp import AcpServer, McpRequest
from antiphon.client.mcp_child import McpChild, mcp_child
from antiphon.client.others import QuestionNews
from antiphon.client.queueing import QueuedPrompt
from antiphon.client.reconnecting import Reconnect
from antiphon.client.session import ClientSession
from antiphon.client.subagents import Subagent
from antiphon.client.turn import ClientTurn, SessionEvent, TurnEnd
from antiphon.client.workspace import SessionWorkspace, Workspace

__all__ = [
    "Abilities",
    "AcpServer",
    "Client",
    "ClientSession",
    "ClientTurn",
    "Elicitation",
    "File",
    "IconImage",
    "Link",
    "LinkState",
    "McpChild",
    "McpRequest",
    "Permission",
    "Permissions",
    "QuestionNews",
    "QueuedPrompt",
    "Reconnect",
    "SessionEvent",
    "SessionWorkspace",
    "Subagent",
    "TurnEnd",
    "Workspace",
    "arranged",
    "connect",
    "fetch_icon",
    "icon_data",
    "mcp_child",
    "usable_icons",
]
