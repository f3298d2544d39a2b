"""A client of the official Python SDK that does what it is told: `<python> driven.py -- AGENT…`.

One order a line on stdin, one observation a line on stdout (../README.md has them). It ends with its stdin.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import acp
from acp.schema import AllowedOutcome, RequestPermissionResponse

from client import describe, initialize, report, spawn


class DrivenClient:
    """Tells what it sees, and allows what it is asked when it is told to."""

    def __init__(self) -> None:
        self.allowed = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        report(step="update", **describe(update))

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        report(step="permission", toolCallId=tool_call.tool_call_id)
        await self.allowed.wait()
        selected = next(option.option_id for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=selected))


class Driven:
    def __init__(self, agent: Any, client: DrivenClient) -> None:
        self.agent = agent
        self.client = client
        self.session = ""

    async def new(self, cwd: str, meta: Any = None) -> None:
        answer = await self.agent.new_session(cwd=cwd, **(meta or {}))
        self.session = answer.session_id
        report(step="session", sessionId=self.session)

    async def join(self, session: str, cwd: str) -> None:
        self.session = session
        await self.agent.load_session(cwd=cwd, session_id=session)
        report(step="session", sessionId=session)

    async def prompt(self, text: str) -> None:
        answer = await self.agent.prompt(self.session, [acp.text_block(text)])
        report(step="ended", stopReason=answer.stop_reason)

    async def cancel(self) -> None:
        await self.agent.cancel(self.session)

    async def allow(self) -> None:
        self.client.allowed.set()


async def main(command: list[str]) -> None:
    client = DrivenClient()
    async with spawn(client, command) as (agent, _), asyncio.TaskGroup() as tasks:
        answer = await initialize(agent)
        report(step="initialize", protocolVersion=answer.protocol_version)
        driven = Driven(agent, client)
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            tasks.create_task(getattr(driven, order.pop("do"))(**order))  # a cancel comes amid a prompt


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[2:]))
    except Exception as error:
        report(step="failed", reason=repr(error))
        sys.exit(1)
