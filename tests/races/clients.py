"""A client by hand in a race: plain JSON, all it sends and gets in one log, in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from antiphon.agent import Agent
from antiphon.transports.base import Inbox
from antiphon.transports.memory import memory_pair
from tests.races.schedule import Dialect, Op

INFO = {"name": "racer", "version": "1"}
PROMPTS = {Op.PROMPT: None, Op.STEER: "steer", Op.INTERRUPT: "interrupt"}
JOINS = (Op.LOAD, Op.RESUME, Op.ATTACH)


@dataclass
class Link:
    """One connection: what was sent over it (`>`) and what came (`<`), in order."""

    dialect: Dialect
    transport: Any
    log: list[tuple[str, Any]] = field(default_factory=list)
    ops: dict[str, Op] = field(default_factory=dict)
    """The requests by their ids."""
    taken_back: set[str] = field(default_factory=set)
    cut: bool = False
    serving: asyncio.Task[None] | None = None
    reading: asyncio.Task[None] | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def send(self, **frame: Any) -> None:
        self.log.append((">", frame))
        self.transport.send(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    async def read(self) -> None:
        inbox = Inbox(self.transport)
        while batch := await inbox.take():
            self.log += [("<", json.loads(frame)) for frame in batch if isinstance(frame, bytes)]
            self.arrived.set()

    def answers(self, id: str) -> list[dict[str, Any]]:
        return [
            frame for way, frame in self.log if way == "<" and frame.get("id") == id and "method" not in frame
        ]

    @property
    def unanswered(self) -> list[str]:
        answered = {frame.get("id") for way, frame in self.log if way == "<" and "method" not in frame}
        return [id for id in self.ops if id not in answered]

    async def until(self, done: Callable[[], Any]) -> None:
        while not done():
            self.arrived.clear()
            await self.arrived.wait()

    async def call(self, id: str, method: str, **params: Any) -> Any:
        self.send(id=id, method=method, params=params)
        await self.until(lambda: self.answers(id))
        (answer,) = self.answers(id)
        assert "result" in answer, answer
        return answer["result"]

    def updates(self) -> list[dict[str, Any]]:
        """The params of every `session/update`."""
        return [
            frame["params"]
            for way, frame in self.log
            if way == "<" and frame.get("method") == "session/update"
        ]

    async def close(self) -> None:
        await self.transport.aclose()
        for task in (self.serving, self.reading):
            if task is not None:
                await asyncio.gather(task, return_exceptions=True)


async def connect(agent: Agent, dialect: Dialect, **extras: Any) -> Link:
    ours, theirs = memory_pair()
    link = Link(dialect, theirs)
    loop = asyncio.get_running_loop()
    link.serving = loop.create_task(agent.serve(ours))
    link.reading = loop.create_task(link.read())
    if dialect is Dialect.V1_COMPLETE:
        extras = {**extras, "turnComplete": True}
    elif dialect is Dialect.V1_FUTURE:
        extras = {**extras, "promptLifecycle": 2}
    able = {"_meta": {"antiphon": extras}}
    shape: dict[str, Any] = (
        {"clientInfo": INFO, "clientCapabilities": able}
        if dialect.version == 1
        else {"info": INFO, "capabilities": able}
    )
    if dialect is Dialect.V2_PROPOSED:
        shape["_meta"] = {"antiphon": {"dialect": "proposed"}}
    await link.call("init", "initialize", protocolVersion=dialect.version, **shape)
    return link


class Racer:
    """A client of the race, and the links it has had, one after another."""

    def __init__(self, name: str, agent: Agent, dialect: Dialect, session: str = "") -> None:
        self.name = name
        self.agent = agent
        self.dialect = dialect
        self.session = session
        self.links: list[Link] = []
        self._count = 0
        self.known: list[str] = []
        """The ids of what it injected, as far as it was told."""

    @property
    def link(self) -> Link:
        return self.links[-1]

    async def connect(self, **extras: Any) -> None:
        self.links.append(await connect(self.agent, self.dialect, **extras))

    def do(self, op: Op, *, text: str = "long") -> str | None:
        """Do one thing, without waiting for anything; the id of the request, where it is one."""
        link = self.link
        if op is Op.CANCEL:
            link.send(method="session/cancel", params={"sessionId": self.session})
            return None
        if op is Op.TAKE_BACK:
            prompts = [id for id, of in link.ops.items() if of in PROMPTS]
            if prompts:
                link.taken_back.add(prompts[-1])
                link.send(method="$/cancel_request", params={"requestId": prompts[-1]})
            return None
        self._count += 1
        id = f"{self.name} {op} {self._count}"
        link.ops[id] = op
        method, params = self._request(op, f"{text} {id}")
        link.send(id=id, method=method, params={"sessionId": self.session, **params})
        return id

    def _request(self, op: Op, text: str) -> tuple[str, dict[str, Any]]:
        content = [{"type": "text", "text": text}]
        place = {"cwd": "/", "mcpServers": []}
        match op:
            case Op.PROMPT:
                return "session/prompt", {"prompt": content}
            case Op.STEER | Op.INTERRUPT:
                ours = {"delivery": PROMPTS[op]}
                return "session/prompt", {"prompt": content, "_meta": {"antiphon": ours}}
            case Op.INJECT:
                return "_antiphon/inject", {"content": content}
            case Op.EDIT:
                return "_antiphon/replace_inject", {"messageId": self._injected(), "content": content}
            case Op.MOVE:
                return "_antiphon/move_inject", {"messageId": self._injected()}
            case Op.WITHDRAW:
                return "_antiphon/revoke_inject", {"messageId": self._injected()}
            case Op.CLOSE:
                return "session/close", {}
            case Op.CLOSE_ALL:
                return "session/close", {"_meta": {"antiphon": {"forAll": True}}}
            case Op.LOAD if self.dialect.version == 1:
                return "session/load", place
            case Op.LOAD:
                return "session/resume", {**place, "replayFrom": {"type": "start"}}
            case Op.RESUME:
                return "session/resume", place
            case Op.ATTACH:
                return "_antiphon/attach", {"historyPolicy": "full"}
            case Op.DETACH:
                return "_antiphon/detach", {}
        raise AssertionError(op)

    def _injected(self) -> str:
        for link in self.links:
            for id, op in link.ops.items():
                for answer in link.answers(id) if op is Op.INJECT else ():
                    self.known.append(answer.get("result", {}).get("messageId", "none"))
        return self.known[-1] if self.known else "none"
