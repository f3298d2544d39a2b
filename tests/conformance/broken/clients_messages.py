"""Broken clients: messages, and values that they do not know."""

from __future__ import annotations

from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good.client import ClientFailed, GoodClient

defects = Defects()


@defects.add("MSG-05", versions=(1,))
class NeedsMessageIds(GoodClient):
    """It drops chunks without a message id."""

    def append(self, role: str, update: dict[str, Any]) -> None:
        if update.get("messageId") is not None:
            super().append(role, update)


@defects.add("MSG-09", versions=(1,))
class ReadsIdsAsNumbers(GoodClient):
    """It reads message ids as numbers where it can, and takes the last one with a number as the message."""

    def message(self, role: str, id: Any) -> list[str]:
        try:
            number = int(id)
        except ValueError:
            return super().message(role, id)
        for (known, other), parts in self.messages.items():
            if known == role and other != id and str(other).strip().isdigit() and int(other) == number:
                parts.clear()
        return super().message(role, id)


@defects.add("MSG-06", versions=(2,))
class ClosesAMessageAtTheNext(GoodClient):
    """It takes a message as complete when a chunk of another one comes."""

    last = ""

    def append(self, role: str, update: dict[str, Any]) -> None:
        id = update["messageId"]
        if id == self.last or not self.messages.get((role, id)):
            super().append(role, update)
        self.last = id


@defects.add("MSG-08", versions=(2,))
class MixesThoughtsAndMessages(GoodClient):
    """It knows messages by their id alone."""

    def message_key(self, role: str, id: Any) -> tuple[str, Any]:
        for known, other in self.messages:
            if other == id:
                return known, id
        return role, id


@defects.add("MSG-13", versions=(2,))
class ClearsWhatAPatchOmits(GoodClient):
    """It clears a message that a patch does not name the content of."""

    def patch(self, role: str, update: dict[str, Any]) -> None:
        super().patch(role, {"content": [], **update})


@defects.add("MSG-14", versions=(2,))
class NeedsContentAtFirst(GoodClient):
    """It fails if a new message has no content."""

    def patch(self, role: str, update: dict[str, Any]) -> None:
        if (role, update["messageId"]) not in self.messages and "content" not in update:
            raise ClientFailed("a message without content")
        super().patch(role, update)


@defects.add("MSG-15", versions=(2,))
class AppendsToChunksOnly(GoodClient):
    """A chunk after a whole message replaces it."""

    def __init__(self, agent: Any) -> None:
        super().__init__(agent)
        self.whole: set[Any] = set()

    def patch(self, role: str, update: dict[str, Any]) -> None:
        super().patch(role, update)
        if update.get("content"):
            self.whole.add((role, update["messageId"]))

    def append(self, role: str, update: dict[str, Any]) -> None:
        key = role, update["messageId"]
        if key in self.whole:
            self.messages[key].clear()
            self.whole.discard(key)
        super().append(role, update)


@defects.add("MSG-23", versions=(2,))
class ClearsForAMalformedList(GoodClient):
    """It takes malformed content as empty."""

    def patch(self, role: str, update: dict[str, Any]) -> None:
        malformed = not isinstance(update.get("content", []), list | None)
        super().patch(role, {**update, "content": []} if malformed else update)


@defects.add("EXT-10", versions=(1,))
class RefusesUnknownUpdatesInV1(GoodClient):
    """It fails on a kind of update that it does not know."""

    def apply(self, update: dict[str, Any]) -> None:
        if update["sessionUpdate"].startswith("_"):
            raise ClientFailed("an unknown update")
        super().apply(update)


@defects.add("EXT-07", versions=(2,))
class RefusesUnknownUpdates(RefusesUnknownUpdatesInV1):
    """It fails on a kind of update that it does not know."""


@defects.add("RPC-39", versions=(2,))
class RefusesUnknownProperties(GoodClient):
    """It drops an update with a property that it does not know."""

    def apply(self, update: dict[str, Any]) -> None:
        if update["sessionUpdate"] != "agent_message_chunk" or not update.keys() - {
            "sessionUpdate", "messageId", "content", "_meta",
        }:  # fmt: skip
            super().apply(update)


@defects.add("EXT-04", versions=(1,))
class ReadsMeta(GoodClient):
    """It fails on a key of `_meta` that it does not know."""

    def apply(self, update: dict[str, Any]) -> None:
        if any(not isinstance(value, str) for value in (update.get("_meta") or {}).values()) and (
            update["sessionUpdate"] == "agent_message_chunk"
        ):
            raise ClientFailed("unknown meta")
        super().apply(update)


@defects.add("INFO-01", versions=(1,))
class NeedsATitle(GoodClient):
    """It fails on a session without a title."""

    def apply(self, update: dict[str, Any]) -> None:
        if update["sessionUpdate"] == "session_info_update" and update.get("title") is None:
            raise ClientFailed("no title")
        super().apply(update)


@defects.add("RPC-42", versions=(2,))
class NeedsObjectsAsInput(GoodClient):
    """It fails on a raw input that is no object."""

    def apply(self, update: dict[str, Any]) -> None:
        if not isinstance(update.get("rawInput", {}), dict):
            raise ClientFailed("a raw input that is no object")
        super().apply(update)


@defects.add("RPC-40", versions=(1,))
class ReadsStrictly(GoodClient):
    """It fails on a malformed value that it should take as absent."""

    def apply(self, update: dict[str, Any]) -> None:
        if update["sessionUpdate"].startswith("tool_call"):
            for location in update.get("locations", []):
                location["path"]
        super().apply(update)


