"""Link: the judge's end of one connection. It records every frame, answers the peer's requests, and waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import UNSET

from antiphon.conformance.recording import RecordedFrame, Recording, Role, same_id
from antiphon.jsonrpc.lines import Received
from antiphon.transports.base import Transport

BARRIER = "_antiphon.judge/barrier"
"""A method that nobody implements. Every peer answers it (EXT-01), after what it sent before."""
METHOD_NOT_FOUND = -32601
RESOURCE_NOT_FOUND = -32002
STARTING = 3
"""How many times as long the judge waits for the first frame: the peer may have to start."""
CATCH_UP = 50
"""Rounds of the event loop after a timeout, before a frame counts as missing."""

Answer = Callable[["Link", RecordedFrame], object]
Condition = Callable[[RecordedFrame], bool]


class NotSeen(Exception):
    """Something that a scenario needs did not happen. The text is the reason of a verdict."""


class Refused(NotSeen):
    """The peer answered a request of the judge with an error."""

    def __init__(self, request: RecordedFrame, response: RecordedFrame) -> None:
        message = response.get("error", "message")
        super().__init__(f"`{request.method}` was refused with {response.error_code}: {message}")
        self.response = response


async def why_unseen(work: Awaitable[object]) -> str:
    """Wait for something. Return the reason if it did not happen, and otherwise an empty text."""
    try:
        await work
    except NotSeen as unseen:
        return str(unseen)
    return ""


@runtime_checkable
class EndsInput(Protocol):
    """A transport that can close the peer's stdin and still read."""

    async def end_input(self) -> None: ...


