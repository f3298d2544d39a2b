"""A hub with an agent in this process, and clients that come with tokens of their own, over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon.agent import Agent, AgentTurn
from antiphon.errors import MethodNotFound
from antiphon.hub import Hub
from antiphon.hub.access.tokens import create_token
from antiphon.server.method import Role
from antiphon.stores.memory import MemoryStore
from antiphon.transports.websocket import connect_websocket
from tests.agent.talk import INFO, Talk
from tests.options import hub_options

DEADLINE = 60.0


def worker(go: asyncio.Event) -> Agent:
    agent = Agent("worker", version="1")
    agent.config("model", options={"small": "Small", "large": "Large"}, default="small")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        word, _, kind = turn.prompt.text.partition(" ")
        if word == "later":
            await go.wait()
        if word in ("ask", "later"):
            async with turn.tool_call("Touch", kind=kind or "edit") as call:
                allowed = await call.request_permission()
            await turn.say(f"allowed: {allowed}")
        elif word == "consult":
            try:
                await turn.say(f"told {await turn.session.call_extension('_example.com/who')}")
            except MethodNotFound:
                await turn.say("nobody knows")
        elif word == "setup":
            servers = [server.name for server in turn.session.mcp_servers]
            await turn.say(f"servers {servers}, folders {list(turn.session.additional_directories)}")
        elif word == "nest":
            async with turn.subagent("helper") as helper:
                await helper.say("nested")
                await go.wait()
        elif word == "wait":
            await turn.say("waiting")
            await asyncio.Event().wait()
        else:
            await turn.say(f"heard {turn.prompt.text}")

    @agent.extension("_example.com/echo")
    async def echo(params: Any, session: Any) -> Any:
        return params

    return agent


class Doors:
    def __init__(self, hub: Hub, folder: Path, go: asyncio.Event) -> None:
        self.hub = hub
        self.go = go
        """Lets the agent go on that was told to ask `later`, or to `nest`."""
        self._folder = folder

    @property
    def address(self) -> str:
        return f"ws://127.0.0.1:{self.hub.port}/acp"

    def token(self, name: str, role: str, **limits: Any) -> str:
        return create_token(self._folder / "tokens.json", name, Role(role), **limits)

    @property
    def tokens(self) -> Path:
        return self._folder / "tokens.json"

    @asynccontextmanager
    async def talk(
        self, token: str | None = None, version: int = 2, **initialize: Any
    ) -> AsyncIterator[Talk]:
        secret = self.hub.token if token is None else token
        transport = await connect_websocket(self.address, headers={"Authorization": f"Bearer {secret}"})
        talk = Talk(transport)
        shape: dict[str, Any] = (
            {"clientInfo": INFO, "clientCapabilities": {}}
            if version == 1
            else {"info": INFO, "capabilities": {}}
        )
        try:
            await talk.call("init", "initialize", protocolVersion=version, **{**shape, **initialize})
            yield talk
        finally:
            await transport.aclose()

    def audit(self, **wanted: Any) -> list[dict[str, Any]]:
        """The lines that have all of this."""
        path = self._folder / "audit.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in lines if wanted.items() <= line.items()]

    async def audited(self, **wanted: Any) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE):
            while True:  # a file that another part of the hub writes
                if found := self.audit(**wanted):
                    return found[-1]
                await asyncio.sleep(0.01)


@asynccontextmanager
async def doors(folder: Path, **hub: Any) -> AsyncIterator[Doors]:
    go = asyncio.Event()
    made = Hub(
        hub.pop("agents", None) or {"worker": worker(go)},
        store=hub.pop("store", None) or MemoryStore(),
        page=hub.pop("page", {"/": (b"<!doctype html>", "text/html; charset=utf-8")}),
        **hub_options(tokens=folder / "tokens.json", audit=folder / "audit.jsonl", **hub),
    )
    async with made.listening():
        yield Doors(made, folder, go)


async def is_open(talk: Talk, session: str) -> bool:
    """Whether the hub has a session open, which it has also for other clients."""
    id = f"status {len(talk.seen)}"  # each call has another one
    return bool((await talk.call(id, "session/status", sessionId=session))["status"] == "open")


async def refused(talk: Talk, id: Any, method: str, /, **params: Any) -> dict[str, Any] | None:
    """The error that a request was answered with, if it was."""
    talk.send(id=id, method=method, params=params)
    error: dict[str, Any] | None = (await talk.answer_to(id)).get("error")
    return error
