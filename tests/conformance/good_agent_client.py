"""A client of the good agent, in memory. It checks every frame of the agent by the pinned schema."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from antiphon.schema.methods import Kind, find
from antiphon.schema.wire import Unknown, choose
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import Json
from tests.conformance.good.session import Store

DEADLINE = 10.0


class Client:
    """The client's end of a connection to an agent in memory. It checks every frame of the agent."""

    def __init__(self, agent_class: type[GoodAgent], version: int, store: Store | None) -> None:
        self.version = version
        self.agent = agent_class(self.take, store)
        self.frames: list[Json] = []
        self.methods: dict[Any, str] = {}
        self.arrived = asyncio.Event()

    def take(self, frame: Json) -> None:
        check_frame(frame, self.version, self.methods)
        self.frames.append(json.loads(json.dumps(frame)))
        self.arrived.set()

    def send(self, frame: Any) -> None:
        self.agent.receive_line(json.dumps(frame).encode())

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, **params: Any) -> int:
        id = len(self.methods) + 1
        self.methods[id] = method
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def respond(self, id: int, result: Json) -> None:
        self.send({"jsonrpc": "2.0", "id": id, "result": result})

    async def until(self, found: Callable[[Json], bool], *, count: int = 1) -> Json:
        """Wait for the `count`th frame that is `found`."""
        async with asyncio.timeout(DEADLINE):
            while True:
                self.arrived.clear()
                hits = [frame for frame in self.frames if found(frame)]
                if len(hits) >= count:
                    return hits[count - 1]
                await self.arrived.wait()

    async def response(self, id: int) -> Json:
        return await self.until(lambda frame: "method" not in frame and frame["id"] == id)

    async def call(self, method: str, **params: Any) -> Any:
        frame = await self.response(self.request(method, **params))
        return frame.get("result", frame.get("error"))

    async def update(self, kind: str, *, count: int = 1, **fields: Any) -> Json:
        """Wait for an update with these fields."""
        wanted = {"sessionUpdate": kind, **fields}
        frame = await self.until(lambda frame: wanted.items() <= update_of(frame).items(), count=count)
        return update_of(frame)

    async def question(self, *, count: int = 1) -> Json:
        asked = "session/request_permission"
        return await self.until(lambda frame: frame.get("method") == asked, count=count)

    async def new_session(self, cwd: str = "/tmp") -> str:
        made = await self.call("session/new", cwd=cwd, mcpServers=[])
        return str(made["sessionId"])

    def prompt(self, session: str, text: str) -> int:
        return self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def turn(self, session: str, text: str) -> list[Json]:
        """Prompt, wait for the end of the turn, and return all updates of the session since."""
        start = len(self.frames)
        id = self.prompt(session, text)
        if self.version == 1:
            await self.response(id)
        else:
            ends = [f for f in self.frames[:start] if update_of(f).get("stopReason")]
            await self.until(lambda frame: "stopReason" in update_of(frame), count=len(ends) + 1)
        return [update_of(frame) for frame in self.frames[start:] if update_of(frame)]


def update_of(frame: Json) -> Json:
    is_update = frame.get("method") == "session/update"
    return dict(frame["params"]["update"]) if is_update else {}


def kinds(updates: list[Json]) -> list[str]:
    return [update.get("state") or update["sessionUpdate"] for update in updates]


def check_frame(frame: Json, version: int, methods: dict[Any, str]) -> None:
    assert frame["jsonrpc"] == "2.0"
    if "method" in frame:
        kind = Kind.REQUEST if "id" in frame else Kind.NOTIFICATION
        method = find(kind, frame["method"], version)
        assert method is not None
        check_value(method.params, frame["params"])
    elif "result" in frame:
        method = find(Kind.REQUEST, methods[frame["id"]], version)
        assert method is not None
        check_value(method.result, frame["result"])
    else:
        assert frame.keys() == {"jsonrpc", "id", "error"}
        assert frame["error"].keys() <= {"code", "message", "data"}
        assert "\n" not in frame["error"]["message"]


def check_value(type: Any, value: Json) -> None:
    """The value fits strictly, and has no field and no variant that the schema does not name."""
    decoded = msgspec.json.decode(msgspec.json.encode(value), type=type, dec_hook=choose)
    assert not isinstance(decoded, Unknown)
    assert without_defaults(json.loads(msgspec.json.encode(decoded))) == without_defaults(value)


def without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        stripped = {key: without_defaults(item) for key, item in value.items()}
        return {key: item for key, item in stripped.items() if item not in (None, False, [], {})}
    return [without_defaults(item) for item in value] if isinstance(value, list) else value


@asynccontextmanager
async def connect(
    version: int,
    agent_class: type[GoodAgent] = GoodAgent,
    *,
    store: Store | None = None,
    capabilities: Json | None = None,
) -> AsyncIterator[Client]:
    client = Client(agent_class, version, store)
    name, info = ("clientCapabilities", "clientInfo") if version == 1 else ("capabilities", "info")
    params = {name: capabilities or {}, info: {"name": "test", "version": "1"}}
    answer = await client.call("initialize", protocolVersion=version, **params)
    assert answer["protocolVersion"] == version
    try:
        yield client
    finally:
        await client.agent.aclose()


BOTH = pytest.mark.parametrize("version", [1, 2])
