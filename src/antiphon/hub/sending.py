"""Sending: the prompts of a session on their way to its agent, one at a time, whatever that would do with a
second one. A prompt is committed as sent before it is written, and never written again (invariant 6)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from msgspec import structs

from antiphon.client import ClientTurn
from antiphon.engine.events import Delivery, Updated
from antiphon.engine.prompt_states import PromptState
from antiphon.engine.prompts import Entry, Next
from antiphon.errors import CallFailed, ErrorObject, InvalidParams, LinkLost, LocalError, RequestError
from antiphon.hub import bringing
from antiphon.hub.course import Course
from antiphon.hub.signing import Signing
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.hub.session import HubSession

logger = logging.getLogger("antiphon.hub")

CANCELLED = ErrorObject(-32800, "Request cancelled")


class Sending:
    def __init__(self, session: HubSession) -> None:
        self._session = session
        self._standing = session.standing
        self._task: asyncio.Task[None] | None = None
        self._withdrawn = False
        """Whether what is about to be sent was cancelled."""
        self.signing = Signing()
        self._unnamed: ClientTurn | None = None
        """A prompt that was taken before the id of its message is known."""
        self._beside: list[v2.ContentBlock] | None = None
        """What is prompted, where the agent is told more than that."""
        self._written: list[v2.ContentBlock] = []
        """What was last written to the agent."""
        self._said: dict[str, list[v2.ContentBlock]] = {}
        """The same by message ids: clients see what was prompted, and nothing of what was beside it."""

    @property
    def busy(self) -> bool:
        return self._task is not None

    def next(self) -> Next | None:
        course, fold = self._standing.course, self._session.fold
        if fold.turns.due:
            return None  # what the agent took last begins its turn first, whatever state it is in until then
        able = course is not None and "steer" in course.session.abilities.delivery
        return fold.prompts.next(fold.state, at_break_point=able)

    def begin(self) -> None:
        """There is something to send."""
        self._task = asyncio.get_running_loop().create_task(self._send())
        self._task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._session.noticed_sent()
        if task.cancelled():
            return
        if task.exception() is not None:
            logger.error("a prompt could not be sent", exc_info=task.exception())
            return
        self._session.attempt(self._session.advance)

    async def _send(self) -> None:
        try:
            course = await self._standing.bring()
        except RequestError as error:
            following = self.next()
            if following is not None:
                self._reject(following.entry.message_id, error.to_wire())
            return
        following = self.next()  # what waits may be something else by now
        if following is None or following.cancel_first:
            return
        entry, prompts = following.entry, self._session.fold.prompts
        self._withdrawn = False  # what a cancel meant that came earlier waits no longer, or was not this
        self._session.emit(prompts.send(entry.message_id).events)
        await self._session.live.durable()
        known = prompts.get(entry.message_id)
        if known is None or known.state is not PromptState.SENT or course is not self._standing.course:
            return  # the agent was lost, or the session closed
        if self._withdrawn:
            self._reject(entry.message_id, CANCELLED)
            return
        await self._write(course, entry)

    async def _write(self, course: Course, entry: Entry) -> None:
        content: list[Any] = [*entry.content]
        untold = self._standing.untold and not bringing.is_command(content, self._session.fold)
        story = bringing.story(self._session.fold) if untold else None
        self._beside = None
        if story is not None:
            self._beside = entry.content
            content.insert(0, v2.TextContent(text=story))
        self._written = content
        steer = entry.delivery is Delivery.STEER and self._session.fold.turn is not None
        try:
            await course.session.prompt(*content, delivery="steer" if steer else None, meta=entry.meta)
        except LinkLost:
            return  # what was sent is rejected with the rest
        except CallFailed as error:
            if error.needs_login and self._standing.upstream is not None:
                self._standing.upstream.wants_login = True
            # PROMPT-V2-36: what an agent says of a prompt that it was told to cancel is no error.
            self._reject(entry.message_id, CANCELLED if self._withdrawn else error.error)
        except LocalError as error:
            self._reject(entry.message_id, InvalidParams(error.detail).to_wire())
        else:
            if story is not None:
                self._standing.told()

    def _reject(self, message_id: str, error: ErrorObject) -> None:
        prompts = self._session.fold.prompts
        self._session.attempt(lambda: self._session.emit(prompts.reject(message_id, error).events))

    def withdraw(self) -> None:
        """What is about to be sent, or was sent and is not taken, was cancelled."""
        self._withdrawn = True

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # --- what comes of it, in the lane --------------------------------------------------------------

    def taken(self, turn: ClientTurn) -> None:
        """The agent has taken it."""
        if turn.message_id is None:
            self._unnamed = turn
        else:
            self._accept(turn.message_id + self._standing.mark)

    def named(self) -> None:
        """By now its id may be known."""
        if self._unnamed is not None and self._unnamed.message_id is not None:
            self._accept(self._unnamed.message_id + self._standing.mark)
            self._unnamed = None

    def unshown(self) -> None:
        """Its turn ends, and the agent never showed it as a message."""
        if self._unnamed is not None:
            self._accept(None, echo=True)
            self._unnamed = None

    def lost(self) -> None:
        """The agent is gone."""
        self._unnamed = None

    def shown(self, update: v2.UserMessage) -> v2.UserMessage:
        """A user message of the agent's, as clients see it: it may be what was sent, before it is answered
        (PROMPT-V2-05), and the agent may have been told more than they said."""
        if update.content == self._written and self._session.fold.prompts.sent:
            self._accept(update.message_id)
        said = self._said.pop(update.message_id, None)
        shown = update if said is None else structs.replace(update, content=said)
        return self.signing.kept(self.signing.signed(shown), self._session.fold)

    def _accept(self, became: str | None, *, echo: bool = False) -> None:
        prompts = self._session.fold.prompts
        for entry in prompts.sent[:1]:
            if self._beside is not None:
                self._said[became or entry.message_id], self._beside = self._beside, None
            self._session.emit(prompts.accept(entry.message_id, became=became, echo=echo).events)
            if not echo:
                signed = self.signing.taken(entry, became or entry.message_id, self._session.fold)
                self._session.emit([*map(Updated.of, signed)])
