"""Ways to drive an agent in the tests: a good one in this process, a sloppy one as a child, one by hand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon.agent import Agent
from antiphon.client import Client, ClientSession, connect
from antiphon.schema import v2
from antiphon.transports.memory import memory_pair
from antiphon.wire import OptIns
from tests.connection.scripted import V1_ANSWER, V2_ANSWER, Scripted
from tests.options import client_options, connect_options

DEADLINE = 60.0
WAYS: dict[str, dict[str, Any]] = {
    "v1": {"version": 1, "opt_ins": OptIns()},
    "v1 with turn_complete": {"version": 1, "opt_ins": OptIns(turn_complete=True)},
    "v2": {"version": 2},
    "v2 as proposed": {"version": "v2-proposed"},
}
"""The four ways in which a turn's end is told."""
V2_WAYS = ("v2", "v2 as proposed")
SLOPPY = Path(__file__).with_name("sloppy_agent.py")


@asynccontextmanager
async def driven(agent: Agent, way: str = "v2", **options: Any) -> AsyncIterator[ClientSession]:
    """A session of an agent in this process."""
    async with (
        asyncio.timeout(DEADLINE),
        connect(agent, **connect_options(**{**WAYS[way], **options})) as client,
    ):
        yield await client.new_session("/")


@asynccontextmanager
async def sloppy(*flags: str, **options: Any) -> AsyncIterator[ClientSession]:
    """A session of the sloppy agent, a real process behind pipes."""
    command = [sys.executable, str(SLOPPY), *flags]
    async with asyncio.timeout(DEADLINE), connect(command, **connect_options(**options)) as client:
        yield await client.new_session("/")


class ByHand(Scripted):
    """An agent whose every frame is written in the test."""

    async def prompted(self) -> Any:
        """The id of the next prompt."""
        return (await self.expect("session/prompt"))["id"]

    def told(self, kind: str, **fields: Any) -> None:
        params = {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}}
        self.send(method="session/update", params=params)

    def say(self, words: str, message_id: str | None = "m") -> None:
        named = {} if message_id is None else {"messageId": message_id}
        self.told("agent_message_chunk", content={"type": "text", "text": words}, **named)

    def shows(self, message_id: str) -> None:
        self.told("user_message", messageId=message_id, content=[{"type": "text", "text": "…"}])

    def state(self, state: str, **fields: Any) -> None:
        self.told("state_update", state=state, **fields)

    def takes(self, id: Any, message_id: str) -> None:
        self.send(id=id, result={"messageId": message_id})

    def ends(self, id: Any, reason: str = "end_turn", **fields: Any) -> None:
        """Answer a v1 prompt."""
        self.send(id=id, result={"stopReason": reason, **fields})

    def asks(self, id: str, call: str = "t", **fields: Any) -> None:
        """A v1 permission request."""
        options = [
            {"optionId": "y", "name": "Yes", "kind": "allow_once"},
            {"optionId": "n", "name": "No", "kind": "reject_once"},
        ]
        subject = {"toolCallId": call, "title": "Act", **fields}
        params = {"sessionId": "s", "toolCall": subject, "options": options}
        self.send(id=id, method="session/request_permission", params=params)

    async def heard_nothing(self, session: ClientSession) -> None:
        """The client has sent nothing that was not read here: the next frame is one that we let it send."""
        await session.client.connection.notify("_mark", {})
        await self.expect("_mark")

    async def settled(self, session: ClientSession) -> None:
        """Everything sent so far has been applied."""
        self.send(id="settled", method="_settled", params={})
        while (await self.receive()).get("id") != "settled":
            pass
        applied = asyncio.Event()
        session.client.connection.after_received(session.id, applied.set)
        await applied.wait()


@asynccontextmanager
async def opened(
    version: int = 2, capabilities: dict[str, Any] | None = None, *, only: Any = None, **options: Any
) -> AsyncIterator[tuple[Client, ByHand]]:
    """An initialized client, and its agent by hand. `only`: the version that the client accepts."""
    answer = dict(V1_ANSWER if version == 1 else V2_ANSWER)
    if capabilities is not None:
        answer["agentCapabilities" if version == 1 else "capabilities"] = capabilities
    async with asyncio.timeout(DEADLINE), AsyncExitStack() as stack:
        ours, theirs = memory_pair()
        agent = ByHand(theirs)
        stack.push_async_callback(theirs.aclose)
        client = Client(ours, version=only, **client_options(**options))
        await stack.enter_async_context(client.connection)
        opening = asyncio.ensure_future(client._initialize())
        agent.send(id=(await agent.expect("initialize"))["id"], result=answer)
        await opening
        yield client, agent


@asynccontextmanager
async def by_hand(
    version: int = 2, capabilities: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[ClientSession, ByHand]]:
    """The session `s` of an agent by hand."""
    async with opened(version, capabilities, **options) as (client, agent):
        new = asyncio.ensure_future(client.new_session("/"))
        agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": "s"})
        yield await new, agent


def kinds(updates: list[Any]) -> list[str]:
    """The wire names of updates, in short."""
    return [
        update["sessionUpdate"] if isinstance(update, dict) else update.__struct_config__.tag
        for update in updates
    ]


async def updates_of(turn: Any) -> list[Any]:
    """All updates of a turn, watched from now on."""
    return [update async for update in turn.updates()]


def text(words: str) -> v2.ContentBlock:
    return v2.TextContent(text=words)
