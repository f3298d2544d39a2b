"""PromptDispatcher: the prompts of a session on their way to its agent.

A prompt is committed as sent before it is written, and never written again (invariant 6). The agent gets one
prompt at a time, unless it takes prompts while it works and the hub is to hand them over at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec import UNSET, Struct, structs

from antiphon.content import check_blocks
from antiphon.engine.events import Updated
from antiphon.engine.prompt_states import PromptState
from antiphon.engine.prompts import Entry, Next, Takes
from antiphon.engine.transcript import TYPE_OF, MessageType
from antiphon.errors import (
    AntiphonError,
    CallFailed,
    ErrorObject,
    InvalidParams,
    LinkLost,
    LocalError,
    RequestCancelled,
    RequestError,
    SessionUnknown,
    StoreError,
)
from antiphon.hub.upstream.errors import to_request_error
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.upstream.worker_feed import SentPrompt
from antiphon.hub.worker.binding import Binding
from antiphon.hub.worker.prompt_messages import Held, PromisedIds, PromptAttribution, PromptEcho, UserUpdate
from antiphon.hub.worker.story import is_command, story
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.hub")

ANSWERING = (*TYPE_OF, v2.SessionToolCallUpdate, v2.ToolCallContentChunk, v2.PlanUpdate)
"""Updates that an agent sends when it works on a prompt."""
CONCLUDE_AFTER = 1.0
"""Seconds after which a prompt counts as ended that was answered behind the end of a turn. An agent that was
at work by itself when the prompt came begins the prompt's turn before that."""
U = TypeVar("U", v2.UserMessage, v2.UserMessageChunk)
CANCELLED = ErrorObject(-32800, "Request cancelled")


class Handed(Struct, eq=False, kw_only=True):
    """A prompt that was written to the agent and is not settled."""

    entry: Entry
    sent: SentPrompt
    prompted: list[v2.ContentBlock] | None
    """The content that clients see, if the agent got more than that."""
    promised: bool
    """Whether clients know its id already: it was injected, or listed in the queue."""
    settled: asyncio.Future[None]
    written: list[v2.ContentBlock] = []
    taken: bool = False
    """The agent has accepted it, and the id of its message is not known yet."""
    cancelled: bool = False
    """A cancel was sent before the agent accepted it."""
    asked_back: bool = False
    """The agent was asked to give it back."""
    cancel_turn: bool = False
    """Its client withdrew it: if the agent accepts it all the same, its turn is cancelled."""


