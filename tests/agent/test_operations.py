"""A cancel, or a change of the queue, under an operation id: its copies do nothing, whenever they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk, client, session
from tests.agent.test_sessions import Stepwise, idle


def cancel(talk: Talk, id: str, operation: Any = "stop") -> None:
    params = {"sessionId": id, "_meta": {"antiphon": {"operationId": operation}}}
    talk.send(method="session/cancel", params=params)


async def test_a_second_copy_of_a_cancel_never_hits_a_later_turn(tmp_path: Path) -> None:
    for life in (1, 2):
        stepwise = Stepwise(store=SQLiteStore(tmp_path / "s.db"))
        async with stepwise.agent.serving(), client(stepwise.agent) as talk:
            if life == 1:
                id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
                talk.prompt(1, id, "one")
                await talk.update("agent_message_chunk")
                cancel(talk, id)
                await idle(talk, stopReason="cancelled")
            else:
                await talk.call("join", "session/resume", sessionId=id, cwd="/")
            talk.prompt(2, id, "two")
            await talk.update("agent_message_chunk")
            cancel(talk, id)
            stepwise.step.release()
            await idle(talk, stopReason="end_turn")
            if life == 2:
                talk.prompt(3, id, "three")
                await talk.update("agent_message_chunk")
                cancel(talk, id, "another")
                await idle(talk, stopReason="cancelled")


async def test_a_cancel_that_found_nothing_to_stop_stays_without_effect() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        cancel(talk, id)
        talk.prompt(1, id, "one")
        await talk.update("agent_message_chunk")
        cancel(talk, id)
        stepwise.step.release()
        await idle(talk, stopReason="end_turn")


async def test_a_cancel_whose_operation_id_is_none_is_dropped_and_spoils_nothing() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        talk.prompt(1, id, "one")
        await talk.update("agent_message_chunk")
        cancel(talk, id, ["stop"])
        stepwise.step.release()
        await idle(talk, stopReason="end_turn")


async def injected(talk: Talk, id: str, *words: str) -> list[str]:
    """Entries that wait behind a turn."""
    made = []
    for word in words:
        content = [{"type": "text", "text": word}]
        params = {"sessionId": id, "content": content, "operationId": word}
        made.append((await talk.call(f"inject {word}", "_antiphon/inject", **params))["messageId"])
    return made


async def queue(talk: Talk, id: str, n: Any) -> list[str]:
    entries = (await talk.call(n, "_antiphon/list_inject", sessionId=id))["entries"]
    return [entry["content"][0]["text"] for entry in entries]


async def test_changes_of_the_queue_are_done_once_also_after_a_restart(tmp_path: Path) -> None:
    for life in (1, 2):
        stepwise = Stepwise(store=SQLiteStore(tmp_path / "s.db"))
        async with stepwise.agent.serving(), client(stepwise.agent) as talk:
            if life == 1:
                id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
                talk.prompt("busy", id, "busy")
                await talk.update("agent_message_chunk")
                a, b, c = await injected(talk, id, "a", "b", "c")
            else:
                await talk.call("join", "session/resume", sessionId=id, cwd="/")
            of = {"sessionId": id}
            changed = [{"type": "text", "text": "B"}]
            edit = {**of, "messageId": b, "content": changed, "operationId": "edit"}
            move = {**of, "messageId": c, "before": a, "operationId": "move"}
            revoke = {**of, "messageId": a, "operationId": "revoke"}
            assert await talk.call("edit", "_antiphon/replace_inject", **edit) == {"messageId": b}
            assert await talk.call("move", "_antiphon/move_inject", **move) == {"messageId": c}
            assert await talk.call("revoke", "_antiphon/revoke_inject", **revoke) == {}
            if life == 1:
                assert await queue(talk, id, "then") == ["c", "B"]
                # Changed since: the copies that come later undo nothing of it.
                again = [{"type": "text", "text": "newer"}]
                await talk.call("newer", "_antiphon/replace_inject", **of, messageId=b, content=again)
                await talk.call("back", "_antiphon/move_inject", **of, messageId=c)
            assert await queue(talk, id, "now") == ["newer", "c"]


async def test_a_repeated_revoke_succeeds_again_without_an_operation_id() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        talk.prompt("busy", id, "busy")
        await talk.update("agent_message_chunk")
        (a,) = await injected(talk, id, "a")
        for n in (1, 2):
            assert await talk.call(n, "_antiphon/revoke_inject", sessionId=id, messageId=a) == {}


async def test_what_was_refused_is_decided_anew() -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent) as (talk, id):
        params = {"sessionId": id, "messageId": "nobody", "operationId": "revoke"}
        for n in (1, 2):
            talk.send(id=n, method="_antiphon/revoke_inject", params=params)
            assert (await talk.answer_to(n))["error"]["data"] == {"reason": "unknown_message_id"}


@pytest.mark.parametrize("version", [1, 2])
async def test_what_operation_ids_are_taken_for_is_announced(version: int) -> None:
    stepwise = Stepwise()
    async with client(stepwise.agent, version) as talk:
        result = talk.seen[0]["result"]
        able = result["agentCapabilities" if version == 1 else "capabilities"]["_meta"]["antiphon"]
        assert able["operations"] == ["prompt", "inject", "cancel", "new", "fork", "answer"]
