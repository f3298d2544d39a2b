"""An agent by hand for the habits of real agents: what it sends, and when, is for a test to say.

It runs beside the hub, over a pair of pipes in memory, and says raw JSON.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from antiphon.transports.base import Inbox

Frame = dict[str, Any]
Act = Callable[["Habit", Frame], None]


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def answer_new(agent: Habit, frame: Frame) -> None:
    agent.answer(frame, sessionId=agent.session)


def refuse(agent: Habit, frame: Frame) -> None:
    agent.send(id=frame["id"], error={"code": -32002, "message": "no such session"})


def end_turn(agent: Habit, frame: Frame) -> None:
    """A prompt and its turn, as they should be."""
    if agent.version == 1:
        agent.answer(frame, stopReason="end_turn")
        return
    agent.answer(frame, messageId=f"user-{frame['id']}")
    agent.update("user_message", messageId=f"user-{frame['id']}", content=frame["params"]["prompt"])
    agent.update("state_update", state="running")
    agent.update("state_update", state="idle", stopReason="end_turn")


class Habit:
    """Does `new` on `session/new`, `prompt` on `session/prompt`, and answers everything else."""

    session = "s"

    def __init__(
        self,
        version: int,
        *,
        new: Act = answer_new,
        prompt: Act = end_turn,
        fork: Act | None = None,
        resume: Act | None = None,
        able: dict[str, Any] | None = None,
    ) -> None:
        self.version = version
        self._acts: dict[str, Act] = {"session/new": new, "session/prompt": prompt}
        if fork is not None:
            self._acts["session/fork"] = fork
        if resume is not None:
            self._acts["session/resume"] = resume
        self._able = able or {}
        self.heard: list[Frame] = []
        """Every frame that came."""
        self.asked = 0
        self.on_answer: Act | None = None
        """Called with the answers to what it asked."""
        self.transport: Any = None

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Habit]:
        yield self

    # --- what it says ------------------------------------------------------------------------------

    def send(self, **frame: Any) -> None:
        self.transport.send(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    def answer(self, frame: Frame, **result: Any) -> None:
        self.send(id=frame["id"], result=result)

    def update(self, kind: str, **said: Any) -> None:
        self.updates({"sessionUpdate": kind, **said})

    def updates(self, *updates: Any, **beside: Any) -> None:
        for update in updates:
            params = {"sessionId": self.session, "update": update, **beside}
            self.send(method="session/update", params=params)

    def say(self, said: str, message: str = "a", **more: Any) -> None:
        named = {} if self.version == 1 else {"messageId": message}
        self.update("agent_message_chunk", content=text(said), **named, **more)

    def notify(self, method: str, **params: Any) -> None:
        self.send(method=method, params=params)

    def ask(self, method: str, **params: Any) -> str:
        self.asked += 1
        self.send(id=f"q{self.asked}", method=method, params={"sessionId": self.session, **params})
        return f"q{self.asked}"

    def ask_permission(self, call: dict[str, Any], **more: Any) -> str:
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
        about: dict[str, Any] = {"toolCall": call}
        if self.version == 2:
            about = {"title": "May I?", "subject": {"type": "tool_call", "toolCall": call}}
        return self.ask("session/request_permission", options=options, **about, **more)

    # --- what it hears -----------------------------------------------------------------------------

    async def serve(self, transport: Any) -> None:
        self.transport = transport
        inbox = Inbox(transport)
        while batch := await inbox.take():
            for frame in map(json.loads, batch):
                self.heard.append(frame)
                self._hear(frame)
        await transport.aclose()

    def _hear(self, frame: Frame) -> None:
        method = frame.get("method")
        if method is None and self.on_answer is not None:
            self.on_answer(self, frame)
        if method is None or "id" not in frame:
            return
        if method == "initialize":
            self.send(id=frame["id"], result=self._initialized())
        elif method in self._acts:
            self._acts[method](self, frame)
        else:
            self.answer(frame)

    def _initialized(self) -> Any:
        named = {"name": "habit", "version": "1"}
        if self.version == 1:
            return {"protocolVersion": 1, "agentInfo": named, "agentCapabilities": self._able}
        return {"protocolVersion": 2, "info": named, "capabilities": {"session": {}, **self._able}}
