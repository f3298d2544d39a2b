"""Agents that break rules of v2 about permissions, tool calls and background work."""

from __future__ import annotations

from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import METHOD_NOT_FOUND, Json, Refused, Request
from tests.conformance.good.session import Session, Turn

defects = Defects()


def outcome(result: Any) -> Any:
    """The outcome of a permission answer."""
    return result["outcome"]


@defects.add("PERM-V2-06", versions=(2,))
class AcceptsAnOptionItDidNotOffer(GoodAgent):
    """A selected option that was never offered counts as approval."""

    def allows(self, result: Any) -> bool:
        return bool(outcome(result)["outcome"] == "selected" and outcome(result)["optionId"] != "reject")


@defects.add("PERM-V2-07", versions=(2,))
class AcceptsAnUnknownOutcome(GoodAgent):
    """An unknown outcome with an allowing option counts as approval."""

    def allows(self, result: Any) -> bool:
        return bool(outcome(result).get("optionId") == "allow")


@defects.add("PERM-V2-08", versions=(2,))
class ProceedsAfterACancelledQuestion(GoodAgent):
    """The outcome `cancelled` counts as approval."""

    def allows(self, result: Any) -> bool:
        return outcome(result).get("outcome") == "cancelled" or super().allows(result)


@defects.add("PERM-V2-11", versions=(2,))
class NeverRequiresAction(GoodAgent):
    """The state stays `running` while a permission blocks the work."""

    def state_update(self, session: Session, state: str, **fields: Any) -> None:
        super().state_update(session, "running" if state == "requires_action" else state, **fields)


@defects.add("PROMPT-V2-24", versions=(2,))
class StaysInRequiresAction(GoodAgent):
    """The work goes on after a permission, and the state stays `requires_action`."""

    def state_update(self, session: Session, state: str, **fields: Any) -> None:
        if (session.state, state) != ("requires_action", "running"):
            super().state_update(session, state, **fields)


# --- tool calls ---


@defects.add("TOOL-V1-06", versions=(2,))
class ReusesToolCallIds(GoodAgent):
    """Every tool call of a session has the same id."""

    def next_tool_call_id(self, session: Session) -> str:
        return "call_1"


@defects.add("TOOL-V2-04", versions=(2,))
class GivesTheTitleLate(GoodAgent):
    """The first report of a tool call has no title."""

    def create_tool_call(self, session: Session, id: str, call: Json) -> None:
        super().create_tool_call(session, id, {key: value for key, value in call.items() if key != "title"})
        self.update_tool_call(session, id, title=call["title"])


@defects.add("TOOL-V2-14", versions=(2,))
class DoesNotKnowToCancelToolCalls(GoodAgent):
    """`tool_call/cancel` of an unknown tool call fails with -32601."""

    def cancel_tool_call(self, request: Request) -> Json | None:
        if request.params["toolCallId"] not in self.opened_session(request).watched:
            raise Refused(METHOD_NOT_FOUND, "the method does not exist")
        return super().cancel_tool_call(request)


@defects.add("TOOL-V2-14", versions=(2,))
class CancelsFinishedToolCalls(GoodAgent):
    """`tool_call/cancel` of a tool call that has ended succeeds."""

    def cancel_tool_call(self, request: Request) -> Json | None:
        session, id = self.opened_session(request), request.params["toolCallId"]
        ended = id not in session.watched and any(entry["id"] == id for entry in session.history)
        return {} if ended else super().cancel_tool_call(request)


@defects.add("TERMV2-11", versions=(2,))
class CancelsUnknownTerminals(GoodAgent):
    """`terminal/cancel` of an unknown terminal succeeds."""

    def cancel_terminal(self, request: Request) -> Json | None:
        return {}


@defects.add("TOOL-V2-13", versions=(2,))
class AcceptsACancelAndDoesNothing(GoodAgent):
    """A tool call goes on after `tool_call/cancel` was accepted."""

    def cancel_tool_call(self, request: Request) -> Json | None:
        session = self.opened_session(request)
        known = request.params["toolCallId"] in session.watched
        return {} if known else super().cancel_tool_call(request)


@defects.add("TOOL-V2-15", versions=(2,))
class CancelsTheWholeTurn(GoodAgent):
    """`tool_call/cancel` cancels the foreground work, too."""

    def cancel_tool_call(self, request: Request) -> Json | None:
        result = super().cancel_tool_call(request)
        self.cancel_session(self.opened_session(request))
        return result


@defects.add("TOOL-V2-11", versions=(2,))
class OffersToCancelFinishedToolCalls(GoodAgent):
    """A tool call that has ended still advertises `cancel`."""

    def update_tool_call(self, session: Session, id: str, **fields: Any) -> None:
        if fields.get("capabilities", True) is None:
            del fields["capabilities"]
        super().update_tool_call(session, id, **fields)


# --- background work ---


@defects.add("PROMPT-V2-45", versions=(2,))
class ForgetsTheBackgroundWhileItRuns(GoodAgent):
    """Running states do not list the background work."""

    def background(self, session: Session) -> Json:
        return {} if session.state == "running" else super().background(session)


@defects.add("PROMPT-V2-46", versions=(2,))
class ListsBackgroundWorkBeforeItIsAnnounced(GoodAgent):
    """A state lists a tool call before its first update."""

    def next_tool_call_id(self, session: Session) -> str:
        id = super().next_tool_call_id(session)
        if session.turn is not None and "Work in background" in session.turn.prompt.text:
            item = {"type": "tool_call", "toolCallId": id}
            update = {"sessionUpdate": "state_update", "state": "running", "background": [item]}
            self.send_update(session, update)
        return id


@defects.add("PROMPT-V2-46", versions=(2,))
class DropsBackgroundWorkBeforeItEnds(GoodAgent):
    """A state no longer lists a tool call whose final status follows."""

    def end_background(self, session: Session, call: str, status: str) -> None:
        update = {"sessionUpdate": "state_update", "state": session.state, "background": []}
        self.send_update(session, update)
        super().end_background(session, call, status)


@defects.add("PROMPT-V2-40", versions=(2,))
class CancelsTheBackground(GoodAgent):
    """A cancel ends the background work, too."""

    def cancel_turn(self, turn: Turn) -> None:
        super().cancel_turn(turn)
        self.stop_background(turn.session)
