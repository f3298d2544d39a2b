"""Resuming: a session's stream goes on from the journal, where it is not kept any more (HTTP-20).

On behalf of the client, its attachment is moved to where it stands: the updates since then are sent again.
What the journal does not give, answers above all, the stream has kept; each is put where it stood. What the
client reads is what it would have read, and nothing of it twice.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from antiphon.jsonrpc.frames import encode_request
from antiphon.remote.frames import ATTACH, Outline, outline
from antiphon.transports.http.event_stream import Kind, Mark, Put


class Resuming:
    """Gets what is sent to the client until its attachment has caught up, and gives what is to be put.

    Until the attachment moves, the updates that come are those of the old one, ever newer: they will come
    again, and are held back. The first one that goes back is of the new one.
    """

    def __init__(self, since: Mark, newest: Mark, kept: Iterable[Put]) -> None:
        """`newest` is the last of the journal that was put, `kept` what stood beside it after `since`."""
        self.id = f"antiphon-http-{secrets.token_hex(8)}"
        """Of the request that moves the attachment."""
        self._last = since
        self._newest = newest
        self._begun = False
        self._held: list[Put] = []
        self._asked: list[Put] = []
        self._answers: deque[Put] = deque()
        for put in kept:
            if put.kind is Kind.ANSWER:
                self._answers.append(put)
            elif not self._takes_back(outline(put.frame)):
                self._asked.append(put)

    def request(self, session: str) -> bytes:
        params = {"sessionId": session, "historyPolicy": "after", "after": self._last.event}
        return encode_request(self.id, ATTACH, msgspec.json.encode(params))

    def take(self, put: Put, about: Outline) -> list[Put]:
        """Something is sent to the client; what is to be put now, in order."""
        if put.kind is Kind.ASKED:
            return [] if self._takes_back(about) else [put]
        if self._begun:
            return [*self._again(put)]
        if put.kind is Kind.ANSWER:
            told = put.mark or self._newest
            self._answers.append(put._replace(mark=told))
        elif put.mark is not None and put.mark <= self._newest:
            self._begun = True
            self._held = []
            return [*self._ask(), *self._again(put)]
        else:
            self._held.append(put)
        self._newest = max(self._newest, put.mark or self._newest)
        return []

    def finish(self) -> list[Put]:
        """The attachment has caught up."""
        self._begun = True
        held = [put for each in self._held for put in self._again(each)]
        return [*self._ask(), *held, *self._answers]

    def left(self) -> list[Put]:
        """What it has not given yet, where it has to begin anew."""
        return [*self._asked, *self._answers]

    def _again(self, put: Put) -> Iterator[Put]:
        """One of the new attachment."""
        if put.mark is None:
            yield put
            return
        # An answer that is not new was kept as it was given then.
        if put.mark <= (self._newest if put.kind is Kind.ANSWER else self._last):
            return
        while self._answers and (self._answers[0].mark is None or self._answers[0].mark < put.mark):
            yield self._answers.popleft()
        self._last = put.mark
        yield put

    def _ask(self) -> list[Put]:
        asked, self._asked = self._asked, []
        return asked

    def _takes_back(self, about: Outline) -> bool:
        """Whether what the client never read of is taken back."""
        if about.cancels is None:
            return False
        asked = [put for put in self._asked if outline(put.frame).id != about.cancels]
        taken, self._asked = len(asked) < len(self._asked), asked
        return taken
