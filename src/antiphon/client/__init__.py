"""For people who drive agents: any agent, of whichever version, in a few lines and without a sleep."""

from antiphon.client.abilities import Abilities
from antiphon.client.answers import Permission, Permissions
from antiphon.client.client import Client
from antiphon.client.configuring import arranged
from antiphon.client.connect import connect
from antiphon.client.content import File
from antiphon.client.elicitation import Elicitation
from antiphon.client.queueing import QueuedPrompt
from antiphon.client.session import ClientSession
from antiphon.client.turn import ClientTurn, SessionEvent, TurnEnd
from antiphon.client.workspace import SessionWorkspace, Workspace

__all__ = [
    "Abilities",
    "Client",
    "ClientSession",
    "ClientTurn",
    "Elicitation",
    "File",
    "Permission",
    "Permissions",
    "QueuedPrompt",
    "SessionEvent",
    "SessionWorkspace",
    "TurnEnd",
    "Workspace",
    "arranged",
    "connect",
]
