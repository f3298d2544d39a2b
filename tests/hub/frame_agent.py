"""An agent by hand whose frames a test gives, byte by byte: over a pipe as a process, or over a WebSocket.

`python frame_agent.py FILE`, where FILE holds the JSON of `Script`.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

BEFORE, AFTER = "before ", "after"


class Script:
    """What the agent says in a turn between two plain chunks. `pretty`: its own frames have several lines."""

    def __init__(self, version: int, frames: Iterable[bytes], *, pretty: bool = False) -> None:
        self.version = version
        self.frames = list(frames)
        self.pretty = pretty

    def save(self, path: Path) -> Path:
        frames = [base64.b64encode(frame).decode() for frame in self.frames]
        path.write_text(json.dumps({"version": self.version, "frames": frames}))
        return path

    @classmethod
    def load(cls, path: Path) -> Script:
        saved = json.loads(path.read_text())
        return cls(saved["version"], [base64.b64decode(frame) for frame in saved["frames"]])

    def answers(self, frame: dict[str, Any]) -> Iterator[bytes]:
        id, method = frame.get("id"), frame.get("method")
        if method == "initialize":
            yield self._frame(id=id, result=self._initialized())
        elif method == "session/prompt":
            yield from self._turn(id)
        elif method is not None and id is not None:
            yield self._frame(id=id, result={"sessionId": "s"})

    def _initialized(self) -> dict[str, Any]:
        if self.version == 1:
            return {"protocolVersion": 1, "agentCapabilities": {}}
        info = {"name": "frames", "version": "1"}
        return {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}

    def _turn(self, id: Any) -> Iterator[bytes]:
        said = {"messageId": "a"} if self.version == 2 else {}
        if self.version == 2:
            yield self._frame(id=id, result={"messageId": "m"})
            yield self._update("user_message", messageId="m", content=[{"type": "text", "text": "go"}])
            yield self._update("state_update", state="running")
        yield self._update("agent_message_chunk", content={"type": "text", "text": BEFORE}, **said)
        yield from self.frames
        yield self._update("agent_message_chunk", content={"type": "text", "text": AFTER}, **said)
        if self.version == 2:
            yield self._update("state_update", state="idle", stopReason="end_turn")
        else:
            yield self._frame(id=id, result={"stopReason": "end_turn"})

    def _update(self, kind: str, **fields: Any) -> bytes:
        params = {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}}
        return self._frame(method="session/update", params=params)

    def _frame(self, **members: Any) -> bytes:
        return json.dumps({"jsonrpc": "2.0", **members}, indent=2 if self.pretty else None).encode()


@asynccontextmanager
async def on_websocket(script: Script) -> AsyncIterator[str]:
    """The agent at an address of its own."""
    from websockets.asyncio.server import ServerConnection, serve

    async def talk(link: ServerConnection) -> None:
        async for received in link:
            for frame in script.answers(json.loads(received)):
                await link.send(frame, text=True)

    async with serve(talk, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def main() -> None:
    script = Script.load(Path(sys.argv[1]))
    for line in sys.stdin.buffer:
        for frame in script.answers(json.loads(line)):
            sys.stdout.buffer.write(frame + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
