"""The folders of a hub's machine, for clients that choose where a session works."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from antiphon.schema.wire import ClosedEnum, Wire


class FolderState(ClosedEnum):
    OK = "ok"
    MISSING = "missing"
    NOT_A_FOLDER = "not_a_folder"
    UNREADABLE = "unreadable"


class ListFoldersRequest(Wire, frozen=True, kw_only=True):
    """Check a folder of the hub's machine and list the folders in it. For clients that may begin sessions."""

    path: Annotated[str, Meta(max_length=4096)]
    """The folder. `~` is the home of the user who runs the hub. A relative path begins at the folder in which
    the hub was started."""
    prefix: Annotated[str, Meta(max_length=255)] | None = None
    """Only folders whose names begin like this, in upper or lower case. Hidden folders need a prefix that
    begins with a dot."""


class ListFoldersResponse(Wire, frozen=True, kw_only=True):
    path: str  #: The absolute path.
    state: FolderState
    """`ok`, `missing`, `not_a_folder`, or `unreadable`: the hub may not look into it, or it took too long."""
    folders: list[str]  #: The names of the folders in it, sorted; at most 200.
    truncated: bool  #: Whether there are more.
