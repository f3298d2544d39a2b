"""A hub in this process, with an agent that does what the prompt says, and the bare server for the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from antiphon import Agent, AgentTurn
from antiphon.hub import Hub
from antiphon.remote.http_server import http_server
from antiphon.remote.http_transport import HttpTransport
from antiphon.remote.websocket_server import ServerOptions
from tests.http.raw import Raw


def make_agent() -> tuple[Agent, asyncio.Event]:
    """`stream N [SIZE]`, `blocks N`, `ask`, `wait` (until the event is set); anything else is echoed."""
    agent, go = Agent("echo"), asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        word, _, rest = turn.prompt.text.partition(" ")
        if word == "stream":
            count, _, size = rest.partition(" ")
            async with turn.message() as message:
                for number in range(int(count)):
                    await message.write(f"{number}{'x' * int(size or 0)} ")
        elif word == "blocks":
            async with turn.message() as message:
                await message.replace(*(f"{number} " for number in range(int(rest))))
        elif word == "ask":
            async with turn.tool_call("Touch", kind="edit") as call:
                allowed = await call.request_permission()
            await turn.say(f"allowed: {allowed}")
        elif word == "wait":
            await turn.say("waiting")
            await go.wait()
            await turn.say("went on")
        else:
            await turn.say(f"heard {turn.prompt.text}")

    return agent, go


@asynccontextmanager
async def hub_at_hand() -> AsyncIterator[tuple[Hub, Raw, asyncio.Event]]:
    agent, go = make_agent()
    hub = Hub({"echo": agent})
    async with hub.listening():
        assert hub.port is not None
        yield hub, Raw(hub.port, hub.token), go
        go.set()


class Links:
    """The connections of a server, as it has them."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[HttpTransport] = asyncio.Queue()
        self.gone: asyncio.Queue[HttpTransport] = asyncio.Queue()


@asynccontextmanager
async def agent_at_hand(
    links: Links | None = None, *, behind: Callable[[Agent], Agent] = lambda agent: agent, **options: Any
) -> AsyncIterator[tuple[Agent, Raw, asyncio.Event]]:
    """An agent at the bare server, for limits of its own; or what it is `behind`."""
    made, go = make_agent()
    agent = behind(made)
    known = links or Links()

    async def serve(transport: Any) -> None:
        known.came.put_nowait(transport)
        await agent.serve(transport)
        known.gone.put_nowait(transport)

    async with agent.serving(), http_server(serve, options=ServerOptions(**options)) as server:
        yield agent, Raw(server.port), go
        go.set()
