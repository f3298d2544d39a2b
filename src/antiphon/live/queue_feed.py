"""QueueFeed: the queued prompts, for a client that asked to see them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from antiphon.engine.events import AnyBody, PromptQueued, PromptSent
from antiphon.engine.json_values import encode
from antiphon.engine.prompts import Entry, Prompts, QueuePart
from antiphon.engine.who import who_of
from antiphon.live.update_sender import Send
from antiphon.schema.antiphon.prompts import QueueEntry, QueueUpdate


class QueueFeed:
    """The queue as of the events that were written to the client. `send` sends an update to it."""

    def __init__(
        self, part: QueuePart, entries: Sequence[Entry], seq: int, *, send: Send, again: bool
    ) -> None:
        """`again`: the client followed the session before. It may know entries that are gone, so it is shown
        an empty queue too."""
        self._send = send
        self._prompts = Prompts()
        self._shown = b"" if again else digest(self._listing())
        self._prompts.restore(part, entries)
        self._due: str | None = None
        """A queued prompt that the client was not shown yet."""
        self._show(seq)

    def apply(self, body: AnyBody, seq: int) -> None:
        """Fold an event, and show the queue if it changed. A prompt that was just queued is shown before the
        next event, or by `flush`: a hub that sends it at once replaces its id by the agent's, and then it is
        never listed under its own."""
        if not (isinstance(body, PromptSent) and body.message_id == self._due):
            self.flush(seq)
        if not self._prompts.apply(body, seq=seq):
            return
        self._due = body.message_id if isinstance(body, PromptQueued) else None
        if self._due is None:
            self._show(seq)

    def flush(self, seq: int) -> None:
        """Show what is due: everything that was committed together, up to this event, has been applied."""
        if self._due is not None:
            self._due = None
            self._show(seq)

    def _show(self, seq: int) -> None:
        listing = self._listing()
        shown = digest(listing)
        if shown != self._shown:
            self._shown = shown
            self._send(listing, seq=seq)

    def _listing(self) -> bytes:
        entries = [shown_entry(entry) for entry in self._prompts.queued]
        return encode(QueueUpdate(entries=entries, paused=self._prompts.paused))


def digest(shown: bytes) -> bytes:
    """Return what is kept of a shown listing, to know whether it changed: the listing may be large, and each
    client has its own."""
    return blake2b(shown, digest_size=16).digest()


def shown_entry(entry: Entry) -> QueueEntry:
    """Return a queued prompt as clients get it."""
    return QueueEntry(
        message_id=entry.message_id,
        mode=entry.delivery,
        content=entry.raw_content,
        sender=None if entry.sender is None else who_of(entry.sender),
    )
