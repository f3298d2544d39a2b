"""Where frames meet lanes: one initialized link between two peers, and the order on it."""

from antiphon.connection.connection import Connection, ConnectionOptions
from antiphon.connection.initialization import Role

__all__ = ["Connection", "ConnectionOptions", "Role"]
