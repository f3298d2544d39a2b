"""Prompts that come while a session works: held, steering, interrupting, injected, and each taken once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.stores import SQLiteStore
from tests.agent.talk import client, session
from tests.agent.test_sessions import Stepwise, idle
from tests.requirements.marks import requirement


@requirement("PROMPT-V2-32")
async def test_a_prompt_that_comes_while_busy_is_held_and_answered_when_its_turn_comes() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        talk.prompt(1, id, "one")
        talk.prompt(2, id, "two")
        talk.prompt(3, id, "three")
        await talk.update("agent_message_chunk")
        assert "= 2" not in talk.story()
        for _ in range(3):
            stepwise.step.release()
            await idle(talk, stopReason="end_turn")
        assert stepwise.opened == ["one", "two", "three"]
        answers = [line for line in talk.story() if line.startswith("= ")][2:]
        assert answers == ["= 1", "= 2", "= 3"]


@requirement("PROMPT-V2-34")
async def test_a_cancel_answers_held_prompts_with_32800_and_starts_nothing() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        talk.prompt(1, id, "one")
        talk.prompt(2, id, "two")
        await talk.update("agent_message_chunk")
        talk.send(method="session/cancel", params={"sessionId": id})
        await idle(talk, stopReason="cancelled")
        assert (await talk.answer_to(2))["error"]["code"] == -32800
        talk.prompt(3, id, "three")  # PROMPT-V2-34: one sent after it is not touched
        stepwise.step.release()
        await idle(talk, stopReason="end_turn")
        assert stepwise.opened == ["one", "three"]


@requirement("PROMPT-V2-33")
async def test_a_held_prompt_is_withdrawn_by_its_request_id() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        talk.prompt(1, id, "one")
        talk.prompt(2, id, "two")
        await talk.update("agent_message_chunk")
        talk.send(method="$/cancel_request", params={"requestId": 2})
        assert (await talk.answer_to(2))["error"]["code"] == -32800
        stepwise.step.release()
        await idle(talk, stopReason="end_turn")
        talk.prompt(3, id, "three")
        stepwise.step.release()
        await idle(talk)
        assert stepwise.opened == ["one", "three"]


@requirement("QUEUE-01")
async def test_a_steering_prompt_joins_the_open_turn_at_its_next_break_point() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        talk.prompt(1, id, "one")
        await talk.update("agent_message_chunk")
        talk.prompt(2, id, "left", delivery="steer")
        talk.send(id="sync", method="_sync")
        await talk.answer_to("sync")
        assert "= 2" not in talk.story()
        stepwise.step.release()
        await talk.update("user_message")
        assert "result" in await talk.answer_to(2)
        stepwise.step.release()
        await idle(talk)
        assert stepwise.opened == ["one", "+left"]
        assert [line for line in talk.story() if line.startswith("state")] == [
            "state_update running",
            "state_update idle",
        ]


@requirement("QUEUE-01")
async def test_an_interrupting_prompt_cancels_the_turn_and_is_taken_next() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        talk.prompt(1, id, "one")
        talk.prompt(2, id, "later")
        await talk.update("agent_message_chunk")
        talk.prompt(3, id, "now", delivery="interrupt")
        await idle(talk, stopReason="cancelled")
        for _ in range(2):
            stepwise.step.release()
            await idle(talk, stopReason="end_turn")
        assert stepwise.opened == ["one", "now", "later"]


async def test_the_same_operation_twice_is_one_prompt_also_after_a_restart(tmp_path: Path) -> None:
    for n in (1, 2):
        stepwise = Stepwise(store=SQLiteStore(tmp_path / "s.db"))
        stepwise.step.release()
        async with stepwise.agent.serving(), client(stepwise.agent) as talk:
            if n == 1:
                id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
            else:
                await talk.call("resume", "session/resume", sessionId=id, cwd="/")
            talk.prompt(1, id, "once", operationId="op")
            first = (await talk.answer_to(1))["result"]
            if n == 1:
                await idle(talk)
                answered = first
            talk.prompt(2, id, "once", operationId="op")
            again = (await talk.answer_to(2))["result"]
            assert again == {
                **answered,
                "_meta": {"antiphon": {"repeated": True, "stopReason": "end_turn"}},
            }
            assert stepwise.opened == (["once"] if n == 1 else [])


async def test_injected_prompts_are_listed_edited_moved_withdrawn_and_survive_a_cancel() -> None:
    stepwise = Stepwise()

    def content(text: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": text}]

    async with session(stepwise.agent) as (talk, id):
        talk.prompt(1, id, "one")
        await talk.update("agent_message_chunk")
        ids = [
            (await talk.call(text, "_antiphon/inject", sessionId=id, mode="queue", content=content(text)))[
                "messageId"
            ]
            for text in ("two", "three", "four")
        ]
        await talk.call(
            "edit", "_antiphon/replace_inject", sessionId=id, messageId=ids[0], content=content("2")
        )
        await talk.call("move", "_antiphon/move_inject", sessionId=id, messageId=ids[2], before=ids[0])
        await talk.call("revoke", "_antiphon/revoke_inject", sessionId=id, messageId=ids[1])
        listed = await talk.call("list", "_antiphon/list_inject", sessionId=id)
        assert [entry["content"][0]["text"] for entry in listed["entries"]] == ["four", "2"]
        talk.send(method="session/cancel", params={"sessionId": id})
        await idle(talk, stopReason="cancelled")
        assert (await talk.call("list2", "_antiphon/list_inject", sessionId=id))["paused"] is True
        assert stepwise.opened == ["one"], "a cancel never starts the queue"
        await talk.call("go", "_antiphon/resume_queue", sessionId=id)
        for _ in range(2):
            stepwise.step.release()
            await idle(talk, stopReason="end_turn")
        assert stepwise.opened == ["one", "four", "2"]
        talk.send(id="late", method="_antiphon/revoke_inject", params={"sessionId": id, "messageId": ids[0]})
        assert (await talk.answer_to("late"))["error"]["data"] == {"reason": "already_delivered"}


async def test_a_second_interrupt_does_not_cut_short_what_the_first_one_waits_for() -> None:
    agent = Agent("cleans up", version="1.0")
    cleaning, cleaned = asyncio.Event(), asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        if turn.prompt.text != "first":
            return
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await cleaned.wait()
            await turn.say("cleaned up")

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "first")
        await talk.update("state_update", state="running")
        talk.prompt(2, id, "second", delivery="interrupt")
        await cleaning.wait()
        talk.prompt(3, id, "third", delivery="interrupt")
        talk.prompt(4, id, "fourth")
        await talk.call(5, "_antiphon/list_inject", sessionId=id)
        cleaned.set()
        await talk.answer_to(4)
        await talk.update("state_update", state="idle", stopReason="end_turn")
        assert "agent_message" in talk.story()


@pytest.mark.parametrize("version", [1, 2])
async def test_a_prompt_is_answered_though_its_client_resumes_before_the_answer(version: int) -> None:
    agent = Agent("quick", version="1.0")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say("done")

    async with session(agent, version) as (talk, id):
        talk.prompt(1, id, "go")
        params = {"sessionId": id, "cwd": "/", "mcpServers": []}
        talk.send(id="again", method="session/load" if version == 1 else "session/resume", params=params)
        await talk.answer_to("again")
        answered = (await talk.answer_to(1))["result"]
        assert answered.keys() == ({"stopReason"} if version == 1 else {"messageId"})


@pytest.mark.parametrize("bad", [5, ["a"], {"a": 1}])
async def test_an_operation_id_that_is_no_string_is_refused_and_spoils_nothing(
    bad: Any, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    stepwise = Stepwise(store=SQLiteStore(path))
    async with stepwise.agent.serving(), session(stepwise.agent) as (talk, id):
        talk.prompt(1, id, "go", operationId=bad)
        assert (await talk.answer_to(1))["error"]["code"] == -32602
        text = [{"type": "text", "text": "later"}]
        params = {"sessionId": id, "content": text, "operationId": bad}
        talk.send(id=2, method="_antiphon/inject", params=params)
        assert (await talk.answer_to(2))["error"]["code"] == -32602
    again = Stepwise(store=SQLiteStore(path))
    async with again.agent.serving(), client(again.agent) as talk:
        await talk.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
