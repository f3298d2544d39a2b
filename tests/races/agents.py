"""The agents of a race: one made with the library, and one of each version, by hand, to be behind a hub.

A prompt with `long` in it works until it is cancelled, or until the race is over (`finish`); one with `speak`
makes the agent work by itself behind the turn; any other says a word and ends. `Works` keeps which prompts
are worked on, so that it can be seen what goes on after a close.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.stores.base import Batch, RecordPatch
from antiphon.stores.memory import MemoryStore
from antiphon.transports.base import Inbox
from tests.races.schedule import Agent as Behaviour

BY_ITSELF = "by-itself"


async def turns(count: int) -> None:
    """Let the event loop turn so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


class Lagging(MemoryStore):
    """A store that takes some turns of the event loop for each commit."""

    def __init__(self, lag: int) -> None:
        super().__init__()
        self._lag = lag

    async def append(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> None:
        await turns(self._lag)
        await super().append(session_id, batch, record=record)


class InPlace(MemoryStore):
    """A store that commits small batches in place, as SQLite does."""

    free = True

    def append_in_place(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> bool:
        try:
            self.append(session_id, batch, record=record).send(None)
        except StopIteration:
            return True
        raise AssertionError("nothing in it waits")


class Works:
    """The prompts that are worked on now."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.finish = asyncio.Event()
        """The race is over: whatever is at work ends."""
        self.numbers = itertools.count(1)
        self.cut_short = 0
        """How often a second cancel came while the first was being followed."""
        self._count = 0
        self._again = asyncio.Event()

    def begin(self) -> int:
        self._count += 1
        self.open.add(self._count)
        self._again.set()
        return self._count

    def end(self, work: int) -> None:
        self.open.discard(work)

    async def began(self) -> None:
        """Wait until something is worked on."""
        while not self.open:
            self._again.clear()
            await self._again.wait()


def library(behaviour: Behaviour, works: Works, store: MemoryStore) -> Agent:
    agent = Agent("racer", store=store)

    async def speak(session: AgentSession) -> None:
        await session.idle()
        async with session.turn() as turn:
            await work_on(turn, "long by itself")

    async def work_on(turn: AgentTurn, text: str) -> None:
        work = works.begin()
        try:
            await turn.say("by itself" if "by itself" in text else "begun")
            for _ in turn.steered():
                await turn.say("steered")
            if "long" in text:
                await works.finish.wait()
        except asyncio.CancelledError:
            try:
                await turns(behaviour.late_end)
                await turn.say("late")
            except asyncio.CancelledError:
                works.cut_short += 1
            raise
        finally:
            works.end(work)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await work_on(turn, turn.prompt.text)
        if "speak" in turn.prompt.text:
            turn.session.soon(speak(turn.session))

    return agent


class ByHand:
    """An agent without Antiphon, for a hub in this process: `serve` is one process of it."""

    def __init__(self, version: int, behaviour: Behaviour, works: Works) -> None:
        self._version = version
        self._behaviour = behaviour
        self._works = works
        self._links: set[_Served] = set()
        self.cancelled = asyncio.Event()
        """Whether a cancel has come."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ByHand]:
        yield self

    async def serve(self, transport: Any) -> None:
        served = _Served(transport, self._version, self._behaviour, self._works, self.cancelled)
        self._links.add(served)
        try:
            await served.run()
        finally:
            self._links.discard(served)

    async def kill(self) -> None:
        """Cut every link, as the death of the process does."""
        for served in tuple(self._links):
            await served.transport.aclose()


class _Served:
    def __init__(
        self, transport: Any, version: int, behaviour: Behaviour, works: Works, cancel_came: asyncio.Event
    ) -> None:
        self.transport = transport
        self._cancel_came = cancel_came
        self._version = version
        self._behaviour = behaviour
        self._works = works
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._cancelled: set[asyncio.Task[None]] = set()
        self._running: Counter[str] = Counter()
        """How much of each session is worked on: the state is of all of it (PROMPT-V2-19)."""
        self._unaccepted: set[asyncio.Task[Any] | None] = set()
        self._dead = False
        self._count = 0

    async def run(self) -> None:
        inbox = Inbox(self.transport)
        try:
            while batch := await inbox.take():
                for frame in map(json.loads, batch):
                    await self._handle(frame)
        finally:
            self._dead = True
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self.transport.aclose()

    def _send(self, **frame: Any) -> None:
        self.transport.send(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    def _tell(self, session: str, kind: str, **said: Any) -> None:
        update = {"sessionUpdate": kind, **said}
        self._send(method="session/update", params={"sessionId": session, "update": update})

    def _say(self, session: str, text: str, message: str) -> None:
        named = {"messageId": message} if self._version == 2 else {}
        self._tell(session, "agent_message_chunk", content={"type": "text", "text": text}, **named)

    async def _handle(self, frame: dict[str, Any]) -> None:
        method, id, params = frame.get("method"), frame.get("id"), frame.get("params", {})
        session = params.get("sessionId", "")
        match method:
            case "initialize":
                self._send(id=id, result=self._opening())
            case "session/new":
                self._count += 1
                self._send(id=id, result={"sessionId": f"upstream-{self._count}"})
            case "session/prompt":
                work = self._prompted if self._version == 2 else self._prompted_v1
                self._start(work(id, params), session)
                await asyncio.sleep(0)  # it begins: a task that is cancelled before that answers nothing
            case "session/cancel":
                self._cancel_came.set()
                if self._behaviour.dies:
                    await self.transport.aclose()
                self._cancel(session)
            case "session/close":
                await self._end(session)
                self._send(id=id, result={})
            case "session/load" | "session/resume":
                if self._version == 2:
                    self._tell(session, "state_update", state="idle")
                self._send(id=id, result={})
            case _ if id is not None and method is not None:
                self._send(id=id, error={"code": -32601, "message": f"no {method}"})

    def _start(self, work: Coroutine[Any, Any, None], session: str) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = session
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def _opening(self) -> dict[str, Any]:
        info = {"name": "hand", "version": "1"}
        if self._version == 2:
            return {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}
        able = {"resume": {}, **({"close": {}} if self._behaviour.closes else {})}
        return {
            "protocolVersion": 1,
            "agentInfo": info,
            "agentCapabilities": {"loadSession": True, "sessionCapabilities": able},
        }

    def _cancel(self, session: str) -> list[asyncio.Task[None]]:
        tasks = [task for task, of in self._tasks.items() if of == session]
        for task in tasks:
            if not (self._behaviour.deaf and task in self._unaccepted):
                self._cancelled.add(task)
                task.cancel()  # also a second time: the hub is not to send that
        return tasks

    async def _end(self, session: str) -> None:
        tasks = [task for task, of in self._tasks.items() if of == session]
        for task in tasks:
            if task not in self._cancelled:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _prompted_v1(self, id: Any, params: dict[str, Any]) -> None:
        reason = await self._work(params["sessionId"], params["prompt"], f"said-{id}")
        self._send(id=id, result={"stopReason": reason})
        self._speak(params)

    async def _prompted(self, id: Any, params: dict[str, Any]) -> None:
        number = next(self._works.numbers)  # PROMPT-V2-08: also what comes after a death has ids of its own
        session, message = params["sessionId"], f"user-{number}"
        self._unaccepted.add(asyncio.current_task())
        try:
            await turns(self._behaviour.late_accept)
        except asyncio.CancelledError:
            self._send(id=id, error={"code": self._behaviour.refuses, "message": "It was aborted"})
            return
        finally:
            self._unaccepted.discard(asyncio.current_task())
        self._send(id=id, result={"messageId": message})
        self._tell(session, "user_message", messageId=message, content=params["prompt"])
        await self._run(session, params["prompt"], f"said-{number}")
        self._speak(params)

    async def _run(self, session: str, prompt: list[Any], message: str) -> None:
        """Work, and tell the state as v2 has it."""
        self._running[session] += 1
        if self._running[session] == 1:
            self._tell(session, "state_update", state="running")
        reason = await self._work(session, prompt, message)
        self._running[session] -= 1
        if not self._running[session]:
            self._tell(session, "state_update", state="idle", stopReason=reason)

    def _speak(self, params: dict[str, Any]) -> None:
        """Work by itself, if that was asked for."""
        if "speak" in params["prompt"][0]["text"]:
            self._start(self._by_itself(params["sessionId"]), params["sessionId"])

    async def _by_itself(self, session: str) -> None:
        work = self._run if self._version == 2 else self._work
        await work(session, [{"text": "long by itself"}], BY_ITSELF)

    async def _work(self, session: str, prompt: list[Any], message: str) -> str:
        work = self._works.begin()
        try:
            self._say(session, "by itself" if "by itself" in prompt[0]["text"] else "begun", message)
            if any("long" in block.get("text", "") for block in prompt):
                await self._works.finish.wait()
        except asyncio.CancelledError:
            try:
                await turns(self._behaviour.late_end)
                self._say(session, "late", message)
            except asyncio.CancelledError:
                # Nobody knows that a v1 agent works by itself: the cancel of another turn reaches that, too.
                known = self._version == 2 or message != BY_ITSELF
                self._works.cut_short += known and not self._dead
            return "cancelled"
        finally:
            self._works.end(work)
        return "end_turn"
