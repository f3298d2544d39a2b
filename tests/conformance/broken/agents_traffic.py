"""Agents whose frames fit the schema and contradict each other, or use what the client did not offer."""

from __future__ import annotations

from typing import Any, ClassVar

from antiphon.conformance.prompts import Prompts
from tests.conformance.broken.agents_shapes import SendsMore, tool_call
from tests.conformance.broken.defect import Defects
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import Json
from tests.conformance.good.session import Session, Turn

defects = Defects()
FORM: Json = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


class SendsMany(GoodAgent):
    """An agent that sends more updates in an ordinary turn."""

    def many(self) -> list[Json]:
        return []

    def report_usage(self, session: Session) -> None:
        super().report_usage(session)
        for update in self.many():
            self.send_update(session, update)


class AsksMore(GoodAgent):
    """An agent that sends a request of its own when work begins, and does not wait for the answer."""

    method = ""
    params: ClassVar[Json] = {}

    def begin_work(self, turn: Turn) -> None:
        super().begin_work(turn)
        params = {"sessionId": turn.session.id, **self.params}
        self.send({"id": "more", "method": self.method, "params": params})


# --- methods and capabilities ---


@defects.add("EXT-12", versions=(1, 2))
class InventsAMethod(AsksMore):
    """A request of the agent's own does not begin with `_`."""

    method = "session/poll"


@defects.add("EXT-12", versions=(1, 2))
class PromptsTheClient(AsksMore):
    """The agent sends a prompt, which only clients do."""

    method, params = "session/prompt", {"prompt": []}


@defects.add("FS-01", versions=(1,))
@defects.add("FS-05", versions=(2,))
class ReadsFiles(AsksMore):
    """The agent reads a file of a client that did not offer it."""

    method, params = "fs/read_text_file", {"path": "/README.md"}


@defects.add("TERMV1-01", versions=(1,))
class RunsTerminals(AsksMore):
    """The agent runs a terminal of a client that did not offer it."""

    method, params = "terminal/create", {"command": "ls"}


@defects.add("ELIC-02", versions=(1, 2))
class Elicits(AsksMore):
    """The agent shows a form to a client that did not offer it."""

    method, params = "elicitation/create", FORM


@defects.add("NOTE-01", versions=(1,))
class NotifiesV1Clients(SendsMore):
    """A notice goes to a v1 client that did not ask for notices."""

    def more(self) -> Json:
        return {"sessionUpdate": "notice", "severity": "info", "title": "Done"}


