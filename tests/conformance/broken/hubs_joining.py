"""Hubs that fail a client that joins late."""

from __future__ import annotations

from tests.conformance.broken.defect import Defects
from tests.conformance.broken.hubs_sharing import changed
from tests.conformance.filtered_hub import Door, GoodHub, Json, is_chunk, session_of, update_of

defects = Defects()


def is_replay(door: Door, frame: Json) -> bool:
    return session_of(frame) in door.loading


@defects.add("QUEUE-06", versions=(1, 2))
class LosesTheFirstChunkAfterTheReplay(GoodHub):
    """A client that joins during a turn misses the first chunk after the replay."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if is_chunk(frame) and session_of(frame) in door.late & door.attached:
            door.count += 1
            return [] if door.count == 1 else [frame]
        return [frame]


class _DoublesAtTheCut(GoodHub):
    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if is_replay(door, frame) and session_of(frame) in door.late and "agent_message" in str(frame):
            door.held = frame
        request = door.requests.get(frame.get("id"), {})
        if door.held is None or request.get("method") not in ("session/load", "session/resume"):
            return [frame]
        held = update_of(door.held)
        block = held["content"] if isinstance(held["content"], dict) else held["content"][-1]
        word = {"type": "text", "text": block["text"].split()[-1] + " "}
        return [frame, changed(door.held, sessionUpdate="agent_message_chunk", content=word)]


@defects.add("SESS-18", versions=(2,))
class SendsTheLastReplayedWordAgain(_DoublesAtTheCut):
    """The last word of the replay comes again after the answer to the resume."""


@defects.add("SESS-13", versions=(1,))
class SendsTheLastLoadedWordAgain(_DoublesAtTheCut):
    """The last word of the replay comes again after the answer to the load."""


@defects.add("MSG-12", versions=(2,))
class ReplaysMessagesUnderOtherIds(GoodHub):
    """Replayed messages of the agent have other ids than they had live."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        kind = update_of(frame).get("sessionUpdate", "")
        if kind.startswith("agent_message") and is_replay(door, frame):
            return [changed(frame, messageId=f"{update_of(frame)['messageId']}-again")]
        return [frame]


@defects.add("SESS-22", versions=(2,))
class ReplaysPromptsUnderOtherIds(GoodHub):
    """Replayed prompts have other ids than their responses named."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        kind = update_of(frame).get("sessionUpdate", "")
        if kind.startswith("user_message") and is_replay(door, frame):
            return [changed(frame, messageId=f"{update_of(frame)['messageId']}-again")]
        return [frame]


@defects.add("SESS-21", versions=(2,))
class SaysIdleToALateJoiner(GoodHub):
    """A client that joins during a turn is told that the session is idle."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if is_replay(door, frame) and update_of(frame).get("state") == "running":
            return [changed(frame, state="idle")]
        return [frame]


@defects.add("SESS-19", versions=(2,))
class TakesAMalformedCursorAsNone(GoodHub):
    """A resume with a malformed cursor succeeds without replay."""

    def to_hub(self, door: Door, frame: Json) -> list[Json]:
        cursor = frame.get("params", {}).get("replayFrom") or {}
        if cursor.get("seq") == "no number":
            return [{**frame, "params": {**frame["params"], "replayFrom": None}}]
        return [frame]


@defects.add("QUEUE-06", versions=(2,))
class RepeatsTheUpdateOfTheCursor(GoodHub):
    """A resume by a cursor sends the update at the cursor again."""

    def to_hub(self, door: Door, frame: Json) -> list[Json]:
        cursor = frame.get("params", {}).get("replayFrom") or {}
        if isinstance(cursor.get("seq"), int):
            earlier = {**cursor, "seq": cursor["seq"] - 1}
            return [{**frame, "params": {**frame["params"], "replayFrom": earlier}}]
        return [frame]
