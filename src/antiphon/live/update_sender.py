"""UpdateSender: puts the updates of one session on one client's connection.

A client that asked for event numbers gets them in the `_meta` of the updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.json import decode

from antiphon.connection import Connection
from antiphon.engine.json_values import encode
from antiphon.jsonrpc.frames import encode_notification
from antiphon.live.runs import Envelope
from antiphon.schema.updates import UPDATE
from antiphon.schema.version import with_ours


class Send(Protocol):
    """Sends an update; `seq` is its event, if the client has all of that event with this update."""

    def __call__(self, update: bytes, *, seq: int | None = None) -> None: ...


class UpdateSender:
    """`start` and `end` are the parts of the frame around the bytes of an update."""

    def __init__(self, session_id: str, connection: Connection, *, numbered: bool) -> None:
        self.connection = connection
        self.numbered = numbered
        params = b'{"sessionId":%b,"update":%%b}' % encode(session_id)
        self.start, self.end = encode_notification(UPDATE, params).rsplit(b"%b", 1)

    def envelope(self) -> Envelope | None:
        """Return how this client's updates are framed, if clients of its kind can share the frames."""
        framing = self.connection.framing
        return None if framing is None else Envelope(framing, self.start, self.end, self.numbered)

    def send(self, update: bytes, *, seq: int | None = None) -> None:
        if seq is not None and self.numbered:
            update += b',"_meta":{"antiphon":{"seq":%d}}' % seq
        self.connection.send(self.start + update + self.end)

    def send_numbered(self, updates: Sequence[bytes], seq: int) -> None:
        """Send the updates of one event. Only the last one completes it: a link may be cut between them."""
        for part, update in enumerate(updates[:-1]):
            self._send_part(update, seq, part)
        for update in updates[-1:]:
            self.send(update, seq=seq)

    def _send_part(self, update: bytes, seq: int, part: int) -> None:
        meta = b',"_meta":{"antiphon":{"seq":%d,"part":%d}}' % (seq, part) if self.numbered else b""
        self.connection.send(self.start + update + meta + self.end)

    def send_all(self, steps: Sequence[bytes | Callable[[], None]], seq: int) -> None:
        """Send the updates of one event, and call the functions between them."""
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

    def send_with_meta(self, updates: Sequence[bytes], meta: bytes, seq: int) -> None:
        """Send the updates of one event with the `_meta` that the agent gave them."""
        last = len(updates) - 1
        for part, update in enumerate(updates):
            shown = meta
            if self.numbered:
                number = {"seq": seq} if part == last else {"seq": seq, "part": part}
                shown = encode(with_ours(decode(meta), **number))
            self.send(b'%b,"_meta":%b' % (update, shown))
