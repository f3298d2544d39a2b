"""What one session of an agent says, in v2's words, whatever the agent speaks; and our words in its own.

Each of the two is told what was sent and what came, in order, and gives v2 updates and news about prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET, Struct

from antiphon.bridge import requests_v1
from antiphon.bridge.content import recast
from antiphon.bridge.spelling import Insertions, normalize
from antiphon.bridge.upgrade import Upgrade
from antiphon.bridge.upgrade_questions import permission
from antiphon.bridge.upgrade_turns import idle_of
from antiphon.client.turn import ClientTurn, TurnEnd
from antiphon.engine.who import Who
from antiphon.errors import ErrorObject, InvalidParams, InvalidResult, LocalError
from antiphon.schema import v1, v2
from antiphon.schema.updates import TextChunk
from antiphon.schema.v1 import optins
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.v2.proposed import PromptTaken
from antiphon.schema.version import Agreement, ours_in, with_ours

if TYPE_CHECKING:
    from antiphon.bridge.originals import Originals

STREAMED = frozenset([v2.AgentMessageChunk, v2.AgentThoughtChunk])
"""Most of what comes: they say nothing about turns, prompts or spelling."""


class Named(Struct, frozen=True):
    """It is known which message the prompt of a call became."""

    call: int
    message_id: str


class Ended(Struct, frozen=True):
    """The prompt of a call has ended, whatever else goes on."""

    call: int
    end: TurnEnd


class Completed(Struct, frozen=True):
    """The `turn_complete` of a call came, and its response did not yet: that follows at once, or never."""

    call: int


class OtherEnded(Struct, frozen=True):
    """What the session worked on has ended, and it was no prompt that is still open."""

    end: TurnEnd


News = v2.SessionUpdate | Named | Ended | Completed | OtherEnded


class Question(Struct, frozen=True):
    """A permission request in v2, and the answer to it in the agent's own words."""

    params: v2.RequestPermissionRequest | None
    answer: Any
    updates: Sequence[v2.SessionUpdate] = ()


class Spoken(Protocol):
    answers_at_the_end: bool
    """Whether a prompt is answered when its turn ends, and not when it is taken."""

    tells_every_end: bool
    """Whether the end of a turn is told that none of our requests opened."""

    # `name_text` sets the message id of each plain text, or returns that each has to be `read` by itself.
    # `named` gives the message id by which the agent knows a turn; `overdue` ends what waits for the second
    # of a response and a `turn_complete`: of one call, or of all. `restart`: the session is told from its
    # beginning again.

    def prompt(self, params: v2.PromptRequest) -> Any: ...
    def sent(self, call: int, content: list[v2.ContentBlock]) -> list[News]: ...
    def read(self, update: Any) -> Sequence[News]: ...
    def name_text(self, chunks: Sequence[TextChunk]) -> bool: ...
    def answered(self, call: int, result: Any) -> Sequence[News]: ...
    def failed(self, call: int, error: ErrorObject) -> Sequence[News]: ...
    def named(self, turn: ClientTurn) -> str | None: ...
    def cancelled(self) -> None: ...
    def overdue(self, call: int | None = None) -> Sequence[News]: ...
    def lost(self) -> Sequence[News]: ...
    def restart(self) -> None: ...
    def asked(self, params: Any, question_id: str) -> Question: ...
    def blocked(self, question_id: str, call: str | None) -> Sequence[News]: ...
    def unblocked(self, question_id: str) -> Sequence[News]: ...


class SpokenV2:
    """v2 as published or as first proposed: it is what we speak, but for the spelling."""

    answers_at_the_end = False
    tells_every_end = True

    def __init__(self) -> None:
        self._insertions = Insertions()

    def prompt(self, params: v2.PromptRequest) -> Any:
        return params

    def sent(self, call: int, content: list[v2.ContentBlock]) -> list[News]:
        self._insertions.sent(call)
        return []

    def read(self, update: Any) -> Sequence[News]:
        if type(update) in STREAMED:
            return (update,)
        update = normalize(update)
        return [*(_named(pair) for pair in self._insertions.told(update)), update]

    def name_text(self, chunks: Sequence[TextChunk]) -> bool:
        return True  # the agent has named them

    def answered(self, call: int, result: Any) -> Sequence[News]:
        return [_named(pair) for pair in self._insertions.answered(call, result)]

    def failed(self, call: int, error: ErrorObject) -> Sequence[News]:
        self._insertions.refused(call)
        return []

    def named(self, turn: ClientTurn) -> str | None:
        return turn.message_id

    def cancelled(self) -> None:
        pass

    def overdue(self, call: int | None = None) -> Sequence[News]:
        return []

    def lost(self) -> Sequence[News]:
        return []

    def restart(self) -> None:
        self._insertions = Insertions()

    def asked(self, params: v2.RequestPermissionRequest, question_id: str) -> Question:
        return Question(params, lambda outcome: v2.RequestPermissionResponse(outcome=outcome))

    def blocked(self, question_id: str, call: str | None) -> Sequence[News]:
        return []  # the agent tells its state

    def unblocked(self, question_id: str) -> Sequence[News]:
        return []


