"""The prompt queue: the prompts that wait, their order, and what may still be done to them.

A prompt is queued, then sent (if an upstream agent has to take it), then accepted; or it is withdrawn or
rejected. It can be edited, moved and withdrawn until it is accepted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from antiphon.engine import events as e
from antiphon.engine.events import AnyBody, RequestId, Updated
from antiphon.engine.json_values import CONTENT, encode, kept
from antiphon.engine.prompt_states import ACTIONS, TAKING, Action, PromptState, Refusal, Same, When
from antiphon.engine.turn import Turn, TurnState
from antiphon.engine.who import Named, who_of
from antiphon.errors import ErrorObject, RequestCancelled
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.v2.content import ContentBlock
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.wire import Wire

REMEMBERED = 1024
"""How many settled prompts a session remembers. A remembered prompt gives its operation id the same outcome
again, and a late withdrawal an answer other than "unknown id". Open prompts are never forgotten."""

_RANK = {Delivery.INTERRUPT: 0, Delivery.STEER: 1, Delivery.AGENT: 2, Delivery.QUEUE: 2}
_NO_CONTENT = Raw(b"[]")


class Entry(Wire, frozen=True, kw_only=True):
    """A prompt and its outcome. A settled one keeps no content; an accepted one keeps it until its
    turn ends, so that its message can still be shown."""

    message_id: str
    raw_content: Raw
    delivery: Delivery
    held: bool
    state: PromptState = PromptState.QUEUED
    operation_id: str | None = None
    sender: Named | None = None
    meta: dict[str, Any] | None = None
    became: str | None = None
    error: ErrorObject | None = None
    stop_reason: StopReason | None = None
    """How the turn that took it ended; with `error` if it failed."""
    settled: int = 0
    """The number of the event that settled it."""
    request_id: RequestId = None
    """The id of the `session/prompt` request that it came with."""

    @property
    def content(self) -> list[ContentBlock]:
        return CONTENT.read(self.raw_content)


class QueuePart(Wire, frozen=True, kw_only=True):
    order: tuple[str, ...]
    sent: tuple[str, ...]
    paused: bool


class Outcome(NamedTuple):
    """The result of a command: the events to append, and the prompt as it is now or the reason of the
    refusal."""

    events: tuple[AnyBody, ...] = ()
    entry: Entry | None = None
    refusal: Refusal | None = None
    repeated: bool = False
    """The operation id is known: `entry` is its first outcome."""


class Next(NamedTuple):
    """The prompt that may be taken now. With `cancel_first`, the open turn has to be cancelled before."""

    entry: Entry
    cancel_first: bool


class Takes(NamedTuple):
    """What the worker can do with a prompt now."""

    steer: bool = False
    """It takes one into the open turn: a break point is reached, or the upstream agent finds one."""
    inserts: bool = False
    """The upstream agent takes prompts while it works, also before it has answered an earlier one."""
    interrupt: bool = False
    """The upstream agent cancels its turn for a prompt without being asked."""
    due: bool = False
    """A prompt was accepted whose turn has not opened yet."""


NOTHING_SPECIAL = Takes()


class Prompts:
    """The fold of everything that happened to prompts, and the commands on them."""

    __slots__ = ("_entries", "_operations", "_order", "_sent", "_settled", "changed", "paused")

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._operations: dict[str, str] = {}
        self._order: list[str] = []
        self._sent: list[str] = []
        self._settled: deque[str] = deque()
        self.paused = False
        self.changed: set[str] = set()
        """Entries that changed since this was last cleared."""

    # Reading

    @property
    def queued(self) -> list[Entry]:
        """The prompts that wait, in their order."""
        return [self._entries[id] for id in self._order]

    @property
    def sent(self) -> list[Entry]:
        """The prompts that an upstream agent has and has not answered."""
        return [self._entries[id] for id in self._sent]

    def get(self, message_id: str) -> Entry | None:
        """Return a prompt that is open, or settled and still remembered."""
        return self._entries.get(message_id)

    def shown_as(self, message_id: str) -> str:
        """Return the id of the message that a prompt became."""
        entry = self._entries.get(message_id)
        return message_id if entry is None or entry.became is None else entry.became

    def open(self, taken: Collection[str]) -> tuple[str, ...]:
        """Return the prompts that have not ended: those that wait, those that were sent, and those whose
        messages the open turn has `taken`."""
        accepted = (
            each.message_id for each in self._entries.values() if (each.became or each.message_id) in taken
        )
        return (*self._order, *self._sent, *accepted)

    def requests_of(self, turn: Turn) -> list[RequestId]:
        """Return the ids of the requests that a turn answers, oldest first, as far as they are known."""
        taken = frozenset(turn.prompts)
        found = (entry for entry in self._entries.values() if (entry.became or entry.message_id) in taken)
        return [entry.request_id for entry in found if entry.request_id is not None]

    def of_operation(self, operation_id: str) -> Entry | None:
        message_id = self._operations.get(operation_id)
        return None if message_id is None else self._entries[message_id]

    def next(self, state: TurnState, takes: Takes = NOTHING_SPECIAL) -> Next | None:
        """Return the prompt that may be taken now: an interrupting one before a steering one before the
        others, each kind in its order. While an upstream agent has a prompt that it has not answered, or
        whose turn has not opened, only a prompt that it takes while it works."""
        at_agent = bool(self._sent) or takes.due
        if self.paused or not self._order or (at_agent and not takes.inserts):
            return None
        for entry in sorted(self.queued, key=lambda entry: _RANK[entry.delivery]):
            match TAKING[state, entry.delivery]:
                case When.NOW if not at_agent or entry.delivery is Delivery.AGENT:
                    return Next(entry, cancel_first=False)
                case When.AT_BREAK_POINT if takes.steer:
                    return Next(entry, cancel_first=False)
                case When.BY_AGENT if takes.inserts:
                    return Next(entry, cancel_first=False)
                case When.AFTER_CANCEL:
                    return Next(entry, cancel_first=not takes.interrupt)
        return None

    # Commands

    def submit(self, prompt: e.PromptQueued, *, state: TurnState) -> Outcome:
        """Queue a prompt in a session of this state; for a known operation id, return its first outcome."""
        operation_id = prompt.operation_id
        if operation_id is not None and (known := self.of_operation(operation_id)) is not None:
            return Outcome(entry=known, repeated=True)
        if _is_empty(prompt.raw_content):
            return Outcome(refusal=Refusal.EMPTY)  # PROMPT-V2-01
        if prompt.delivery is Delivery.STEER and not prompt.held and state is TurnState.IDLE:
            return Outcome(refusal=Refusal.NO_RUNNING_TURN)
        return Outcome((prompt,), _entry(prompt))

    def edit(self, message_id: str, content: Sequence[ContentBlock] | Raw) -> Outcome:
        """New content; id, delivery and place stay."""
        raw = raw_content(content)
        if _is_empty(raw):
            return Outcome(refusal=Refusal.EMPTY)
        return self._act(Action.EDIT, message_id, e.PromptEdited(message_id=message_id, raw_content=raw))

    def move(self, message_id: str, *, before: str | None = None) -> Outcome:
        """Before another prompt that waits, or to the end."""
        if before is not None and before not in self._order:
            found = self._entries.get(before)
            settled = found is not None and found.state in (PromptState.SENT, PromptState.ACCEPTED)
            return Outcome(refusal=Refusal.ALREADY_DELIVERED if settled else Refusal.UNKNOWN_MESSAGE_ID)
        return self._act(Action.MOVE, message_id, e.PromptMoved(message_id=message_id, before=before))

    def withdraw(self, message_id: str, *, returned: bool = False) -> Outcome:
        """Withdraw a prompt. One that was sent can only be `returned` by the agent that has it."""
        action = Action.RETURN if returned else Action.WITHDRAW
        return self._act(action, message_id, e.PromptWithdrawn(message_id=message_id))

    def send(self, message_id: str) -> Outcome:
        """To be committed before it is written to an upstream agent; no events, no writing."""
        return self._act(Action.SEND, message_id, e.PromptSent(message_id=message_id))

    def accept(
        self,
        message_id: str,
        *,
        became: str | None = None,
        agent_id: str | None = None,
        echo: bool = True,
    ) -> Outcome:
        """Inserts it: the answer, then the user message at its place, in one commit (SD-07).

        became: the upstream agent's id of the message, which clients see
        agent_id: the upstream agent's id of the message, which clients see as `message_id`
        echo: without it the user message is left to the upstream agent, which sends its own
        """
        entry = self._entries.get(message_id)
        accepted = e.PromptAccepted(message_id=message_id, became=became, agent_id=agent_id)
        bodies: tuple[AnyBody, ...] = (accepted,)
        if echo and entry is not None:
            bodies = (*bodies, _user_message(replace(entry, became=became)))  # PROMPT-V2-04
        return self._act(Action.ACCEPT, message_id, *bodies)

    def messages(self, *, shown: Callable[[str], bool]) -> list[Updated]:
        """Return the messages of the prompts of the open turn that are not `shown`: they were left to the
        upstream agent, which did not come to send them."""
        return [
            _user_message(entry)
            for entry in self._entries.values()
            if entry.state is PromptState.ACCEPTED
            and entry.raw_content != _NO_CONTENT
            and not shown(entry.became or entry.message_id)
        ]

    def reject(self, message_id: str, error: ErrorObject) -> Outcome:
        """Refuse a prompt; its sender gets the error (PROMPT-V2-55)."""
        return self._act(Action.REJECT, message_id, e.PromptRejected(message_id=message_id, error=error))

    def cancel(self, *, closing: bool = False) -> tuple[AnyBody, ...]:
        """Return the events of `session/cancel`: held prompts are answered -32800 (PROMPT-V2-34). Injected
        ones stay, and the queue pauses: a cancel never starts the next prompt. An upstream agent answers the
        prompts it has, unless the session is `closing`."""
        error = ErrorObject(RequestCancelled.code, RequestCancelled.summary)
        ended = [entry for entry in self.queued if entry.held] + (self.sent if closing else [])
        bodies: list[AnyBody] = [
            e.PromptRejected(message_id=entry.message_id, error=error) for entry in ended
        ]
        if not self.paused and any(not entry.held for entry in self.queued):
            bodies.append(e.QueuePaused())
        return tuple(bodies)

    def resume(self) -> tuple[AnyBody, ...]:
        return (e.QueueResumed(),) if self.paused else ()

    def _act(self, action: Action, message_id: str, *bodies: AnyBody) -> Outcome:
        entry = self._entries.get(message_id)
        if entry is None:
            return Outcome(refusal=Refusal.UNKNOWN_MESSAGE_ID)
        match ACTIONS[entry.state, action]:
            case Refusal() as refusal:
                return Outcome(entry=entry, refusal=refusal)
            case Same():
                return Outcome(entry=entry, repeated=True)
        return Outcome(bodies, entry)

    # The fold

    def apply(self, body: AnyBody, *, seq: int) -> bool:
        """Fold an event of the queue; return whether it changed anything. An event that does not fit the
        queue (in a journal that another program wrote) is skipped."""
        match body:
            case e.PromptQueued():
                return self._queued(body)
            case e.PromptEdited(message_id=id) if self._allows(Action.EDIT, id):
                self._change(id, raw_content=kept(body.raw_content))
            case e.PromptMoved(message_id=id, before=before) if (
                self._allows(Action.MOVE, id) and before != id
            ):
                self._order.remove(id)
                at = self._order.index(before) if before in self._order else len(self._order)
                self._order.insert(at, id)
            case e.PromptWithdrawn(message_id=id) if self._allows(Action.RETURN, id):
                self._end_wait(id, PromptState.WITHDRAWN, seq)
            case e.PromptRejected(message_id=id) if self._allows(Action.REJECT, id):
                self._change(id, error=body.error)
                self._end_wait(id, PromptState.REJECTED, seq)
            case e.PromptSent(message_id=id) if self._allows(Action.SEND, id):
                self._order.remove(id)
                self._sent.append(id)
                self._change(id, state=PromptState.SENT)
            case e.PromptAccepted(message_id=id) if self._allows(Action.ACCEPT, id):
                self._change(id, became=body.became)
                self._end_wait(id, PromptState.ACCEPTED, seq)
            case e.QueuePaused():
                self.paused = True
            case e.QueueResumed():
                self.paused = False
            case _:
                return False
        return True

    def _queued(self, body: e.PromptQueued) -> bool:
        if body.message_id in self._entries or body.operation_id in self._operations:
            return False
        self._entries[body.message_id] = _entry(body)
        self._order.append(body.message_id)
        if body.operation_id is not None:
            self._operations[body.operation_id] = body.message_id
        self.paused = False  # a client that prompts wants the queue to continue
        self.changed.add(body.message_id)
        return True

    def apply_ended(self, turn: Turn) -> None:
        """Note how the turn of its prompts ended, for requests that are repeated."""
        error = (
            None
            if turn.error is None
            else ErrorObject(int(turn.error.code), turn.error.message, turn.error.data)
        )
        taken = frozenset(turn.prompts)
        for entry in tuple(self._entries.values()) if taken else ():
            if (entry.became or entry.message_id) in taken:
                self._change(
                    entry.message_id, stop_reason=turn.stop_reason, error=error, raw_content=_NO_CONTENT
                )

    def _allows(self, action: Action, message_id: str) -> bool:
        entry = self._entries.get(message_id)
        return entry is not None and isinstance(ACTIONS[entry.state, action], PromptState)

    def _change(self, message_id: str, **fields: Any) -> None:
        self._entries[message_id] = replace(self._entries[message_id], **fields)
        self.changed.add(message_id)

    def _end_wait(self, message_id: str, state: PromptState, seq: int) -> None:
        """Take a prompt out of the queue, and forget the oldest settled one if there are too many."""
        waiting = self._sent if message_id in self._sent else self._order
        waiting.remove(message_id)
        self._change(message_id, state=state, meta=None, settled=seq)
        if state is not PromptState.ACCEPTED:
            self._change(message_id, raw_content=_NO_CONTENT)
        self._settled.append(message_id)
        if len(self._settled) > REMEMBERED:
            forgotten = self._entries.pop(self._settled.popleft())
            self.changed.add(forgotten.message_id)
            if forgotten.operation_id is not None:
                self._operations.pop(forgotten.operation_id, None)

    # To be kept

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self._entries

    def part(self) -> QueuePart:
        return QueuePart(order=tuple(self._order), sent=tuple(self._sent), paused=self.paused)

    def restore(self, part: QueuePart, entries: Sequence[Entry]) -> None:
        self._order = list(part.order)
        self._sent = list(part.sent)
        self.paused = part.paused
        self._entries = {entry.message_id: entry for entry in entries}
        self._operations = {e.operation_id: e.message_id for e in entries if e.operation_id is not None}
        settled = sorted((entry for entry in entries if entry.settled), key=lambda entry: entry.settled)
        self._settled = deque(entry.message_id for entry in settled)


def _entry(body: e.PromptQueued) -> Entry:
    return Entry(
        message_id=body.message_id,
        raw_content=kept(body.raw_content),
        delivery=body.delivery,
        held=body.held,
        operation_id=body.operation_id,
        sender=body.sender,
        meta=body.meta,
        request_id=body.request_id,
    )


def _user_message(entry: Entry) -> Updated:
    shown = encode(entry.became or entry.message_id)
    raw = b'{"sessionUpdate":"user_message","messageId":%b,"content":%b%b}'
    return Updated(raw=Raw(raw % (shown, bytes(entry.raw_content), _signature(entry))))


def _signature(entry: Entry) -> bytes:
    """Return the `_meta` that names the sender."""
    if entry.sender is None:
        return b""
    return b',"_meta":{"antiphon":{"sender":%b}}' % encode(who_of(entry.sender))


def raw_content(content: Sequence[ContentBlock] | Raw) -> Raw:
    """Return the content of a prompt as an event has it."""
    return kept(content) if isinstance(content, Raw) else Raw(encode(list(content)))


def _is_empty(raw: Raw) -> bool:
    return bytes(raw).strip()[1:-1].strip() == b""
