"""Hearing: what an agent does, as it becomes part of a session. It is journalled in the order of the agent's
lane, and published after the commit."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import UNSET, structs

from antiphon.agent.extending import tell_clients
from antiphon.agent.titles import is_title_chosen
from antiphon.client import ClientTurn, SessionEvent
from antiphon.client.protocol.dialect import STREAMED
from antiphon.engine.events import Translated, Updated
from antiphon.engine.folding import is_state
from antiphon.engine.transcript import MessageChunk
from antiphon.errors import AuthRequired, EventRefused, LocalError, SessionUnknown, StoreError
from antiphon.hub.asking import HubQuestions
from antiphon.hub.children import Children
from antiphon.hub.promised_ids import renamed_original
from antiphon.hub.sending import Sending
from antiphon.hub.standing import Standing
from antiphon.schema import v2
from antiphon.schema.updates import TextChunk
from antiphon.schema.wire import Unknown

logger = logging.getLogger("antiphon.hub")

BEGUN = v2.SessionStateUpdate(state=v2.State.RUNNING)


class Hearing(HubQuestions):
    standing: Standing
    sending: Sending
    children: Children

    def attempt(self, act: Callable[[], None]) -> None:
        """The session may be being let go meanwhile; its clients are told by that."""
        with suppress(StoreError, SessionUnknown, LocalError):
            act()

    def turn_opened(self) -> None:
        raise NotImplementedError

    # --- what the course tells ---------------------------------------------------------------------

    def agent_took(self, turn: ClientTurn) -> None:
        self.sending.taken(turn)

    def agent_did(self, event: SessionEvent) -> None:
        try:
            self._heard(event)
        except EventRefused as error:
            logger.warning("update dropped in session %s: %s", self.id, error)

    def _heard(self, event: SessionEvent) -> None:
        update = event.update
        if type(update) in STREAMED and event.original is None and event.meta is None:
            self.agent_streamed(update)  # type: ignore[arg-type]  # it is one of those
        elif update is not None:
            self.tell(update, event.original, event.meta)
        elif event.question is not None:
            self._question(event.question)

    def agent_streamed(self, chunk: MessageChunk) -> None:
        if self.sending.unsettled:
            self.sending.before(None)
        self._live.stream(chunk if chunk.meta is None else self.sending.promised.about(chunk))

    def agent_streamed_text(self, chunks: Sequence[TextChunk]) -> None:
        if self.sending.unsettled:
            self.sending.before(None)
        self._live.stream_text(chunks)

    def agent_notified(self, method: str, params: Any) -> None:
        """The agent sent an extension notification. Where it names its session, that has another id here."""
        named = isinstance(params, dict) and "sessionId" in params
        tell_clients(self, method, {**params, "sessionId": self.id} if named else params)

    def agent_paced(self) -> Awaitable[None] | None:
        return self._live.durable() if self._live.ahead else None

    async def begun(self) -> None:
        """Wait for the client that begins the session, if it does not follow the session yet."""
        if self.start is not None:
            await self.start.followed.wait()

    def agent_left(self, reason: str) -> None:
        if self.parent is None:
            logger.warning("the agent of session %s is gone: %s", self.id, reason)
        self.standing.fail()
        self.standing.part()
        self.sending.lost()
        cancelled = self._cancelling  # then it ended by that, however it did
        self.attempt(lambda: self.emit(self.fold.interrupt(attended=True, cancelled=cancelled)))
        self._idle()

    # --- what it means -----------------------------------------------------------------------------

    def tell(
        self,
        update: v2.SessionUpdate,
        original: bytes | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Something is known of the session that the agent said; an agent of v1 may have written it so, and
        this may have stood beside it."""
        self.sending.named()
        here = self.children.update(update)
        here = self.sending.promised.about(here)
        if here is not update:
            update, original = here, None
        if isinstance(update, v2.UserMessage | v2.UserMessageChunk):
            if self.sending.holds(update, original, meta):
                return
        elif self.sending.unsettled:
            self.sending.before(update)
        if is_state(update):
            self._state(update)
            return
        self.show(update, original, meta)

    def show(
        self, update: v2.SessionUpdate, original: bytes | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        """Journal an update that is no state."""
        match update:
            case Unknown() if str(update.get("sessionUpdate")).startswith("_antiphon_") and original is None:
                return  # of the agent's own queue: this session has another
            case v2.UserMessage():
                update, original = _renamed(update, self.sending.shown(update), original)
            case v2.UserMessageChunk():
                update, original = _renamed(update, self.sending.shown_in_part(update), original)
            case v2.SessionInfoUpdate() if update.title is not UNSET and is_title_chosen(self.fold):
                update, original = structs.replace(update, title=UNSET), None  # SESS-57
        if original is None and meta is None:
            self._live.emit((Updated.of(update),))
        else:
            self._live.emit((Translated.told(update, origin=original, meta=meta),))
        if isinstance(update, v2.SubagentUpdate):
            self.children.told(update)

    def _state(self, update: Any) -> None:
        if isinstance(update, v2.SessionStateUpdate) and update.state is v2.State.REQUIRES_ACTION:
            update = structs.replace(update, meta=self.name_in(update.meta))
        was = self.fold.turn
        idle = isinstance(update, v2.StateUpdate) and update.state is v2.State.IDLE
        if idle:
            self.sending.turn_ends(update)
        if self.fold.turns.due and idle and getattr(update, "stop_reason", None) is not None:
            self.emit(self.fold.update(BEGUN))  # an agent that only says when it is done
            was = self.fold.turn
        error, upstream = getattr(update, "error", None), self.standing.upstream
        if error is not None and error.code == AuthRequired.code and upstream is not None:
            upstream.wants_login = True  # AUTH-21
        self.emit(self.fold.update(update))
        if was is not None and self.fold.turn is None:
            if not (self.fold.turns.last is not None and self.fold.turns.last.interrupted):
                self.standing.recover()
            self._idle()
        elif was is None and self.fold.turn is not None:
            self.attempt(self.turn_opened)
            self.attempt(self.advance)  # what steers waits for a turn to join

    def _idle(self) -> None:
        self._cancelling = False
        self._ended.set()
        self.attempt(self.advance)


def _renamed(update: Any, shown: Any, original: bytes | None) -> tuple[Any, bytes | None]:
    """A user message as clients see it, and as a v1 agent wrote it with the id that they see."""
    if original is not None and shown.message_id != update.message_id:
        original = renamed_original(original, shown.message_id)
    return shown, original
