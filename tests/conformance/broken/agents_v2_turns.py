"""Agents that break rules of v2 turns and prompts."""

from __future__ import annotations

from antiphon.conformance.prompts import Prompts
from tests.conformance.broken.defect import Defects
from tests.conformance.good import params as check
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import INTERNAL_ERROR, INVALID_PARAMS, NOT_FOUND, Json, Refused, Request
from tests.conformance.good.session import Prompt, Session, Turn

defects = Defects()
FAILURE = Prompts(failure="Fail")
PLAIN = Prompts().plain


@defects.add("PROMPT-V2-02", versions=(2,))
class AnswersThePromptAtTheEnd(GoodAgent):
    """The answer to a prompt waits for the end of the work."""

    inserted = ""

    def answer_inserted(self, turn: Turn, id: str) -> None:
        self.inserted = id

    def end_turn(self, turn: Turn) -> None:
        super().end_turn(turn)
        super().answer_inserted(turn, self.inserted)


@defects.add("PROMPT-V2-03", versions=(2,))
class AnswersThePromptWithNothing(GoodAgent):
    """The answer to a prompt is empty."""

    def answer_inserted(self, turn: Turn, id: str) -> None:
        self.answer(turn.prompt.request_id, {})


@defects.add("PROMPT-V2-03", versions=(2,))
class AnswersThePromptWithAStopReason(GoodAgent):
    """The answer to a prompt has a stop reason."""

    def answer_inserted(self, turn: Turn, id: str) -> None:
        self.answer(turn.prompt.request_id, {"messageId": id, "stopReason": "end_turn"})


@defects.add("PROMPT-V2-04", versions=(2,))
class DoesNotShowThePrompt(GoodAgent):
    """No user message repeats the prompt."""

    def show_prompt(self, turn: Turn, id: str) -> None:
        pass


@defects.add("PROMPT-V2-04", versions=(2,))
class ShowsThePromptUnderAnotherId(GoodAgent):
    """The user message has another id than the answer to the prompt."""

    def show_prompt(self, turn: Turn, id: str) -> None:
        super().show_prompt(turn, f"{id}-shown")


@defects.add("PROMPT-V2-06", versions=(2,))
class ShowsThePromptAfterTheIdle(GoodAgent):
    """The user message of a short turn comes after its idle state."""

    late: tuple[Turn, str] | None = None

    def show_prompt(self, turn: Turn, id: str) -> None:
        if turn.prompt.text == PLAIN:
            self.late = turn, id
        else:
            super().show_prompt(turn, id)

    def end_completed(self, turn: Turn) -> None:
        super().end_completed(turn)
        if self.late is not None and self.late[0] is turn:
            super().show_prompt(*self.late)


@defects.add("PROMPT-V2-07", versions=(2,))
class TakesTheIdOfTheClient(GoodAgent):
    """A `messageId` in the prompt becomes the id of the message."""

    given: str | None = None

    def prompt(self, request: Request) -> Json | None:
        self.given = request.params.get("messageId")
        return super().prompt(request)

    def next_message_id(self, session: Session) -> str:
        given, self.given = self.given, None
        return given or super().next_message_id(session)


@defects.add("PROMPT-V2-08", versions=(2,))
class GivesTwoPromptsOneId(GoodAgent):
    """Every prompt that comes to an idle session has the same message id."""

    def begin_turn(self, prompt: Prompt) -> None:
        self.inserting = True
        super().begin_turn(prompt)

    def next_message_id(self, session: Session) -> str:
        inserting, self.inserting = self.inserting and not session.held, False
        return "msg_prompt" if inserting else super().next_message_id(session)


@defects.add("PROMPT-V2-09", versions=(2,))
class AcceptsAPromptThatItCannotRead(GoodAgent):
    """A prompt that has nothing but a block of an unknown type is accepted."""

    def prompt_content(self, request: Request) -> list[Json]:
        if all(block["type"].startswith("_") for block in request.params["prompt"]):
            return [{"type": "text", "text": "(unknown)"}]
        return super().prompt_content(request)


@defects.add("CONT-08", versions=(2,))
class AcceptsUnknownContent(GoodAgent):
    """A block of an unknown type is left out of a prompt, and the rest accepted."""

    def prompt_content(self, request: Request) -> list[Json]:
        blocks = [block for block in request.params["prompt"] if not block["type"].startswith("_")]
        return check.content({"prompt": blocks}, self.version)


