"""A client written directly on a connection, for agents of v1 and of v2.

    python examples/wire_client.py [--v1] [AGENT…]

Without a command it starts `wire_agent.py`. It asks, streams, grants a permission and cancels, and prints
what it sees.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from antiphon.schema import v1, v2
from antiphon.wire import ChildTransport, Connection, Inbound, Role, Transport, run

INFO = {"name": "wire-client", "version": "0.1.0"}


class WireClient:
    """One connection's worth of client, with one session."""

    def __init__(self, transport: Transport) -> None:
        self.connection = Connection(
            transport,
            role=Role.CLIENT,
            requests={"session/request_permission": self.allow},
            notifications={"session/update": self.on_update},
        )
        self.updates: list[Any] = []
        self.permissions: list[Any] = []
        self.session = ""
        self._progress = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def start(cls, transport: Transport, *, version: int = 2, cwd: str = "/") -> AsyncIterator[Self]:
        self = cls(transport)
        async with self.connection as connection:
            # Both shapes at once: whichever version the agent speaks, it finds what it needs (INIT-01).
            both = {"info": INFO, "capabilities": {}, "clientInfo": INFO, "clientCapabilities": {}}
            await connection.initialize({"protocolVersion": version, **both})
            new = self.types.NewSessionRequest(cwd=cwd, mcp_servers=[])
            self.session = (await connection.call("session/new", new)).session_id
            yield self

    @property
    def version(self) -> int:
        assert self.connection.agreement is not None
        return self.connection.agreement.version

    @property
    def types(self) -> ModuleType:
        return v1 if self.version == 1 else v2

    async def prompt(self, text: str, *, cancel_after_first_chunk: bool = False) -> str:
        """Prompt and return the stop reason, once everything of the turn has been handled."""
        self.updates.clear()
        request = self.types.PromptRequest(
            session_id=self.session, prompt=[self.types.TextContent(text=text)]
        )
        prompting = asyncio.ensure_future(self.connection.call("session/prompt", request))
        if cancel_after_first_chunk:
            await self.until(lambda: any(chunk_text(update) for update in self.updates))
            cancel = {"sessionId": self.session}
            await self.connection.notify("session/cancel", cancel)
        answer = await prompting
        if self.version == 1:
            return str(answer.stop_reason)
        # In v2 the answer only says where the prompt stands; the turn's end is the idle update.
        await self.until(lambda: any(map(is_idle, self.updates)))
        return next(str(update.stop_reason) for update in self.updates if is_idle(update))

    async def until(self, condition: Any) -> None:
        async with self._progress:
            await self._progress.wait_for(condition)

    async def on_update(self, params: Any) -> None:
        self.updates.append(params.update)
        async with self._progress:
            self._progress.notify_all()

    async def allow(self, params: Any, inbound: Inbound) -> Any:
        self.permissions.append(params)
        chosen = next(option for option in params.options if option.kind == "allow_once")
        return {"outcome": {"outcome": "selected", "optionId": chosen.option_id}}

    @property
    def text(self) -> str:
        return "".join(map(chunk_text, self.updates))


def chunk_text(update: Any) -> str:
    if isinstance(update, v1.AgentMessageChunk | v2.AgentMessageChunk):
        return getattr(update.content, "text", "")
    return ""


def is_idle(update: Any) -> bool:
    return isinstance(update, v2.StateUpdate) and update.state is v2.State.IDLE


async def converse(command: Sequence[str], version: int) -> None:
    transport = await ChildTransport.spawn(command)
    async with WireClient.start(transport, version=version) as client:
        print(f"— ACP v{client.version} over stdio, session {client.session} —")
        for text in ("Good evening.", "stream 1000", "permission", "wait"):
            print(f"\nyou     {text}")
            reason = await client.prompt(text, cancel_after_first_chunk=text == "wait")
            said = (
                client.text
                if len(client.text) < 80
                else f"{client.text[:60]}… ({len(client.text)} characters)"
            )
            print(f"agent   {said}")
            kinds = [type(update).__struct_config__.tag for update in client.updates]
            print(
                f"        {len(kinds)} updates ({', '.join(dict.fromkeys(map(str, kinds)))}), then {reason}"
            )
        print(f"\n        permissions asked for and granted: {len(client.permissions)}")


def main(arguments: Sequence[str]) -> None:
    version = 1 if arguments and arguments[0] == "--v1" else 2
    command = list(arguments[1:] if version == 1 else arguments)
    run(converse(command or [sys.executable, str(Path(__file__).with_name("wire_agent.py"))], version))


if __name__ == "__main__":
    main(sys.argv[1:])
