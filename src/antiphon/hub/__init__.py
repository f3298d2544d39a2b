"""The hub: any agent, many clients, one durable session."""

from antiphon.hub.folder import HubFolder, Running
from antiphon.hub.hub import Hub

__all__ = ["Hub", "HubFolder", "Running"]
