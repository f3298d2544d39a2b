"""Agents that are broken in v1 turns: their order, their end, and how they are cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon.conformance.prompts import Prompts
from tests.conformance.broken.defect import Defects
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import Json, Request
from tests.conformance.good.session import Prompt, Session, Turn

defects = Defects()


# --- whole turns ---


@defects.add("PROMPT-V1-02", versions=(1,))
class GivesNoReason(GoodAgent):
    """The response to a prompt has no stop reason."""

    def answer(self, id: Any, result: Json) -> None:
        super().answer(id, {} if result.get("stopReason") == "end_turn" else result)


@defects.add("RPC-05", versions=(1,))
class AnswersEachCancel(GoodAgent):
    """A turn that is cancelled twice is answered twice."""

    def cancel_turn(self, turn: Turn) -> None:
        if turn.cancelled:
            self.end_cancelled(turn)
        super().cancel_turn(turn)


class LateAgent(GoodAgent):
    """A good agent that can say one thing more."""

    def say_late(self, session: Session) -> None:
        block = {"type": "text", "text": "Bye."}
        self.send_chunk(session, "agent_message", self.next_message_id(session), block)


@defects.add("PROMPT-V1-03", versions=(1,))
class AnswersBeforeItsLastChunk(LateAgent):
    """The last chunk comes after the response."""

    def end_completed(self, turn: Turn) -> None:
        super().end_completed(turn)
        self.say_late(turn.session)


@defects.add("PROMPT-V1-03", versions=(1,))
class SpeaksAfterACancel(LateAgent):
    """The last chunk of a cancelled turn comes after the response."""

    def end_cancelled(self, turn: Turn) -> None:
        super().end_cancelled(turn)
        self.say_late(turn.session)


@defects.add("PROMPT-V1-05", versions=(1,))
class InventsAReason(GoodAgent):
    """A turn ends with a stop reason that does not exist."""

    def end_completed(self, turn: Turn) -> None:
        self.report_end(turn, "finished")


@defects.add("PROMPT-V1-06", versions=(1,))
class CallsEveryEndCancelled(GoodAgent):
    """A turn that nobody cancelled ends as cancelled."""

    def end_completed(self, turn: Turn) -> None:
        self.end_cancelled(turn)


@defects.add("PROMPT-V1-06", versions=(1,))
class RemembersALateCancel(GoodAgent):
    """A cancel between two turns cancels the second."""

    cancelled_early = False

    def cancel_session(self, session: Session) -> None:
        self.cancelled_early = session.turn is None
        super().cancel_session(session)

    def submit(self, prompt: Prompt) -> None:
        if self.cancelled_early:
            self.answer_prompt(prompt, "cancelled")
        else:
            super().submit(prompt)


@defects.add("PROMPT-V1-09", versions=(1,))
class TellsOfToolsAfterwards(GoodAgent):
    """A tool call is first reported when it has ended."""

    def send_tool_call(self, session: Session, kind: str, id: str, fields: Json) -> None:
        if fields.get("status") in ("completed", "failed"):
            super().send_tool_call(session, "tool_call", id, session.put_call(id, {}))


@defects.add("PROMPT-V1-09", versions=(1,))
class LeavesToolCallsOpen(GoodAgent):
    """A tool call has no final status when its turn ends."""

    def send_tool_call(self, session: Session, kind: str, id: str, fields: Json) -> None:
        kept = {key: value for key, value in fields.items() if key != "status" or value == "pending"}
        super().send_tool_call(session, kind, id, kept)


@defects.add("PROMPT-V1-18", versions=(1,))
class PromptsSessionsThatDoNotExist(GoodAgent):
    """A prompt of an unknown session succeeds."""

    def prompt(self, request: Request) -> Json | None:
        if request.params.get("sessionId") not in self.opened:
            return {"stopReason": "refusal"}
        return super().prompt(request)


@defects.add("PROMPT-V1-18", versions=(1,))
class RunsAnything(GoodAgent):
    """A prompt without readable content runs a turn."""

    def prompt_content(self, request: Request) -> list[Json]:
        content = request.params.get("prompt")
        return content if isinstance(content, list) else [{"type": "text", "text": "Hello."}]


@defects.add("PROMPT-V1-18", versions=(1,), prompts=Prompts(failure="Fail."))
class HidesItsFailures(GoodAgent):
    """A turn that failed ends as if it had succeeded."""

    def end_failed(self, turn: Turn) -> None:
        self.end_completed(turn)


@defects.add("PROMPT-V1-22", versions=(1,))
class EchoesThePrompt(GoodAgent):
    """The prompt is sent back in the running turn."""

    def begin_work(self, turn: Turn) -> None:
        id = self.next_message_id(turn.session)
        for block in turn.prompt.content:
            self.send_chunk(turn.session, "user_message", id, block)


# --- cancelling ---


@defects.add("PROMPT-V1-14", versions=(1,))
class CallsACancelledTurnCompleted(GoodAgent):
    """A cancelled turn ends with `end_turn`."""

    steps = 100

    def end_cancelled(self, turn: Turn) -> None:
        self.end_completed(turn)


@defects.add("PROMPT-V1-14", versions=(1,))
class IgnoresCancel(GoodAgent):
    """A cancelled turn goes on to its end."""

    steps = 30

    def on_cancel(self, params: Json) -> None:
        pass


@defects.add("PROMPT-V1-14", versions=(1,))
class LosesAnEarlyCancel(GoodAgent):
    """A cancel before the first update is lost."""

    steps = 30

    def cancel_turn(self, turn: Turn) -> None:
        if turn.session.history[-1].get("message") != "user_message":
            super().cancel_turn(turn)


@defects.add("PROMPT-V1-14", versions=(1,))
class CannotStopTools(GoodAgent):
    """A cancel during a tool call is lost."""

    steps = 30

    def cancel_turn(self, turn: Turn) -> None:
        if not turn.session.unfinished_calls() or turn.questions:
            super().cancel_turn(turn)


@defects.add("PROMPT-V1-14", versions=(1,))
class GoesOnAfterACancelledPermission(GoodAgent):
    """A turn that is cancelled while it asks for permission goes on without it."""

    def cancel_turn(self, turn: Turn) -> None:
        if not turn.questions:
            super().cancel_turn(turn)


@defects.add("PROMPT-V1-15", versions=(1,))
class CallsACancelAnError(GoodAgent):
    """A cancelled turn is answered with an error."""

    def end_cancelled(self, turn: Turn) -> None:
        self.refuse_cancelled(turn.prompt)


@defects.add("PROMPT-V1-15", versions=(1,), prompts=Prompts(slow="Raise when cancelled"))
class PassesOnWhatLibrariesRaise(GoodAgent):
    """An exception that a library raises on a cancel becomes an error."""

    def end_turn(self, turn: Turn) -> None:
        turn.cancelled = turn.cancelled and turn.failure is None
        super().end_turn(turn)


@defects.add("PROMPT-V1-02", versions=(1,))
class WaitsForAYes(GoodAgent):
    """A turn whose permission was rejected never ends."""

    rejected = False

    def allows(self, result: Any) -> bool:
        self.rejected = result == {"outcome": {"outcome": "selected", "optionId": "reject"}}
        return super().allows(result)

    async def give_up(self, turn: Turn, call: str) -> None:
        if self.rejected:
            await asyncio.Event().wait()
        await super().give_up(turn, call)


# --- turn_complete ---


@defects.add("TC-01", versions=(1,))
class CompletesWithoutAReason(GoodAgent):
    """`turn_complete` has no stop reason."""

    def turn_complete(self, prompt: Prompt, reason: str) -> None:
        update = {"sessionUpdate": "turn_complete", "promptRequestId": self.printed_id(prompt)}
        self.send_update(prompt.session, update)


@defects.add("TC-02", versions=(1,))
class CompletesTwice(GoodAgent):
    """A turn has two `turn_complete`."""

    def turn_complete(self, prompt: Prompt, reason: str) -> None:
        super().turn_complete(prompt, reason)
        super().turn_complete(prompt, reason)


@defects.add("TC-02", versions=(1,))
class ForgetsToCompleteCancelledTurns(GoodAgent):
    """A cancelled turn has no `turn_complete`."""

    def turn_complete(self, prompt: Prompt, reason: str) -> None:
        if reason != "cancelled":
            super().turn_complete(prompt, reason)


@defects.add("TC-03", versions=(1,))
class CompletesTooEarly(LateAgent):
    """A chunk comes between `turn_complete` and the response."""

    def turn_complete(self, prompt: Prompt, reason: str) -> None:
        super().turn_complete(prompt, reason)
        self.say_late(prompt.session)


@defects.add("TC-04", versions=(1,))
class CountsItsTurns(GoodAgent):
    """`promptRequestId` is a number of the agent's own."""

    turns = 0

    def printed_id(self, prompt: Prompt) -> str:
        self.turns += 1
        return f"turn-{self.turns}"


