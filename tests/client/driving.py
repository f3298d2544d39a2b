"""Ways to drive an agent in the tests: a good one in this process, a sloppy one as a child, one by hand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon.agent import Agent
from antiphon.client import Client, ClientSession, connect
from antiphon.schema import v2
from antiphon.wire import OptIns
from tests.connection.scripted import V1_ANSWER, V2_ANSWER, Scripted
from tests.options import connect_options

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

    opening: dict[str, Any]
    """The params of `initialize`, if it was answered by `opened`."""

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


class Opening:
    """A target of `connect`: an agent that answers `initialize`, and is then in the hands of a test."""

    agent: ByHand

    def __init__(self, answer: dict[str, Any]) -> None:
        self._answer = answer

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        yield

    async def serve(self, transport: Any) -> None:
        self.agent = ByHand(transport)
        asked = await self.agent.expect("initialize")
        self.agent.opening = asked["params"]
        self.agent.send(id=asked["id"], result=self._answer)


@asynccontextmanager
async def opened(
    version: int = 2, capabilities: dict[str, Any] | None = None, *, only: Any = None, **options: Any
) -> AsyncIterator[tuple[Client, ByHand]]:
    """An initialized client, and its agent by hand. `only`: the version that the client accepts."""
    answer = dict(V1_ANSWER if version == 1 else V2_ANSWER)
    if capabilities is not None:
        answer["agentCapabilities" if version == 1 else "capabilities"] = capabilities
    target = Opening(answer)
    async with (
        asyncio.timeout(DEADLINE),
        connect(target, version=only, **connect_options(**options)) as client,
    ):
        yield client, target.agent


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
