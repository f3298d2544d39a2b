"""PromptAcceptance: the prompts that the agent has got, until they are messages that clients see.

Agents accept a prompt, show it as a message and report its turn in any order, and some of them do not do all
of it. The hub shows each prompt once, under the id that clients know, before what the agent answers to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from functools import partial
from typing import Any, Protocol

from msgspec import UNSET, Struct, field, structs

from antiphon.engine.events import Updated
from antiphon.engine.prompts import Entry
from antiphon.engine.transcript import TYPE_OF, MessageType
from antiphon.errors import LocalError, SessionUnknown, StoreError
from antiphon.hub.upstream.worker_feed import SentPrompt
from antiphon.hub.worker.binding import Binding
from antiphon.hub.worker.prompt_messages import (
    PromisedIds,
    PromptAttribution,
    PromptEcho,
    UserUpdate,
    rename_original,
)
from antiphon.schema import v2
from antiphon.server.session import ServedSession

ANSWERING = (*TYPE_OF, v2.SessionToolCallUpdate, v2.ToolCallContentChunk, v2.PlanUpdate)
"""Updates that an agent sends when it works on a prompt."""
CONCLUDE_AFTER = 1.0
"""Seconds after which a prompt counts as ended that was accepted after the end of a turn. An agent that
worked without a prompt when the prompt came begins the prompt's turn before that."""


class Recall(IntEnum):
    """Whether the agent was asked to give a prompt back."""

    NO = 0
    ASKED = 1
    OR_CANCEL = 2
    """The agent was asked, and if it accepts the prompt all the same, the turn of the prompt is cancelled."""


