"""Agents whose objects do not fit the schema: missing fields, unknown values, other keys."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import Json
from tests.conformance.good.session import Session, Turn

defects = Defects()
numbers = count()


class ChangesUpdates(GoodAgent):
    """An agent that changes its updates of one kind."""

    kind = ""

    def change(self, update: Json) -> Json:
        return update

    def send_update(self, session: Session, update: Json) -> None:
        changed = self.change(update) if update["sessionUpdate"] == self.kind else update
        super().send_update(session, changed)


class SendsMore(GoodAgent):
    """An agent that sends one more update in an ordinary turn."""

    def more(self) -> Json:
        return {}

    def report_usage(self, session: Session) -> None:
        super().report_usage(session)
        self.send_update(session, self.more())


def tool_call(version: int, **fields: Any) -> Json:
    """Return the first report of a finished tool call."""
    kind = "tool_call" if version == 1 else "tool_call_update"
    id = f"call_{next(numbers)}"
    return {"sessionUpdate": kind, "toolCallId": id, "title": "More", "status": "completed"} | fields


# --- keys ---


@defects.add("EXT-03", versions=(1, 2))
class AddsAKey(ChangesUpdates):
    """A chunk has a key of the agent's own."""

    kind = "agent_message_chunk"

    def change(self, update: Json) -> Json:
        return update | {"tokens": 3}


@defects.add("EXT-04", versions=(1, 2))
class WritesMetaAsText(ChangesUpdates):
    """`_meta` is text."""

    kind = "agent_message_chunk"

    def change(self, update: Json) -> Json:
        return update | {"_meta": "draft"}


@defects.add("EXT-05", versions=(1, 2))
class InventsATraceFormat(ChangesUpdates):
    """The reserved key `traceparent` holds something else."""

    kind = "agent_message_chunk"

    def change(self, update: Json) -> Json:
        return update | {"_meta": {"traceparent": "my parent"}}


@defects.add("RPC-44", versions=(1, 2))
class WritesSnakeCase(ChangesUpdates):
    """The input of a tool call is called `raw_input`."""

    kind = "tool_call_update"

    def change(self, update: Json) -> Json:
        return update | {"raw_input": {"path": "README.md"}}


@defects.add("INFO-02", versions=(1, 2))
class MovesTheSession(ChangesUpdates):
    """The title of a session comes with its folder."""

    kind = "session_info_update"

    def change(self, update: Json) -> Json:
        return update | {"cwd": "/tmp"}


# --- messages and content ---


@defects.add("MSG-02", versions=(2,))
class ForgetsAMessageId(ChangesUpdates):
    """A chunk of a thought has no message id."""

    kind = "agent_thought_chunk"

    def change(self, update: Json) -> Json:
        return {key: value for key, value in update.items() if key != "messageId"}


@defects.add("CONT-03", versions=(1, 2))
class WritesTextAsContent(SendsMore):
    """A content block has no `text`."""

    def more(self) -> Json:
        return tool_call(self.version, content=[{"type": "content", "content": {"type": "text"}}])


@defects.add("CONT-04", versions=(2,))
class WritesBrokenBase64(SendsMore):
    """The data of a picture is not base64."""

    def more(self) -> Json:
        picture = {"type": "image", "mimeType": "image/png", "data": "not base64!"}
        return tool_call(self.version, content=[{"type": "content", "content": picture}])


@defects.add("EXT-06", versions=(2,))
class InventsAnUpdate(SendsMore):
    """An update of the agent's own does not begin with `_`."""

    def more(self) -> Json:
        return {"sessionUpdate": "mood_update", "mood": "good"}


@defects.add("EXT-10", versions=(1,))
class InventsAV1Update(SendsMore):
    """A v1 update is of a kind that does not exist."""

    def more(self) -> Json:
        return {"sessionUpdate": "state_update", "state": "idle"}


@defects.add("EXT-08", versions=(2,))
class SendsUsageAsText(ChangesUpdates):
    """The tokens of a usage update are text."""

    kind = "usage_update"

    def change(self, update: Json) -> Json:
        return update | {"used": "many"}


@defects.add("RPC-40", versions=(1,))
class SendsV1UsageAsText(SendsUsageAsText):
    """The tokens of a v1 usage update are text."""


