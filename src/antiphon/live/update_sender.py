"""Sending: the updates of one session, as they stand on one client's connection.

A client that asked for numbers gets each event's beside its update.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.json import decode

from antiphon.bridge.dialects import update_params
from antiphon.connection import Connection
from antiphon.engine.json_values import encode
from antiphon.jsonrpc.frames import encode_notification
from antiphon.live.runs import Envelope
from antiphon.schema.updates import UPDATE
from antiphon.schema.version import with_ours


class Send(Protocol):
    """Sends a client an update; with `seq`, as the whole of that event."""

    def __call__(self, update: bytes, *, seq: int | None = None) -> None: ...


class UpdateSender:
    """`start` and `end` are what stands around the bytes of an update: those are JSON already."""

    def __init__(self, session_id: str, connection: Connection, *, numbered: bool) -> None:
        self.connection = connection
        self.numbered = numbered
        params = update_params(encode(session_id), b"%b")
        self.start, self.end = encode_notification(UPDATE, params).split(b"%b")

    def envelope(self) -> Envelope | None:
        """How this client's updates are framed together with those of others, where they are."""
        framing = self.connection.framing
        return None if framing is None else Envelope(framing, self.start, self.end, self.numbered)

    def send(self, update: bytes, *, seq: int | None = None) -> None:
        if seq is not None and self.numbered:
            update += b',"_meta":{"antiphon":{"seq":%d}}' % seq
        self.connection.send(self.start + update + self.end)

    def send_numbered(self, updates: Sequence[bytes], seq: int) -> None:
        """Those of one event. Only the last one is the event as a whole: a link may be cut between them."""
        for part, update in enumerate(updates[:-1]):
            self._send_part(update, seq, part)
        for update in updates[-1:]:
            self.send(update, seq=seq)

    def _send_part(self, update: bytes, seq: int, part: int) -> None:
        ours = b',"_meta":{"antiphon":{"seq":%d,"part":%d}}' % (seq, part) if self.numbered else b""
        self.connection.send(self.start + update + ours + self.end)

    def send_all(self, steps: Sequence[bytes | Callable[[], None]], seq: int) -> None:
        """The same with something to be done between them."""
        parts = sum(isinstance(step, bytes) for step in steps)
        part = 0
        for step in steps:
            if not isinstance(step, bytes):
                step()
                continue
            part += 1
            if part < parts:
                self._send_part(step, seq, part - 1)
            else:
                self.send(step, seq=seq)

    def send_accompanied(self, updates: Sequence[bytes], meta: bytes, seq: int) -> None:
        """With what the agent put beside them; the last one is the event as a whole."""
        whole = len(updates) - 1
        for part, update in enumerate(updates):
            beside = meta
            if self.numbered:
                number = {"seq": seq} if part == whole else {"seq": seq, "part": part}
                beside = encode(with_ours(decode(meta), **number))
            self.send(b'%b,"_meta":%b' % (update, beside))
