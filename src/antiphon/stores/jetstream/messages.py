"""What the messages of the streams say."""

from __future__ import annotations

import secrets
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from antiphon.errors import StoreCorrupt
from antiphon.stores.base import SessionRecord


class IndexEntry(Struct, omit_defaults=True):
    """A session exists, and its journal has this key; or, with `gone`, it was deleted."""

    session_id: str
    key: str
    created_at: int
    cwd: str
    arrival: str = ""
    """The import that the session belongs to; it is visible once that is complete."""
    complete: bool = False
    """The import `arrival` is complete: all its sessions are visible from here on."""
    gone: bool = False


class JournalHead(Struct, omit_defaults=True):
    """The first line of a journal message; the events follow, one a line."""

    nonce: str
    """Tells a writer whose write was not confirmed whether this message is its own."""
    first: int
    """The number of the first event, or of the next one if the message has none."""
    count: int = 0
    record: SessionRecord | None = None
    """The record from this message on, if it changed."""
    record_at: int = 0
    """The number of the message with the record, if it did not change."""
    claim: str = ""
    """The claim under which it was written."""
    pieces: tuple[int, ...] = ()
    """The messages that hold the events, in order, if they do not fit into this one."""
    gone: bool = False
    """The session was deleted. Nothing follows."""

    @property
    def last(self) -> int:
        return self.first + self.count - 1


class SnapshotHead(Struct, omit_defaults=True):
    """The first line of a snapshot message; its table and its parts follow, or are in pieces."""

    nonce: str
    upto: int
    table: int
    """Bytes of the table at the beginning: names and sizes of the parts."""
    size: int
    """Bytes of the table and the parts."""
    whole: bool = False
    """Everything before this message is replaced."""
    journal: int = 0
    """The number of the journal message with the event `upto`."""
    pieces: tuple[int, ...] = ()


class ClaimEntry(Struct):
    """Which store writes a session."""

    session_id: str
    owner: str
    store: str
    host: str
    pid: int


class LeaseEntry(Struct):
    """A store lives, and what its process says of itself."""

    store: str
    about: dict[str, Any]


class Envelope(Struct, omit_defaults=True):
    """The first line of a message from one store to others; its body follows, or is fetched in pieces."""

    sender: str
    offer: str = ""
    """The id under which the sender has the body, if that is not in the message."""
    size: int = 0
    """The bytes of the offered body."""
    seconds: float = 0
    """How long the sender waits for the reply."""
    failure: Literal["", "failed", "closed"] = ""
    """Why there is no reply: the handler `failed`, or its store was `closed`."""


class PieceRequest(Struct):
    """A request for a piece of an offered body. The reply is the piece, or empty if the offer has ended."""

    offer: str
    piece: int


H = TypeVar("H", IndexEntry, JournalHead, SnapshotHead, ClaimEntry, LeaseEntry, Envelope, PieceRequest)


def join(head: Struct, body: bytes = b"") -> bytes:
    """Return a message: its head as one line, then its body."""
    return msgspec.json.encode(head) + b"\n" + body


def split(kind: type[H], data: bytes) -> tuple[H, bytes]:
    """Return the head and the body of a message. Raises `StoreCorrupt`."""
    line, _, body = data.partition(b"\n")
    try:
        return msgspec.json.decode(line, type=kind), body
    except msgspec.DecodeError as error:
        raise StoreCorrupt(f"a message of the store is no {kind.__name__}: {error}") from error


def new_nonce() -> str:
    return secrets.token_hex(8)


def new_key() -> str:
    return secrets.token_hex(12)
