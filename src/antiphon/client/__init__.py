"""For programs that drive agents of any ACP version."""

from antiphon.client.client import Client
from antiphon.client.connect import connect
from antiphon.client.elicitation import Elicitation, Reply
from antiphon.client.failures import FailureText, advice_sentence, is_generic, read_failure
from antiphon.client.icons import IconImage, fetch_icon, icon_data, usable_icons
from antiphon.client.link import Link, LinkState
from antiphon.client.mcp.child import McpChild, mcp_child
from antiphon.client.mcp.servers import AcpServer, McpRequest
from antiphon.client.options import ClientOptions, ProcessOptions, ProtocolVersion
from antiphon.client.permissions import Ask, Permission, PermissionDecider, Permissions
from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.config_options import arranged
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.reconnect import Reconnect
from antiphon.client.session.content import File
from antiphon.client.session.queue import PromptQueue, QueuedPrompt
from antiphon.client.session.resume_point import START
from antiphon.client.session.session import ClientSession, Subagent
from antiphon.client.session.turn import ClientTurn, SessionEvent
from antiphon.client.workspace.workspace import SessionWorkspace, Workspace

__all__ = [
    "START",
    "Abilities",
    "AcpServer",
    "Ask",
    "Client",
    "ClientOptions",
    "ClientSession",
    "ClientTurn",
    "Elicitation",
    "FailureText",
    "File",
    "IconImage",
    "Link",
    "LinkState",
    "McpChild",
    "McpRequest",
    "Permission",
    "PermissionDecider",
    "Permissions",
    "ProcessOptions",
    "PromptQueue",
    "ProtocolVersion",
    "QueuedPrompt",
    "Reconnect",
    "Reply",
    "SessionEvent",
    "SessionWorkspace",
    "Subagent",
    "TurnEnd",
    "Workspace",
    "advice_sentence",
    "arranged",
    "connect",
    "fetch_icon",
    "icon_data",
    "is_generic",
    "mcp_child",
    "read_failure",
    "usable_icons",
]