@defects.add("COMP-01", versions=(1,))
class CompactsForV1Clients(SendsMore):
    """A compaction is reported to a v1 client that did not ask for it."""

    def more(self) -> Json:
        return {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"}


@defects.add("PLAN-V1-03", versions=(1,))
class PlansForV1Clients(SendsMore):
    """A v1 client that did not ask for it gets `plan_update`."""

    def more(self) -> Json:
        return {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": []}}


@defects.add("CONF-V1-06", versions=(1,))
class OffersBooleans(GoodAgent):
    """Boolean options go to a v1 client that does not know them."""

    def offers_booleans(self) -> bool:
        return True


# --- messages and tool calls ---


@defects.add("MSG-07", versions=(1,))
class SharesMessageIds(GoodAgent):
    """A thought and the message after it have the same id."""

    def next_message_id(self, session: Session) -> str:
        return f"msg_{len(session.history) // 100}"


@defects.add("TOOL-V1-06", versions=(1,))
class ReusesToolCallIds(SendsMany):
    """A tool call has the id of one that has ended."""

    def many(self) -> list[Json]:
        return [tool_call(1)] * 2


@defects.add("TOOL-V2-08", versions=(2,))
class WakesToolCalls(SendsMany):
    """A tool call that has ended is in progress again."""

    def many(self) -> list[Json]:
        call = tool_call(2)
        return [call, {key: call[key] for key in ("sessionUpdate", "toolCallId")} | {"status": "in_progress"}]


@defects.add("TOOL-V2-11", versions=(2,))
class OffersToCancelThePast(SendsMore):
    """A tool call that has ended can still be cancelled."""

    def more(self) -> Json:
        return tool_call(2, capabilities={"cancel": {}})


@defects.add("TERMV2-12", versions=(2,))
class OffersToCancelAnExit(SendsMore):
    """A terminal that has exited can still be cancelled."""

    def more(self) -> Json:
        terminal = {"sessionUpdate": "terminal_update", "terminalId": "t", "command": "ls"}
        return terminal | {"exitStatus": {"exitCode": 0}, "capabilities": {"cancel": {}}}


@defects.add("TERMV2-08", versions=(2,))
class HidesTheCommand(SendsMore):
    """The first update of a terminal has no command."""

    def more(self) -> Json:
        return {"sessionUpdate": "terminal_update", "terminalId": "t", "output": {"data": "aGk="}}


@defects.add("TOOL-V1-05", versions=(1,))
class ShowsAnUnknownTerminal(SendsMore):
    """A v1 tool call shows a terminal that the client did not make."""

    def more(self) -> Json:
        return tool_call(1, content=[{"type": "terminal", "terminalId": "term_1"}])


@defects.add("DIFF-05", versions=(2,))
class SendsRelativePatches(SendsMore):
    """The paths of a patch begin with `a/` and `b/`."""

    def more(self) -> Json:
        text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
        changes = [{"operation": "modify", "path": "/x"}]
        patch = {"format": "git_patch", "text": text}
        return tool_call(2, content=[{"type": "diff", "changes": changes, "patch": patch}])


# --- options and commands ---


@defects.add("CONF-02", versions=(1,))
@defects.add("CONF-V2-04", versions=(2,))
class HasAnUnofferedValue(GoodAgent):
    """The current value of an option is not one of its values."""

    def config_options(self, session: Session) -> list[Json]:
        options = super().config_options(session)
        options[1] |= {"currentValue": "huge"}
        return options


@defects.add("CONF-V2-04", versions=(2,))
class OffersAValueTwice(GoodAgent):
    """A value of an option is listed twice."""

    def config_options(self, session: Session) -> list[Json]:
        options = super().config_options(session)
        options[1]["options"].append(options[1]["options"][0])
        return options


@defects.add("CMD-V2-01", versions=(2,))
class NamesCommandsWithASlash(GoodAgent):
    """The name of a command begins with a slash."""

    def commands(self) -> list[Json]:
        return [command | {"name": f"/{command['name']}"} for command in super().commands()]


@defects.add("PERM-V2-01", versions=(2,))
class OffersTheSameOptionTwice(GoodAgent):
    """Two options of a permission request have the same id."""

    def permission(self, turn: Turn, call: str, title: str) -> Json:
        params = super().permission(turn, call, title)
        return params | {"options": [option | {"optionId": "allow"} for option in params["options"]]}


# --- elicitations: clients that offer them are asked badly ---


class ElicitsBadly(GoodAgent):
    """An agent that elicits from clients that offer it, and does not wait for the answer."""

    def elicitations(self, turn: Turn) -> list[Json]:
        return []

    def begin_work(self, turn: Turn) -> None:
        super().begin_work(turn)
        if self.client_object("elicitation"):
            for number, params in enumerate(self.elicitations(turn)):
                self.send({"id": f"ask-{number}", "method": "elicitation/create", "params": params})


@defects.add("ELIC-04", versions=(1, 2))
class ElicitsForNobody(ElicitsBadly):
    """An elicitation belongs neither to a session nor to a request."""

    def elicitations(self, turn: Turn) -> list[Json]:
        return [FORM]


@defects.add("ELIC-05", versions=(1, 2))
class ElicitsNothing(ElicitsBadly):
    """A form has no schema."""

    def elicitations(self, turn: Turn) -> list[Json]:
        return [{"mode": "form", "message": "Who?", "sessionId": turn.session.id}]


@defects.add("ELIC-06", versions=(1, 2))
class ElicitsWithoutAUrl(ElicitsBadly):
    """An elicitation by URL has no URL."""

    def elicitations(self, turn: Turn) -> list[Json]:
        return [{"mode": "url", "message": "Go", "elicitationId": "e", "sessionId": turn.session.id}]


@defects.add("ELIC-21", versions=(2,))
class ElicitsWithoutAChoice(ElicitsBadly):
    """A choice of a form has no values."""

    def elicitations(self, turn: Turn) -> list[Json]:
        schema = {"type": "object", "properties": {"colour": {"type": "string", "enum": []}}}
        return [FORM | {"requestedSchema": schema, "sessionId": turn.session.id}]


# --- reports ---


@defects.add("PROMPT-V2-16", versions=(2,), prompts=Prompts(plain="Fail"))
class FailsWithoutAReason(GoodAgent):
    """Work that failed ends without an error object."""

    def state_update(self, session: Session, state: str, **fields: Any) -> None:
        fields.pop("error", None)
        super().state_update(session, state, **fields)


@defects.add("PROMPT-V2-45", versions=(2,))
class ForgetsTheBackground(GoodAgent):
    """Background work is reported only while the session is idle."""

    def background(self, session: Session) -> Json:
        return super().background(session) if session.state == "idle" else {}


@defects.add("USAGE-03", versions=(1, 2))
class GetsCheaper(SendsMany):
    """The cost of a session goes down."""

    def many(self) -> list[Json]:
        usage = {"sessionUpdate": "usage_update", "used": 1, "size": 2}
        return [usage | {"cost": {"amount": amount, "currency": "USD"}} for amount in (0.5, 0.25)]


@defects.add("USAGE-02", versions=(1, 2))
class HasNoWindow(SendsMore):
    """Usage is reported of a window without size."""

    def more(self) -> Json:
        return {"sessionUpdate": "usage_update", "used": 5, "size": 0}


@defects.add("COMP-05", versions=(2,))
class SummarizesTooEarly(SendsMore):
    """A compaction in progress has a summary."""

    def more(self) -> Json:
        summary = [{"type": "text", "text": "short"}]
        compaction = {"sessionUpdate": "compaction_update", "compactionId": "c"}
        return compaction | {"status": "in_progress", "summary": summary}


@defects.add("COMP-05", versions=(2,))
class CompactsTwice(SendsMany):
    """A compaction that has ended goes on."""

    def many(self) -> list[Json]:
        compaction = {"sessionUpdate": "compaction_update", "compactionId": "c"}
        return [compaction | {"status": status} for status in ("completed", "in_progress", "failed")]
