"""A request that is taken back before its handler begins is answered, whatever goes wrong meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon.jsonrpc.peer import Inbound
from tests.connection.scripted import client
from tests.requirements.marks import requirement

PERMISSION = {
    "sessionId": "s",
    "toolCall": {"toolCallId": "c"},
    "options": [{"optionId": "a", "name": "Allow", "kind": "allow_once"}],
}


@requirement("RPC-31")
async def test_what_answers_a_request_that_was_taken_back_may_fail() -> None:
    free = asyncio.Event()

    async def update(params: Any) -> None:
        await free.wait()  # it keeps the lane, so that what follows cannot begin

    async def ask(params: Any, inbound: Inbound) -> Any:
        raise AssertionError("it was taken back")

    def unbegun(params: Any) -> Any:
        raise RuntimeError("secret")

    async with client(
        notifications={"session/update": update},
        requests={"session/request_permission": ask},
        unbegun={"session/request_permission": unbegun},
    ) as (_, agent):
        agent.update("s", "hello")
        agent.send(id=7, method="session/request_permission", params=PERMISSION)
        agent.send(method="$/cancel_request", params={"requestId": 7})
        agent.send(id=8, method="_unknown", params={})
        assert (await agent.receive())["id"] == 8, "all of it was read"
        free.set()
        answer = await agent.receive()
        assert (answer["id"], answer["error"]["code"]) == (7, -32800)
        assert "secret" not in str(answer)
        agent.update("s", "the lane goes on")
        agent.send(id=9, method="session/request_permission", params=PERMISSION)
        agent.send(method="$/cancel_request", params={"requestId": 9})
        assert (await agent.receive())["id"] == 9
