"""A v2 agent by hand: how it shows a prompt as a message, and when, is for a test to say."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon.transports.base import Inbox


class ByHand:
    def __init__(self, *, whole: bool, early: bool) -> None:
        """`whole`: the message comes as one update; `early`: before the prompt is answered."""
        self._whole = whole
        self._early = early

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ByHand]:
        yield self

    async def serve(self, transport: Any) -> None:
        inbox = Inbox(transport)

        def send(**frame: Any) -> None:
            transport.send(json.dumps({"jsonrpc": "2.0", **frame}).encode())

        def tell(kind: str, **said: Any) -> None:
            send(
                method="session/update", params={"sessionId": "s", "update": {"sessionUpdate": kind, **said}}
            )

        def show(prompt: list[Any]) -> None:
            if self._whole:
                tell("user_message", messageId="m", content=prompt)
            for block in () if self._whole else prompt:
                tell("user_message_chunk", messageId="m", content=block)

        while batch := await inbox.take():
            for frame in map(json.loads, batch):
                match frame.get("method"):
                    case "initialize":
                        info = {"name": "hand", "version": "1"}
                        able = {"session": {}}
                        send(
                            id=frame["id"], result={"protocolVersion": 2, "info": info, "capabilities": able}
                        )
                    case "session/prompt":
                        if self._early:
                            show(frame["params"]["prompt"])
                        send(id=frame["id"], result={"messageId": "m"})
                        if not self._early:
                            show(frame["params"]["prompt"])
                        tell("state_update", state="running")
                        said = {"type": "text", "text": "done"}
                        tell("agent_message", messageId="a", content=[said])
                        tell("state_update", state="idle", stopReason="end_turn")
                    case _ if "id" in frame and "method" in frame:
                        send(id=frame["id"], result={"sessionId": "s"})
        await transport.aclose()