class CompletionPromise(Struct):
    """The promise of an agent to send `turn_complete`. All sessions of a connection share it, and all
    processes of an agent behind a hub."""

    broken: bool = False
    """Whether the agent has left one out: then no session waits for one any more."""


class SpokenV1:
    """v1, seen as v2."""

    def __init__(
        self,
        agreement: Agreement,
        capabilities: v1.AgentCapabilities,
        *,
        own: Who | None = None,
        promise: CompletionPromise | None = None,
    ) -> None:
        """`own`: who sends our prompts, which nobody else says in v1."""
        self._own = None if own is None else with_ours(None, sender=own.to_meta())
        self._names = own is not None and ours_in(capabilities.meta).get("hub") is True
        """Whether our prompts get ids that nobody else makes: those that a hub has made for a v1 agent of its
        own count as ours would, and they are other messages."""
        self._capabilities = capabilities
        opted = agreement.opt_ins
        marker = capabilities.session_capabilities.turn_complete  # TC-05: with it or by our own opt-in
        self._barrier = (opted.turn_complete or marker is not None) and not opted.prompt_lifecycle
        self._promise = promise or CompletionPromise()
        self.answers_at_the_end = not opted.prompt_lifecycle
        self.tells_every_end = self._barrier or opted.prompt_lifecycle
        self._open: set[int] = set()
        """Our prompts that are not answered yet."""
        self._cancelled: set[int] = set()
        """Those of them that we cancelled."""
        self._complete: dict[int, optins.TurnComplete] = {}
        """Those of them whose `turn_complete` has come."""
        self._held: dict[int, v1.PromptResponse] = {}
        """Answers that came before the `turn_complete` of their prompt: what it closes may still come."""
        self._insertions = Insertions()
        """Pairs the prompts that were answered with `{}` under the future flag with their messages."""
        self.upgrade = Upgrade(opted)
        self.originals: Originals | None = None
        """Finds what has to be kept as the agent wrote it, for who passes that on."""

    def prompt(self, params: v2.PromptRequest) -> Any:
        try:
            return requests_v1.prompt(params, capabilities=self._capabilities)
        except InvalidParams as error:
            raise LocalError(error.detail) from None  # nothing was sent: it is ours

    def sent(self, call: int, content: list[v2.ContentBlock]) -> list[News]:
        self._open.add(call)
        if not self.answers_at_the_end:
            self._insertions.sent(call)
        name = f"own:{call}" if self._names else None
        lifted = self.upgrade.prompted(call, content, message_id=name, meta=self._own)
        named = [Named(call, update.message_id) for update in lifted if isinstance(update, v2.UserMessage)]
        return [*named, *lifted]

    def read(self, update: Any) -> Sequence[News]:
        lifted = self.upgrade.update(update)
        if not self.answers_at_the_end:
            named = [_named(pair) for each in lifted for pair in self._insertions.told(each)]
            return [*named, *lifted]
        if isinstance(update, optins.TurnComplete):
            for call in [*self._held, *self._open]:
                if str(call) == str(update.prompt_request_id):  # TC-04
                    return [*lifted, *self._completed(call, update)]
            if self._open and update.prompt_request_id is UNSET:
                return [*lifted, OtherEnded(TurnEnd.of(idle_of(update)))]
        return lifted

    def name_text(self, chunks: Sequence[TextChunk]) -> bool:
        return self.upgrade.name_text(chunks)

    def _completed(self, call: int, update: optins.TurnComplete) -> Sequence[News]:
        held = self._held.pop(call, None)
        if held is not None:
            return self._end(call, held)
        self._complete[call] = update
        return [Completed(call)]

    def answered(self, call: int, result: Any) -> Sequence[News]:
        if isinstance(result, optins.PromptAccepted):
            self._open.discard(call)
            return [_named(pair) for pair in self._insertions.answered(call, _published(result))]
        if self._barrier and not self._promise.broken and call not in self._complete:
            self._held[call] = result  # TC-06: the barrier is the update, not the response
            return []
        return self._end(call, result)

    def overdue(self, call: int | None = None) -> Sequence[News]:
        """End the prompts that have a response or a `turn_complete`, and not the other one. An agent that
        was waited for, and left out the `turn_complete` of a call, is not waited for again."""
        late = [held for held in self._held if call is None or held == call]
        if late and call is not None:
            self._promise.broken = True
        ended = [news for held in late for news in self._end(held, self._held.pop(held))]
        unanswered = [each for each in self._complete if call is None or each == call]
        return [*ended, *(news for each in unanswered for news in self._end_unanswered(each))]

    def _end_unanswered(self, call: int) -> Sequence[News]:
        """End a prompt by its `turn_complete`: the agent sent that, and no response behind it."""
        idle = idle_of(self._complete[call])
        if idle.error is not None:
            return self.failed(call, ErrorObject(int(idle.error.code), idle.error.message, idle.error.data))
        reason = idle.stop_reason or StopReason.END_TURN
        return self._end(call, v1.PromptResponse(stop_reason=v1.StopReason(reason)))

    def _end(self, call: int, result: v1.PromptResponse) -> Sequence[News]:
        self._forget(call)
        released = self.upgrade.release()
        lifted = self.upgrade.responded(call, result)
        if lifted:
            return [*released, *lifted]
        usage = None if result.usage is None else recast(result.usage, v2.Usage)
        return [*released, Ended(call, TurnEnd(stop_reason=StopReason(result.stop_reason), usage=usage))]

    def failed(self, call: int, error: ErrorObject) -> Sequence[News]:
        cancelled = call in self._cancelled
        self._insertions.refused(call)
        self._forget(call)
        released = self.upgrade.release()
        lifted = self.upgrade.failed(call, error)
        if lifted or not self.answers_at_the_end:
            return [*released, *lifted]
        if cancelled:
            return [*released, Ended(call, TurnEnd(stop_reason=StopReason.CANCELLED))]
        return [*released, Ended(call, TurnEnd.failed(error))]

    def _forget(self, call: int) -> None:
        self._complete.pop(call, None)
        for calls in (self._open, self._cancelled):
            calls.discard(call)

    def named(self, turn: ClientTurn) -> str | None:
        return None if self.answers_at_the_end else turn.message_id

    def cancelled(self) -> None:
        self._cancelled.update(self._open)
        self.upgrade.cancelled()

    def lost(self) -> Sequence[News]:
        self._open.clear()
        released = self.upgrade.release()
        return [*released, *self.upgrade.interrupted()]

    def restart(self) -> None:
        for calls in (self._cancelled, self._complete, self._held):
            calls.clear()
        self._insertions = Insertions()
        self.upgrade = Upgrade(self.upgrade.opt_ins)

    def asked(self, params: v1.RequestPermissionRequest, question_id: str) -> Question:
        lifted = permission(params, self.upgrade)
        if self.originals is not None and lifted.params is not None:
            self.originals.asked(lifted.params)
        return Question(
            lifted.params,
            lambda outcome: lifted.answer(v2.RequestPermissionResponse(outcome=outcome)),
            lifted.updates,
        )

    def blocked(self, question_id: str, call: str | None) -> Sequence[News]:
        return () if call is None else self.upgrade.asked(question_id, call)

    def unblocked(self, question_id: str) -> Sequence[News]:
        return self.upgrade.answered(question_id)


