"""Short ways to have the agent by hand (`hand_agent.py`) behind a hub, and the dialects of raw clients."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.agent.talk import Talk

QUEUE = {"queueUpdates": True}
DIALECTS: dict[str, tuple[int, dict[str, Any]]] = {
    "v1": (1, {"clientCapabilities": {"_meta": {"antiphon": QUEUE}}}),
    "v1-turn-complete": (1, {"clientCapabilities": {"_meta": {"antiphon": {**QUEUE, "turnComplete": True}}}}),
    "v1-future": (1, {"clientCapabilities": {"_meta": {"antiphon": {**QUEUE, "promptLifecycle": 2}}}}),
    "v2": (2, {"capabilities": {"_meta": {"antiphon": QUEUE}}}),
    "v2-proposed": (
        2,
        {"capabilities": {"_meta": {"antiphon": QUEUE}}, "_meta": {"antiphon": {"dialect": "proposed"}}},
    ),
}
"""The version that a client asks for, and the rest of its `initialize`."""
LATE = ("v1", "v1-turn-complete")
"""The dialects in which a prompt is answered when its turn ends."""


AGENTS: dict[str, dict[str, Any]] = {
    "v1": {"version": 1},
    "v1-echo": {"version": 1, "echo": "chunks"},
    "v2": {},
    "v2-early": {"early": True},
    "v2-chunks": {"echo": "chunks"},
    "v2-early-chunks": {"echo": "chunks", "early": True},
    "v2-proposed": {"proposed": True, "answer": "empty"},
    "v2-proposed-early": {"proposed": True, "answer": "empty", "early": True},
    "v2-silent": {"echo": "never"},
    "v2-proposed-silent": {"proposed": True, "answer": "empty", "echo": "never"},
}
"""How agents show a prompt as a message, and name it."""


def hand(**setting: Any) -> list[str]:
    return [sys.executable, str(Path(__file__).parent / "hand_agent.py"), json.dumps(setting)]


def end_turn(talk: Talk, session: str) -> None:
    talk.send(method="_hand/end", params={"sessionId": session})


def say(talk: Talk, session: str, **update: Any) -> None:
    """Let the agent say an update."""
    talk.send(method="_hand/say", params={"sessionId": session, "update": update})


async def heard(talk: Talk, session: str) -> list[Any]:
    """What the agent heard."""
    told = await talk.call(f"heard{len(talk.seen)}", "_hand/heard", sessionId=session)
    return list(told["heard"])


async def prompts_heard(talk: Talk, session: str, count: int) -> list[str]:
    """The texts of the prompts that the agent got, once there are so many."""
    while len(texts := [one[1] for one in await heard(talk, session) if one[0] == "session/prompt"]) < count:
        pass
    return texts


async def until_heard(talk: Talk, session: str, text: str) -> None:
    """Wait until a prompt is the last that the agent got."""
    while [one[1] for one in await heard(talk, session) if one[0] == "session/prompt"][-1:] != [text]:
        pass


def user_messages(talk: Talk) -> dict[str, str]:
    """The texts of the user messages that a client was shown, by their ids, in order."""
    shown: dict[str, str] = {}
    for update in talk.updates():
        if update["sessionUpdate"] == "user_message_chunk":
            id = update.get("messageId", "")
            shown[id] = shown.get(id, "") + update["content"]["text"]
        elif update["sessionUpdate"] == "user_message":
            content = update.get("content")
            id = update["messageId"]
            shown[id] = shown.get(id, "") if content is None else "".join(block["text"] for block in content)
    return shown


def queues(talk: Talk) -> list[list[str]]:
    """The texts that waited, as a client was told each time."""
    told = [update for update in talk.updates() if update["sessionUpdate"] == "_antiphon_queue"]
    return [[entry["content"][0]["text"] for entry in update["entries"]] for update in told]
