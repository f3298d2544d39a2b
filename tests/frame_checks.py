"""What holds for every input of frame reader, bridge and journal, as functions for tests and fuzzing.

Each takes bytes of any kind and raises only where a promise is broken.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Raw

from antiphon.bridge.upgrade.session import Upgrade
from antiphon.engine.events import (
    Event,
    Translated,
    UnreadableEvent,
    Updated,
    decode_event,
    encode_event,
    readable,
)
from antiphon.engine.session import Session
from antiphon.engine.snapshot import parts
from antiphon.errors import AntiphonError, EventRefused
from antiphon.jsonrpc.frames import Notification
from antiphon.jsonrpc.peer import Answered, Inbound, Peer
from antiphon.jsonrpc.structure import MAX_DEPTH, is_too_deep
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.updates import UPDATE, unread
from tests.engine.journals import restore


def check_frame(data: bytes) -> list[Any]:
    """A peer reads any frame without an exception, and what it leaves raw can be journalled as it is."""
    peer = Peer()
    peer.call("m", b"{}")
    events: list[Any] = list(peer.receive(data))
    for event in events:
        raw = event.result if isinstance(event, Answered) else getattr(event, "params", None)
        if isinstance(event, Answered | Inbound | Notification) and raw is not None:
            kept = bytes(raw)
            assert b"\n" not in kept
            assert b"\r" not in kept
            assert not is_too_deep(kept, bound=MAX_DEPTH)
            kept.decode("utf-8")
        reply = getattr(event, "reply", None)
        if reply is not None:
            assert b"\n" not in reply
            json.loads(reply)
    return events


def check_update(version: int, data: bytes) -> None:
    """An update of an agent that is read can be journalled, folded, kept in a snapshot and read back."""
    for event in check_frame(data):
        if isinstance(event, Notification) and event.method == UPDATE:
            _check_journalled(version, event.params)


def check_event(line: bytes) -> None:
    """A line of a journal is an event or `UnreadableEvent`, and an event is folded and written again."""
    try:
        event = decode_event(line)
    except UnreadableEvent:
        return
    fold = Session()
    fold.last_seq = event.seq - 1
    fold.apply(event)
    try:
        decode_event(encode_event(Event(event.seq, event.at, readable(event.body))))
    except EventRefused:
        return  # too deep, or not UTF-8


def _check_journalled(version: int, params: Raw | None) -> None:
    try:
        read: Any = codec(version).params(Kind.NOTIFICATION, UPDATE, params)
    except AntiphonError:
        read = unread(params)
    if read is None:
        return
    lifted = [read.update] if version == 2 else Upgrade().update(read.update)
    fold, seq = Session(), 0
    for update in lifted:
        for body in (
            Updated.of(update),
            Translated.make(update, origin=bytes(params or b""), meta=read.meta),
        ):
            seq += 1
            event = Event(seq, 1, readable(body))
            fold.apply(event)
            line = encode_event(event)
            assert b"\n" not in line
            assert encode_event(decode_event(line)) == line
    restore(parts(fold), fold.last_seq)  # type: ignore[arg-type]
