"""Agents that break rules of v2 about cancelling, held prompts and closing."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.broken.defect import Defects
from tests.conformance.good.agent import GoodAgent, same_id
from tests.conformance.good.peer import INTERNAL_ERROR, Json, Request
from tests.conformance.good.session import Prompt, Session, Turn

defects = Defects()


@defects.add("PROMPT-V2-35", versions=(2,))
class EndsCancelledWorkAsCompleted(GoodAgent):
    """Cancelled work ends with `end_turn`."""

    def end_cancelled(self, turn: Turn) -> None:
        if turn.session.id in self.opened:
            self.report_end(turn, "end_turn")
        else:
            super().end_cancelled(turn)


@defects.add("PROMPT-V2-36", versions=(2,))
class EndsCancelledWorkAsFailed(GoodAgent):
    """Cancelled work ends with `error`, as the library raised it."""

    def end_cancelled(self, turn: Turn) -> None:
        if turn.session.id in self.opened:
            self.end_failed(turn)
        else:
            super().end_cancelled(turn)


@defects.add("PROMPT-V2-37", versions=(2,))
class SendsUpdatesAfterTheCancelledIdle(GoodAgent):
    """The last chunk of a cancelled message comes after the idle state."""

    def end_cancelled(self, turn: Turn) -> None:
        super().end_cancelled(turn)
        for entry in turn.session.history[-1:]:
            if turn.session.id in self.opened and entry.get("message") == "agent_message":
                block = {"type": "text", "text": "(cancelled)"}
                self.send_chunk(turn.session, "agent_message", entry["id"], block)


@defects.add("PROMPT-V2-37", versions=(2,))
class EndsToolCallsAfterTheCancelledIdle(GoodAgent):
    """The final status of a cancelled tool call comes after the idle state."""

    def finish_tool_calls(self, turn: Turn) -> None:
        if not turn.cancelled or turn.session.id not in self.opened:
            super().finish_tool_calls(turn)

    def end_cancelled(self, turn: Turn) -> None:
        super().end_cancelled(turn)
        super().finish_tool_calls(turn)


@defects.add("PROMPT-V2-42", versions=(2,))
class IgnoresACancelWithMetadata(GoodAgent):
    """A cancel with `_meta` has no effect."""

    def on_cancel(self, params: Json) -> None:
        if "_meta" not in params:
            super().on_cancel(params)


@defects.add("PROMPT-V2-34", versions=(2,))
class CancelsTheNextPrompt(GoodAgent):
    """A cancel without work cancels the work that begins next."""

    pending: bool = False

    def on_cancel(self, params: Json) -> None:
        session = self.store.find(params.get("sessionId"))
        self.pending = session is not None and session.turn is None
        super().on_cancel(params)

    def begin_turn(self, prompt: Prompt) -> None:
        super().begin_turn(prompt)
        if self.pending and prompt.session.turn is not None:
            self.pending = False
            self.cancel_turn(prompt.session.turn)


@defects.add("PROMPT-V2-34", versions=(2,))
class RefusesPromptsThatFollowACancel(GoodAgent):
    """A prompt that arrives while cancelled work ends is refused as cancelled, too."""

    def submit(self, prompt: Prompt) -> None:
        if prompt.session.turn is not None and prompt.session.turn.cancelled:
            self.refuse_cancelled(prompt)
        else:
            super().submit(prompt)


@defects.add("PROMPT-V2-41", versions=(2,))
class LeavesItsQuestionsOpen(GoodAgent):
    """The permission requests of cancelled work are not withdrawn."""

    def withdraw_question(self, id: int) -> None:
        if not self.closing:
            return
        super().withdraw_question(id)

    closing = False

    async def stop(self, session: Session) -> None:
        self.closing = True
        await super().stop(session)
        self.closing = False


@defects.add("PROMPT-V2-26", versions=(2,))
class GoesOnAfterALateAnswer(GoodAgent):
    """An answer to a withdrawn question begins the work again."""

    def receive_response(self, frame: Json) -> None:
        late = frame.get("id") not in self.questions
        super().receive_response(frame)
        outcome = (frame.get("result") or {}).get("outcome") or {}
        if late and outcome.get("outcome") == "selected":
            self.state_update([*self.opened.values()][-1], "running")


@defects.add("RPC-33", versions=(2,))
class TakesALateCancellationForACancel(GoodAgent):
    """`$/cancel_request` for an answered prompt cancels its work."""

    def on_cancel_request(self, params: Json) -> None:
        super().on_cancel_request(params)
        for session in self.opened.values():
            if session.turn and same_id(session.turn.prompt.request_id, params.get("requestId")):
                self.cancel_turn(session.turn)


# --- held prompts ---


@defects.add("PROMPT-V2-32", versions=(2,))
class InsertsTheLastHeldPromptFirst(GoodAgent):
    """Held prompts are inserted in reverse order."""

    def next_held(self, session: Session) -> Prompt:
        return session.held.pop()


@defects.add("PROMPT-V2-34", versions=(2,))
class RefusesHeldPromptsWithAnotherCode(GoodAgent):
    """A cancel fails held prompts with -32603."""

    def drop_held(self, prompt: Prompt) -> None:
        if prompt.session.id in self.opened:
            self.refuse(prompt.request_id, INTERNAL_ERROR, "the session was cancelled")
        else:
            super().drop_held(prompt)


@defects.add("PROMPT-V2-34", versions=(2,))
class KeepsHeldPrompts(GoodAgent):
    """A cancel leaves held prompts, and they are worked on afterwards."""

    def cancel_held(self, session: Session) -> None:
        if session.id not in self.opened:
            super().cancel_held(session)


@defects.add("QUEUE-03", versions=(2,))
class ShowsAPromptBeforeItIsInserted(GoodAgent):
    """A held prompt is shown at once, and fails all the same when it is cancelled."""

    def hold(self, prompt: Prompt) -> None:
        super().hold(prompt)
        self.show_prompt(Turn(prompt), self.next_message_id(prompt.session))


@defects.add("RPC-31", versions=(2,))
class ForgetsAWithdrawnPrompt(GoodAgent):
    """A held prompt that is withdrawn is never answered."""

    def on_cancel_request(self, params: Json) -> None:
        for session in self.opened.values():
            session.held = [
                prompt for prompt in session.held if not same_id(prompt.request_id, params.get("requestId"))
            ]


# --- closing ---


@defects.add("SESS-40", versions=(2,))
class ClosesWithoutAnIdle(GoodAgent):
    """Work that is closed ends without an idle state."""

    def end_cancelled(self, turn: Turn) -> None:
        if turn.session.id in self.opened:
            super().end_cancelled(turn)


@defects.add("SESS-40", versions=(2,))
class IsIdleAfterTheClose(GoodAgent):
    """The idle state of closed work follows the answer to the close."""

    closed: Turn | None = None

    def end_cancelled(self, turn: Turn) -> None:
        if turn.session.id in self.opened:
            super().end_cancelled(turn)
        else:
            self.closed = turn

    async def stop_then_answer(
        self, request: Request, session: Session, finish: Callable[[Session], None]
    ) -> None:
        await super().stop_then_answer(request, session, finish)
        if self.closed is not None:
            super().end_cancelled(self.closed)


@defects.add("SESS-42", versions=(2,))
class SpeaksOfAClosedSession(GoodAgent):
    """An update of the session follows the answer to the close."""

    async def stop_then_answer(
        self, request: Request, session: Session, finish: Callable[[Session], None]
    ) -> None:
        await super().stop_then_answer(request, session, finish)
        self.report_usage(session)


@defects.add("SESS-41", versions=(2,))
class ForgetsHeldPromptsWhenItCloses(GoodAgent):
    """The prompts that a close kept from being inserted are never answered."""

    def drop_held(self, prompt: Prompt) -> None:
        if prompt.session.id in self.opened:
            super().drop_held(prompt)


@defects.add("SESS-43", versions=(2,))
class LeavesItsQuestionsOpenWhenItCloses(GoodAgent):
    """A close does not withdraw open permission requests."""

    closing = False

    def withdraw_question(self, id: int) -> None:
        if not self.closing:
            super().withdraw_question(id)

    async def stop(self, session: Session) -> None:
        self.closing = True
        await super().stop(session)
        self.closing = False


@defects.add("SESS-44", versions=(2,))
class RefusesToCloseAnUnknownSession(GoodAgent):
    """Closing a session that is not open fails."""

    def close_session(self, request: Request) -> Json | None:
        self.opened_session(request)
        return super().close_session(request)


@defects.add("SESS-39", versions=(2,))
class WorksOnInTheBackgroundOfAClosedSession(GoodAgent):
    """A close leaves background work running."""

    async def stop(self, session: Session) -> None:
        background, session.background = session.background, {}
        watched, session.watched = session.watched, {}
        await super().stop(session)
        session.background, session.watched = background, watched
