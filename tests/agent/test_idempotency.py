"""Whatever is asked for twice happens once: random sequences of operations with copies of earlier ones among
them, over restarts, leave the journals that the same sequences leave without the copies."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct, field

from antiphon import Agent, AgentTurn
from antiphon.agent import AgentSession
from antiphon.engine.prompt_states import PromptState
from antiphon.stores import SQLiteStore
from tests.agent.talk import DEADLINE, Talk, client

KINDS = ("say", "wait", "ask", "inject", "cancel", "allow", "reject", "revoke", "new")
IDS = re.compile(r"(?!sess_)([a-z]+_)[0-9a-f]{24}")
MAIN = "main"
ME = {"antiphon": {"clientId": "me"}}


class Operation(Struct):
    """One thing that is asked for, and what became of it each time."""

    number: int
    kind: str
    params: dict[str, Any] = {}
    requests: list[tuple[Talk, str]] = field(default_factory=list)
    """Where it was asked and is not answered yet."""
    outcomes: list[Any] = field(default_factory=list)


class Run:
    """A client of an agent, both of which come and go."""

    def __init__(self, path: Path, version: int) -> None:
        self.path = path
        self.version = version
        self.operations: list[Operation] = []
        self.sessions: list[str] = []
        self._asked = 0
        self._cancels: set[int] = set()
        """The cancels that were asked for: one that is repeated changes nothing."""
        self._cancelled: int | None = None
        """The turn that was cancelled last."""

    async def begin(self) -> None:
        self._life = AsyncExitStack()
        self.agent = Agent("operated", store=SQLiteStore(self.path))
        self.agent.on_prompt(self._work)
        self.resting = False
        await self._life.enter_async_context(self.agent.serving())
        self.talk = await self._life.enter_async_context(client(self.agent, self.version, _meta=ME))
        for id in self.sessions:
            await self._call("session/resume", {"sessionId": id, "cwd": "/", "mcpServers": []})
        if not self.sessions:
            answer = await self._call("session/new", self._begun(MAIN))
            self.sessions.append(answer["result"]["sessionId"])

    async def end(self) -> None:
        for operation in self.operations:
            operation.requests.clear()  # nobody is there to be answered
        await self._life.aclose()

    async def _work(self, turn: AgentTurn) -> None:
        word = turn.prompt.text
        try:
            if word == "wait":
                self.resting = True
                await asyncio.Event().wait()
            elif word == "ask":
                async with turn.tool_call("act", kind="execute") as call:
                    self.resting = True
                    allowed = await call.request_permission()
                    self.resting = False
                await turn.say(f"allowed: {allowed}")
            else:
                await turn.say(f"heard {word}")
        finally:
            self.resting = False

    @property
    def main(self) -> AgentSession:
        session = self.agent.find(self.sessions[0])
        assert session is not None
        return session

    # --- operations --------------------------------------------------------------------------------

    async def do(self, kind: str) -> None:
        operation = Operation(len(self.operations), kind)
        operation.params = self._params(operation)
        self.operations.append(operation)
        await self._ask(operation)

    async def repeat(self, which: int) -> None:
        if not self.operations:
            return
        operation = self.operations[-1 - which % len(self.operations)]
        entry = self.main.fold.prompts.of_operation(str(operation.number))
        if self.main.fold.prompts.paused and entry is not None and entry.state is PromptState.QUEUED:
            return  # to ask again for what waits is to want it: that goes on with the queue
        await self._ask(operation)

    def _params(self, operation: Operation) -> dict[str, Any]:
        named, of = {"operationId": str(operation.number)}, {"sessionId": self.sessions[0]}
        content = [{"type": "text", "text": operation.kind}]
        match operation.kind:
            case "say" | "wait" | "ask":
                return {**of, "prompt": content, "_meta": {"antiphon": named}}
            case "inject":
                return {**of, "content": content, "mode": "queue", **named}
            case "cancel":
                return {**of, "_meta": {"antiphon": named}}
            case "revoke":
                waiting = [entry.message_id for entry in self.main.fold.queue if not entry.held]
                return {**of, "messageId": waiting[0] if waiting else "nobody's", **named}
            case "new":
                return self._begun(str(operation.number))
        open = self.main.fold.questions.open
        chosen = {"outcome": {"outcome": "cancelled"}}
        if open and operation.kind == "allow":
            assert open[0].permission is not None
            option = next(o for o in open[0].permission.options if o.kind == "allow_once")
            chosen = {"outcome": {"outcome": "selected", "optionId": option.option_id}}
        return {**of, "questionId": open[0].question_id if open else "nobody's", **chosen, **named}

    def _begun(self, operation: str) -> dict[str, Any]:
        return {"cwd": "/", "mcpServers": [], "_meta": {"antiphon": {"operationId": operation}}}

    async def _ask(self, operation: Operation) -> None:
        method = {
            "say": "session/prompt",
            "wait": "session/prompt",
            "ask": "session/prompt",
            "inject": "_antiphon/inject",
            "cancel": "session/cancel",
            "revoke": "_antiphon/revoke_inject",
            "new": "session/new",
        }.get(operation.kind, "_antiphon/answer")
        if method == "session/cancel":
            turn = self.main.fold.turn
            if operation.number not in self._cancels and turn is not None:
                self._cancelled = turn.turn_id
            self._cancels.add(operation.number)
            self.talk.send(method=method, params=operation.params)
        elif method == "session/prompt":
            operation.requests.append((self.talk, self._send(method, operation.params)))
        else:
            answer = await self._call(method, operation.params)
            operation.outcomes.append(answer.get("result", answer.get("error")))
            if method == "session/new" and (id := answer["result"]["sessionId"]) not in self.sessions:
                self.sessions.append(id)

    def _send(self, method: str, params: dict[str, Any]) -> str:
        self._asked += 1
        self.talk.send(id=f"r{self._asked}", method=method, params=params)
        return f"r{self._asked}"

    async def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return await self.talk.answer_to(self._send(method, params))

    async def settle(self) -> None:
        """Everything that was asked has come to rest, and what is answered is known."""
        await self._call("session/list", {})  # it is read behind all of that
        async with asyncio.timeout(DEADLINE):
            while not self._at_rest():
                await self._call("session/list", {})
        await self.main.live.durable()
        await self._call("session/list", {})
        for operation in self.operations:
            for talk, id in tuple(operation.requests):
                found = [frame for frame in talk.seen if frame.get("id") == id and "method" not in frame]
                if found:
                    operation.requests.remove((talk, id))
                    operation.outcomes.append(found[0].get("result", found[0].get("error")))

    def _at_rest(self) -> bool:
        fold = self.main.fold
        if fold.turn is not None:
            return self.resting and fold.turn.turn_id != self._cancelled
        return fold.prompts.paused or not fold.queue

    async def journals(self) -> dict[str, list[str]]:
        """What is in the store, but for times, made-up ids, and the ids of the requests that asked for it."""
        store = SQLiteStore(self.path)
        told = {}
        for n, id in enumerate(self.sessions):
            lines = [line for batch in (await store.read(id, 0)).batches for line in batch.events]
            told[f"{n} {id}"] = named("\n".join(json.dumps(body(line)) for line in lines))
        await store.aclose()
        return told


def body(line: bytes) -> dict[str, Any]:
    """What an event says. A request that comes twice has two ids, and the journal keeps the first."""
    said: dict[str, Any] = json.loads(line)["body"]
    said.pop("request_id", None)
    return said


def named(journal: str) -> list[str]:
    """The lines of a journal, its made-up ids replaced by their numbers."""
    seen: dict[str, str] = {}
    return IDS.sub(lambda id: seen.setdefault(id[0], f"{id[1]}{len(seen)}"), journal).split("\n")


Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(KINDS), st.just(0)),
        st.tuples(st.just("repeat"), st.integers(0, 3)),
        st.tuples(st.just("repeat"), st.integers(0, 20)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    min_size=2,
    max_size=14,
)


async def run(path: Path, version: int, steps: list[Step], *, repeats: bool) -> Run:
    made = Run(path, version)
    await made.begin()
    for kind, which in steps:
        if kind == "restart":
            await made.end()
            await made.begin()
        elif kind != "repeat":
            await made.do(kind)
        elif repeats:
            await made.repeat(which)
        await made.settle()
    await made.end()
    return made


def same(first: Any, again: Any) -> bool:
    """Whether an outcome is that of before, but for what it tells of its repetition."""
    return without_meta(first) == without_meta(again)


def without_meta(outcome: Any) -> Any:
    return {key: value for key, value in outcome.items() if key not in ("_meta", "configOptions")}


AGAIN = ("repeat", 0)
RESTART = ("restart", 0)


@pytest.mark.parametrize("version", [1, 2])
@settings(max_examples=30)
@given(steps=STEPS)
@example(steps=[("ask", 0), ("allow", 0), AGAIN, ("reject", 0), AGAIN, ("repeat", 1), RESTART, ("repeat", 1)])
@example(
    [("wait", 0), ("inject", 0), ("say", 0), ("repeat", 1), ("cancel", 0), ("repeat", 1), RESTART, AGAIN]
)
@example(steps=[("wait", 0), AGAIN, RESTART, AGAIN, ("wait", 0), ("cancel", 0), ("wait", 0), ("repeat", 1)])
@example(steps=[("new", 0), AGAIN, RESTART, AGAIN, ("ask", 0), AGAIN, ("allow", 0), ("repeat", 1)])
def test_invariant_6_what_is_asked_for_twice_happens_once(version: int, steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asked = asyncio.run(run(Path(folder, "with.db"), version, steps, repeats=True))
        plain = asyncio.run(run(Path(folder, "without.db"), version, steps, repeats=False))
        assert asyncio.run(asked.journals()) == asyncio.run(plain.journals())
    for operation in asked.operations:
        for outcome in operation.outcomes[1:]:
            assert same(operation.outcomes[0], outcome), operation
        ends = [each.get("_meta", {}).get("antiphon", {}).get("stopReason") for each in operation.outcomes]
        assert len(set(filter(None, ends))) <= 1
