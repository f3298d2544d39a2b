"""Usage, notices and compactions, as an agent tells them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.stores import SQLiteStore
from tests.agent.talk import client, session
from tests.requirements.marks import requirement

NOTICES = {"clientCapabilities": {"session": {"notices": {}}}}
COMPACTION = {"clientCapabilities": {"session": {"compaction": {}}}}


def live(agent: Agent, id: str) -> AgentSession:
    found = agent.find(id)
    assert found is not None
    return found


async def reopened(agent: Agent, id: str, version: int = 2, **given: Any) -> list[dict[str, Any]]:
    """The updates that a client gets who opens the session from its start."""
    method = "session/load" if version == 1 else "session/resume"
    start = {} if version == 1 else {"replayFrom": {"type": "start"}}
    async with client(agent, version, **given) as talk:
        await talk.call("again", method, sessionId=id, cwd="/", mcpServers=[], **start)
        updates = [frame["params"]["update"] for frame in talk.seen if "params" in frame]
        return [update for update in updates if update["sessionUpdate"] != "state_update"]


# --- usage -------------------------------------------------------------------------------------------


@requirement("USAGE-01", "USAGE-02", "USAGE-03")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_window_and_the_cost_so_far(version: int) -> None:
    agent = Agent("usage")
    async with session(agent, version) as (talk, id):
        told = live(agent, id)
        await told.report_usage(used=10, size=None)
        await told.report_usage(used=10, size=0)
        await told.report_usage(used=100, size=1000, cost=0.25)
        assert await talk.update("usage_update") == {
            "sessionUpdate": "usage_update",
            "used": 100,
            "size": 1000,
            "cost": {"amount": 0.25, "currency": "USD"},
        }
        await told.report_usage(used=200, size=1000, cost=v2.Cost(amount=3, currency="credits"))
        assert (await talk.update("usage_update"))["cost"]["currency"] == "credits"
        await told.report_usage(used=50, size=1000)
        kept = await talk.update("usage_update", used=50)
        assert ("cost" in kept) is (version == 1), "v2 says nothing to keep it, v1 has to say it again"
        for wrong in ({"used": -1, "size": 9}, {"used": 1, "size": -9}):
            with pytest.raises(LocalError):
                await told.report_usage(**wrong)
        with pytest.raises(LocalError, match="cannot fall"):
            await told.report_usage(used=1, size=9, cost=1, currency="credits")
        await told.report_usage(used=60, size=1000, cost=None)
        assert (
            "cost" not in (cleared := await talk.update("usage_update", used=60)) or cleared["cost"] is None
        )


@requirement("USAGE-05")
@pytest.mark.parametrize("version", [1, 2])
async def test_what_is_known_is_told_to_who_opens_the_session_again(version: int) -> None:
    agent = Agent("usage")
    async with agent.serving(), session(agent, version) as (_, id):
        await live(agent, id).report_usage(used=100, size=1000)
        await live(agent, id).live.durable()
        assert [update["sessionUpdate"] for update in await reopened(agent, id, version)] == ["usage_update"]
        async with client(agent, version) as talk:
            await talk.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            assert (await talk.update("usage_update"))["used"] == 100


@requirement("USAGE-06")
async def test_tokens_are_counted_over_the_requests_of_a_turn() -> None:
    agent = Agent("tokens")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        turn.count_tokens(input=100, output=20)
        turn.count_tokens(input=10, output=5, thought=3, cached_read=2, total=18)
        with pytest.raises(LocalError):
            turn.count_tokens(input=-1, output=0)

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        idle = await talk.update("state_update", state="idle")
        assert idle["usage"] == {
            "totalTokens": 138,
            "inputTokens": 110,
            "outputTokens": 25,
            "thoughtTokens": 3,
            "cachedReadTokens": 2,
        }
        assert "usage_update" not in talk.story()


# --- notices -----------------------------------------------------------------------------------------


@requirement("NOTE-02", "NOTE-03", "NOTE-04")
async def test_a_notice_needs_no_capability_in_v2_and_changes_nothing() -> None:
    agent = Agent("notices")
    async with session(agent) as (talk, id):
        before = live(agent, id).fold.items
        await live(agent, id).notice("Slow today", description="The model takes its time", severity="warning")
        assert await talk.update("notice") == {
            "sessionUpdate": "notice",
            "severity": "warning",
            "title": "Slow today",
            "description": "The model takes its time",
        }
        await live(agent, id).notice("Odd", severity="_odd")
        assert (await talk.update("notice"))["severity"] == "_odd"
        assert live(agent, id).fold.items == before
        for wrong in ({"title": " "}, {"title": "x", "severity": "odd"}):
            with pytest.raises(LocalError):
                await live(agent, id).notice(**wrong)


@requirement("NOTE-01")
@pytest.mark.parametrize("able", [True, False])
async def test_a_v1_client_gets_notices_if_it_can_and_a_message_otherwise(able: bool) -> None:
    agent = Agent("notices")
    async with session(agent, 1, **(NOTICES if able else {})) as (talk, id):
        await live(agent, id).notice("Slow today", description="Very")
        if able:
            assert (await talk.update("notice"))["title"] == "Slow today"
        else:
            message = await talk.update("agent_message_chunk")
            assert message["content"]["text"] == "Slow today\n\nVery"
            assert "notice" not in talk.story()


@requirement("NOTE-04", "NOTE-05")
async def test_a_notice_that_nobody_saw_is_not_replayed() -> None:
    agent = Agent("notices")
    async with agent.serving(), session(agent) as (_, id):
        await live(agent, id).notice("Now")
        await live(agent, id).live.durable()
        assert await reopened(agent, id) == []
        assert await reopened(agent, id, 1, **NOTICES) == []


# --- compactions -------------------------------------------------------------------------------------


@requirement("COMP-02", "COMP-05", "COMP-06")
async def test_a_compaction_is_told_as_it_goes_and_replayed_as_one() -> None:
    agent = Agent("compactions")
    async with agent.serving(), session(agent) as (talk, id):
        async with live(agent, id).compaction() as compaction:
            await compaction.write("We talked ")
            await compaction.write("about tests.")
        ended = await talk.update("compaction_update", status="completed")
        named = {"compactionId": compaction.compaction_id}
        chunks = [
            frame["params"]["update"]
            for frame in talk.seen
            if frame.get("params", {}).get("update", {}).get("sessionUpdate") == "compaction_summary_chunk"
        ]
        assert talk.story()[-4:] == [
            "compaction_update",
            "compaction_summary_chunk",
            "compaction_summary_chunk",
            "compaction_update",
        ]
        assert "".join(chunk["content"]["text"] for chunk in chunks) == "We talked about tests."
        assert ended == {"sessionUpdate": "compaction_update", "status": "completed", **named}
        [replayed] = await reopened(agent, id)
        assert replayed["status"] == "completed"
        assert replayed["summary"] == [{"type": "text", "text": "We talked about tests."}]
        with pytest.raises(LocalError):
            await compaction.write("too late")


@requirement("COMP-01")
@pytest.mark.parametrize("able", [True, False])
async def test_a_v1_client_is_told_of_compactions_only_if_it_takes_them(able: bool) -> None:
    agent = Agent("compactions")
    async with session(agent, 1, **(COMPACTION if able else {})) as (talk, id):
        async with live(agent, id).compaction() as compaction:
            await compaction.write("short")
        await live(agent, id).set_title("after")
        await talk.update("session_info_update")
        told = ["compaction_update", "compaction_summary_chunk", "compaction_update"] if able else []
        assert talk.story() == ["= init", "= new", *told, "session_info_update"]


@requirement("COMP-05")
async def test_one_that_raises_has_failed_and_tells_nothing_private() -> None:
    agent = Agent("compactions")
    async with agent.serving(), session(agent) as (talk, id):

        async def breaks() -> None:
            async with live(agent, id).compaction() as compaction:
                await compaction.write("half of ")
                raise RuntimeError("secret")

        with pytest.raises(RuntimeError):
            await breaks()
        failed = await talk.update("compaction_update", status="failed")
        assert failed["error"] == "The compaction failed"
        assert failed["summary"] is None, "a summary comes with a completed one only"
        async with live(agent, id).compaction() as compaction:
            await compaction.fail("The model was not there")
            await compaction.fail("again")
        named = await talk.update("compaction_update", status="failed")
        assert named["error"] == "The model was not there"
        first, second = await reopened(agent, id)
        assert (first["status"], first["summary"], second["status"]) == ("failed", None, "failed")
        assert talk.story().count("compaction_update") == 4, "each begins once and ends once"


@requirement("COMP-05")
async def test_a_cancelled_turn_ends_its_compaction_as_cancelled() -> None:
    agent = Agent("compactions")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.session.compaction() as compaction:
            await compaction.write("for ever")
            await asyncio.Event().wait()

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("compaction_summary_chunk")
        talk.send(method="session/cancel", params={"sessionId": id})
        assert "error" not in await talk.update("compaction_update", status="cancelled")
        await talk.update("state_update", state="idle", stopReason="cancelled")


@requirement("COMP-05")
async def test_one_that_was_cut_short_by_the_end_of_the_process_has_failed(tmp_path: Path) -> None:
    agent = Agent("compactions", store=SQLiteStore(tmp_path / "s.db"))
    async with agent.serving(), client(agent) as talk:
        id = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        told = live(agent, id)
        begun = v2.CompactionUpdate(
            compaction_id=v2.CompactionId("c"), status=v2.CompactionStatus.IN_PROGRESS
        )
        await told.update(begun)
        await talk.update("compaction_update")
    later = Agent("later", store=SQLiteStore(tmp_path / "s.db"))
    updates = await reopened(later, id)
    assert [update["status"] for update in updates][-1] == "failed"
    assert updates[-1]["error"] == "The compaction was interrupted"
    assert [update["status"] for update in await reopened(later, id)] == ["failed"]


@requirement("COMP-02", "COMP-05")
@pytest.mark.parametrize(
    "fields",
    [
        {"status": "half_done"},
        {"status": "in_progress", "summary": [v2.TextContent(text="early")]},
        {"status": "completed", "error": "but"},
    ],
)
async def test_what_an_author_writes_by_hand_is_held_to_the_same(fields: Any) -> None:
    agent = Agent("compactions")
    async with session(agent) as (_, id):
        fields["status"] = v2.CompactionStatus(fields["status"])
        update = v2.CompactionUpdate(compaction_id=v2.CompactionId("c"), **fields)
        with pytest.raises(LocalError):
            await live(agent, id).update(update)