def as_v2(chunk: TextChunk) -> v2.AgentMessageChunk | v2.AgentThoughtChunk:
    """A plain text chunk that has an id, as v2 has it."""
    made = v2.AgentMessageChunk if chunk.session_update == "agent_message_chunk" else v2.AgentThoughtChunk
    return made(
        message_id=v2.MessageId(chunk.message_id or ""), content=v2.TextContent(text=chunk.content.text)
    )


def taken(result: Any) -> bool:
    """Whether an answer says that a prompt was taken, and not that its turn ended."""
    return isinstance(result, v2.PromptResponse | PromptTaken | optins.PromptAccepted)


def check_answer(result: Any, *, at_the_end: bool) -> Any:
    """The answer to a prompt. `{}` is one only where a prompt is answered at its acceptance."""
    if at_the_end and isinstance(result, optins.PromptAccepted) and result.message_id is UNSET:
        return InvalidResult("session/prompt: Object missing required field `stopReason`")
    return result


def _published(result: optins.PromptAccepted) -> v2.PromptResponse | PromptTaken:
    if isinstance(result.message_id, str):
        return v2.PromptResponse(message_id=v2.MessageId(result.message_id), meta=result.meta)
    return PromptTaken(meta=result.meta)


def _named(pair: tuple[Any, v2.PromptResponse]) -> Named:
    return Named(pair[0], pair[1].message_id)
