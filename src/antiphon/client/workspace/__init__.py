"""Files and terminals that a client offers to its v1 agents."""

from antiphon.client.workspace.terminals import TerminalObserver
from antiphon.client.workspace.workspace import READ, TERMINALS, WRITE, SessionWorkspace, Workspace

__all__ = ["READ", "TERMINALS", "WRITE", "SessionWorkspace", "TerminalObserver", "Workspace"]