class Link:
    """One connection, from the judge's side. `role` is what the judge plays.

    `timeout` is the number of seconds after which a missing frame counts as missing.
    """

    def __init__(self, transport: Transport, *, role: Role, timeout: float, name: str = "") -> None:
        self._transport = transport
        self._role = role
        self._timeout = timeout
        self._ids = 0
        self._arrived = asyncio.Event()
        self._answers: dict[str, Answer | None] = {}
        self._heard = False
        """Whether the peer has sent anything."""
        self.recording = Recording(time.monotonic, link=name)
        self.first = 0
        """The index of the first frame of the scenario that uses the connection."""
        self.ended = False
        """Whether the peer has closed the connection."""
        transport.start(self._receive, self._end)

    def begin(self) -> None:
        """Begin another scenario: no answers are set, and frames of earlier scenarios are not looked at."""
        self.first = len(self.recording.frames)
        self._answers.clear()

    # --- sending -----------------------------------------------------------------------------------

    def send(self, frame: dict[str, Any]) -> RecordedFrame:
        """Send one JSON-RPC frame; `jsonrpc` is added."""
        return self.send_raw(msgspec.json.encode({"jsonrpc": "2.0", **frame}))

    def send_raw(self, line: bytes) -> RecordedFrame:
        """Send one frame as it is, valid or not."""
        sent = self.recording.add(self._role, line)
        self._transport.send_now(line)
        return sent

    def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are, without the end of a line. Not recorded: they may be no whole frame."""
        self._transport.send_framed(data)

    def request(self, method: str, params: Any = None) -> RecordedFrame:
        self._ids += 1
        return self.send({"id": self._ids, "method": method, "params": {} if params is None else params})

    def notify(self, method: str, params: Any = None) -> RecordedFrame:
        return self.send({"method": method, "params": {} if params is None else params})

    def answer(self, request: RecordedFrame, result: Any) -> RecordedFrame:
        return self.send({"id": request.id, "result": result})

    def refuse(self, request: RecordedFrame, code: int, message: str) -> RecordedFrame:
        return self.send({"id": request.id, "error": {"code": code, "message": message}})

    def refuse_session(self, request: RecordedFrame) -> RecordedFrame:
        """Answer that there is no such session."""
        data = {"sessionId": request.session_id}
        error = {"code": RESOURCE_NOT_FOUND, "message": "Unknown session", "data": data}
        return self.send({"id": request.id, "error": error})

    def on_request(self, method: str, answer: Answer | None) -> None:
        """Answer later requests of a method; `None` leaves them open, for the scenario to answer."""
        self._answers[method] = answer

    # --- waiting -----------------------------------------------------------------------------------

    async def wait(
        self, condition: Condition, what: str, *, after: RecordedFrame | None = None, timeout: float = 0
    ) -> RecordedFrame:
        """Return the first frame of the peer that fits, after the frame `after`.

        Raises `NotSeen` with `what` after the timeout, or when the connection ends without it.
        """
        at = self.first if after is None else after.index + 1
        limit = timeout or self._timeout * (1 if self._heard else STARTING)
        try:
            async with asyncio.timeout(limit):
                while True:
                    for frame in self.recording.frames[at:]:
                        at += 1
                        if frame.sender is not self._role and condition(frame):
                            return frame
                    if self.ended:
                        reason = self._transport.end_reason
                        raise NotSeen(f"the connection ended without {what}{f': {reason}' if reason else ''}")
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            pass
        await self._catch_up()
        for frame in self.recording.frames[at:]:
            if frame.sender is not self._role and condition(frame):
                return frame
        raise NotSeen(f"{what} did not come within {limit:g} s")

    async def _catch_up(self) -> None:
        """Read what arrived while this process was stalled: it did not come late, we did."""
        for _ in range(CATCH_UP):
            await asyncio.sleep(0)

    async def response(self, request: RecordedFrame, *, timeout: float = 0) -> RecordedFrame:
        """Return the response to a request of the judge, be it a result or an error."""
        return await self.wait(
            lambda frame: frame.is_response and same_id(frame.id, request.id),
            f"the response to `{request.method}`",
            after=request,
            timeout=timeout,
        )

    async def accepted(self, request: RecordedFrame) -> RecordedFrame:
        """Return the response to a request of the judge. Raises `Refused` if it is an error."""
        response = await self.response(request)
        if response.error is not UNSET:
            raise Refused(request, response)
        return response

    async def exchange(self, method: str, params: Any = None) -> tuple[RecordedFrame, RecordedFrame]:
        """Send a request and return it with the response, be that a result or an error."""
        request = self.request(method, params)
        return request, await self.response(request)

    async def call(self, method: str, params: Any = None) -> Any:
        """Send a request and return its result. Raises `Refused`, `NotSeen`."""
        return (await self.accepted(self.request(method, params))).result

    async def barrier(self, *, timeout: float = 0) -> RecordedFrame:
        """Wait until the peer has answered a request that was sent now. Return that answer."""
        return await self.response(self.request(BARRIER), timeout=min(timeout, self._timeout))

    async def end_input(self) -> None:
        """End the peer's input, and go on reading. Raises `NotSeen` if the peer is no process."""
        if not isinstance(self._transport, EndsInput):
            raise NotSeen("only the input of a process can be ended")
        await self._transport.end_input()

    async def end(self, *, timeout: float = 0) -> None:
        """Wait until the peer has closed the connection. Raises `NotSeen`."""
        try:
            async with asyncio.timeout(timeout or self._timeout):
                while not self.ended:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise NotSeen(f"the connection did not end within {timeout or self._timeout:g} s") from None

    @property
    def last_stderr_line(self) -> str:
        """The last line that the peer wrote to stderr, if it is a process."""
        lines = self._transport.stderr
        return lines[-1] if lines else ""

    def since(self, frame: RecordedFrame) -> list[RecordedFrame]:
        """Return the frames that the peer sent after a frame."""
        return [late for late in self.recording.frames[frame.index + 1 :] if late.sender is not self._role]

    async def aclose(self) -> None:
        await self._transport.aclose()

    # --- receiving ---------------------------------------------------------------------------------

    def _receive(self, frames: list[Received]) -> None:
        self._heard = True
        for received in frames:
            raw = received if isinstance(received, bytes) else b""
            frame = self.recording.add(self._role.other, raw)
            if frame.is_request:
                self._answer(frame)
        self._arrived.set()

    def _answer(self, request: RecordedFrame) -> None:
        assert request.method is not None
        if request.method not in self._answers:
            self.refuse(request, METHOD_NOT_FOUND, "Method not found")
        elif (answer := self._answers[request.method]) is not None:
            answer(self, request)

    def _end(self) -> None:
        self.ended = True
        self._arrived.set()