@defects.add("TC-04", versions=(1,))
class KeepsTheNumber(GoodAgent):
    """`promptRequestId` is a number if the id of the prompt is one."""

    def printed_id(self, prompt: Prompt) -> Any:
        return prompt.request_id


@defects.add("TC-05", versions=(1,))
class DoesNotAdvertiseItsCompletions(GoodAgent):
    """`turn_complete` is sent and not advertised."""

    def capabilities(self) -> Json:
        offered = super().capabilities()
        offered.get("sessionCapabilities", {}).pop("turnComplete", None)
        return offered


@defects.add("TC-08", versions=(1,))
class CompletesAfterTheResponse(GoodAgent):
    """`turn_complete` comes after the response."""

    def answer_prompt(self, prompt: Prompt, reason: str) -> None:
        self.answer(prompt.request_id, {"stopReason": reason})
        if self.sends_turn_complete:
            self.turn_complete(prompt, reason)


@defects.add("TC-09", versions=(1,))
class GivesTwoReasons(GoodAgent):
    """`turn_complete` has another stop reason than the response."""

    def turn_complete(self, prompt: Prompt, reason: str) -> None:
        super().turn_complete(prompt, "end_turn")


@defects.add("TC-09", versions=(1,), prompts=Prompts(failure="Fail."))
class CompletesFailures(GoodAgent):
    """The `turn_complete` of a turn that ends with an error has a stop reason."""

    def end_failed(self, turn: Turn) -> None:
        if self.sends_turn_complete:
            self.turn_complete(turn.prompt, "end_turn")
        super().end_failed(turn)


@defects.add("TC-10", versions=(1,))
class CompletesForAll(GoodAgent):
    """`turn_complete` is sent to clients that did not ask for it."""

    sends_turn_complete = True
