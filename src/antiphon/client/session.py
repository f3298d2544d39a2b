"""ClientSession: one session of an agent as its client sees it, its turns, and the fold of what it was told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from msgspec import Raw

from antiphon.client.abilities import Abilities
from antiphon.client.answers import Permission
from antiphon.client.content import Content, blocks
from antiphon.client.queueing import QueuedPrompt
from antiphon.client.spans import Spans
from antiphon.client.spoken import Ended, Named, News, Spoken, SpokenV1, taken
from antiphon.client.turn import ClientTurn, SessionEvent, TurnEnd
from antiphon.client.watching import Log
from antiphon.engine.events import (
    AnyBody,
    Delivery,
    Event,
    QuestionClosed,
    QuestionEnd,
    QuestionOpened,
    Updated,
)
from antiphon.engine.questions import REQUEST_PERMISSION, Question
from antiphon.engine.reading import encode
from antiphon.engine.session import Session
from antiphon.engine.tools import ToolCall
from antiphon.engine.transcript import Message, MessageType
from antiphon.engine.turn import TurnState
from antiphon.errors import AntiphonError, CallFailed, LinkLost, LocalError
from antiphon.jsonrpc.peer import Call, Inbound
from antiphon.schema import v2
from antiphon.schema.version import META_KEY
from antiphon.schema.wire import Unknown

if TYPE_CHECKING:
    from antiphon.client.client import Client

logger = logging.getLogger("antiphon.client")

OVERDUE = 5.0
"""Seconds that a `turn_complete` is waited for which an agent promised, once its prompt was answered."""
_KEPT_BY_THE_AGENT = Raw(b"")
_FINISHED = frozenset(["completed", "failed", "cancelled"])
CANCELLED = v2.CancelledPermissionOutcome()


class ClientSession:
    """Read what it holds at any time: `messages`, `tool_calls`, `plans`, `usage`, `state`, … are as of
    everything that was received. `prompt` opens a turn."""

    def __init__(self, client: Client, session_id: str, spoken: Spoken, *, cwd: str) -> None:
        self.client = client
        self.id = session_id
        self.cwd = cwd
        self.fold = Session()
        """Everything this client was told of the session."""
        self.cursor: int | None = None
        """The number of the last event, where the agent was asked for numbers and gives them."""
        self.queue_entries: list[dict[str, Any]] = []
        """What waits at the agent, where it tells (`_antiphon_queue`)."""
        self._connection = client.connection
        self.spoken = spoken
        self._spans: Spans[ClientTurn, SessionEvent] = Spans(lambda: ClientTurn(self))
        self._sent: dict[int, tuple[ClientTurn, asyncio.Future[None]]] = {}
        """Our prompts that are not answered yet, or not ended where the answer is the end."""
        self._calls: dict[ClientTurn, Call] = {}
        self._named: WeakValueDictionary[int, ClientTurn] = WeakValueDictionary()
        self._queued: dict[str, QueuedPrompt] = {}
        self._watchers: set[Log[SessionEvent]] = set()
        self._asking: dict[str, asyncio.Task[Any]] = {}
        self._heard_at = 0.0
        self._questions_asked = 0

    # --- what it holds -----------------------------------------------------------------------------

    @property
    def abilities(self) -> Abilities:
        """What the agent can do."""
        return self.client.abilities

    @property
    def state(self) -> TurnState:
        return self.fold.state

    @property
    def turn(self) -> ClientTurn | None:
        """The turn that is open, whoever opened it."""
        return None if self._spans.open is None else self._spans.open.turn

    @property
    def messages(self) -> list[Message]:
        """User and agent messages and thoughts, in the order of first appearance."""
        return self.fold.messages

    @property
    def tool_calls(self) -> list[ToolCall]:
        return self.fold.tool_calls

    @property
    def terminals(self) -> list[Any]:
        return list(self.fold.terminals)

    @property
    def plans(self) -> list[Any]:
        return list(self.fold.plans)

    @property
    def usage(self) -> Any:
        """The context window and the cost so far, as the agent told them last."""
        return self.fold.facts.usage

    @property
    def commands(self) -> list[v2.AvailableCommand]:
        told = self.fold.facts.commands
        return [] if told is None else list(told.latest.available_commands)

    @property
    def config_options(self) -> list[Any]:
        told = self.fold.facts.config
        return [] if told is None else list(told.latest.config_options)

    @property
    def title(self) -> str | None:
        return None if self.fold.facts.info is None else self.fold.facts.info.title

    @property
    def questions(self) -> list[Question]:
        """What the agent asks and nobody has answered."""
        return self.fold.questions.open

    async def events(self) -> AsyncIterator[SessionEvent]:
        """Everything that happens from now on, in turns and between them, until the link ends."""
        log: Log[SessionEvent] = Log()
        self._watchers.add(log)
        if self.client.lost is not None:
            log.end()
        try:
            async for event in log.watch():
                yield event
        finally:
            self._watchers.discard(log)

    # --- prompting ---------------------------------------------------------------------------------

    async def prompt(
        self,
        *content: Content,
        delivery: str | None = None,
        operation_id: str | None = None,
        silence: float | None = None,
    ) -> ClientTurn:
        """Say something. Returns once the agent has taken it (v2) or it was sent (v1).

        `delivery` says what it does while the session works: `queue`, `steer` or `interrupt`, where the agent
        offers that. After `silence` seconds without a word the turn is cancelled and ends.
        Raises `LocalError` for what the agent cannot take, `CallFailed` where it refuses.
        """
        said = blocks(content, self.abilities)
        ours: dict[str, Any] = {}
        if delivery is not None:
            if Delivery(delivery) not in self.abilities.delivery:
                raise LocalError(f"this agent does not offer to {delivery} prompts")
            ours["delivery"] = str(Delivery(delivery))
        if operation_id is not None:
            ours["operationId"] = operation_id
        turn = ClientTurn(self, said)
        accepted = self._send(turn, said, ours)
        try:
            await accepted
        except asyncio.CancelledError:
            if not accepted.done() or accepted.cancelled():
                self._withdraw(turn)
            raise
        limit = self.client.silence if silence is None else silence
        if limit is not None and turn.end is None:
            self._heard_at = time.monotonic()
            self._connection.start_soon(self._watch_silence(turn, limit))
        return turn

    def _send(
        self, turn: ClientTurn, said: list[v2.ContentBlock], ours: dict[str, Any]
    ) -> asyncio.Future[None]:
        params = self.spoken.prompt(
            v2.PromptRequest(
                session_id=v2.SessionId(self.id), prompt=said, meta={META_KEY: ours} if ours else None
            )
        )
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call = self._connection.begin(
            "session/prompt", params, lambda outcome: self._answered(call.id, outcome)
        )
        self._sent[call.id] = turn, accepted
        self._calls[turn] = call
        self._named[call.id] = turn
        if self.spoken.answers_at_the_end:
            self._take(self.spoken.sent(call.id, said), accept=turn)
            accepted.set_result(None)
        else:
            self._take(self.spoken.sent(call.id, said))
        return accepted

    def _answered(self, call: int, outcome: Any) -> None:
        """In the lane: everything that was sent before the answer has been applied."""
        turn, accepted = self._sent.pop(call)
        self._calls.pop(turn, None)
        if isinstance(outcome, LinkLost):
            if not accepted.done():
                accepted.set_exception(outcome)
                accepted.exception()
            return  # the turns end when the session is told
        if isinstance(outcome, AntiphonError):
            failed = outcome if isinstance(outcome, CallFailed) else None
            self._refused(call, turn, accepted, outcome, failed)
        elif taken(outcome):
            self._spans.accepted(turn)
            self._take(self.spoken.answered(call, outcome))
            if not accepted.done():
                accepted.set_result(None)
        else:
            self._take(self.spoken.answered(call, outcome))
            if turn.end is None and isinstance(self.spoken, SpokenV1):
                # A promised `turn_complete` is awaited, though not for ever.
                asyncio.get_running_loop().call_later(OVERDUE, self._overdue, call)
        if not self._sent:
            self._spans.settled()

    def _refused(
        self,
        call: int,
        turn: ClientTurn,
        accepted: asyncio.Future[None],
        error: AntiphonError,
        failed: CallFailed | None,
    ) -> None:
        if self.spoken.answers_at_the_end:
            if failed is None:
                self._end(turn, TurnEnd.cut_short(str(error)))
            else:
                self._take(self.spoken.failed(call, failed))
            return
        if failed is not None:
            self._take(self.spoken.failed(call, failed))
        if not accepted.done():
            accepted.set_exception(error)
            accepted.exception()  # whoever waits gets it; nobody may be there any more

    def _overdue(self, call: int) -> None:
        if isinstance(self.spoken, SpokenV1):
            news = self.spoken.overdue(call)
            if news:
                logger.warning("the agent promised turn_complete and did not send it")
                self._take(news)

    def _withdraw(self, turn: ClientTurn) -> None:
        call = self._calls.pop(turn, None)
        if call is not None:
            self._sent.pop(call.id, None)
            self._connection.abandon(call)  # PROMPT-V2-33

    async def _watch_silence(self, turn: ClientTurn, limit: float) -> None:
        while turn.end is None:
            if self._asking:
                self._heard_at = time.monotonic()  # it waits for us
            left = self._heard_at + limit - time.monotonic()
            if left <= 0:
                await turn.cancel()
                self._end(turn, TurnEnd.cut_short(f"the agent was silent for {limit:g} s"))
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await turn.drained()

    async def queue(self, *content: Content, mode: str = "queue") -> QueuedPrompt:
        """Let a prompt wait at the agent, where it outlives this connection. Returns once it is there."""
        if not self.abilities.queue:
            raise LocalError("this agent offers no queue")
        said = blocks(content, self.abilities)
        turn = ClientTurn(self, said)
        answer = await self.extension("inject", content=said, mode=mode)
        queued = QueuedPrompt(self, str(answer["messageId"]), turn)
        turn.message_id = queued.message_id
        if self.fold.message(MessageType.USER, queued.message_id) is not None:
            self._spans.accepted(turn)  # it was taken at once
            queued.take()
        else:
            self._queued[queued.message_id] = queued
        return queued

    async def resume_queue(self) -> None:
        """Let the agent go on with what waits, after a cancel."""
        await self.extension("resume_queue")

    def forget(self, queued: QueuedPrompt) -> None:
        self._queued.pop(queued.message_id, None)

    async def extension(self, method: str, **params: Any) -> Any:
        """Call one of our own methods of this session."""
        return await self._connection.call(f"_antiphon/{method}", {"sessionId": self.id, **params})

    # --- cancelling --------------------------------------------------------------------------------

    async def cancel(self) -> None:
        """Stop whatever the session works on."""
        await self._cancel(None)

    async def cancel_turn(self, turn: ClientTurn) -> None:
        """Stop one turn, and no later one."""
        if turn.end is not None:
            return
        if turn in self._calls and not self.spoken.answers_at_the_end:
            self._withdraw(turn)  # not even taken: then it never is
            self._end(turn, TurnEnd(stop_reason=v2.StopReason.CANCELLED))
            return
        await self._cancel(turn.message_id)

    async def _cancel(self, message_id: str | None) -> None:
        """PROMPT-V1-11, -12, PROMPT-V2-39, PERM-V2-10: what is open of the foreground is over at once."""
        ours = None if message_id is None else {META_KEY: {"messageId": message_id}}
        params = v2.CancelSessionNotification(session_id=v2.SessionId(self.id), meta=ours)
        self.spoken.cancelled()
        await self._connection.notify("session/cancel", params)
        behind = self._background_calls()
        for call in self.tool_calls:
            if call.id not in behind and call.status not in _FINISHED:
                stopped = v2.ToolCallStatus.CANCELLED
                self.tell(v2.SessionToolCallUpdate(tool_call_id=call.id, status=stopped))
        for question in self.questions:
            asking = self._asking.get(question.question_id)
            if asking is not None and question.tool_call_id not in behind:
                asking.cancel()

    def _background_calls(self) -> set[str | None]:
        work = self.fold.background or ()
        return {getattr(item, "tool_call_id", None) for item in work} - {None}

    # --- questions ---------------------------------------------------------------------------------

    async def ask_permission(self, params: Any, inbound: Inbound) -> Any:
        """`session/request_permission`: it begins in the lane, and waits for the answer outside of it."""
        self._questions_asked += 1
        question_id = f"question-{self._questions_asked}"
        asked = self.spoken.asked(params, question_id)
        self._take(asked.updates)
        request = asked.params
        if request is None:
            return asked.answer(CANCELLED)
        call = request.subject
        call_id = call.tool_call.tool_call_id if isinstance(call, v2.ToolCallPermissionSubject) else None
        self._happened(
            QuestionOpened(
                question_id=question_id,
                method=REQUEST_PERMISSION,
                params=Raw(encode(request)),
                tool_call_id=call_id,
            ),
            question_id,
        )
        self._take(self.spoken.blocked(question_id, call_id))
        permission = Permission(self, question_id, request)
        deciding = asyncio.get_running_loop().create_task(self.client.answers.decide(permission))
        self._asking[question_id] = deciding
        end = QuestionEnd.CANCELLED
        outcome: v2.RequestPermissionOutcome = CANCELLED
        try:
            chosen = await deciding
            if chosen is not None:
                outcome = v2.SelectedPermissionOutcome(option_id=chosen.option_id)
                end = QuestionEnd.ANSWERED
        except asyncio.CancelledError:
            deciding.cancel()
            if not inbound.cancelled and not deciding.cancelled():
                raise  # the link ends
            # PERM-V2-09: taken back by the agent, or cancelled by us: it is answered all the same
        except Exception:
            logger.exception("the decision on a permission failed; it counts as not given")
        finally:
            del self._asking[question_id]
            result = Raw(encode(v2.RequestPermissionResponse(outcome=outcome)))
            self._happened(QuestionClosed(question_id=question_id, end=end, result=result), question_id)
            self._take(self.spoken.unblocked(question_id))
        return asked.answer(outcome)

    # --- what comes --------------------------------------------------------------------------------

    def receive(self, params: Any) -> None:
        """An update came, in the lane."""
        self._heard_at = time.monotonic()
        ours = None if params.meta is None else params.meta.get(META_KEY)
        if isinstance(ours, dict) and isinstance(ours.get("seq"), int):
            self.cursor = ours["seq"]
        self._take(self.spoken.read(params.update))

    def _take(self, news: Iterable[News], *, accept: ClientTurn | None = None) -> None:
        for each in news:
            if isinstance(each, Named):
                turn = self._named.get(each.call)
                if turn is None:
                    continue  # nobody holds it any more
                if accept is not None:
                    turn.message_id = each.message_id
                    self._spans.accepted(turn)
                elif turn.message_id is None:
                    self._spans.named(turn, each.message_id)
            elif isinstance(each, Ended):
                if each.call in self._named:
                    self._end(self._named[each.call], each.end)
            else:
                self.tell(each)

    def tell(self, update: v2.SessionUpdate) -> None:
        """Fold an update, and let those hear of it whom it concerns."""
        before = self.fold.turn
        seq = self._folded(Updated.of(update, raw=_KEPT_BY_THE_AGENT))
        after = self.fold.turn
        if before is None and after is not None:
            self._spans.opened()
        shown: str | None = None
        if isinstance(update, v2.UserMessage | v2.UserMessageChunk):
            shown = update.message_id
            queued = self._queued.pop(shown, None)
            if queued is not None:
                self._spans.accepted(queued.turn)
                queued.take()
        elif type(update) is Unknown and update.get("sessionUpdate") == "_antiphon_queue":
            entries = update.get("entries")
            self.queue_entries = entries if isinstance(entries, list) else []
        behind = self._is_behind(update)
        turn = None if behind else self._spans.place(shown)
        event = SessionEvent(seq=seq, turn=turn, update=update)
        if not behind:
            self._spans.add(event, shown)
        self._tell(event)
        if before is not None and after is None:
            end = TurnEnd.of(update)
            for over in self._spans.ended():
                over.finish(end)

    def _is_behind(self, update: v2.SessionUpdate) -> bool:
        """Whether it is about background work, which belongs to no turn (PROMPT-V2-45)."""
        about = getattr(update, "tool_call_id", None)
        return about is not None and about in self._background_calls()

    def _folded(self, body: AnyBody) -> int:
        seq = self.fold.last_seq + 1
        self.fold.apply(Event(seq, int(time.time() * 1000), body))
        return seq

    def _happened(self, body: AnyBody, question_id: str) -> None:
        seq = self._folded(body)
        question = self.fold.questions.get(question_id)
        turn = self._spans.place(None)
        event = SessionEvent(seq=seq, turn=turn, question=question)
        self._spans.add(event, None)
        self._tell(event)

    def _tell(self, event: SessionEvent) -> None:
        for log in self._watchers:
            log.add(event)

    def _end(self, turn: ClientTurn, end: TurnEnd) -> None:
        self._spans.drop(turn)
        turn.finish(end)

    def lose(self, reason: LinkLost) -> None:
        """The link is gone, and everything that came over it has been applied."""
        self._take(self.spoken.lost())
        end = TurnEnd.cut_short(reason)
        for turn in [*self._spans.all(), *(turn for turn, _ in self._sent.values())]:
            turn.finish(end)
        for body in self.fold.interrupt():
            self._folded(body)
        for queued in self._queued.values():
            queued.lose()
        for log in tuple(self._watchers):
            log.end()

    # --- closing -----------------------------------------------------------------------------------

    async def close(self) -> None:
        """End the session at the agent; it can be resumed where the agent keeps sessions."""
        await self.client.close_session(self)
