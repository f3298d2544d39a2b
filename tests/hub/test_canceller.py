"""Cancels through a hub with agents in processes of their own. The rest is in `tests/races`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent.talk import Talk
from tests.hub.parrots import join, new_session
from tests.hub.running import DEADLINE, served

COMPLETES = {"clientCapabilities": {"_meta": {"antiphon": {"turnComplete": True}}}}


def dying(version: int, *how: str) -> list[str]:
    return [sys.executable, str(Path(__file__).parent / "dying_agent.py"), str(version), *how]


async def cancel_at_work(talk: Talk, session: str) -> dict[str, Any]:
    """Prompt, wait for a word of the agent, and cancel; the answer to the prompt."""
    talk.prompt("p", session, "go")
    await talk.update("agent_message_chunk")
    talk.send(method="session/cancel", params={"sessionId": session})
    return await talk.answer_to("p")


@pytest.mark.parametrize("how", [(1,), (2,), (2, "silent")], ids=["v1", "v2", "v2-not-taken"])
async def test_an_agent_that_dies_of_its_cancel(tmp_path: Path, how: tuple[Any, ...]) -> None:
    with served(tmp_path, agent=dying(*how)) as hub:
        async with asyncio.timeout(3 * DEADLINE), hub.talk(1, **COMPLETES) as talk, hub.talk(2) as other:
            session = await new_session(talk)
            await join(other, session, version=2)
            assert (await cancel_at_work(talk, session))["result"]["stopReason"] == "cancelled"
            (told,) = [update for update in talk.updates() if update["sessionUpdate"] == "turn_complete"]
            assert (told["promptRequestId"], told["stopReason"]) == ("p", "cancelled")
            if "silent" not in how:
                await other.update("state_update", state="idle", stopReason="cancelled")
            assert not [u for u in other.updates() if u.get("stopReason") == "error"]


async def test_an_agent_that_dies_of_the_cancel_of_what_it_has_not_taken_v2(tmp_path: Path) -> None:
    with served(tmp_path, agent=dying(2, "silent")) as hub:
        async with asyncio.timeout(3 * DEADLINE), hub.talk(2) as talk:
            answer = await cancel_at_work(talk, await new_session(talk))
            assert answer["error"]["code"] == -32800  # PROMPT-V2-34
