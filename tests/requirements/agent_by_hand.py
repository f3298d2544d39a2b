"""An agent by hand, talking to the real client: plain JSON over a memory pair, all it gets kept in order.

The mirror image of `tests/agent/talk.py`. The script of the agent is written inside the test: it takes a
request, answers it and sends updates, in the words of v1 or of v2.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any, TypeVar

import msgspec

from antiphon.client import Client, ClientSession, ClientTurn, SessionEvent
from antiphon.transports.base import Inbox
from antiphon.transports.memory import memory_pair
from tests.options import client_options

DEADLINE = 60.0
"""Seconds for a whole conversation: whatever a test waits for comes in this time, or never."""
INFO = {"name": "by hand", "version": "1"}
ALL_V1: dict[str, Any] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"resume": {}, "list": {}, "close": {}, "delete": {}, "additionalDirectories": {}},
}
"""Everything that a v1 agent can offer."""
ALL_V2: dict[str, Any] = {
    "session": {
        "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
        "mcp": {"stdio": {}, "http": {}},
        "delete": {},
        "additionalDirectories": {},
    }
}
"""The same in v2."""
T = TypeVar("T")
Frame = dict[str, Any]


def text(words: str) -> dict[str, Any]:
    """A text block as it stands on the wire."""
    return {"type": "text", "text": words}


def opening(version: int, capabilities: Any = None, **more: Any) -> dict[str, Any]:
    """The answer to `initialize` in the shape of a version."""
    if version == 1:
        able = ALL_V1 if capabilities is None else capabilities
        return {"protocolVersion": 1, "agentInfo": INFO, "agentCapabilities": able, **more}
    able = ALL_V2 if capabilities is None else capabilities
    return {"protocolVersion": 2, "info": INFO, "capabilities": able, **more}


class AgentByHand:
    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self._inbox = Inbox(transport)
        self.seen: list[Frame] = []
        """Every frame received, in order."""
        self._taken: set[int] = set()
        self._tasks: list[asyncio.Task[Any]] = []
        self._asked = 0

    # What the client sends

    async def until(self, condition: Callable[[Frame], bool]) -> Frame:
        """The first frame that fits and was not given before; what else comes is kept in `seen`."""
        at = 0
        while True:
            while at < len(self.seen):
                if at not in self._taken and condition(self.seen[at]):
                    self._taken.add(at)
                    return self.seen[at]
                at += 1
            batch = await self._inbox.take()
            assert batch, "the link ended"
            self.seen += [json.loads(frame) for frame in batch if isinstance(frame, bytes)]

    async def request(self, method: str) -> Frame:
        """The next request or notification of a method."""
        return await self.until(lambda frame: frame.get("method") == method)

    async def answer_to(self, id: Any) -> Frame:
        """The client's answer to a request of ours."""
        return await self.until(lambda frame: frame.get("id") == id and "method" not in frame)

    async def link_ended(self) -> bool:
        """Wait for the client to close its end."""
        while await self._inbox.take():
            pass
        return True

    def sent(self, *methods: str) -> list[Any]:
        """The params of every request and notification of these methods so far."""
        return [frame["params"] for frame in self.seen if frame.get("method") in methods]

    def methods(self) -> list[str]:
        """What the client asked for or told, in order, `initialize` left out."""
        named = [frame["method"] for frame in self.seen if "method" in frame]
        return [method for method in named if method != "initialize"]

    # What the agent sends

    def send(self, **frame: Any) -> None:
        self.transport.send(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    def answer(self, request: Frame, result: Any) -> None:
        self.send(id=request["id"], result=result)

    def refuse(self, request: Frame, code: int, message: str = "No", **data: Any) -> None:
        error: dict[str, Any] = {"code": code, "message": message}
        self.send(id=request["id"], error={**error, "data": data} if data else error)

    def update(self, session: ClientSession | str, kind: str, /, **fields: Any) -> None:
        session_id = session if isinstance(session, str) else session.id
        params = {"sessionId": session_id, "update": {"sessionUpdate": kind, **fields}}
        self.send(method="session/update", params=params)

    def state(self, session: ClientSession | str, state: str, /, **fields: Any) -> None:
        """Tell a state, in v2."""
        self.update(session, "state_update", state=state, **fields)

    def says(self, session: ClientSession | str, words: str, **fields: Any) -> None:
        """One chunk of an agent message; in v2 with its `messageId`."""
        self.update(session, "agent_message_chunk", content=text(words), **fields)

    def ask(self, method: str, **params: Any) -> str:
        """Send a request of our own; gives its id."""
        self._asked += 1
        id = f"ask-{self._asked}"
        self.send(id=id, method=method, params=params)
        return id

    async def settled(self, session: ClientSession) -> None:
        """Everything sent up to now has been applied by the client."""
        await self.answer_to(self.ask("_settled"))
        applied = asyncio.Event()
        session.client.connection.after_received(session.id, applied.set)
        await applied.wait()

    # The client's side, as far as it has to go on at the same time

    def meanwhile(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin something that waits for what the agent does next."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.append(task)
        return task

    def initializing(self, client: Client) -> asyncio.Task[None]:
        """Let the client send `initialize`. `connect` returns no client before it is answered, and tests of
        the first frames need one."""
        return self.meanwhile(client._initialize())

    async def new_session(self, client: Client, id: str = "s", **result: Any) -> ClientSession:
        """Let the client make a session, and answer it."""
        making = self.meanwhile(client.new_session("/site"))
        self.answer(await self.request("session/new"), {"sessionId": id, **result})
        return await making

    async def prompted(self, session: ClientSession, words: str, message_id: str = "u1") -> ClientTurn:
        """Let the client prompt; in v2 it is accepted, its message is not shown yet and nothing runs.

        In v1 the request is left to be answered: `request("session/prompt")` gives it.
        """
        prompting = self.meanwhile(session.prompt(words))
        if session.client.agreement.version == 2:
            self.answer(await self.request("session/prompt"), {"messageId": message_id})
        return await prompting

    async def working(self, session: ClientSession, words: str, message_id: str = "u1") -> ClientTurn:
        """The same in v2, and its message is shown and it runs."""
        turn = await self.prompted(session, words, message_id)
        self.update(session, "user_message", messageId=message_id, content=[text(words)])
        self.state(session, "running")
        await self.settled(session)
        return turn

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def unopened(**options: Any) -> AsyncIterator[tuple[Client, AgentByHand]]:
    """A client that has not called `initialize`, and its agent."""
    ours, theirs = memory_pair()
    agent = AgentByHand(theirs)
    client = Client(ours, **client_options(**options))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(DEADLINE))
        await stack.enter_async_context(client.connection)
        stack.push_async_callback(agent.aclose)
        yield client, agent


@asynccontextmanager
async def opened(
    version: int = 2,
    capabilities: Any = None,
    *,
    answer: dict[str, Any] | None = None,
    only: Any = None,
    **options: Any,
) -> AsyncIterator[tuple[Client, AgentByHand]]:
    """A client that is connected to an agent of a version, which can do everything unless told otherwise.
    `only`: the version that the client accepts."""
    async with unopened(version=only, **options) as (client, agent):
        initializing = agent.initializing(client)
        agent.answer(await agent.request("initialize"), answer or opening(version, capabilities))
        await initializing
        yield client, agent


@asynccontextmanager
async def session(
    version: int = 2, capabilities: Any = None, **options: Any
) -> AsyncIterator[tuple[ClientSession, AgentByHand]]:
    """The same, with a session that is named `s`."""
    async with opened(version, capabilities, **options) as (client, agent):
        yield await agent.new_session(client), agent


class Scripted:
    """An agent by hand for `connect`: it answers `initialize` as told, and waits for the end of the link."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.ended = False

    def serving(self) -> Any:
        return nullcontext()

    async def serve(self, transport: Any) -> None:
        agent = AgentByHand(transport)
        agent.answer(await agent.request("initialize"), self.answer)
        self.ended = await agent.link_ended()


def story(session: ClientSession) -> list[tuple[str, str, str]]:
    """The messages of a session: role, id and text, in their order."""
    return [(str(message.role), message.message_id, message.text) for message in session.messages]


def whole(item: Any) -> Any:
    """Something the session holds, as the one update that says all of it, in JSON."""
    return msgspec.json.decode(msgspec.json.encode(item.materialize()))


class Heard:
    """What `session.events()` tells from here on."""

    def __init__(self, session: ClientSession, agent: AgentByHand) -> None:
        self.events: list[SessionEvent] = []
        self._session = session
        self._changed = asyncio.Event()
        agent.meanwhile(self._watch())

    async def _watch(self) -> None:
        async for event in self._session.events():
            self.events.append(event)
            self._changed.set()

    async def until(self, condition: Callable[[SessionEvent], bool]) -> SessionEvent:
        """The first event that fits."""
        while True:
            for event in self.events:
                if condition(event):
                    return event
            self._changed.clear()
            await self._changed.wait()