class DispatchListener(Protocol):
    """The worker of the session, as far as what happens to prompts concerns it."""

    def advance(self) -> None:
        """Dispatch the next prompt, if one may be dispatched now."""

    def cancel(self, *, message_id: str | None = None) -> None: ...

    def apply(self, update: v2.SessionUpdate) -> None:
        """Commit an update of the agent."""

    def show(
        self, update: v2.SessionUpdate, original: bytes | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        """Commit an update of the agent that is no state."""

    def prompt_left(self) -> None:
        """A prompt is not on its way to the agent any more."""


class PromptDispatcher:
    def __init__(self, session: ServedSession, binding: Binding, listener: DispatchListener) -> None:
        self._session = session
        self._binding = binding
        self._listener = listener
        self._task: asyncio.Task[None] | None = None
        self._withdrawn = False
        """Whether the prompt that is about to be sent was cancelled."""
        self._newest: tuple[str, int] = ("", 0)
        """The prompt that was submitted last, and the number of the event that queued it."""
        self.attribution = PromptAttribution()
        self.promised = PromisedIds()
        self._handed: dict[SentPrompt, Handed] = {}
        """The prompts that the agent has and has not taken, or not named, in the order they were written."""
        self._unshown: dict[str, list[v2.ContentBlock]] = {}
        """Accepted prompts whose message the agent has not shown, by the ids of the messages."""
        self._shows = False
        """Whether this agent shows prompts as messages, as it should (PROMPT-V2-04)."""
        self._prompted: dict[str, list[v2.ContentBlock]] = {}
        """The messages that the hub has shown by itself, by their ids: whatever the agent shows of them,
        clients see the prompt, without the conversation that the agent got with it."""
        self._echo = PromptEcho()
        self._end: v2.SessionStateUpdate | None = None
        """The end of a turn that came while the agent had not answered a prompt."""
        self._concluding: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        return self._task is not None

    @property
    def inserts(self) -> bool:
        """Whether prompts are handed to the agent while it works."""
        return self._binding.inserts and self._binding.at_agent is not None

    def next(self) -> Next | None:
        at_agent, fold = self._binding.at_agent, self._session.fold
        offered = frozenset() if at_agent is None else at_agent.abilities.delivery
        inserts = self.inserts
        takes = Takes(
            steer="steer" in offered or inserts,
            inserts=inserts,
            interrupt=inserts and "interrupt" in offered,
            due=fold.turns.due,  # what the agent took last begins its turn first
        )
        return fold.prompts.next(fold.state, takes)

    def submitted(self, entry: Entry) -> None:
        """Note the prompt that the last event queued."""
        self._newest = (entry.message_id, self._session.fold.last_seq)

    def begin(self, following: Next) -> None:
        """There is something to send. Where the agent is there, the prompt is committed as sent together with
        what else is committed now: then it has never waited."""
        sent = None
        if self._binding.at_agent is not None:
            sent = self._send_event(following.entry)
        self._task = asyncio.get_running_loop().create_task(self._send(sent))
        self._task.add_done_callback(self._sent)

    def _send_event(self, entry: Entry) -> tuple[Entry, bool]:
        """Commit a prompt as sent. Returns it, and whether clients know its id."""
        newest, seq = self._newest
        at_once = entry.held and entry.message_id == newest and self._session.live.is_gathered(seq)
        self._withdrawn = False  # what a cancel meant that came earlier waits no longer, or was not this
        self._session.emit(self._session.fold.prompts.send(entry.message_id).events)
        return entry, not at_once

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._listener.prompt_left()
        if task.cancelled():
            return
        if task.exception() is not None:
            logger.error("prompt not sent", exc_info=task.exception())
            return
        attempt(self._listener.advance)

    async def _send(self, sent: tuple[Entry, bool] | None) -> None:
        try:
            at_agent = await self._binding.bring()
        except RequestError as error:
            following = self.next()
            if following is not None:
                self._reject(following.entry.message_id, error.to_wire())
            return
        if sent is None:
            following = self.next()  # another prompt may be first by now
            if following is None or following.cancel_first:
                return
            sent = self._send_event(following.entry)
        await self._session.live.durable()
        entry, promised = sent
        known = self._session.fold.prompts.get(entry.message_id)
        if known is None or known.state is not PromptState.SENT or at_agent is not self._binding.at_agent:
            return  # the agent was lost, or the session closed
        if self._withdrawn:
            self._reject(entry.message_id, CANCELLED)
            return
        self._write(at_agent, entry, promised=promised)

    def _write(self, at_agent: UpstreamSession, entry: Entry, *, promised: bool) -> None:
        content: list[Any] = [*entry.content]
        untold = self._binding.is_untold and not is_command(content, self._session.fold)
        told = story(self._session.fold) if untold else None
        if told is not None:
            content.insert(0, v2.TextContent(text=told))
        if not self._handed:
            self._forget_end()
        sent = SentPrompt()
        handed = self._handed[sent] = Handed(
            entry=entry,
            sent=sent,
            prompted=None if told is None else entry.content,
            promised=promised,
            settled=asyncio.get_running_loop().create_future(),
        )
        try:
            handed.written = content
            at_agent.abilities.check_content(content)
            check_blocks(content)  # CONT-04
            accepted = at_agent.send_prompt(
                sent, content, delivery=self._mode(entry, at_agent), meta=entry.meta
            )
        except LinkLost:
            return  # what was sent is rejected with the rest
        except LocalError as error:
            self._settle(handed)
            self._reject(entry.message_id, InvalidParams(error.detail).to_wire())
            return
        accepted.add_done_callback(partial(self._answered, handed, told_story=told is not None))

    def _mode(self, entry: Entry, at_agent: UpstreamSession) -> str | None:
        """The requested delivery, if the agent offers it."""
        works = self._session.fold.turn is not None and entry.delivery in at_agent.abilities.delivery
        wanted = entry.delivery is Delivery.STEER or (entry.delivery is Delivery.INTERRUPT and self.inserts)
        return str(entry.delivery) if works and wanted else None

    def _answered(self, handed: Handed, accepted: asyncio.Future[None], *, told_story: bool) -> None:
        """Handle the answer of the agent: an error, or the prompt was accepted in the lane."""
        error = accepted.exception()
        if error is None and told_story:
            self._binding.note_told()
        if error is not None and not isinstance(error, LinkLost) and handed.sent in self._handed:
            self._refused(handed, error)
        self._listener.prompt_left()
        attempt(self._listener.advance)

    def _refused(self, handed: Handed, error: BaseException) -> None:
        wire = error.error if isinstance(error, CallFailed) else _wire(error)
        if isinstance(error, CallFailed) and error.needs_login and self._binding.upstream is not None:
            self._binding.upstream.wants_login = True
        if handed.cancelled:  # PROMPT-V2-36: an error answer to a cancelled prompt means cancelled
            wire = CANCELLED
        self._settle(handed)
        if not handed.entry.held and wire.code == RequestCancelled.code:
            self._return(handed.entry.message_id)
        else:
            self._reject(handed.entry.message_id, wire)

    def _reject(self, message_id: str, error: ErrorObject) -> None:
        prompts = self._session.fold.prompts
        attempt(lambda: self._session.emit(prompts.reject(message_id, error).events))

    def _return(self, message_id: str) -> None:
        """Return a prompt to the queue: the agent gave it back."""
        prompts = self._session.fold.prompts
        attempt(lambda: self._session.emit(prompts.withdraw(message_id, returned=True).events))

    def _settle(self, handed: Handed) -> None:
        self._handed.pop(handed.sent, None)
        if not handed.settled.done():
            handed.settled.set_result(None)

    def withdraw(self) -> None:
        """Note that prompts that are about to be sent, or were not accepted yet, are cancelled."""
        self._withdrawn = True
        for handed in self._handed.values():
            handed.cancelled = True

    def take_back(self, message_id: str, *, cancel_turn: bool = False) -> asyncio.Future[None] | None:
        """Ask the agent to give back a prompt that it has not answered (PROMPT-V2-33); done once it has. With
        `cancel_turn`, the turn is cancelled where the agent takes the prompt all the same. `None` where the
        agent does not have the prompt, or cannot give it back."""
        at_agent, entry = self._binding.at_agent, self._session.fold.prompts.get(message_id)
        if at_agent is None or entry is None or entry.state is not PromptState.SENT:
            return None
        found = [handed for handed in self._handed.values() if handed.entry.message_id == message_id]
        if not found:
            self._withdrawn = True  # it is about to be written
            return self._task
        handed = found[0]
        if not handed.asked_back and not at_agent.prompts.request_withdrawal(handed.sent):
            return None
        handed.asked_back = True
        handed.cancel_turn = handed.cancel_turn or cancel_turn
        return handed.settled

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # --- what comes of it, in the lane --------------------------------------------------------------

    def taken(self, prompt: SentPrompt) -> None:
        """The agent has accepted a prompt."""
        handed = self._handed.get(prompt)
        if handed is None:
            return  # its message was shown before
        if prompt.message_id is None:
            handed.taken = True
            self._await_turn()
            return
        id = prompt.message_id + self._binding.mark
        if self._echo and self._echo.message_id != id:
            self._decide()
        if prompt in self._handed:
            self._accept(handed, id)
        self._show_held()

    def named(self) -> None:
        """By now the ids of prompts may be known that were taken without one."""
        for handed in [*self._handed.values()] if self._handed else ():
            if handed.taken and handed.sent.message_id is not None:
                self._accept(handed, handed.sent.message_id + self._binding.mark)

    @property
    def unsettled(self) -> bool:
        """Whether `before` may have something to do."""
        return bool(self._unshown) or bool(self._echo)

    def holds(self, update: UserUpdate, original: bytes | None, meta: dict[str, Any] | None) -> bool:
        """Whether a user message is not shown, or not yet: it may be a prompt that the agent was sent."""
        id = self.promised.promised(update.message_id)
        if self._is_shown(update, id):
            return True
        if self._echo and self._echo.message_id != update.message_id:
            self._decide()
        known = id in self._unshown or self._session.fold.message(MessageType.USER, id) is not None
        if known or not self._unanswered():
            return False
        self._echo.hold(Held(update, original, meta))
        if any(self._echo.repeats(handed.written) for handed in self._unanswered()):
            self._decide()
        return True

    def before(self, update: v2.SessionUpdate | None) -> None:
        """Something else comes; `None` for a chunk of the agent's. What is held back is decided on. Where the
        agent does not show prompts as messages, the prompt is shown before what the agent says."""
        if self._echo:
            self._decide()
        if update is None or isinstance(update, ANSWERING):
            self._show_prompts([*self._unshown])

    def turn_ends(self, update: Any) -> None:
        """The agent says that its turn is over. An agent that never shows prompts as messages has not shown
        those of this one."""
        for handed in [*self._handed.values()]:
            if handed.taken:
                self._accept(handed, None)
        turn = self._session.fold.turn
        self._show_prompts([*self._unshown] if turn is None else turn.prompts)
        told = isinstance(update, v2.SessionStateUpdate) and update.stop_reason is not None
        if told and self._unanswered():
            self._end = update  # of one of them, perhaps, or of a turn that the agent had opened

    def _unanswered(self) -> list[Handed]:
        return [handed for handed in self._handed.values() if not handed.taken]

    def _decide(self) -> None:
        """Take what is held back for the prompt that says the same, if there is one, and show it."""
        id, unanswered = self._echo.message_id, self._unanswered()
        whole = [handed for handed in unanswered if self._echo.repeats(handed.written)]
        part = [handed for handed in unanswered if self._echo.is_part_of(handed.written)]
        for handed in (*whole, *part)[:1]:
            self._accept(handed, id)
        self._show_held()

    def _show_held(self) -> None:
        for held in self._echo.release():
            id = self.promised.promised(held.update.message_id)
            if not self._is_shown(held.update, id):
                self._listener.show(*held)

    def _is_shown(self, update: UserUpdate, id: str) -> bool:
        """Whether clients have all of a user message already, as it was prompted."""
        if id not in self._prompted or self._session.fold.message(MessageType.USER, id) is None:
            return False
        self._shows = True
        return isinstance(update, v2.UserMessageChunk) or update.meta is UNSET

    def _show_prompts(self, ids: Iterable[str]) -> None:
        """Show prompts as messages that were taken, where the agent does not."""
        for id in ids if self._unshown else ():
            content = self._unshown.pop(id, None)
            if content is not None and not self._shows:
                self._prompted[id] = content
                message = v2.UserMessage(message_id=v2.MessageId(id), content=content)
                self._session.emit([Updated.of(self.attribution.complete(message))])

    def _await_turn(self) -> None:
        """A prompt was taken. If that comes behind the end of a turn, its own is waited for, not for ever."""
        if self._end is not None and self._concluding is None:
            tasks = self._session.tasks
            self._concluding = tasks.call_later(CONCLUDE_AFTER, self._conclude)

    def _conclude(self) -> None:
        """The agent has answered a prompt behind the end of a turn and begun no other: it was the
        prompt's."""
        end, self._end, self._concluding = self._end, None, None
        taken = self._session.fold.turns.due or any(handed.taken for handed in self._handed.values())
        if self._binding.at_agent is not None:
            self._binding.at_agent.conclude()
        if end is not None and taken and self._session.fold.turn is None:
            told = end
            attempt(lambda: self._listener.apply(told))

    def _forget_end(self) -> None:
        self._end = None
        if self._concluding is not None:
            self._concluding.cancel()
            self._concluding = None

    def lost(self) -> None:
        """Forget the prompts that the lost agent had."""
        self._shows = False
        self._unshown.clear()
        self._echo.release()
        self._forget_end()
        for handed in [*self._handed.values()]:
            self._settle(handed)

    def shown(self, update: v2.UserMessage) -> v2.UserMessage:
        """A user message of the agent's, as clients see it: the agent may have been told more than they
        said."""
        update = self._appeared(update)
        prompted = None if update.content is UNSET else self._prompted.get(update.message_id)
        shown = update if prompted is None else structs.replace(update, content=prompted)
        return self.attribution.keep(self.attribution.complete(shown), self._session.fold)

    def shown_in_part(self, chunk: v2.UserMessageChunk) -> v2.UserMessageChunk:
        """The same, for a message that comes in pieces."""
        chunk = self._appeared(chunk)
        self._session.emit([*map(Updated.of, self.attribution.before_chunk(chunk))])
        return chunk

    def _appeared(self, update: U) -> U:
        """The agent shows a user message: it has the id that clients know."""
        self._shows = True
        renamed: U = self.promised.renamed(update)
        self._unshown.pop(renamed.message_id, None)
        return renamed

    def _accept(self, handed: Handed, agent_id: str | None) -> None:
        """The prompt becomes a message, under the agent's id or, where clients know that already, its own.
        Without the agent's id the hub shows it, because the agent does not."""
        entry, prompts = handed.entry, self._session.fold.prompts
        promised = handed.promised or agent_id is None
        # If the agent got more than the prompt, clients must not see the message that the agent shows.
        echo = agent_id is None or handed.prompted is not None
        id = entry.message_id if promised or agent_id is None else agent_id
        self._settle(handed)
        at_agent = self._binding.at_agent
        named = agent_id if promised and at_agent is not None and at_agent.inserts else None
        if promised and agent_id is not None:
            self.promised.add(agent_id, id)
        if handed.prompted is not None:
            self._prompted[id] = handed.prompted
        became = None if promised else agent_id
        accepted = prompts.accept(entry.message_id, became=became, agent_id=named, echo=echo)
        self._session.emit(accepted.events)
        if not echo:
            self._unshown[id] = entry.content
        if not echo or named is not None:
            signed = self.attribution.accepted(entry, id, self._session.fold, agent_id=named)
            self._session.emit([*map(Updated.of, signed)])
        self._await_turn()
        if handed.cancel_turn:
            self._listener.cancel(message_id=entry.message_id)


def _wire(error: BaseException) -> ErrorObject:
    return (
        to_request_error(error).to_wire() if isinstance(error, AntiphonError) else AntiphonError().to_wire()
    )


def attempt(act: Callable[[], None]) -> None:
    """Call `act`; errors of a session that is being put away are ignored: its clients learn of the end."""
    with suppress(StoreError, SessionUnknown, LocalError):
        act()
