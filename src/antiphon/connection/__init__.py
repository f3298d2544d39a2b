"""Connections: one initialized link between two peers, with one ordered lane per session."""

from antiphon.connection.connection import Connection, ConnectionOptions
from antiphon.connection.initialization import Role

__all__ = ["Connection", "ConnectionOptions", "Role"]