@defects.add("TOOL-V1-04", versions=(1,))
class NeedsToolCallsFirst(GoodClient):
    """It fails on an update of a tool call that it has not seen."""

    def __init__(self, agent: Any) -> None:
        super().__init__(agent)
        self.calls: set[Any] = set()

    def apply(self, update: dict[str, Any]) -> None:
        if update["sessionUpdate"] == "tool_call":
            self.calls.add(update["toolCallId"])
        elif update["sessionUpdate"] == "tool_call_update" and update["toolCallId"] not in self.calls:
            raise ClientFailed("an unknown tool call")
        super().apply(update)


class RefusesAnUpdate(GoodClient):
    """It fails on an update for which `dislikes` is true."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        return False

    def apply(self, update: dict[str, Any]) -> None:
        if self.dislikes(update):
            raise ClientFailed("an update that it does not like")
        super().apply(update)


@defects.add("CONF-03", versions=(1,))
class KnowsItsCategoriesOnly(RefusesAnUpdate):
    """It fails on a config option with an unknown category."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        return any(option.get("category", "mode") != "mode" for option in update.get("configOptions", []))


@defects.add("CONF-V2-05", versions=(2,))
class KnowsItsOptionTypesOnly(RefusesAnUpdate):
    """It fails on a config option of an unknown type."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        return any(option["type"] != "select" for option in update.get("configOptions", []))


@defects.add("CONT-08", versions=(2,))
class KnowsItsBlocksOnly(RefusesAnUpdate):
    """It fails on an unknown type of content in a message."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        content = update.get("content")
        return (
            "message" in update["sessionUpdate"] and isinstance(content, dict) and content["type"] != "text"
        )


@defects.add("TOOL-V2-16", versions=(2,))
class KnowsItsToolContentOnly(RefusesAnUpdate):
    """It fails on an unknown type of content in a tool call."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        content = update.get("content") if "tool_call" in update["sessionUpdate"] else None
        return isinstance(content, list) and any(item["type"].startswith("_") for item in content)


@defects.add("TOOL-V2-07", versions=(2,))
class KnowsItsStatusesOnly(RefusesAnUpdate):
    """It fails on an unknown status of a tool call."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        return "tool_call" in update["sessionUpdate"] and str(update.get("status")).startswith("_")


@defects.add("TOOL-V2-03", versions=(2,))
class NeedsATitleOfACall(RefusesAnUpdate):
    """It fails on a tool call with nothing but its id."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        return update.keys() == {"sessionUpdate", "toolCallId"}


@defects.add("TOOL-V2-06", versions=(2,))
class NeedsACallBeforeItsChunks(RefusesAnUpdate):
    """It fails on a chunk of a tool call that it has not seen."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        if update["sessionUpdate"] == "tool_call_update":
            self.messages[("call", update["toolCallId"])] = []
        chunk = update["sessionUpdate"] == "tool_call_content_chunk"
        return chunk and ("call", update["toolCallId"]) not in self.messages


@defects.add("PLAN-V2-03", versions=(2,))
class KnowsItsPlansOnly(RefusesAnUpdate):
    """It fails on an unknown type of plan."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        return update.get("plan", {"type": "items"})["type"] != "items"


@defects.add("CMD-V2-03", versions=(2,))
class KnowsItsCommandsOnly(RefusesAnUpdate):
    """It fails on an unknown type of command."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        commands = [each for each in update.get("availableCommands", []) if isinstance(each, dict)]
        return any(command["type"] != "command" for command in commands)


@defects.add("PROMPT-V2-47", versions=(2,))
class KnowsItsBackgroundOnly(RefusesAnUpdate):
    """It fails on an unknown type of background work."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        return any(item["type"] not in ("terminal", "tool_call") for item in update.get("background") or [])


@defects.add("PROMPT-V2-48", versions=(2,))
class TakesUnknownStatesAsIdle(GoodClient):
    """It takes a state that it does not know as idle."""

    def on_state(self, update: dict[str, Any]) -> None:
        super().on_state({**update, "state": "idle"} if update["state"].startswith("_") else update)


@defects.add("DIFF-04", versions=(2,))
class NeedsPatches(RefusesAnUpdate):
    """It fails on a diff without a patch."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        content = update.get("content")
        items = content if isinstance(content, list) else []
        return any(
            isinstance(item, dict) and item["type"] == "diff" and "patch" not in item for item in items
        )


@defects.add("TERMV2-02", versions=(2,))
class NeedsTerminalsFirst(RefusesAnUpdate):
    """It fails on a reference to a terminal that it has not seen."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        if update["sessionUpdate"] == "terminal_update":
            self.messages[("terminal", update["terminalId"])] = []
        content = update.get("content") if update["sessionUpdate"] == "tool_call_update" else None
        items = content if isinstance(content, list) else []
        referred = [item["terminalId"] for item in items if item["type"] == "terminal"]
        return any(("terminal", id) not in self.messages for id in referred)


@defects.add("TERMV2-06", versions=(2,))
class NeedsExitCodes(RefusesAnUpdate):
    """It fails on an exit status without a code."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        return "exitCode" not in update.get("exitStatus", {"exitCode": 0})


@defects.add("COMP-04", versions=(2,))
class NeedsCompactionsFirst(RefusesAnUpdate):
    """It fails on a chunk of a compaction that it has not seen."""

    def dislikes(self, update: dict[str, Any]) -> bool:
        return update["sessionUpdate"] == "compaction_summary_chunk"
