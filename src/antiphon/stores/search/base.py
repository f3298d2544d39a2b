"""Searches: the optional part of a store that finds words in the contents of its sessions.

Searched are the texts of messages, the titles of tool calls, and the titles of sessions, as they are now:
what was edited or deleted by its id is not found any more. `check_search` in `antiphon.testing` is the
contract.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from antiphon.errors import CursorInvalid
from antiphon.stores.base import Store

MATCHES = 20
"""How many matches a page has, unless said otherwise."""
MOST_MATCHES = 100
MOST_QUERY = 1000
"""Characters of a query."""
MOST_WORDS = 32
"""The words of a query that count, those in phrases too: the first ones."""
MOST_SNIPPET = 240
"""Characters of a snippet."""
MOST_TEXT = 200_000
"""Characters of one message that are searched: the first ones."""
SECONDS = 2.0


class MatchKind(StrEnum):
    """What matched."""

    USER = "user"
    AGENT = "agent"
    THOUGHT = "thought"
    TOOL = "tool"
    """The title of a tool call."""
    TITLE = "title"
    """The title of the session."""


class Match(Struct, frozen=True, kw_only=True):
    """One place that has all the words of a query.

    session_id, title: the session, and its title now
    id: of the message or the tool call; empty for the title of a session
    seq: the event with which the text began; 0 for the title of a session
    at: the time of that event, in milliseconds since 1970
    snippet: one line of the text around the words
    ranges: the words in the snippet, as first and behind the last character
    """

    session_id: str
    title: str | None
    kind: MatchKind
    id: str
    seq: int
    at: int
    snippet: str
    ranges: tuple[tuple[int, int], ...]


class Matches(NamedTuple):
    """A page of matches, the newest first, and the cursor of the next page (None: this was the last)."""

    matches: tuple[Match, ...]
    next: str | None = None
    complete: bool = True
    """Whether everything was searched: a store that has much to index, or a rare word to find among much,
    returns what it has when the time is over."""


@runtime_checkable
class Searches(Protocol):
    """A store that searches the contents of its sessions. Stores need not implement it."""

    @property
    def can_search(self) -> bool:
        """Whether this store can: the SQLite of the machine may lack what it takes."""

    async def search(
        self,
        query: str,
        *,
        sessions: Collection[str] | None = None,
        limit: int = MATCHES,
        after: str | None = None,
        seconds: float = SECONDS,
    ) -> Matches:
        """Return the places that have all the words of a query, the newest first.

        query: words, and phrases in double quotes; the last word may be the beginning of one. Case and
            accents do not matter. Everything else in it is text, and no query is an error.
        sessions: only these are searched, and nothing in the result depends on others
        after: the cursor of the page before; one that no search gave out raises `CursorInvalid`
        seconds: about as long as it may take
        """


def searches(store: Store) -> Searches | None:
    """Return the store, if it can search."""
    return store if isinstance(store, Searches) and store.can_search else None


def check_search_arguments(query: str, limit: int) -> None:
    """Raises `ValueError`."""
    if len(query) > MOST_QUERY or not 1 <= limit <= MOST_MATCHES:
        raise ValueError(
            f"a query has at most {MOST_QUERY} characters and a page 1 to {MOST_MATCHES} matches, got "
            f"{len(query)} characters and a limit of {limit}"
        )


def search_cursor(place: object) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode()


def search_place(cursor: str, kind: Any) -> Any:
    """Return the place after which a page begins. Raises `CursorInvalid`."""
    try:
        place = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)
        return msgspec.json.decode(place, type=kind)
    except (binascii.Error, UnicodeEncodeError, msgspec.DecodeError) as error:
        raise CursorInvalid(f"not a cursor of a search: {cursor[:60]!r}") from error
