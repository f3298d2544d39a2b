"""Prompting: what was sent to the agent and is not settled, and how it is known that a turn is over."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from antiphon.bridge.repeats import read_message_id, read_repeat
from antiphon.client.repeating import told_before
from antiphon.client.spoken import Completed, Ended, Named, News, OtherEnded, Spoken, check_answer, taken
from antiphon.client.turn import ClientTurn, TurnEnd
from antiphon.client.view import View
from antiphon.connection import Connection
from antiphon.errors import AntiphonError, CallFailed, ErrorObject, LinkLost
from antiphon.jsonrpc import frames
from antiphon.jsonrpc.peer import CANCEL_REQUEST, Call
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

logger = logging.getLogger("antiphon.client")

OVERDUE = 5.0
"""Seconds of silence after which the second of a response and a promised `turn_complete` is not waited for
any longer."""

CONCLUDE_AFTER = 1.0
"""Seconds after which a prompt counts as ended that was answered behind the end of a turn. An agent that was
at work by itself when the prompt came begins the prompt's turn before that."""

ABOUT_PROMPTS = (Named, Ended, Completed, OtherEnded)


class _Sent(Struct):
    """A prompt that is not answered yet."""

    turn: ClientTurn
    accepted: asyncio.Future[None]
    call: Call
    joins: bool
    given_up: bool = False


