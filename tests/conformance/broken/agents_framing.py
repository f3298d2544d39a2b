"""Agents that are broken below the protocol: bytes, JSON-RPC frames, ids, errors and unexpected input."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Json,
    Refused,
    Request,
)
from tests.conformance.good.session import Turn

defects = Defects()


class WritesRaw(GoodAgent):
    """An agent whose report of usage is written as the bytes of `raw`."""

    def raw(self, frame: bytes) -> list[Any]:
        return [frame]

    def send(self, frame: Json) -> None:
        update = frame.get("params", {}).get("update", {})
        if update.get("sessionUpdate") != "usage_update":
            super().send(frame)
            return
        for line in self.raw(json.dumps({"jsonrpc": "2.0", **frame}).encode()):
            self.write(line)


# --- bytes ---


@defects.add("TRANS-03", versions=(1, 2))
class LogsToStdout(WritesRaw):
    """A line of the log is written among the messages."""

    def raw(self, frame: bytes) -> list[Any]:
        return [b"INFO turn done", frame]


@defects.add("TRANS-01", versions=(1, 2))
class WritesLatin1(WritesRaw):
    """A message is written in Latin-1."""

    def raw(self, frame: bytes) -> list[Any]:
        return [frame.replace(b"session", b"sess\xefon", 1)]


@defects.add("TRANS-02", versions=(1, 2))
class BreaksLines(WritesRaw):
    """A message is spread over several lines."""

    def raw(self, frame: bytes) -> list[Any]:
        return json.dumps(json.loads(frame), indent=1).encode().split(b"\n")


@defects.add("TRANS-02", versions=(1, 2))
class JoinsLines(WritesRaw):
    """Two messages are written on one line."""

    def raw(self, frame: bytes) -> list[Any]:
        return [frame + b" " + frame]


# --- frames ---


@defects.add("RPC-01", versions=(1, 2))
class ForgetsJsonrpc(WritesRaw):
    """A notification has no `jsonrpc`."""

    def raw(self, frame: bytes) -> list[Any]:
        return [frame.replace(b'"jsonrpc": "2.0", ', b"")]


@defects.add("RPC-01", versions=(1, 2))
class AnswersWithBoth(GoodAgent):
    """A refusal has both `result: null` and an error."""

    def refuse(self, id: Any, code: int, message: str, data: Any = None) -> None:
        if code == METHOD_NOT_FOUND:
            self.send({"id": id, "result": None, "error": {"code": code, "message": message}})
        else:
            super().refuse(id, code, message, data)


@defects.add("RPC-13", versions=(1, 2))
class SendsArrays(WritesRaw):
    """A notification is sent as an array of one."""

    def raw(self, frame: bytes) -> list[Any]:
        return [b"[" + frame + b"]"]


class Asks(GoodAgent):
    """An agent that sends custom requests when work begins."""

    ids: tuple[Any, ...] = ()

    def begin_work(self, turn: Turn) -> None:
        for id in self.ids:
            self.send({"id": id, "method": "_good.agent/ping", "params": {}})
        super().begin_work(turn)


@defects.add("RPC-02", versions=(1,))
class UsesTrueAsId(Asks):
    """A request has the id `true`."""

    ids = (True,)


@defects.add("RPC-03", versions=(2,))
class UsesNullAsId(Asks):
    """A v2 request has the id `null`."""

    ids = (None,)


@defects.add("RPC-03", versions=(2,))
class UsesAFractionAsId(Asks):
    """A v2 request has a fraction as id."""

    ids = (7.5,)


@defects.add("RPC-06", versions=(2,))
class ReusesAnId(GoodAgent):
    """A request has the id of a question that is open."""

    def send(self, frame: Json) -> None:
        super().send(frame)
        if frame.get("method") == "session/request_permission":
            super().send({"id": frame["id"], "method": "_good.agent/ping", "params": {}})

    def receive_response(self, frame: Json) -> None:
        if not isinstance(frame.get("error"), dict) or frame["error"].get("code") != METHOD_NOT_FOUND:
            super().receive_response(frame)


@defects.add("RPC-05", versions=(1, 2))
class ReadsIdsAsNumbers(GoodAgent):
    """A text id that looks like a number comes back as a number."""

    def refuse(self, id: Any, code: int, message: str, data: Any = None) -> None:
        super().refuse(int(id) if isinstance(id, str) and id.isdigit() else id, code, message, data)


@defects.add("RPC-05", versions=(1, 2))
class AnswersTwice(GoodAgent):
    """The answer to `session/new` is sent twice."""

    def answer(self, id: Any, result: Json) -> None:
        super().answer(id, result)
        if "sessionId" in result:
            super().answer(id, result)


@defects.add("RPC-07", versions=(1, 2))
class ConfusesIds(GoodAgent):
    """A request with the id of an open question is read as its answer."""

    def receive_request(self, frame: Json) -> None:
        if type(frame["id"]) is int and frame["id"] in self.questions:
            self.receive_response({"id": frame["id"], "result": {}})
        else:
            super().receive_request(frame)


@defects.add("RPC-29", versions=(2,))
class CancelsItsOwnQuestion(GoodAgent):
    """A cancel of the client ends a question of the agent that has the same id."""

    def on_cancel_request(self, params: Json) -> None:
        if params.get("requestId") in self.questions:
            for session in self.opened.values():
                self.cancel_session(session)
        super().on_cancel_request(params)


@defects.add("RPC-26", versions=(1, 2))
class WaitsForPlainErrors(GoodAgent):
    """An error whose `data` is no object is dropped, and the turn waits for ever."""

    def receive_response(self, frame: Json) -> None:
        data = frame["error"].get("data") if isinstance(frame.get("error"), dict) else None
        if not isinstance(data, list):
            super().receive_response(frame)


@defects.add("RPC-08", versions=(1, 2))
class AnswersNotifications(GoodAgent):
    """An unknown notification gets an error."""

    def receive_notification(self, method: str, params: Any) -> None:
        if self.version and method not in self.notifications():
            self.refuse_line(METHOD_NOT_FOUND, "the method does not exist")
        super().receive_notification(method, params)


@defects.add("RPC-09", versions=(2,))
class ComplainsToNobody(GoodAgent):
    """An error without an id is sent although every request has one."""

    told = False

    def receive_notification(self, method: str, params: Any) -> None:
        self.told = True
        super().receive_notification(method, params)

    def introduce(self) -> Json:
        if not self.told:
            self.refuse_line(INTERNAL_ERROR, "the model is slow today")
        return super().introduce()


# --- errors ---


class Refuses(GoodAgent):
    """An agent whose refusal of params that are a list is changed."""

    def change(self, error: Json) -> Json:
        return error

    def refuse(self, id: Any, code: int, message: str, data: Any = None) -> None:
        if message == "`params` is an object":
            self.send({"id": id, "error": self.change({"code": code, "message": message})})
        else:
            super().refuse(id, code, message, data)


@defects.add("RPC-21", versions=(1, 2))
class ErrorsWithoutAMessage(Refuses):
    """An error has no message."""

    def change(self, error: Json) -> Json:
        return {"code": error["code"]}


@defects.add("RPC-22", versions=(1, 2))
class ErrorsWithATrace(Refuses):
    """The message of an error has several lines."""

    def change(self, error: Json) -> Json:
        return error | {"message": "Traceback:\n  line 1\n  line 2"}


@defects.add("RPC-23", versions=(1, 2))
class ErrorsWithALongCode(Refuses):
    """The code of an error does not fit into 32 bits."""

    def change(self, error: Json) -> Json:
        return error | {"code": -(2**40)}


@defects.add("RPC-20", versions=(1, 2))
class GivesUpAfterAnError(Refuses):
    """After a malformed request the agent is silent."""

    def refuse(self, id: Any, code: int, message: str, data: Any = None) -> None:
        super().refuse(id, code, message, data)
        self.ended = self.ended or message == "`params` is an object"


@defects.add("RPC-27", versions=(1, 2))
class RepeatsSecrets(GoodAgent):
    """The refusal of an MCP server contains the server."""

    def new_session(self, request: Request) -> Json | None:
        try:
            return super().new_session(request)
        except Refused as refused:
            raise Refused(refused.code, refused.message, request.params.get("mcpServers")) from None


# --- unexpected input ---


@defects.add("RPC-10", versions=(1, 2))
class IgnoresGarbage(GoodAgent):
    """A line that is not JSON gets no answer."""

    def refuse_line(self, code: int, message: str) -> None:
        if code != PARSE_ERROR:
            super().refuse_line(code, message)


@defects.add("RPC-10", versions=(1, 2))
class EndsAfterGarbage(GoodAgent):
    """A line that is not JSON ends the conversation."""

    def refuse_line(self, code: int, message: str) -> None:
        super().refuse_line(code, message)
        self.ended = self.ended or code == PARSE_ERROR


@defects.add("RPC-11", versions=(1, 2))
class IgnoresValues(GoodAgent):
    """JSON that is no object gets no answer."""

    def receive(self, frame: Any) -> None:
        if isinstance(frame, (dict, list)):
            super().receive(frame)


@defects.add("RPC-14", versions=(1, 2))
class RunsBatches(GoodAgent):
    """The entries of an array are run."""

    def receive_array(self, frames: list[Any]) -> None:
        if not frames:
            super().receive_array(frames)
        for frame in frames:
            self.receive(frame)


@defects.add("RPC-16", versions=(2,))
class IgnoresEmptyArrays(GoodAgent):
    """An empty array gets no answer."""

    def receive_array(self, frames: list[Any]) -> None:
        if frames:
            super().receive_array(frames)


@defects.add("RPC-04", versions=(2,))
class TakesAnyId(GoodAgent):
    """A v2 request with `null` or a fraction as id is run."""

    def usable(self, id: Any, version: int) -> bool:
        return super().usable(id, 1)


@defects.add("RPC-12", versions=(1, 2))
class AnswersResponses(GoodAgent):
    """A response that answers nothing gets an error."""

    def receive_response(self, frame: Json) -> None:
        if type(frame.get("id")) is not int or frame["id"] not in self.questions:
            self.refuse_line(INVALID_REQUEST, "nobody asked")
        super().receive_response(frame)


@defects.add("RPC-18", versions=(1, 2))
class RefusesUnknownMethodsOddly(GoodAgent):
    """An unknown method is refused as an internal error."""

    def unknown_request(self, request: Request) -> Json | None:
        if request.method.startswith("antiphon_judge/"):
            raise Refused(INTERNAL_ERROR, "the method failed")
        return super().unknown_request(request)


@defects.add("RPC-19", versions=(1, 2))
class EndsAfterUnknownNotifications(GoodAgent):
    """An unknown notification ends the conversation."""

    def receive_notification(self, method: str, params: Any) -> None:
        self.ended = self.ended or method.startswith("antiphon_judge/")
        super().receive_notification(method, params)


@defects.add("EXT-01", versions=(1, 2))
class AcceptsCustomRequests(GoodAgent):
    """A custom request that the agent does not know succeeds."""

    def unknown_request(self, request: Request) -> Json | None:
        if request.method.startswith("_"):
            return {}
        return super().unknown_request(request)


@defects.add("EXT-02", versions=(1, 2))
class EndsAfterCustomNotifications(GoodAgent):
    """A custom notification that the agent does not know ends the conversation."""

    def receive_notification(self, method: str, params: Any) -> None:
        self.ended = self.ended or method.startswith("_antiphon.judge/")
        super().receive_notification(method, params)


@defects.add("EXT-11", versions=(1, 2))
class RefusesMeta(GoodAgent):
    """A request with `_meta` is refused."""

    def handle(self, request: Request) -> Json | None:
        if "_meta" in request.params:
            raise Refused(INVALID_PARAMS, "`_meta` is not supported")
        return super().handle(request)


@defects.add("RPC-39", versions=(1, 2))
class RefusesUnknownProperties(GoodAgent):
    """A request with a property that the schema does not have is refused."""

    def handle(self, request: Request) -> Json | None:
        if "antiphonJudge" in request.params:
            raise Refused(INVALID_PARAMS, "the property does not exist")
        return super().handle(request)


@defects.add("RPC-40", versions=(1, 2))
class RefusesMalformedCapabilities(GoodAgent):
    """`initialize` fails for a malformed optional capability."""

    def initialize(self, request: Request) -> Json:
        for key in ("capabilities", "clientCapabilities"):
            offered = request.params.get(key)
            if isinstance(offered, dict) and isinstance(offered.get("elicitation"), str):
                raise Refused(INVALID_PARAMS, "`elicitation` is an object")
        return super().initialize(request)


@defects.add("EXT-08", versions=(2,))
class ForgivesTextBlocks(GoodAgent):
    """A text block whose `text` is a number is accepted."""

    def prompt_content(self, request: Request) -> list[Json]:
        blocks = request.params["prompt"]
        if blocks == [{"type": "text", "text": 7}]:
            return [{"type": "text", "text": "7"}]
        return super().prompt_content(request)


@defects.add("CONT-01", versions=(1, 2))
class RefusesLinks(GoodAgent):
    """A prompt with a resource link is refused."""

    def prompt(self, request: Request) -> Json | None:
        blocks = request.params.get("prompt")
        if isinstance(blocks, list) and any(block.get("type") == "resource_link" for block in blocks):
            raise Refused(INVALID_PARAMS, "links are not supported")
        return super().prompt(request)