class OutstandingPrompt(Struct, eq=False, kw_only=True):
    """A prompt that was written to the agent, and is neither refused nor a message yet.

    | The agent                              | What becomes of the prompt                                   |
    |----------------------------------------|--------------------------------------------------------------|
    | accepts it, and names its message      | it is that message                                           |
    | shows a message that says the same     | it is that message                                           |
    | accepts it without a name              | `accepted`, until the message is named or the turn ends      |
    | refuses it                             | it is rejected with that error; if `cancelled`, as cancelled |
    | refuses an injected one as cancelled   | it returns to the queue                                      |
    | is lost                                | it is rejected with everything else that was sent            |
    """

    entry: Entry
    written: list[v2.ContentBlock]
    promised: bool
    """Whether clients know its id already: it was injected, or listed in the queue."""
    retold: bool
    """Whether the agent got the conversation so far with it."""
    sent: SentPrompt = field(default_factory=SentPrompt)
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Done once it is not outstanding any more."""
    accepted: bool = False
    """Whether the agent has accepted it, and the id of its message is not known yet."""
    cancelled: bool = False
    """Whether a cancel was sent before the agent accepted it."""
    recall: Recall = Recall.NO


class PromptListener(Protocol):
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


class PromptAcceptance:
    def __init__(self, session: ServedSession, binding: Binding, listener: PromptListener) -> None:
        self._session = session
        self._binding = binding
        self._listener = listener
        self.promised = PromisedIds()
        self._attribution = PromptAttribution()
        self._echo = PromptEcho()
        self._outstanding: dict[SentPrompt, OutstandingPrompt] = {}
        """In the order in which they were written."""
        self._unshown: dict[str, list[v2.ContentBlock]] = {}
        """Accepted prompts whose message the agent has not shown, by the ids of the messages."""
        self._shows = False
        """Whether this agent shows prompts as messages, as it should (PROMPT-V2-04)."""
        self._prompted: dict[str, list[v2.ContentBlock]] = {}
        """The messages that the hub has shown by itself, by their ids: whatever the agent shows of them,
        clients see the prompt, without the conversation that the agent got with it."""
        self._end: v2.SessionStateUpdate | None = None
        """The end of a turn that came while the agent had not answered a prompt."""
        self._concluding: asyncio.TimerHandle | None = None

    # --- outstanding prompts -----------------------------------------------------------------------

    def add(self, prompt: OutstandingPrompt) -> None:
        """Note a prompt that is written to the agent now."""
        if not self._outstanding:
            self._forget_end()
        self._outstanding[prompt.sent] = prompt

    def remove(self, prompt: OutstandingPrompt) -> None:
        self._outstanding.pop(prompt.sent, None)
        if not prompt.done.done():
            prompt.done.set_result(None)

    def is_outstanding(self, prompt: OutstandingPrompt) -> bool:
        return prompt.sent in self._outstanding

    def find(self, message_id: str) -> OutstandingPrompt | None:
        """Return the outstanding prompt of an entry of the queue."""
        prompts = self._outstanding.values()
        return next((prompt for prompt in prompts if prompt.entry.message_id == message_id), None)

    def note_cancel(self) -> None:
        """Note that the agent is sent a cancel: prompts that it refuses from here on count as cancelled."""
        for prompt in self._outstanding.values():
            prompt.cancelled = True

    def agent_lost(self) -> None:
        """Forget the prompts that the lost agent had."""
        self._shows = False
        self._unshown.clear()
        self._echo.release()
        self._forget_end()
        for prompt in [*self._outstanding.values()]:
            self.remove(prompt)

    @property
    def _unanswered(self) -> list[OutstandingPrompt]:
        return [prompt for prompt in self._outstanding.values() if not prompt.accepted]

    # --- in the agent's lane -----------------------------------------------------------------------

    def agent_accepted(self, sent: SentPrompt) -> None:
        prompt = self._outstanding.get(sent)
        if prompt is None:
            return  # its message was shown before
        if sent.message_id is None:
            prompt.accepted = True
            self._await_turn()
            return
        id = sent.message_id + self._binding.mark
        if self._echo.held and self._echo.message_id != id:
            self._decide()
        if self.is_outstanding(prompt):
            self._accept(prompt, id)
        self._show_held()

    def accept_named(self) -> None:
        """Accept prompts whose message was named after the agent had accepted them."""
        for prompt in [*self._outstanding.values()] if self._outstanding else ():
            if prompt.accepted and prompt.sent.message_id is not None:
                self._accept(prompt, prompt.sent.message_id + self._binding.mark)

    @property
    def is_pending(self) -> bool:
        """Whether `show_before` may have something to do."""
        return bool(self._unshown) or bool(self._echo.held)

    def holds_back(self, update: UserUpdate, original: bytes | None, meta: dict[str, Any] | None) -> bool:
        """Whether a user message is not shown, or not yet: it may be a prompt that the agent was sent."""
        id = self.promised.promised(update.message_id)
        if self._is_shown(update, id):
            return True
        if self._echo.held and self._echo.message_id != update.message_id:
            self._decide()
        known = id in self._unshown or self._session.fold.message(MessageType.USER, id) is not None
        if known or not self._unanswered:
            return False
        self._echo.held.append((update, original, meta))
        if any(self._echo.repeats(prompt.written) for prompt in self._unanswered):
            self._decide()
        return True

    def show_before(self, update: v2.SessionUpdate | None) -> None:
        """Decide on what is held back, because something else comes: `None` for a chunk of the agent's. Where
        the agent does not show prompts as messages, the prompt is shown before the agent's answer."""
        if self._echo.held:
            self._decide()
        if update is None or isinstance(update, ANSWERING):
            self._show_prompts([*self._unshown])

    def turn_ends(self, update: Any) -> None:
        """The agent reports that its turn is over. An agent that never shows prompts as messages has not
        shown those of this one."""
        for prompt in [*self._outstanding.values()]:
            if prompt.accepted:
                self._accept(prompt, None)
        turn = self._session.fold.turn
        self._show_prompts([*self._unshown] if turn is None else turn.prompts)
        reported = isinstance(update, v2.SessionStateUpdate) and update.stop_reason is not None
        if reported and self._unanswered:
            self._end = update  # of one of them, perhaps, or of a turn that the agent had opened

    def shown(self, update: UserUpdate, original: bytes | None) -> tuple[UserUpdate, bytes | None]:
        """Return a user message of the agent as clients see it, and what a v1 agent wrote, with that id. The
        agent may have got more than the client prompted."""
        self._shows = True
        seen: UserUpdate = self.promised.renamed(update)
        self._unshown.pop(seen.message_id, None)
        if original is not None and seen.message_id != update.message_id:
            original = rename_original(original, seen.message_id)
        if isinstance(seen, v2.UserMessageChunk):
            self._session.emit([*map(Updated.of, self._attribution.before_chunk(seen))])
            return seen, original
        prompted = None if seen.content is UNSET else self._prompted.get(seen.message_id)
        if prompted is not None:
            seen = structs.replace(seen, content=prompted)
        return self._attribution.keep(self._attribution.complete(seen), self._session.fold), original

    def _decide(self) -> None:
        """Take what is held back for the prompt that says the same, if there is one, and show it."""
        id, unanswered = self._echo.message_id, self._unanswered
        whole = [prompt for prompt in unanswered if self._echo.repeats(prompt.written)]
        part = [prompt for prompt in unanswered if self._echo.is_part_of(prompt.written)]
        for prompt in (*whole, *part)[:1]:
            self._accept(prompt, id)
        self._show_held()

    def _show_held(self) -> None:
        for update, original, meta in self._echo.release():
            if not self._is_shown(update, self.promised.promised(update.message_id)):
                self._listener.show(update, original, meta)

    def _is_shown(self, update: UserUpdate, id: str) -> bool:
        """Whether clients have all of a user message already, as it was prompted."""
        if id not in self._prompted or self._session.fold.message(MessageType.USER, id) is None:
            return False
        self._shows = True
        return isinstance(update, v2.UserMessageChunk) or update.meta is UNSET

    def _show_prompts(self, ids: Iterable[str]) -> None:
        """Show accepted prompts as messages, where the agent does not."""
        for id in ids if self._unshown else ():
            content = self._unshown.pop(id, None)
            if content is not None and not self._shows:
                self._prompted[id] = content
                message = v2.UserMessage(message_id=v2.MessageId(id), content=content)
                self._session.emit([Updated.of(self._attribution.complete(message))])

    def _accept(self, prompt: OutstandingPrompt, agent_id: str | None) -> None:
        """Make the prompt a message, under the agent's id or, where clients know that already, its own.
        Without the agent's id the hub shows it, because the agent does not."""
        entry, prompts = prompt.entry, self._session.fold.prompts
        promised = prompt.promised or agent_id is None
        # If the agent got more than the prompt, clients must not see the message that the agent shows.
        echo = agent_id is None or prompt.retold
        id = entry.message_id if promised or agent_id is None else agent_id
        self.remove(prompt)
        at_agent = self._binding.at_agent
        named = agent_id if promised and at_agent is not None and at_agent.inserts else None
        if promised and agent_id is not None:
            self.promised.add(agent_id, id)
        if prompt.retold:
            self._prompted[id] = entry.content
        became = None if promised else agent_id
        accepted = prompts.accept(entry.message_id, became=became, agent_id=named, echo=echo)
        self._session.emit(accepted.events)
        if not echo:
            self._unshown[id] = entry.content
        if not echo or named is not None:
            signed = self._attribution.accepted(entry, id, self._session.fold, agent_id=named)
            self._session.emit([*map(Updated.of, signed)])
        self._await_turn()
        if prompt.recall is Recall.OR_CANCEL:
            self._listener.cancel(message_id=entry.message_id)

    # --- the end of a turn before the acceptance ---------------------------------------------------

    def _await_turn(self) -> None:
        """Wait a while for the turn of a prompt that was accepted after the end of a turn."""
        if self._end is not None and self._concluding is None:
            self._concluding = self._session.tasks.call_later(CONCLUDE_AFTER, self._conclude)

    def _conclude(self) -> None:
        """Apply the end to the accepted prompt: the agent has begun no other turn, so it was the prompt's."""
        end, self._end, self._concluding = self._end, None, None
        accepted = self._session.fold.turns.due or len(self._unanswered) < len(self._outstanding)
        if self._binding.at_agent is not None:
            self._binding.at_agent.conclude()
        if end is not None and accepted and self._session.fold.turn is None:
            attempt(partial(self._listener.apply, end))

    def _forget_end(self) -> None:
        self._end = None
        if self._concluding is not None:
            self._concluding.cancel()
            self._concluding = None


def attempt(act: Callable[[], None]) -> None:
    """Call `act`; errors of a session that is being put away are ignored: its clients learn of the end."""
    with suppress(StoreError, SessionUnknown, LocalError):
        act()
