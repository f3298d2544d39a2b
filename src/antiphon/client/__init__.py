"""For people who drive agents: any agent, of whichever version, in a few lines and without a sleep."""

from antiphon.client.abilities import Abilities
from antiphon.client.answers import Permission, Permissions
from antiphon.client.client import Client
from antiphon.client.connect import connect
from antiphon.client.content import File
from antiphon.client.queueing import QueuedPrompt
from antiphon.client.session import ClientSession
from antiphon.client.turn import ClientTurn, SessionEvent, TurnEnd

__all__ = [
    "Abilities",
    "Client",
    "ClientSession",
    "ClientTurn",
    "File",
    "Permission",
    "Permissions",
    "QueuedPrompt",
    "SessionEvent",
    "TurnEnd",
    "connect",
]
