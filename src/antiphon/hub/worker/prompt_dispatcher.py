"""PromptDispatcher: the prompts of a session on their way from the queue to its agent.

A prompt is committed as sent before it is written, and never written again (invariant 6). The agent gets one
prompt at a time, unless it takes prompts while it works and the hub is to hand them over at once.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

from antiphon.content import check_blocks
from antiphon.engine.prompt_states import PromptState
from antiphon.engine.prompts import Entry, Next, Takes
from antiphon.errors import (
    AntiphonError,
    CallFailed,
    ErrorObject,
    InvalidParams,
    LinkLost,
    LocalError,
    RequestCancelled,
    RequestError,
    StoreError,
)
from antiphon.hub.upstream.errors import to_request_error
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.worker.binding import Binding
from antiphon.hub.worker.prompt_acceptance import (
    OutstandingPrompt,
    PromptAcceptance,
    PromptListener,
    Recall,
    attempt,
)
from antiphon.hub.worker.story import is_command, story
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.hub")

CANCELLED = ErrorObject(-32800, "Request cancelled")


class PromptDispatcher:
    def __init__(
        self,
        session: ServedSession,
        binding: Binding,
        acceptance: PromptAcceptance,
        listener: PromptListener,
    ) -> None:
        self._session = session
        self._binding = binding
        self._acceptance = acceptance
        self._listener = listener
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        """Whether the prompt that is about to be written was cancelled."""
        self._newest: tuple[str, int] = ("", 0)
        """The prompt that was submitted last, and the number of the event that queued it."""

    @property
    def busy(self) -> bool:
        return self._task is not None

    def next(self) -> Next | None:
        at_agent, fold = self._binding.at_agent, self._session.fold
        offered = frozenset() if at_agent is None else at_agent.abilities.delivery
        inserts = self._inserts
        takes = Takes(
            steer="steer" in offered or inserts,
            inserts=inserts,
            interrupt=inserts and "interrupt" in offered,
            due=fold.turns.due,  # what the agent accepted last begins its turn first
        )
        return fold.prompts.next(fold.state, takes)

    @property
    def _inserts(self) -> bool:
        """Whether prompts are handed to the agent while it works."""
        return self._binding.inserts and self._binding.at_agent is not None

    def submitted(self, entry: Entry) -> None:
        """Note the prompt that the last event queued."""
        self._newest = (entry.message_id, self._session.fold.last_seq)

    def begin(self, following: Next) -> None:
        """Send a prompt. Where the agent is there, the prompt is committed as sent together with what else is
        committed now: then it has never waited."""
        sent = None
        if self._binding.at_agent is not None:
            sent = self._commit_sent(following.entry)
        self._task = asyncio.get_running_loop().create_task(self._send(sent))
        self._task.add_done_callback(self._send_ended)

    def _commit_sent(self, entry: Entry) -> tuple[Entry, bool]:
        """Commit a prompt as sent. Returns it, and whether clients know its id."""
        newest, seq = self._newest
        at_once = entry.held and entry.message_id == newest and self._session.live.is_gathered(seq)
        self._cancelled = False  # an earlier cancel did not mean this prompt
        self._session.emit(self._session.fold.prompts.send(entry.message_id).events)
        return entry, not at_once

    def _send_ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._listener.prompt_left()
        if task.cancelled():
            return
        failure = task.exception()
        if isinstance(failure, StoreError):
            logger.warning("prompt not sent: session %s: %s", self._session.id, failure)
        elif failure is not None:
            logger.error("prompt not sent", exc_info=failure)
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
            sent = self._commit_sent(following.entry)
        await self._session.live.durable()
        entry, promised = sent
        known = self._session.fold.prompts.get(entry.message_id)
        if known is None or known.state is not PromptState.SENT or at_agent is not self._binding.at_agent:
            return  # the agent was lost, or the session closed
        if self._cancelled:
            self._reject(entry.message_id, CANCELLED)
            return
        self._write(at_agent, entry, promised=promised)

    def _write(self, at_agent: UpstreamSession, entry: Entry, *, promised: bool) -> None:
        content: list[Any] = [*entry.content]
        untold = self._binding.is_untold and not is_command(content, self._session.fold)
        told = story(self._session.fold) if untold else None
        if told is not None:
            content.insert(0, v2.TextContent(text=told))
        prompt = OutstandingPrompt(entry=entry, written=content, promised=promised, retold=told is not None)
        self._acceptance.add(prompt)
        try:
            at_agent.abilities.check_content(content)
            check_blocks(content)  # CONT-04
            delivery = self._delivery(entry, at_agent)
            accepted = at_agent.send_prompt(prompt.sent, content, delivery=delivery, meta=entry.meta)
        except LinkLost:
            return  # what was sent is rejected with the rest
        except LocalError as error:
            self._acceptance.remove(prompt)
            self._reject(entry.message_id, InvalidParams(error.detail).to_wire())
            return
        accepted.add_done_callback(partial(self._answered, prompt))

    def _delivery(self, entry: Entry, at_agent: UpstreamSession) -> str | None:
        """The requested delivery, if the agent offers it."""
        works = self._session.fold.turn is not None and entry.delivery in at_agent.abilities.delivery
        wanted = entry.delivery is Delivery.STEER or (entry.delivery is Delivery.INTERRUPT and self._inserts)
        return str(entry.delivery) if works and wanted else None

    def _answered(self, prompt: OutstandingPrompt, accepted: asyncio.Future[None]) -> None:
        """Handle the answer of the agent: an error, or the prompt was accepted in the lane."""
        error = accepted.exception()
        if error is None and prompt.retold:
            self._binding.note_told()
        if error is not None and not isinstance(error, LinkLost) and self._acceptance.is_outstanding(prompt):
            self._refused(prompt, error)
        self._listener.prompt_left()
        attempt(self._listener.advance)

    def _refused(self, prompt: OutstandingPrompt, error: BaseException) -> None:
        wire = error.error if isinstance(error, CallFailed) else _wire(error)
        if isinstance(error, CallFailed) and error.needs_login and self._binding.upstream is not None:
            self._binding.upstream.wants_login = True
        if prompt.cancelled:  # PROMPT-V2-36: an error answer to a cancelled prompt means cancelled
            wire = CANCELLED
        elif isinstance(error, CallFailed):
            wire = self._binding.failure(wire)
        self._acceptance.remove(prompt)
        if not prompt.entry.held and wire.code == RequestCancelled.code:
            self._return(prompt.entry.message_id)
        else:
            self._reject(prompt.entry.message_id, wire)

    def _reject(self, message_id: str, error: ErrorObject) -> None:
        prompts = self._session.fold.prompts
        attempt(lambda: self._session.emit(prompts.reject(message_id, error).events))

    def _return(self, message_id: str) -> None:
        """Return a prompt to the queue: the agent gave it back."""
        prompts = self._session.fold.prompts
        attempt(lambda: self._session.emit(prompts.withdraw(message_id, returned=True).events))

    def note_cancel(self) -> None:
        """Note that prompts that are about to be written, or were not accepted yet, are cancelled."""
        self._cancelled = True
        self._acceptance.note_cancel()

    def take_back(self, message_id: str, *, cancel_turn: bool = False) -> asyncio.Future[None] | None:
        """Ask the agent to give back a prompt that it has not answered (PROMPT-V2-33); done once it has. With
        `cancel_turn`, the turn is cancelled where the agent takes the prompt all the same. `None` where the
        agent does not have the prompt, or cannot give it back."""
        at_agent, entry = self._binding.at_agent, self._session.fold.prompts.get(message_id)
        if at_agent is None or entry is None or entry.state is not PromptState.SENT:
            return None
        prompt = self._acceptance.find(message_id)
        if prompt is None:
            self._cancelled = True  # it is about to be written
            return self._task
        if prompt.recall is Recall.NO and not at_agent.prompts.request_withdrawal(prompt.sent):
            return None
        prompt.recall = max(prompt.recall, Recall.OR_CANCEL if cancel_turn else Recall.ASKED)
        return prompt.done

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


def _wire(error: BaseException) -> ErrorObject:
    return (
        to_request_error(error).to_wire() if isinstance(error, AntiphonError) else AntiphonError().to_wire()
    )