# --- tool calls ---


@defects.add("TOOL-V1-01", versions=(1,))
class HidesTheTitle(SendsMore):
    """A v1 tool call is created without a title."""

    def more(self) -> Json:
        return {key: value for key, value in tool_call(1).items() if key != "title"}


@defects.add("TOOL-V1-02", versions=(1,))
class UpdatesNoToolCall(SendsMore):
    """A v1 update of a tool call does not say of which."""

    def more(self) -> Json:
        return {"sessionUpdate": "tool_call_update", "status": "completed"}


@defects.add("TOOL-V1-03", versions=(1,))
class CancelsToolCalls(SendsMore):
    """A v1 tool call has the status `cancelled`."""

    def more(self) -> Json:
        return tool_call(1, status="cancelled")


@defects.add("TOOL-V1-05", versions=(1,))
class SendsV2Diffs(SendsMore):
    """A v1 tool call shows a diff as v2 does."""

    def more(self) -> Json:
        return tool_call(1, content=[{"type": "diff", "path": "/a", "changes": []}])


@defects.add("TOOL-V1-07", versions=(1,))
class InventsAKind(SendsMore):
    """A v1 tool call has a kind that does not exist."""

    def more(self) -> Json:
        return tool_call(1, kind="_compile")


@defects.add("EXT-06", versions=(2,))
class InventsAStatus(SendsMore):
    """The status of a tool call is a word of the agent's own."""

    def more(self) -> Json:
        return tool_call(2, status="done")


@defects.add("RPC-43", versions=(1, 2))
class SendsRelativePaths(SendsMore):
    """The location of a tool call is a relative path."""

    def more(self) -> Json:
        return tool_call(self.version, locations=[{"path": "README.md"}])


@defects.add("RPC-43", versions=(2,))
class CountsLinesFromZero(SendsMore):
    """The location of a tool call is line 0."""

    def more(self) -> Json:
        return tool_call(2, locations=[{"path": "/README.md", "line": 0}])


@defects.add("TOOL-V2-01", versions=(2,))
class CreatesToolCalls(GoodAgent):
    """A v2 tool call begins with the v1 update `tool_call`."""

    def create_tool_call(self, session: Session, id: str, call: Json) -> None:
        super().create_tool_call(session, id, call)
        self.send_tool_call(session, "tool_call", id, call)


@defects.add("TOOL-V2-10", versions=(2,))
class OffersCancelWithTrue(SendsMore):
    """The capability to cancel a tool call is `true`."""

    def more(self) -> Json:
        return tool_call(2, status="in_progress", capabilities={"cancel": True})


@defects.add("TERMV2-01", versions=(2,))
class ShowsNoTerminal(SendsMore):
    """A tool call shows a terminal without its id."""

    def more(self) -> Json:
        return tool_call(2, content=[{"type": "terminal"}])


@defects.add("TERMV2-07", versions=(2,))
class SendsFlatTerminals(SendsMore):
    """A terminal has no rows."""

    def more(self) -> Json:
        size = {"cols": 80, "rows": 0}
        return {"sessionUpdate": "terminal_update", "terminalId": "t", "command": "ls", "size": size}


@defects.add("DIFF-01", versions=(2,))
class SendsAPatchAlone(SendsMore):
    """A diff has no changes."""

    def more(self) -> Json:
        return tool_call(2, content=[{"type": "diff", "patch": {"format": "git_patch", "text": ""}}])


@defects.add("DIFF-02", versions=(2,))
class MovesFromNowhere(SendsMore):
    """A moved file has no old path."""

    def more(self) -> Json:
        return tool_call(2, content=[{"type": "diff", "changes": [{"operation": "move", "path": "/b"}]}])


# --- permissions, plans, commands, options ---


@defects.add("PERM-V1-01", versions=(1,))
@defects.add("PERM-V2-01", versions=(2,))
class AsksForNothing(GoodAgent):
    """A permission request does not say what it is about."""

    def permission(self, turn: Turn, call: str, title: str) -> Json:
        params = super().permission(turn, call, title)
        return {key: value for key, value in params.items() if key not in ("toolCall", "title")}


