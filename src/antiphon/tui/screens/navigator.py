"""Navigator: the methods of the application that screens call."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from antiphon.client import ClientSession
from antiphon.errors import AntiphonError
from antiphon.schema import v2
from antiphon.tui.trouble import Trouble


class Place(NamedTuple):
    """A place in a session: the key of an entry of its story, and words to mark there."""

    key: str
    words: str


class Navigator(Protocol):
    drafts: dict[str, str]
    """What was written to sessions that are not on the screen, and not sent, by session id."""

    @property
    def lists(self) -> bool:
        """Whether the agent lists sessions that can be opened."""
        ...

    def open_session(self, session_id: str, cwd: str, *, title: str = "", place: Place | None = None) -> None:
        """Show a session, at its end or at a place. `title` is shown while that takes time."""
        ...

    def new_session(self) -> None: ...

    def fork_open(self, session: ClientSession, *, at: str | None = None) -> None:
        """Show a fork of an open session, after the message `at` or at its end."""
        ...

    def fork_session(self, info: v2.SessionInfo) -> None:
        """Show a fork of a listed session."""
        ...

    def show_sessions(self) -> None: ...

    def trouble_of(self, error: AntiphonError) -> Trouble:
        """Return what an error says, and what to do about it."""
        ...

    def complain(self, error: AntiphonError) -> None:
        """Show an error to the user."""
        ...

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard of the terminal."""
        ...
