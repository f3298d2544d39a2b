"""A real hub with a frame-changing layer around it: the base of hubs that are broken in one way each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from antiphon.conformance.hub.place import HubAt
from antiphon.conformance.hub.upstream import Upstream
from antiphon.jsonrpc.lines import Received
from antiphon.transports.base import Framing, Receive, Transport

Json = dict[str, Any]


class Door:
    """One connection of the hub, of a client or of an agent, and what the layer has seen of it."""

    def __init__(self, transport: FilteredTransport) -> None:
        self._transport = transport
        self.version = 0
        self.cwd = ""
        self.requests: dict[Any, Json] = {}
        """The open requests of the client, by id."""
        self.prompted: set[str] = set()
        """The sessions that the client has sent a prompt to."""
        self.loading: set[str] = set()
        """The sessions that are being loaded or resumed."""
        self.attached: set[str] = set()
        """The sessions that were loaded or resumed."""
        self.late: set[str] = set()
        """Those of them that were loaded during a turn."""
        self.held: Json | None = None
        self.count = 0

    def receive(self, *frames: Json) -> None:
        """Hand frames to the judge as if they came from the hub."""
        self._transport.deliver(frames)

    def send(self, *frames: Json) -> None:
        """Send frames to the hub as if they came from the judge."""
        self._transport.forward(frames)


class GoodHub:
    """Changes nothing. A broken hub overrides one of the four methods that pass a frame on."""

    lets_anybody_in = False

    def __init__(self) -> None:
        self.running: set[str] = set()
        """The sessions with a turn."""

    def to_client(self, door: Door, frame: Json) -> list[Json]:
        return [frame]

    def to_hub(self, door: Door, frame: Json) -> list[Json]:
        return [frame]

    def to_agent(self, door: Door, frame: Json) -> list[Json]:
        return [frame]

    def to_hub_from_agent(self, door: Door, frame: Json) -> list[Json]:
        return [frame]

    def left(self, door: Door) -> None:
        """A client's connection has ended."""

    # --- what the layer sees ---

    def see_request(self, door: Door, frame: Json) -> None:
        method, session = frame.get("method"), session_of(frame)
        if "id" in frame and method is not None:
            door.requests[frame["id"]] = frame
        if method == "initialize":
            door.version = frame["params"]["protocolVersion"]
        elif method == "session/new":
            door.cwd = frame["params"]["cwd"]
        elif method == "session/prompt":
            door.prompted.add(session)
            self.running.add(session)
        elif method in ("session/load", "session/resume"):
            door.loading.add(session)
            if session in self.running:
                door.late.add(session)

    def see_answer(self, door: Door, frame: Json) -> None:
        """Note what has become true behind a frame, after it was passed on."""
        request = door.requests.pop(frame.get("id"), None) if "method" not in frame else None
        if request is not None and request["method"] in ("session/load", "session/resume"):
            door.loading.discard(session_of(request))
            door.attached.add(session_of(request))
        if request is not None and request["method"] == "session/prompt" and door.version == 1:
            self.running.discard(session_of(request))
        if update_of(frame).get("state") == "idle" and session_of(frame) in door.prompted:
            self.running.discard(session_of(frame))


def session_of(frame: Json) -> str:
    params = frame.get("params")
    return str(params.get("sessionId", "")) if isinstance(params, dict) else ""


def update_of(frame: Json) -> Json:
    return frame["params"]["update"] if frame.get("method") == "session/update" else {}


def is_chunk(frame: Json) -> bool:
    return update_of(frame).get("sessionUpdate") == "agent_message_chunk"


class FilteredTransport:
    """A transport whose frames pass a hub's layer in both directions."""

    def __init__(
        self,
        inner: Transport,
        outward: Callable[[Door, Json], list[Json]],
        inward: Callable[[Door, Json], list[Json]],
        left: Callable[[Door], None],
    ) -> None:
        self._inner = inner
        self._outward = outward
        self._inward = inward
        self._left = left
        self._receive: Receive | None = None
        self.door = Door(self)

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._receive = receive

        def end() -> None:
            self._left(self.door)
            ended()

        self._inner.start(self._received, end)

    def _received(self, frames: list[Received]) -> None:
        assert self._receive is not None
        for raw in frames:
            frame = json.loads(raw) if isinstance(raw, bytes) else {}
            if not isinstance(raw, bytes) or not isinstance(frame, dict):
                self._receive([raw])
                continue
            for passed in self._inward(self.door, frame):
                self._receive([raw if passed is frame else json.dumps(passed).encode()])

    def deliver(self, frames: Sequence[Json]) -> None:
        assert self._receive is not None
        self._receive([json.dumps(frame).encode() for frame in frames])

    def forward(self, frames: Sequence[Json]) -> None:
        for frame in frames:
            self._inner.send_now(json.dumps(frame).encode())

    def send(self, frame: bytes) -> None:
        self.send_now(frame)

    def send_now(self, frame: bytes) -> None:
        value = json.loads(frame)
        for passed in self._outward(self.door, value):
            self._inner.send_now(frame if passed is value else json.dumps(passed).encode())

    def pause(self) -> None:
        self._inner.pause()

    def resume(self) -> None:
        self._inner.resume()

    @property
    def framing(self) -> Framing | None:
        return None

    def send_framed(self, data: bytes) -> None:
        self._inner.send_framed(data)

    @property
    def congested(self) -> bool:
        return self._inner.congested

    async def drain(self) -> None:
        await self._inner.drain()

    async def aclose(self) -> None:
        await self._inner.aclose()

    @property
    def end_reason(self) -> str:
        return self._inner.end_reason

    @property
    def stderr(self) -> Sequence[str]:
        return ()


class FilteredUpstream(Upstream):
    """Agents whose frames pass the layer of the hub that is judged now."""

    hub: GoodHub = GoodHub()

    def accept(self, transport: Transport) -> None:
        super().accept(
            FilteredTransport(
                transport,
                lambda door, frame: self.hub.to_hub_from_agent(door, frame),
                lambda door, frame: self.hub.to_agent(door, frame),
                lambda door: None,
            )
        )


class FilteredPlace(HubAt):
    """A running hub behind the layer of a good or broken one."""

    def __init__(self, address: str, *, token: str, upstream: FilteredUpstream, hub: GoodHub) -> None:
        super().__init__(address, token=token, upstream=upstream)
        self.hub = upstream.hub = hub

    async def open(
        self, *, at: str = "", token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Transport:
        used = None if self.hub.lets_anybody_in else token
        return filtered(await super().open(at=at, token=used, headers=headers), self.hub)


def filtered(transport: Transport, hub: GoodHub) -> Transport:
    """Put the layer of a hub around the connection of a client."""

    def outward(door: Door, frame: Json) -> list[Json]:
        hub.see_request(door, frame)
        return hub.to_hub(door, frame)

    def inward(door: Door, frame: Json) -> list[Json]:
        passed = hub.to_client(door, frame)
        hub.see_answer(door, frame)
        return passed

    return FilteredTransport(transport, outward, inward, hub.left)
