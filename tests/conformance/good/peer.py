"""JSON-RPC as the good agent speaks it: it reads frames, answers requests and sends its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NoReturn

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700, -32600, -32601, -32602, -32603,
)  # fmt: skip
REQUEST_CANCELLED, NOT_FOUND, UNSUPPORTED_VERSION = -32800, -32002, -32022

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    id: Any
    method: str
    params: Json


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Peer:
    """One side of a connection. A method of `requests()` is answered with what its handler returns, or later
    if that is `None`."""

    def __init__(self, write: Callable[[Json], None]) -> None:
        self.write = write
        self.version = 0
        """The protocol version of the connection; 0 before `initialize`."""
        self.questions: dict[int, asyncio.Future[Json]] = {}
        """Requests that the agent sent and that wait for their response, by id."""
        self.last_question = 0
        self.ended = False
        self.tasks: set[asyncio.Task[Any]] = set()

    # --- what a connection can do: overridden by the agent ---

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        """Return the request methods of the selected version."""
        return {}

    def notifications(self) -> dict[str, Callable[[Json], None]]:
        """Return the notification methods of the selected version."""
        return {}

    # --- receiving ---

    def receive_line(self, line: bytes) -> None:
        """Handle one line from the client."""
        if not line.strip():
            return  # TRANS-07
        try:
            frame = self.parse(line)
        except (ValueError, RecursionError):
            self.refuse_line(PARSE_ERROR, "the line is not JSON")  # RPC-10
        else:
            self.receive(frame)

    def parse(self, line: bytes) -> Any:
        return json.loads(line.decode("utf-8"), parse_constant=refuse_constant)

    def refuse_line(self, code: int, message: str) -> None:
        """Answer something that is no request: it has no id."""
        self.refuse(None, code, message)

    def receive(self, frame: Any) -> None:
        """Handle one JSON value."""
        if isinstance(frame, list):
            self.receive_array(frame)
        elif not isinstance(frame, dict):
            self.refuse_line(INVALID_REQUEST, "a message is an object")  # RPC-11
        elif "method" not in frame and frame.keys() & {"id", "result", "error"}:
            self.receive_response(frame)
        elif frame.get("jsonrpc") != "2.0" or not isinstance(frame.get("method"), str):
            id = frame.get("id")
            self.refuse(id if self.usable(id, 2) else None, INVALID_REQUEST, "the message is no JSON-RPC 2.0")
        elif "id" in frame:
            self.receive_request(frame)
        else:
            self.receive_notification(frame["method"], frame.get("params"))

    def receive_array(self, frames: list[Any]) -> None:
        self.refuse_line(INVALID_REQUEST, "ACP has no batches")  # RPC-14

    def receive_request(self, frame: Json) -> None:
        """Check one request, run it, and answer it unless its handler does."""
        if not self.usable(frame["id"], self.version_of(frame)):
            self.refuse_line(INVALID_REQUEST, "the id is neither a string nor an integer")  # RPC-04
            return
        try:
            params = frame.get("params")
            if params is not None and not isinstance(params, dict):
                raise Refused(INVALID_PARAMS, "`params` is an object")
            result = self.handle(Request(frame["id"], frame["method"], params or {}))
        except Refused as error:
            self.refuse(frame["id"], error.code, error.message, error.data)
        else:
            if result is not None:
                self.answer(frame["id"], result)

    def version_of(self, frame: Json) -> int:
        """Return the version by whose rules the id of a request is checked."""
        return self.version or 2

    def usable(self, id: Any, version: int) -> bool:
        """Return whether a request may have this id (RPC-02, RPC-03)."""
        if isinstance(id, str):
            return True
        if isinstance(id, int) and not isinstance(id, bool):
            return -(2**63) <= id < 2**63
        return version == 1 and (id is None or isinstance(id, float))

    def handle(self, request: Request) -> Json | None:
        """Run a request. Raises `Refused`."""
        handler = self.requests().get(request.method)
        return self.unknown_request(request) if handler is None else handler(request)

    def unknown_request(self, request: Request) -> Json | None:
        raise Refused(METHOD_NOT_FOUND, "the method does not exist")  # RPC-18, EXT-01

    def receive_notification(self, method: str, params: Any) -> None:
        """Handle a notification; never answer it (RPC-08, RPC-19)."""
        handler = self.notifications().get(method)
        if handler is not None and isinstance(params, dict):
            handler(params)

    def receive_response(self, frame: Json) -> None:
        """Give the response to the question that it answers; drop any other (RPC-12)."""
        id = frame.get("id")
        question = self.questions.pop(id, None) if type(id) is int else None
        if question is not None and not question.done():
            question.set_result(frame)

    # --- sending ---

    def send(self, frame: Json) -> None:
        """Send one frame. Every frame passes here; after the end of input none does."""
        if not self.ended:
            self.write({"jsonrpc": "2.0", **frame})

    def answer(self, id: Any, result: Json) -> None:
        self.send({"id": id, "result": result})

    def refuse(self, id: Any, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        self.send({"id": id, "error": error})

    def notify(self, method: str, params: Json) -> None:
        self.send({"method": method, "params": params})

    async def ask(self, method: str, params: Json) -> Json:
        """Send a request and return its response, a whole frame. If the caller is cancelled, so is the
        request."""
        id = self.next_question()
        self.questions[id] = asyncio.get_running_loop().create_future()
        self.send({"id": id, "method": method, "params": params})
        try:
            return await self.questions[id]
        except asyncio.CancelledError:
            if self.questions.pop(id, None) is not None:
                self.withdraw_question(id)
            raise

    def next_question(self) -> int:
        """Return the id of the agent's next request. The client may use the same one (RPC-07)."""
        self.last_question += 1
        return self.last_question

    def withdraw_question(self, id: int) -> None:
        self.notify("$/cancel_request", {"requestId": id})  # RPC-32, PROMPT-V2-41

    # --- tasks ---

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task that the end of input cancels."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def end_of_input(self) -> None:
        """Cancel everything and be silent: the client is gone."""
        self.ended = True
        for task in self.tasks:
            if not task.cancelling():  # a second cancel would cut short what the first one cleans up
                task.cancel()

    async def aclose(self) -> None:
        """End the input and wait for all tasks."""
        self.end_of_input()
        if self.tasks:
            await asyncio.wait(self.tasks)


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