class Prompting:
    def __init__(self, session_id: str, connection: Connection, spoken: Spoken, view: View) -> None:
        self._session_id = v2.SessionId(session_id)
        self._connection = connection
        self._spoken = spoken
        self._view = view
        view.on_bare_end = self._conclude_later
        self._sent: dict[int, _Sent] = {}
        self._turns: WeakValueDictionary[int, ClientTurn] = WeakValueDictionary()
        """The turns of our calls: an open one is held by what it waits for, an ended one by who wants it."""
        self._overdue: dict[int, asyncio.TimerHandle] = {}
        self.on_sent: Callable[[ClientTurn, int], None] = lambda turn, request_id: None
        """Called with the turn of each prompt and the id of the request that it is sent with."""
        self.on_silence: Callable[[ClientTurn], None] = lambda _: None
        """Called when the agent has said nothing for too long, before its turn ends."""
        self.waited_for: Callable[[], bool] = lambda: False
        """Whether it is the agent that waits."""
        self.lasts: Callable[[], bool] = lambda: False
        """Whether what is sent under an operation id may be sent again, over another link."""
        self.on_too_late: Callable[[ClientTurn], None] = lambda _: None
        """Called with the turn of a prompt that was taken before it could be taken back."""

    def send(
        self,
        turn: ClientTurn,
        said: list[v2.ContentBlock],
        ours: dict[str, Any],
        *,
        joins: bool,
        meta: dict[str, Any] | None = None,
    ) -> asyncio.Future[None]:
        """Send a prompt; the future is done once it is taken, or was sent where nothing tells when."""
        beside = {**(meta or {}), META_KEY: ours} if ours else meta  # OBS-01
        params = self._spoken.prompt(v2.PromptRequest(session_id=self._session_id, prompt=said, meta=beside))
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call = self._connection.begin(
            "session/prompt",
            params,
            lambda outcome: self._answered(call.id, outcome),
            lasting="operationId" in ours and self.lasts(),
        )
        self._sent[call.id] = _Sent(turn, accepted, call, joins)
        self._turns[call.id] = turn
        self.on_sent(turn, call.id)
        if not self._view.spans.unanswered:
            self._view.unclaimed = None
        self._view.spans.sent()
        self._view.hear()
        news = self._spoken.sent(call.id, said)
        if self._spoken.answers_at_the_end:
            # Its message is told here, as nobody else does (24.3): first whose it is, then the message.
            self.take(each for each in news if isinstance(each, Named))
            self._view.accept(turn, joins=joins)
            self.take(each for each in news if not isinstance(each, Named))
            accepted.set_result(None)
        else:
            self.take(news)
        return accepted

    def take(self, news: Iterable[News], *, cut: TurnEnd | None = None) -> None:
        """What the agent's words come to."""
        for each in news:
            if not isinstance(each, ABOUT_PROMPTS):
                self._view.tell(each, cut=cut)
            elif isinstance(each, Named):
                turn = self._turns.get(each.call)
                if turn is not None and turn.message_id is None:
                    turn.message_id = each.message_id
            elif isinstance(each, Completed):
                self._wait_for_the_other(each.call)
            elif isinstance(each, Ended):
                turn = self._turns.pop(each.call, None)
                if turn is not None:
                    self._view.end(turn, each.end)
            else:
                turn = self._view.spans.turn
                if turn is not None and turn not in self._turns.values():
                    self._view.end(turn, each.end)

    # --- the answer --------------------------------------------------------------------------------

    def _answered(self, call: int, outcome: Any) -> None:
        """In the lane: everything that was sent before the answer has been applied."""
        sent = self._sent.pop(call)
        timer = self._overdue.pop(call, None)
        if timer is not None:
            timer.cancel()
        self._view.hear()
        outcome = check_answer(outcome, at_the_end=self._spoken.answers_at_the_end)
        try:
            if isinstance(outcome, AntiphonError):
                self._refused(sent, outcome)
            elif taken(outcome):
                self._taken(sent, outcome)
            else:
                if read_repeat(outcome) is not None:
                    for event in told_before(self._view.fold, sent.turn, read_message_id(outcome), over=True):
                        sent.turn.hear(event)
                self.take(self._spoken.answered(call, outcome))
                if sent.turn.end is None and self._view.over is None:
                    self._wait_for_the_other(call)
        finally:
            self._view.spans.settled()

    def _taken(self, sent: _Sent, outcome: Any) -> None:
        self.take(self._spoken.answered(sent.call.id, outcome))
        self._view.accept(sent.turn, joins=sent.joins, repeat=read_repeat(outcome))
        if not sent.accepted.done():
            sent.accepted.set_result(None)
        if sent.given_up:
            self.on_too_late(sent.turn)
        end, self._view.unclaimed = self._view.unclaimed, None
        if end is not None and self._view.spans.waits(sent.turn):
            self._conclude_later(end)

    def _conclude_later(self, end: TurnEnd) -> None:
        """A turn has ended, and it may be that of the prompts that wait for theirs to begin."""
        loop = asyncio.get_running_loop()
        for turn in self._view.spans.waiting:
            loop.call_later(CONCLUDE_AFTER, self._conclude, turn, end)

    def _conclude(self, turn: ClientTurn, end: TurnEnd) -> None:
        """The agent has answered a prompt behind the end of a turn and begun no other: it was the
        prompt's."""
        if turn.end is None and self._view.spans.waits(turn):
            self._view.end(turn, end)

    def _refused(self, sent: _Sent, error: AntiphonError) -> None:
        if not sent.accepted.done():
            sent.accepted.set_exception(error)
            sent.accepted.exception()  # whoever waits gets it; nobody may be there any more
        if isinstance(error, LinkLost):
            if not self._spoken.answers_at_the_end:  # others end when the session is told
                sent.turn.finish(TurnEnd.cut_short(error))
            return
        wire = error.error if isinstance(error, CallFailed) else ErrorObject(error.code, str(error))
        self.take(self._spoken.failed(sent.call.id, wire))
        if not self._spoken.answers_at_the_end:
            sent.turn.finish(TurnEnd.failed(wire))  # it never began, and is drained

    def _wait_for_the_other(self, call: int) -> None:
        """The answer has come and the promised `turn_complete` has not, or the other way round: the second
        one is waited for, not for ever."""
        if call in self._overdue:
            return
        left = self._view.heard_at + OVERDUE - time.monotonic()
        loop = asyncio.get_running_loop()
        self._overdue[call] = loop.call_later(max(left, 0.0), self._other_overdue, call)

    def _other_overdue(self, call: int) -> None:
        del self._overdue[call]
        turn = self._turns.get(call)
        if turn is None or turn.end is not None:
            return
        if time.monotonic() < self._view.heard_at + OVERDUE:
            self._wait_for_the_other(call)  # it is still at it
            return
        answered = call not in self._sent
        news = self._spoken.overdue(call)
        if news and answered:
            logger.warning("the agent promised turn_complete and did not send it; it is not waited for again")
        elif news:
            logger.warning("the agent sent turn_complete and did not answer the prompt; its turn ends")
        self.take(news)

    # --- giving up ---------------------------------------------------------------------------------

    def withdraw(self, turn: ClientTurn) -> bool:
        """Take back a prompt that is not taken yet; whether that is still possible."""
        sent = next((sent for sent in self._sent.values() if sent.turn is turn), None)
        if sent is None or self._spoken.answers_at_the_end:
            return False
        sent.given_up = True
        self._take_back(sent)
        if not sent.accepted.done():
            sent.accepted.set_result(None)
        return True

    def ask_back(self, turn: ClientTurn) -> bool:
        """Ask the agent to give back a prompt, and leave its answer to whoever waits for it; whether the
        prompt is one that the agent has not answered, and may give back."""
        sent = next((sent for sent in self._sent.values() if sent.turn is turn), None)
        if sent is None or self._spoken.answers_at_the_end:
            return False
        self._take_back(sent)
        return True

    def _take_back(self, sent: _Sent) -> None:
        # PROMPT-V2-33. Its answer is still read: if it was taken all the same, its turn is cancelled.
        asked = b'{"requestId":%d}' % sent.call.id
        self._connection.send(frames.encode_notification(CANCEL_REQUEST, asked))

    def restored(self) -> None:
        """What was not answered was sent again, over another link."""
        self._view.hear()
        for sent in self._sent.values():
            if sent.given_up:
                self._take_back(sent)

    def cut(self, cut: TurnEnd) -> None:
        """What the agent was at is not known any more: it ends here."""
        for timer in self._overdue.values():
            timer.cancel()
        self._overdue.clear()
        self.take(self._spoken.overdue())  # they were answered, and all that came has been applied
        self.take(self._spoken.lost(), cut=cut)

    async def watch_silence(self, turn: ClientTurn, limit: float) -> None:
        """End a turn once nothing was heard for so long."""
        while turn.end is None:
            if self.waited_for():
                self._view.hear()
            left = self._view.heard_at + limit - time.monotonic()
            if left > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await turn.drained()
                continue
            end = TurnEnd.cut_short(f"the agent was silent for {limit:g} s")
            if not self.withdraw(turn):
                self.on_silence(turn)
                self._give_up(turn, end)
            self._view.end(turn, end)

    def _give_up(self, turn: ClientTurn, end: TurnEnd) -> None:
        """Where an open prompt is all that says that the agent works, it says so no longer."""
        calls = [call for call, of in self._turns.items() if of is turn]
        if self._spoken.answers_at_the_end:
            for call in calls:
                news = self._spoken.failed(call, ErrorObject(AntiphonError.code, str(end.cut)))
                self.take([each for each in news if not isinstance(each, Ended)], cut=end)

    def leave(self, reason: LinkLost | str, cut: TurnEnd) -> None:
        """Nothing comes any more."""
        self.cut(cut)
        lost = reason if isinstance(reason, LinkLost) else LinkLost(reason)
        for sent in self._sent.values():
            if not sent.accepted.done():
                sent.accepted.set_exception(lost)
                sent.accepted.exception()