@defects.add("CONT-01", versions=(2,))
class RefusesLinks(GoodAgent):
    """A prompt with a resource link is refused."""

    def prompt_content(self, request: Request) -> list[Json]:
        if any(block["type"] == "resource_link" for block in request.params["prompt"]):
            raise Refused(INVALID_PARAMS, "links are not supported")
        return super().prompt_content(request)


@defects.add("PROMPT-V2-10", versions=(2,))
class NeverSaysThatItRuns(GoodAgent):
    """A short turn has no running state."""

    def begin_work(self, turn: Turn) -> None:
        if turn.prompt.text != PLAIN:
            super().begin_work(turn)


@defects.add("PROMPT-V2-10", versions=(2,))
class RunsAfterItsFirstChunk(GoodAgent):
    """The running state comes after the first chunk of the work."""

    def begin_work(self, turn: Turn) -> None:
        self.starting = turn

    def send_chunk(self, session: Session, kind: str, id: str, block: Json) -> None:
        super().send_chunk(session, kind, id, block)
        self.run(session)

    def send_tool_call(self, session: Session, kind: str, id: str, fields: Json) -> None:
        self.run(session)
        super().send_tool_call(session, kind, id, fields)

    def run(self, session: Session) -> None:
        starting, self.starting = self.starting, None
        if starting is not None:
            super().begin_work(starting)

    starting: Turn | None = None


@defects.add("PROMPT-V2-11", versions=(2,))
class NeverIdleAfterATool(GoodAgent):
    """A turn that reads a file never becomes idle."""

    def end_completed(self, turn: Turn) -> None:
        if "Read the file" not in turn.prompt.text:
            super().end_completed(turn)


@defects.add("PROMPT-V2-11", versions=(2,))
class IdleBeforeItsLastChunk(GoodAgent):
    """The last chunk of a short turn comes after the idle state."""

    def end_completed(self, turn: Turn) -> None:
        super().end_completed(turn)
        last = next(entry for entry in reversed(turn.session.history) if "message" in entry)
        if turn.prompt.text == PLAIN:
            block = {"type": "text", "text": " The end."}
            turn.session.add_block(last["message"], last["id"], block)
            self.send_chunk(turn.session, last["message"], last["id"], block)


@defects.add("PROMPT-V2-12", versions=(2,))
class IdleWithoutAStopReason(GoodAgent):
    """The idle state that ends the work has no stop reason."""

    def end_completed(self, turn: Turn) -> None:
        self.state_update(turn.session, "idle")


@defects.add("PROMPT-V2-15", versions=(2,))
class InventsAStopReason(GoodAgent):
    """The stop reason is none of the known ones."""

    def end_completed(self, turn: Turn) -> None:
        self.report_end(turn, "finished")


@defects.add("PROMPT-V2-16", versions=(2,), prompts=FAILURE)
class FailsWithoutAnError(GoodAgent):
    """The stop reason `error` has no error object."""

    def end_failed(self, turn: Turn) -> None:
        self.report_end(turn, "error")


@defects.add("PROMPT-V2-17", versions=(2,), prompts=FAILURE)
class RefusesAPromptThatItInserted(GoodAgent):
    """A prompt whose work fails is answered with an error, after it was shown."""

    def answer_inserted(self, turn: Turn, id: str) -> None:
        if "Fail" not in turn.prompt.text:
            super().answer_inserted(turn, id)

    def end_failed(self, turn: Turn) -> None:
        super().end_failed(turn)
        self.refuse(turn.prompt.request_id, INTERNAL_ERROR, "the work failed")


@defects.add("PROMPT-V2-54", versions=(2,))
class IsNotReadyWhenIdle(GoodAgent):
    """A session takes only one prompt."""

    def prompt(self, request: Request) -> Json | None:
        if self.opened_session(request).history:
            raise Refused(INTERNAL_ERROR, "the session is used up")
        return super().prompt(request)


@defects.add("TC-11", versions=(2,))
class SendsTurnCompleteInV2(GoodAgent):
    """`turn_complete` is sent on a v2 connection."""

    def report_end(self, turn: Turn, reason: str) -> None:
        self.turn_complete(turn.prompt, reason)
        super().report_end(turn, reason)


@defects.add("RPC-25", versions=(2,))
class DoesNotNameTheUnknownSession(GoodAgent):
    """The error for an unknown session lacks its id."""

    def unknown_session(self, id: str) -> Refused:
        return Refused(NOT_FOUND, "the session does not exist")


@defects.add("RPC-25", versions=(2,))
class CallsAnUnknownSessionInvalid(GoodAgent):
    """An unknown session is answered with -32602."""

    def unknown_session(self, id: str) -> Refused:
        return Refused(INVALID_PARAMS, "the session does not exist", {"sessionId": id})
