"""Waiting: the prompts that wait, as a client that asked for it is shown them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antiphon.engine.events import AnyBody
from antiphon.engine.prompts import Entry, Prompts, QueuePart
from antiphon.engine.reading import encode
from antiphon.engine.who import who_of
from antiphon.live.sending import Send


class Waiting:
    """What waits as of what was written to the client, from where it joined; `send` sends it an update."""

    def __init__(self, part: QueuePart, entries: Sequence[Entry], seq: int, *, send: Send) -> None:
        self._send = send
        self._prompts = Prompts()
        self._prompts.restore(part, entries)
        if self._prompts.queued or self._prompts.paused:
            self._show(seq)

    def apply(self, body: AnyBody, seq: int) -> None:
        if self._prompts.apply(body, seq=seq):
            self._show(seq)

    def _show(self, seq: int) -> None:
        entries = [shown_entry(entry) for entry in self._prompts.queued]
        shown = {"sessionUpdate": "_antiphon_queue", "entries": entries, "paused": self._prompts.paused}
        self._send(encode(shown), seq=seq)


def shown_entry(entry: Entry) -> dict[str, Any]:
    """A prompt that waits, as clients are told of it."""
    sender = {} if entry.sender is None else {"sender": who_of(entry.sender)}
    return {
        "messageId": entry.message_id,
        "mode": str(entry.delivery),
        "content": entry.raw_content,
        **sender,
    }
