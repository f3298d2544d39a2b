"""Hubs that do not show all clients of a session the same."""

from __future__ import annotations

from antiphon.conformance.hub.shared_sessions import CHUNKS
from tests.conformance.broken.defect import Defects
from tests.conformance.filtered_hub import Door, GoodHub, Json, is_chunk, session_of, update_of

defects = Defects()
NOT_FOUND = -32002
METHOD_NOT_FOUND = -32601


def is_bystander(door: Door, frame: Json) -> bool:
    """Whether a live update reaches a client that was attached before the turn and has not prompted."""
    session = session_of(frame)
    return session in door.attached and session not in door.prompted | door.late


def changed(frame: Json, **fields: object) -> Json:
    """Return an update with other fields."""
    params = frame["params"]
    return {**frame, "params": {**params, "update": {**params["update"], **fields}}}


def last_chunk_later(door: Door, frame: Json) -> list[Json]:
    """Hold the last chunk of the judge's longest turn until after the frame that ends the turn."""
    held, door.held = door.held, None
    if held is not None:
        return [held, frame] if is_chunk(frame) else [frame, held]
    door.count += is_chunk(frame)
    if is_chunk(frame) and door.count == 2 * CHUNKS:
        door.held = frame
        return []
    return [frame]


@defects.add("PROXY-07", versions=(1, 2))
class SwapsChunksForOneClient(GoodHub):
    """A client that did not prompt gets two chunks in the wrong order."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if not is_bystander(door, frame) or not is_chunk(frame):
            return [frame]
        if door.held is not None:
            held, door.held = door.held, None
            return [frame, held]
        door.count += 1
        if door.count == 2:
            door.held = frame
            return []
        return [frame]


@defects.add("QUEUE-06", versions=(1, 2))
class LosesAChunkForOneClient(GoodHub):
    """A client that did not prompt misses a chunk."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if is_bystander(door, frame) and is_chunk(frame):
            door.count += 1
            return [] if door.count == 3 else [frame]
        return [frame]


@defects.add("QUEUE-06", versions=(1, 2))
class DoublesAChunkForOneClient(GoodHub):
    """A client that did not prompt gets a chunk twice."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if is_bystander(door, frame) and is_chunk(frame):
            door.count += 1
            return [frame, frame] if door.count == 3 else [frame]
        return [frame]


@defects.add("QUEUE-06", versions=(2,))
class NamesMessagesForEachClient(GoodHub):
    """Each client sees the message of the agent under an id of its own."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if is_bystander(door, frame) and is_chunk(frame):
            return [changed(frame, messageId=f"{update_of(frame)['messageId']}-{id(door)}")]
        return [frame]


@defects.add("PROXY-07", versions=(2,))
class IsIdleBeforeTheLastChunk(GoodHub):
    """A client that did not prompt gets the idle state before the last chunk."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        judged = door.version == 2 and is_bystander(door, frame)
        return last_chunk_later(door, frame) if judged else [frame]


@defects.add("PROMPT-V1-03", versions=(1,))
class EndsTheTurnBeforeTheLastChunk(GoodHub):
    """The response to the prompt comes before the last chunk."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        return last_chunk_later(door, frame) if door.version == 1 and door.prompted else [frame]


@defects.add("PROMPT-V2-04", versions=(2,))
class ShowsPromptsToTheirSenderAlone(GoodHub):
    """The prompt of one client does not reach the others."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        is_echo = update_of(frame).get("sessionUpdate") == "user_message"
        return [] if is_echo and is_bystander(door, frame) else [frame]


@defects.add("PROMPT-V2-04", versions=(2,))
class NamesPromptsForEachClient(GoodHub):
    """The prompt reaches the other clients under another id."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if update_of(frame).get("sessionUpdate") == "user_message" and is_bystander(door, frame):
            return [changed(frame, messageId="another-id")]
        return [frame]


@defects.add("PROXY-08", versions=(2,))
class TellsStatesToThePrompterAlone(GoodHub):
    """A client that did not prompt gets no idle state."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        return [] if update_of(frame).get("state") == "idle" and is_bystander(door, frame) else [frame]


@defects.add("PROMPT-V1-22", versions=(1,))
class EchoesPromptsToTheirSender(GoodHub):
    """A v1 client gets its own prompt back."""

    def to_hub(self, door: Door, frame: Json) -> list[Json]:
        if frame.get("method") == "session/prompt" and door.version == 1:
            session, content = session_of(frame), frame["params"]["prompt"][0]
            update = {"sessionUpdate": "user_message_chunk", "messageId": "echo", "content": content}
            params = {"sessionId": session, "update": update}
            door.receive({"jsonrpc": "2.0", "method": "session/update", "params": params})
        return [frame]


@defects.add("WS-04", versions=(1, 2))
class EndsTheSessionWithItsPrompter(GoodHub):
    """When a client loses its connection during its turn, nobody can use the session any more."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: set[str] = set()

    def left(self, door: Door) -> None:
        self.ended |= door.prompted & self.running

    def to_hub(self, door: Door, frame: Json) -> list[Json]:
        if frame.get("method") == "session/prompt" and session_of(frame) in self.ended:
            error = {
                "code": NOT_FOUND,
                "message": "Unknown session",
                "data": {"sessionId": session_of(frame)},
            }
            door.receive({"jsonrpc": "2.0", "id": frame["id"], "error": error})
            return []
        return [frame]


@defects.add("QUEUE-06", versions=(1, 2))
class StopsAfterAMegabyte(GoodHub):
    """A client gets nothing more of a turn after a megabyte of it."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if is_bystander(door, frame) and is_chunk(frame):
            door.count += len(update_of(frame)["content"]["text"])
            return [] if door.count > 1_000_000 else [frame]
        return [frame]
