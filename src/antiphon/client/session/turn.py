"""ClientTurn: one turn of an agent as its client sees it, from its beginning to its drained end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from antiphon.client.protocol.dialect import USER_UPDATES
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.session.event_log import EventLog
from antiphon.engine.questions import Question
from antiphon.engine.recent import Recent
from antiphon.engine.session import Session
from antiphon.engine.transcript import TYPE_OF, Message, MessageType
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Present, Who
from antiphon.schema.antiphon.messages import QuestionUpdate
from antiphon.schema.v2.prompt import StopReason

COMPLETES_MESSAGE = (v2.SessionToolCallUpdate, v2.ToolCallContentChunk, v2.PlanUpdate, v2.StateUpdate)
"""Updates that have a place in the conversation or end a turn: the message before them is complete."""
REMEMBERED = 256
"""How many ended turns are remembered by their request ids."""


class SessionEvent(Struct, frozen=True, kw_only=True):
    """Something that happened in a session: an update, or a question that was asked or ended.

    The garbage collector has to track it: a turn holds its events, and they refer to the turn.
    """

    seq: int
    """Its number among the events that this client has seen."""
    turn: ClientTurn | None
    """The turn it belongs to; None if it belongs to the session alone."""
    update: v2.SessionUpdate | None = None
    question: Question | None = None
    clients: tuple[Present, ...] | None = None
    """The clients that are attached now, if one came or left."""
    news: QuestionUpdate | None = None
    """The state of a question, and the client that answered it."""


class TurnSession(Protocol):
    """The session of a turn, as far as the turn uses it."""

    @property
    def fold(self) -> Session: ...

    async def cancel_turn(self, turn: ClientTurn) -> None: ...

    def turn_ended(self, turn: ClientTurn, events: list[SessionEvent], end: TurnEnd) -> None: ...


class ClientTurn:
    """A turn of a session. `updates`, `messages` and `events` start at its beginning, however late they are
    called, and end with it. `drained` waits for the end."""

    def __init__(self, session: TurnSession, prompt: list[v2.ContentBlock] | None = None) -> None:
        self._session = session
        self.prompt = prompt
        """The prompt; None if the agent opened the turn by itself."""
        self.message_id: str | None = None
        """The id of the prompt's message, once known. A v1 agent has none; it is made here."""
        self.request_id: int | None = None
        """The id of its `session/prompt` request, which is the `promptRequestId` of `turn_complete`. None if
        no such request of this client opened the turn."""
        self.end: TurnEnd | None = None
        """How it ended; None while it is open."""
        self._opener: str | None = None
        """The user message right before the turn, if the turn belongs to no prompt of this client."""
        self._cancel_sent = False
        """Whether this client has asked the agent to stop it."""
        self._log: EventLog[SessionEvent] = EventLog()
        self._drained: asyncio.Future[TurnEnd] = asyncio.get_running_loop().create_future()

    @property
    def ended(self) -> bool:
        return self.end is not None

    async def events(self) -> AsyncIterator[SessionEvent]:
        """All events of the turn."""
        async for event in self._log.watch():
            yield event

    async def updates(self) -> AsyncIterator[v2.SessionUpdate]:
        """The updates of the turn."""
        async for event in self._log.watch():
            if event.update is not None:
                yield event.update

    async def messages(self) -> AsyncIterator[Message]:
        """The messages of the turn, each once it is complete: something else follows, or the turn ends."""
        shown: set[tuple[MessageType, str]] = set()
        writing: tuple[MessageType, str] | None = None
        async for event in self._log.watch():
            update: Any = event.update
            kind = TYPE_OF.get(type(update))
            key = None if kind is None else (kind, str(update.message_id))
            passes = update is not None and key is None and not isinstance(update, COMPLETES_MESSAGE)
            if key == writing or passes:
                continue
            if writing is not None and writing not in shown:
                shown.add(writing)
                yield self._message(writing)
            writing = key
        if writing is not None and writing not in shown:
            yield self._message(writing)

    def _message(self, key: tuple[MessageType, str]) -> Message:
        message = self._session.fold.message(*key)
        assert message is not None
        return message

    @property
    def sender(self) -> Who | None:
        """The client that sent its prompt, if known; None if the agent opened the turn."""
        shown = (
            each.update.message_id for each in self._log.entries if isinstance(each.update, USER_UPDATES)
        )
        id = self.message_id or self._opener or next(shown, None)
        message = None if id is None else self._session.fold.message(MessageType.USER, id)
        return None if message is None else message.sender

    @property
    def text(self) -> str:
        """The text of the agent's messages in it so far, without thoughts."""
        ids: dict[str, None] = {}
        for event in self._log.entries:
            update = event.update
            if isinstance(update, v2.AgentMessage | v2.AgentMessageChunk):
                ids[update.message_id] = None
        texts = (self._message((MessageType.AGENT, id)).text for id in ids)
        return "\n\n".join(text for text in texts if text)

    async def drained(self) -> TurnEnd:
        """Wait until the turn has ended and everything of it has been applied, in order."""
        return await asyncio.shield(self._drained)

    async def cancel(self) -> None:
        """Ask the agent to stop this turn, and no other. `drained` returns how it ended. Safe at any time."""
        await self._session.cancel_turn(self)

    # --- called by the session ---------------------------------------------------------------------

    def _receive(self, event: SessionEvent) -> None:
        if event.turn is not self and (event.turn is None or self.prompt is not None):
            # It was not known to belong here when it came, or belongs to another turn too.
            event = replace(event, turn=self)
        self._log.add(event)

    def _finish(self, end: TurnEnd) -> None:
        """End the turn; later calls do nothing."""
        if self.end is not None:
            return
        if end.cut is not None and self._cancel_sent:
            # PROMPT-V2-35: the agent may have died of the cancel.
            end = TurnEnd(stop_reason=StopReason.CANCELLED, cut=end.cut)
        self.end = end
        self._session.turn_ended(self, self._log.entries, end)
        self._log.end()
        if not self._drained.done():
            self._drained.set_result(end)


