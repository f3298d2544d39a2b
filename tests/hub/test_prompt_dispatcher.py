"""Prompts on their way to the agent: one at a time, also between what it takes and what it begins."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.hub.parrots import begin, ended, new_session, parrot, prompt, updates
from tests.hub.running import DEADLINE, served

WATCHING = {"capabilities": {"_meta": {"antiphon": {"queueUpdates": True}}}}


async def test_the_next_prompt_waits_for_the_turn_of_one_that_was_taken(tmp_path: Path) -> None:
    """An agent may answer a prompt long before it says `running`: until then its session is idle, and yet
    not free."""
    with served(tmp_path, agent=parrot(2, late=True)) as hub:
        async with hub.talk(2, **WATCHING) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            begin(talk, session, id="first")
            await talk.answer_to("first")
            begin(talk, session, id="second")
            await talk.update("_antiphon_queue")
            for number in range(3):  # each a way to the agent and back, behind anything the hub had sent
                told = await talk.call(f"heard{number}", "_parrot/heard", sessionId=session)
            prompts = [method for method, _ in told["heard"] if method == "session/prompt"]
            assert prompts == ["session/prompt"]
            talk.send(method="_parrot/go", params={"sessionId": session})
            await ended(talk, "first")
            await talk.answer_to("second")
            talk.send(method="_parrot/go", params={"sessionId": session})
            await ended(talk, "second")


async def test_a_prompt_that_was_taken_can_be_cancelled_before_its_turn(tmp_path: Path) -> None:
    with served(tmp_path, agent=parrot(2, late=True)) as hub:
        async with hub.talk(2) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            begin(talk, session, id="first")
            await talk.answer_to("first")
            talk.send(method="session/cancel", params={"sessionId": session})
            told = {"heard": []}
            while not any(method == "session/cancel" for method, _ in told["heard"]):
                told = await talk.call(f"heard{len(talk.seen)}", "_parrot/heard", sessionId=session)
            talk.send(method="_parrot/go", params={"sessionId": session})
            await ended(talk, "first")


async def test_a_turn_of_an_agent_that_only_says_when_it_is_done(tmp_path: Path) -> None:
    with served(tmp_path, agent=parrot(2, mute=True)) as hub:
        async with hub.talk(2) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            for id in ("first", "second"):
                await prompt(talk, session, id=id)
            states = [update["state"] for update in updates(talk, "state_update")]
            assert states[-4:] == ["running", "idle"] * 2
