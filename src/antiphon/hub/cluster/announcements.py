"""What hubs tell all other hubs, by topic. An announcement may be lost: nothing relies on one alone."""

from __future__ import annotations

import logging
from typing import TypeVar

import msgspec
from msgspec import Struct

from antiphon.schema.antiphon.clients import Present

logger = logging.getLogger("antiphon.hub")

T = TypeVar("T")

SESSIONS = "sessions"
"""`Seen` of sessions. A hub is answered at this topic and its own id (`answers_to`)."""
RELEASED = "released"


class Seen(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session as one hub serves it. Without a state and clients, that hub does not serve it."""

    session_id: str
    state: str | None = None
    """The state, if the hub owns the session."""
    clients: tuple[Present, ...] = ()
    """The clients that are attached at that hub."""


class News(Struct, frozen=True, kw_only=True, tag="news"):
    """Sessions whose entries in lists have changed."""

    number: int
    """How many of them the hub has sent, with this one."""
    seen: tuple[Seen, ...]
    whole: bool = False
    """Whether these are all sessions of the hub, as of the news with this number."""


class Beat(Struct, frozen=True, kw_only=True, tag="beat"):
    """Sent now and then, so that a hub that missed news learns of it."""

    number: int
    """How many news the hub has sent."""


class Ask(Struct, frozen=True, kw_only=True, tag="ask"):
    """Asks a hub, or all of them, for all of their sessions."""


class Bye(Struct, frozen=True, kw_only=True, tag="bye"):
    """The hub serves nothing any more."""


SessionAnnouncement = News | Beat | Ask | Bye


class Released(Struct, frozen=True, kw_only=True):
    """A hub owns a session no more."""

    session_id: str
    seq: int
    """The last event of the session."""
    closed: bool
    """Whether a client closed it."""
    waits: bool
    """Whether prompts wait to be sent to the agent."""


def answers_to(hub: str) -> str:
    """Return the topic of messages to one hub."""
    return f"{SESSIONS}-{hub}"


encode = msgspec.json.Encoder().encode
session_announcements: msgspec.json.Decoder[SessionAnnouncement] = msgspec.json.Decoder(SessionAnnouncement)
releases = msgspec.json.Decoder(Released)


def decode(decoder: msgspec.json.Decoder[T], data: bytes, *, sender: str) -> T | None:
    """Return an announcement; `None` for one of a hub of another version that is not known here."""
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        logger.info("announcement of hub %s ignored: %s", sender, error)
        return None
