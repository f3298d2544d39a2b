"""Navigator: the methods of the application that screens call."""

from __future__ import annotations

from typing import Protocol

from antiphon.client import ClientSession
from antiphon.errors import AntiphonError
from antiphon.schema import v2


class Navigator(Protocol):
    @property
    def lists(self) -> bool:
        """Whether the agent lists sessions that can be opened."""
        ...

    def open_session(self, session_id: str, cwd: str) -> None: ...

    def new_session(self) -> None: ...

    def fork_open(self, session: ClientSession, *, at: str | None = None) -> None:
        """Show a fork of an open session, after the message `at` or at its end."""
        ...

    def fork_session(self, info: v2.SessionInfo) -> None:
        """Show a fork of a listed session."""
        ...

    def show_sessions(self) -> None: ...

    def complain(self, error: AntiphonError) -> None:
        """Show an error to the user."""
        ...

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard of the terminal."""
        ...
