"""Hubs that change what they pass on, or pass on too much."""

from __future__ import annotations

from antiphon.conformance.hub.forwarded_updates import CUSTOM_METHOD
from tests.conformance.broken.defect import Defects
from tests.conformance.broken.hubs_sharing import METHOD_NOT_FOUND
from tests.conformance.filtered_hub import Door, GoodHub, Json, update_of

defects = Defects()


@defects.add("PROXY-10", versions=(1, 2))
class DoesNotWithdrawQuestions(GoodHub):
    """A permission request that another client answered is not withdrawn."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        return [] if frame.get("method") == "$/cancel_request" else [frame]


@defects.add("PROXY-10", versions=(1, 2))
class PassesEveryAnswerOn(GoodHub):
    """The answers of all clients to a permission request reach the agent."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: tuple[Door, Json] | None = None
        self.questions: dict[tuple[int, object], bool] = {}

    def to_hub_from_agent(self, door: Door, frame: Json) -> list[Json]:
        if frame.get("method") == "session/request_permission":
            self.asked = door, frame
        return [frame]

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        if frame.get("method") == "session/request_permission":
            self.questions[id(door), frame["id"]] = True
        return [frame]

    def to_hub(self, door: Door, frame: Json) -> list[Json]:
        late = (id(door), frame.get("id")) in self.questions and "reject" in str(frame.get("result"))
        if late and self.asked is not None:
            agent, question = self.asked
            agent.receive({"jsonrpc": "2.0", "id": question["id"], "result": frame["result"]})
        return [frame]


@defects.add("EXT-09", versions=(2,))
class DropsUnknownUpdates(GoodHub):
    """An update that the hub does not know is lost."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        return [] if update_of(frame).get("sessionUpdate", "").startswith("_judge") else [frame]


@defects.add("OBS-02", versions=(1, 2))
class StripsMetaOfUpdates(GoodHub):
    """Updates lose their `_meta`."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        update_of(frame).pop("_meta", None)
        return [dict(frame)]


@defects.add("OBS-02", versions=(1, 2))
class StripsMetaOfPrompts(GoodHub):
    """Prompts lose their `_meta` on the way to the agent."""

    def to_hub(self, door: Door, frame: Json) -> list[Json]:
        if frame.get("method") == "session/prompt":
            return [{**frame, "params": {**frame["params"], "_meta": {}}}]
        return [frame]


@defects.add("PROXY-05", versions=(1, 2))
class AnswersCustomMethodsItself(GoodHub):
    """A custom method does not reach the agent."""

    def to_hub(self, door: Door, frame: Json) -> list[Json]:
        if frame.get("method") == CUSTOM_METHOD:
            error = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
            door.receive({"jsonrpc": "2.0", "id": frame["id"], "error": error})
            return []
        return [frame]


@defects.add("PROXY-06", versions=(1,))
class MixesUpEqualIds(GoodHub):
    """Of two clients that use the same id, each gets the answer to the other one."""

    def __init__(self) -> None:
        super().__init__()
        self.first: tuple[Door, Json] | None = None

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        request = door.requests.get(frame.get("id"), {})
        if request.get("method") != "session/prompt" or not door.cwd.endswith(("/one", "/two")):
            return [frame]
        if self.first is None:
            self.first = door, frame
            return []
        other, earlier = self.first
        other.receive(frame)
        return [earlier]


@defects.add("PROXY-09", versions=(1, 2))
class OffersImages(GoodHub):
    """The hub offers prompts with images, which its agent does not take."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        result = frame.get("result")
        if door.requests.get(frame.get("id"), {}).get("method") == "initialize" and isinstance(result, dict):
            if door.version == 1:
                result["agentCapabilities"].setdefault("promptCapabilities", {})["image"] = True
            else:
                result["capabilities"]["session"].setdefault("prompt", {})["image"] = {}
            return [dict(frame)]
        return [frame]


@defects.add("HTTP-22", versions=(1, 2))
class LetsAnybodyIn(GoodHub):
    """A client needs no token."""

    lets_anybody_in = True