@defects.add("PERM-02", versions=(1, 2))
class OffersNamelessOptions(GoodAgent):
    """The options of a permission request have no names."""

    def permission(self, turn: Turn, call: str, title: str) -> Json:
        params = super().permission(turn, call, title)
        options = [{key: option[key] for key in ("optionId", "kind")} for option in params["options"]]
        return params | {"options": options}


@defects.add("PERM-V2-04", versions=(2,))
class AsksForACommandSomewhere(GoodAgent):
    """A permission request for a command has a relative folder."""

    def permission(self, turn: Turn, call: str, title: str) -> Json:
        subject = {"type": "command", "command": "echo", "cwd": "."}
        return super().permission(turn, call, title) | {"subject": subject}


@defects.add("PLAN-V1-01", versions=(1,))
@defects.add("PLAN-V2-04", versions=(2,))
class PlansUrgently(SendsMore):
    """An entry of a plan has a priority that does not exist."""

    def more(self) -> Json:
        entries = [{"content": "Look", "priority": "urgent", "status": "pending"}]
        if self.version == 1:
            return {"sessionUpdate": "plan", "entries": entries}
        return {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": entries}}


@defects.add("PLAN-V2-01", versions=(2,))
class PlansWithoutAnId(SendsMore):
    """A v2 plan has no id."""

    def more(self) -> Json:
        return {"sessionUpdate": "plan_update", "plan": {"type": "items", "entries": []}}


@defects.add("PLAN-V2-05", versions=(2,))
class PlansAsInV1(SendsMore):
    """A v2 plan is sent as in v1."""

    def more(self) -> Json:
        return {"sessionUpdate": "plan", "entries": []}


@defects.add("CONF-V2-06", versions=(2,))
class HasModesInV2(SendsMore):
    """A v2 agent reports its mode as in v1."""

    def more(self) -> Json:
        return {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}


@defects.add("CMD-V1-01", versions=(1,))
@defects.add("CMD-V2-01", versions=(2,))
class HidesDescriptions(SendsMore):
    """A command has no description."""

    def more(self) -> Json:
        command = self.commands()[0]
        del command["description"]
        return {"sessionUpdate": "available_commands_update", "availableCommands": [command]}


@defects.add("CONF-V2-01", versions=(2,))
class NamesOptionsAsInV1(SendsMore):
    """The id of a v2 option is called `id`."""

    def more(self) -> Json:
        option = {"id": "verbose", "name": "Verbose", "type": "boolean", "currentValue": True}
        return {"sessionUpdate": "config_option_update", "configOptions": [option]}


@defects.add("CONF-V1-03", versions=(1,))
class HidesTheMode(SendsMore):
    """A change of the mode does not say to which."""

    def more(self) -> Json:
        return {"sessionUpdate": "current_mode_update"}


# --- reports ---


@defects.add("USAGE-03", versions=(1, 2))
class ForgetsTheCurrency(ChangesUpdates):
    """A cost has no currency."""

    kind = "usage_update"

    def change(self, update: Json) -> Json:
        return update | {"cost": {"amount": 0.1}}


@defects.add("NOTE-03", versions=(2,))
class SendsEmptyNotices(SendsMore):
    """A notice has an empty title."""

    def more(self) -> Json:
        return {"sessionUpdate": "notice", "severity": "info", "title": ""}


@defects.add("COMP-02", versions=(2,))
class CompactsSilently(SendsMore):
    """A compaction has no status."""

    def more(self) -> Json:
        return {"sessionUpdate": "compaction_update", "compactionId": "c"}


@defects.add("PROMPT-V2-15", versions=(2,))
class InventsAStopReason(GoodAgent):
    """A turn ends with a stop reason that does not exist."""

    def end_completed(self, turn: Turn) -> None:
        self.report_end(turn, "finished")


@defects.add("PROMPT-V2-49", versions=(2,))
class InventsAState(GoodAgent):
    """A state of the agent's own does not begin with `_`."""

    def report_usage(self, session: Session) -> None:
        state = {"sessionUpdate": "state_update", "state": "thinking"}
        self.send_update(session, state | self.background(session))


@defects.add("SESS-32", versions=(1, 2))
class ListsRelativeFolders(GoodAgent):
    """A listed session has a relative folder."""

    def send(self, frame: Json) -> None:
        for session in (frame.get("result") or {}).get("sessions", []):
            session["cwd"] = "site"
        super().send(frame)
