"""StreamResume: resumes a session's stream from the journal, if its events are gone (HTTP-20).

On behalf of the client, the server moves its attachment back to the client's position, so that the later
updates are sent again. The stream has kept the frames that are not in the journal, mainly responses; each is
inserted at its place. The client reads what it would have read, and nothing twice.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from antiphon.jsonrpc.frames import encode_request
from antiphon.remote.frames import ATTACH, Outline, outline
from antiphon.transports.http.event_stream import Kind, Mark, Put


class StreamResume:
    """Takes the frames for the client until its attachment has caught up, and returns the frames to send.

    Until the attachment moves, updates have ever higher numbers. They will be sent again, so they are kept
    back. The first update with a lower number comes from the moved attachment.
    """

    def __init__(self, since: Mark, newest: Mark, kept: Iterable[Put]) -> None:
        """`newest`: the last journal position of the stream. `kept`: later frames not in the journal."""
        self.id = f"antiphon-http-{secrets.token_hex(8)}"
        """The id of the request that moves the attachment."""
        self._last = since
        self._newest = newest
        self._begun = False
        self._waiting: list[Put] = []
        self._asked: list[Put] = []
        self._answers: deque[Put] = deque()
        for put in kept:
            if put.kind is Kind.ANSWER:
                self._answers.append(put)
            elif not self._cancels_unread(outline(put.frame)):
                self._asked.append(put)

    def request(self, session: str) -> bytes:
        params = {"sessionId": session, "historyPolicy": "after", "after": self._last.event}
        return encode_request(self.id, ATTACH, msgspec.json.encode(params))

    def take(self, put: Put, about: Outline) -> list[Put]:
        """Take a frame for the client. Return the frames to send now, in order."""
        if put.kind is Kind.ASKED:
            return [] if self._cancels_unread(about) else [put]
        if self._begun:
            return [*self._again(put)]
        if put.kind is Kind.ANSWER:
            self._answers.append(put._replace(mark=put.mark or self._newest))
        elif put.mark is not None and put.mark <= self._newest:
            self._begun = True
            self._waiting = []
            return [*self._ask(), *self._again(put)]
        else:
            self._waiting.append(put)
        self._newest = max(self._newest, put.mark or self._newest)
        return []

    def finish(self) -> list[Put]:
        """End the resume, because the attachment has caught up. Return the remaining frames."""
        self._begun = True
        waiting = [put for each in self._waiting for put in self._again(each)]
        return [*self._ask(), *waiting, *self._answers]

    def remaining(self) -> list[Put]:
        """Return the frames not in the journal that were not sent yet, for another resume."""
        return [*self._asked, *self._answers]

    def _again(self, put: Put) -> Iterator[Put]:
        """Yield an update of the moved attachment, after the responses that come before it."""
        if put.mark is None:
            yield put
            return
        # A response that is not new was kept.
        if put.mark <= (self._newest if put.kind is Kind.ANSWER else self._last):
            return
        while self._answers and (self._answers[0].mark is None or self._answers[0].mark < put.mark):
            yield self._answers.popleft()
        self._last = put.mark
        yield put

    def _ask(self) -> list[Put]:
        asked, self._asked = self._asked, []
        return asked

    def _cancels_unread(self, about: Outline) -> bool:
        """Drop a request that the client has not read, if this frame cancels it. Return whether it did."""
        if about.cancels is None:
            return False
        asked = [put for put in self._asked if outline(put.frame).id != about.cancels]
        found, self._asked = len(asked) < len(self._asked), asked
        return found
