"""ClientTurn: one span of an agent's work as its client sees it, from its beginning to its drained end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from antiphon.client.others import QuestionNews
from antiphon.client.watching import Log
from antiphon.engine.questions import Question
from antiphon.engine.transcript import TYPE_OF, Message, MessageType
from antiphon.engine.who import Present, Who
from antiphon.errors import ErrorObject, LinkLost, RequestCancelled, one_line
from antiphon.schema import v2
from antiphon.schema.v2.prompt import StopReason

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession


PARTS = (v2.SessionToolCallUpdate, v2.ToolCallContentChunk, v2.PlanUpdate, v2.StateUpdate)
"""What takes its place in the conversation, or ends a turn: the message before it is complete."""
USER = (v2.UserMessage, v2.UserMessageChunk)


class TurnEnd(Struct, frozen=True, kw_only=True):
    """How a turn ended."""

    stop_reason: StopReason | None = None
    """`None`: the agent did not say."""
    usage: v2.Usage | None = None
    error: v2.Error | None = None
    cut: str | None = None
    """Why it ended without the agent's word: it died, it was silent for too long, or the link was lost. The
    stop reason is then `cancelled` for a turn that this client had cancelled before, otherwise `error`."""

    @property
    def cancelled(self) -> bool:
        return self.stop_reason == StopReason.CANCELLED

    @property
    def refused(self) -> bool:
        """Whether the agent goes on without the turn: its prompt, and all that came after it, will not be in
        what it has in mind at the next one (PROMPT-V1-08). `session.forgotten` has the messages."""
        return self.stop_reason == StopReason.REFUSAL

    @classmethod
    def of(cls, state: Any) -> TurnEnd:
        """What the state says that ended it."""
        return cls(
            stop_reason=getattr(state, "stop_reason", None),
            usage=getattr(state, "usage", None),
            error=getattr(state, "error", None),
        )

    @classmethod
    def failed(cls, error: ErrorObject) -> TurnEnd:
        """The end by an error response. `-32800` says that the prompt was cancelled."""
        if error.code == RequestCancelled.code:
            return cls(stop_reason=StopReason.CANCELLED)
        try:
            code = v2.ErrorCode(error.code)
        except ValueError:
            code = v2.ErrorCode.INTERNAL_ERROR
        told = v2.Error(code=code, message=one_line(error.message), data=error.data)
        return cls(stop_reason=StopReason.ERROR, error=told)

    @classmethod
    def cut_short(cls, reason: str | LinkLost) -> TurnEnd:
        why = reason.reason if isinstance(reason, LinkLost) else reason
        error = v2.Error(
            code=v2.ErrorCode.INTERNAL_ERROR, message="The turn was cut short", data={"reason": "interrupted"}
        )
        return cls(stop_reason=StopReason.ERROR, error=error, cut=why)


class SessionEvent(Struct, frozen=True, kw_only=True):
    """Something that happened in a session: an update, or a question that was asked or ended.

    The cycle collector has to see it: a turn holds its events, and they name the turn.
    """

    seq: int
    """Its number in what this client has seen."""
    turn: ClientTurn | None
    """The turn it belongs to; `None` for what belongs to the session alone."""
    update: v2.SessionUpdate | None = None
    question: Question | None = None
    clients: tuple[Present, ...] | None = None
    """Who follows the session now, where somebody came or went."""
    news: QuestionNews | None = None
    """What became of a question, and by whom."""
    original: bytes | None = None
    """What a v1 agent wrote, where v1 clients could not be given it from the update (`originals`)."""
    meta: dict[str, Any] | None = None
    """What stood beside the update, for who passes it on (`accompanied`)."""


class ClientTurn:
    """Watch it with `updates`, `messages` or `events`: each sees it from its beginning, however late it is
    asked for, and ends with it. `drained` waits for the end."""

    def __init__(self, session: ClientSession, prompt: list[v2.ContentBlock] | None = None) -> None:
        self.session = session
        self.prompt = prompt
        """What was prompted; `None` for a turn that the agent opened by itself."""
        self.message_id: str | None = None
        """The id of the prompt's message, once it has one; a v1 agent gives none, so it is made here."""
        self.request_id: int | None = None
        """The id of its `session/prompt` request: the `promptRequestId` of `turn_complete`. `None` where
        no such request of this client opened the turn."""
        self.opener: str | None = None
        """The message that came right before it, where it is none of our prompts."""
        self.end: TurnEnd | None = None
        self.stopping = False
        """Whether this client has asked the agent to stop it."""
        self._log: Log[SessionEvent] = Log()
        self._drained: asyncio.Future[TurnEnd] = asyncio.get_running_loop().create_future()

    async def events(self) -> AsyncIterator[SessionEvent]:
        """Everything that belongs to the turn."""
        async for event in self._log.watch():
            yield event

    async def updates(self) -> AsyncIterator[v2.SessionUpdate]:
        """The updates of the turn."""
        async for event in self._log.watch():
            if event.update is not None:
                yield event.update

    async def messages(self) -> AsyncIterator[Message]:
        """The messages of the turn, each when it is complete: something else follows, or the turn ends."""
        told: set[tuple[MessageType, str]] = set()
        writing: tuple[MessageType, str] | None = None
        async for event in self._log.watch():
            update: Any = event.update
            kind = TYPE_OF.get(type(update))
            about = None if kind is None else (kind, str(update.message_id))
            if about == writing or (update is not None and about is None and not isinstance(update, PARTS)):
                continue
            if writing is not None and writing not in told:
                told.add(writing)
                yield self._message(writing)
            writing = about
        if writing is not None and writing not in told:
            yield self._message(writing)

    def _message(self, of: tuple[MessageType, str]) -> Message:
        message = self.session.fold.message(*of)
        assert message is not None
        return message

    @property
    def sender(self) -> Who | None:
        """The client whose prompt it is, where that is told; `None` for a turn of the agent's own."""
        shown = (event.update.message_id for event in self._log.entries if isinstance(event.update, USER))
        id = self.message_id or self.opener or next(shown, None)
        said = None if id is None else self.session.fold.message(MessageType.USER, id)
        return None if said is None else said.sender

    @property
    def text(self) -> str:
        """What the agent said in it so far, without its thoughts."""
        ids: dict[str, None] = {}
        for event in self._log.entries:
            update = event.update
            if isinstance(update, v2.AgentMessage | v2.AgentMessageChunk):
                ids[update.message_id] = None
        said = (self._message((MessageType.AGENT, id)).text for id in ids)
        return "\n\n".join(text for text in said if text)

    async def drained(self) -> TurnEnd:
        """Wait until the turn has ended and everything of it has been applied, in order."""
        return await asyncio.shield(self._drained)

    async def cancel(self) -> None:
        """Ask the agent to stop this turn, and no other; `drained` tells how it ended. Safe at any time."""
        await self.session.cancel_turn(self)

    # What the session tells

    def hear(self, event: SessionEvent) -> None:
        if event.turn is not self and (event.turn is None or self.prompt is not None):
            event = replace(event, turn=self)  # it was not known to be ours when it came, or is another's too
        self._log.add(event)

    def finish(self, end: TurnEnd) -> None:
        """It ends, once."""
        if self.end is None:
            if end.cut is not None and self.stopping:  # PROMPT-V2-35: the agent may have died of the cancel
                end = TurnEnd(stop_reason=StopReason.CANCELLED, cut=end.cut)
            self.end = end
            if end.refused and self._log.entries:
                said = (event.update for event in self._log.entries)
                prompts = (each.message_id for each in said if isinstance(each, USER))
                self.session.refusals.note(self._log.entries[0].seq, prompts)
            self._log.end()
            if self.request_id is not None:
                self.session.requests.end(self.request_id, end)
            if not self._drained.done():
                self._drained.set_result(end)
