"""A client by hand, talking to a real agent: plain JSON over a memory pair, all it gets kept in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from antiphon.agent import Agent
from antiphon.transports.base import Inbox
from antiphon.transports.memory import memory_pair

DEADLINE = 60.0
INFO = {"name": "talk", "version": "1"}
SHAPES: dict[int, dict[str, Any]] = {
    1: {"clientInfo": INFO, "clientCapabilities": {}},
    2: {"info": INFO, "capabilities": {}},
}
"""What a client that can do nothing says of itself."""


class Talk:
    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self._inbox = Inbox(transport)
        self.seen: list[dict[str, Any]] = []
        """Every frame received, in order."""
        self._next = 0

    def send(self, **frame: Any) -> None:
        self.transport.send(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    async def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first frame from here on that fits; what comes before it is kept in `seen`."""
        async with asyncio.timeout(DEADLINE):
            while True:
                while self._next < len(self.seen):
                    frame = self.seen[self._next]
                    self._next += 1
                    if condition(frame):
                        return frame
                batch = await self._inbox.take()
                assert batch, "the link ended"
                self.seen += [json.loads(frame) for frame in batch if isinstance(frame, bytes)]

    def forget(self) -> None:
        """Drop the frames received so far."""
        self.seen.clear()
        self._next = 0

    async def answer_to(self, id: Any) -> dict[str, Any]:
        found = [frame for frame in self.seen if frame.get("id") == id and "method" not in frame]
        return found[0] if found else await self.until(lambda f: f.get("id") == id and "method" not in f)

    async def call(self, id: Any, method: str, **params: Any) -> Any:
        self.send(id=id, method=method, params=params)
        answer = await self.answer_to(id)
        assert "result" in answer, answer
        return answer["result"]

    async def initialize(self, version: int, **params: Any) -> Any:
        """Initialize the connection, as a client that can do nothing unless `params` say otherwise."""
        return await self.call("init", "initialize", protocolVersion=version, **{**SHAPES[version], **params})

    def prompt(self, id: Any, session: str, text: str, **ours: Any) -> None:
        params: dict[str, Any] = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        if ours:
            params["_meta"] = {"antiphon": ours}
        self.send(id=id, method="session/prompt", params=params)

    async def update(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The next update of a kind with these fields."""

        def fits(frame: dict[str, Any]) -> bool:
            update = frame.get("params", {}).get("update", {})
            return update.get("sessionUpdate") == kind and fields.items() <= update.items()

        return (await self.until(fits))["params"]["update"]

    async def request(self, method: str) -> dict[str, Any]:
        return await self.until(lambda frame: frame.get("method") == method)

    def story(self, session: str | None = None) -> list[str]:
        """What was received, in short: the kind of each update, and `= id` for each answer."""
        told = []
        for frame in self.seen:
            update = frame.get("params", {}).get("update")
            if update is not None and session in (None, frame["params"]["sessionId"]):
                told.append(" ".join(filter(None, [update["sessionUpdate"], update.get("state")])))
            elif "method" in frame and update is None:
                told.append(f"? {frame['method']}")
            elif "method" not in frame:
                told.append(f"= {frame['id']}")
        return told

    def updates(self) -> list[dict[str, Any]]:
        return [frame["params"]["update"] for frame in self.seen if "update" in frame.get("params", {})]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(u["content"]["text"] for u in self.updates() if u["sessionUpdate"] == kind)


@asynccontextmanager
async def client(agent: Agent, version: int = 2, **initialize: Any) -> AsyncIterator[Talk]:
    """An initialized client of an agent."""
    ours, theirs = memory_pair()
    talk = Talk(theirs)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(agent.serve(ours))
        shape = (
            {"clientInfo": INFO, "clientCapabilities": {}}
            if version == 1
            else {"info": INFO, "capabilities": {}}
        )
        await talk.call("init", "initialize", protocolVersion=version, **{**shape, **initialize})
        try:
            yield talk
        finally:
            await theirs.aclose()
            await serving


@asynccontextmanager
async def session(agent: Agent, version: int = 2, **initialize: Any) -> AsyncIterator[tuple[Talk, str]]:
    """A client with a new session."""
    async with client(agent, version, **initialize) as talk:
        yield talk, (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