class RefusedTurns:
    """The turns that ended as `refusal`, and the messages that the agent drops from its context by that.

    These are the prompt of such a turn and all that comes after it, up to the next prompt (PROMPT-V1-08). v2
    has the same stop reason, and nothing there says that it means something else.
    """

    def __init__(self) -> None:
        self._turns: dict[int, set[str]] = {}
        """The ids of their user messages, by the number of their first event."""

    def add(self, events: list[SessionEvent]) -> None:
        updates = (event.update for event in events)
        prompts = (update.message_id for update in updates if isinstance(update, USER_UPDATES))
        self._turns.setdefault(events[0].seq, set()).update(prompts)

    def messages(self, fold: Session) -> list[Message]:
        """The dropped messages of a session."""
        messages = fold.messages if self._turns else []
        user = [message for message in messages if message.type is MessageType.USER]
        beyond = fold.last_seq + 1
        gaps = [
            (
                first,
                min((m.position for m in user if m.position > first and m.id not in prompts), default=beyond),
            )
            for first, prompts in self._turns.items()
        ]
        return [
            message for message in messages if any(begin <= message.position < end for begin, end in gaps)
        ]


class TurnsByRequest:
    """The turns of this client's prompts by the ids of their requests (TC-07). A turn is held only by its
    users; the ends of the last turns are kept here."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, ClientTurn] = WeakValueDictionary()
        self._ends: Recent[str, TurnEnd] = Recent(REMEMBERED)

    def add(self, turn: ClientTurn, request_id: int) -> None:
        turn.request_id = request_id
        self._turns[str(request_id)] = turn

    def end(self, request_id: int, end: TurnEnd) -> None:
        self._ends[str(request_id)] = end

    def turn(self, request_id: int | str) -> ClientTurn:
        """Raises `LocalError` for an unknown request, and for an ended turn that nobody holds any more."""
        turn = self._turns.get(str(request_id))
        if turn is not None:
            return turn
        if str(request_id) in self._ends:
            raise LocalError(
                f"the turn of request {request_id!r} has ended and is not kept; drained() has its end"
            )
        raise _unknown(request_id)

    async def drained(self, request_id: int | str) -> TurnEnd:
        """Wait for the end of a request's turn. Raises `LocalError` for an unknown request."""
        turn = self._turns.get(str(request_id))
        if turn is not None:
            return await turn.drained()
        end = self._ends.get(str(request_id))
        if end is None:
            raise _unknown(request_id)
        return end


def _unknown(request_id: int | str) -> LocalError:
    return LocalError(
        f"no prompt of this session is known by request id {request_id!r};"
        f" open turns and the last {REMEMBERED} ended ones are"
    )


def known_events(
    fold: Session, turn: ClientTurn, message_id: str | None, *, over: bool
) -> Iterable[SessionEvent]:
    """The events of a turn whose prompt was sent again under its operation id: the prompt's message and all
    that follows it; if the turn is over, up to the next user message. None if the message was not shown."""
    found = False
    for item in fold.items:
        user = item.id if isinstance(item, Message) and item.type is MessageType.USER else None
        if not found and (user is None or user != message_id):
            continue
        if found and over and user is not None:
            return
        if not item.key.startswith("facts/"):
            found = True
            yield SessionEvent(seq=item.position, turn=turn, update=item.materialize())
