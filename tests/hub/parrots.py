"""Short ways to have the parrot (`parrot.py`) behind a hub, and to read what clients got."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon.hub import Hub
from antiphon.transports.memory import memory_pair
from tests.agent.talk import Talk
from tests.hub.running import DEADLINE

EVERYTHING: dict[str, Any] = {
    "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
    "plan": {},
}
"""What a v1 client may ask for."""
STATES = ("state_update", "user_message")


def parrot(version: int, **setting: Any) -> list[str]:
    return [sys.executable, str(Path(__file__).parent / "parrot.py"), str(version), json.dumps(setting)]


@asynccontextmanager
async def talking(hub: Hub, version: int, **initialize: Any) -> AsyncIterator[Talk]:
    """A client by hand of a hub in this process."""
    ours, theirs = memory_pair()
    serving = asyncio.get_running_loop().create_task(hub.serve(theirs))
    talk = Talk(ours)
    await talk.initialize(version, **initialize)
    try:
        yield talk
    finally:
        await ours.aclose()
        await serving


def updates(talk: Talk, tag: str | None = None) -> list[dict[str, Any]]:
    """Those that a client got, of one kind or all."""
    return [update for update in talk.updates() if tag is None or update["sessionUpdate"] == tag]


def said(talk: Talk) -> list[Any]:
    """The JSON in the messages that the parrot said: how what it asked was answered."""
    return [json.loads(update["content"]["text"]) for update in updates(talk, "agent_message_chunk")]


def begin(talk: Talk, session: str, *steps: Any, id: str = "p", **meta: Any) -> None:
    """Let the parrot do this."""
    params: dict[str, Any] = {"sessionId": session, "prompt": [{"type": "text", "text": json.dumps(steps)}]}
    talk.send(id=id, method="session/prompt", params={**params, **({"_meta": meta} if meta else {})})


async def ended(talk: Talk, id: str = "p") -> Any:
    """The answer to a prompt, once its turn has ended."""
    async with asyncio.timeout(DEADLINE):
        answer = await talk.answer_to(id)
        if "messageId" in answer["result"]:
            behind = talk.seen.index(answer)
            while not any(_is_idle(frame) for frame in talk.seen[behind:]):
                await talk.until(lambda _: True)
        return answer


def _is_idle(frame: dict[str, Any]) -> bool:
    update = frame.get("params", {}).get("update", {})
    return update.get("sessionUpdate") == "state_update" and update.get("state") == "idle"


async def prompt(talk: Talk, session: str, *steps: Any, id: str = "p", **meta: Any) -> Any:
    """Let the parrot do this; the answer, once its turn has ended."""
    begin(talk, session, *steps, id=id, **meta)
    return await ended(talk, id)


async def new_session(talk: Talk, **params: Any) -> str:
    opened = await talk.call("new", "session/new", **{"cwd": "/", "mcpServers": [], **params})
    return str(opened["sessionId"])


async def join(talk: Talk, session: str, *, version: int) -> None:
    params: dict[str, Any] = {"sessionId": session, "cwd": "/", "mcpServers": []}
    if version == 1:
        await talk.call("join", "session/load", **params)
    else:
        await talk.call("join", "session/resume", **params, replayFrom={"type": "start"})
