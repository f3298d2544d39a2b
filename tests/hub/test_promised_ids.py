"""The id under which a prompt waits is the id of the message it becomes, whatever id the agent has for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.hub.hands import (
    AGENTS,
    DIALECTS,
    LATE,
    end_turn,
    hand,
    heard,
    prompts_heard,
    queues,
    say,
    until_heard,
    user_messages,
)
from tests.hub.parrots import join, new_session
from tests.hub.running import DEADLINE, Served, served


def text(said: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": said}]


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_injected_prompt_keeps_its_id(tmp_path: Path, agent: str) -> None:
    with served(tmp_path, agent=hand(**AGENTS[agent])) as hub:
        for dialect in DIALECTS:
            await inject_and_look(hub, dialect)


async def inject_and_look(hub: Served, dialect: str) -> None:
    """One client injects, others look on, another comes later: all know the message by the same id."""
    version, asked = DIALECTS[dialect]
    async with (
        hub.talk(version, **asked) as talk,
        hub.talk(2) as other,
        hub.talk(1) as old,
        asyncio.timeout(DEADLINE),
    ):
        session = await new_session(talk)
        await join(other, session, version=2)
        await join(old, session, version=1)
        talk.prompt("p", session, f"first {dialect}")
        await until_heard(talk, session, f"first {dialect}")
        entry = await talk.call("i", "_antiphon/inject", sessionId=session, content=text("second"))
        end_turn(talk, session)
        for client in (talk, other, old):
            await client.until(lambda frame: f"done: first {dialect}" in str(frame))
        await until_heard(talk, session, "second")
        end_turn(talk, session)
        for client in (talk, other, old):
            await client.until(lambda frame: "done: second" in str(frame))
        for client in (talk, other, old):
            await client.call("mark", "_hand/heard", sessionId=session)  # behind everything of the turn
            assert user_messages(client).get(entry["messageId"]) == "second", dialect
            assert [*user_messages(client).values()].count("second") == 1, dialect
        async with hub.talk(version, **asked) as late:
            await join(late, session, version=version)
            assert user_messages(late)[entry["messageId"]] == "second", dialect
            assert [*user_messages(late).values()] == [f"first {dialect}", "second"], dialect
        assert queues(talk)[-1] == []


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_prompt_that_had_to_wait_keeps_its_id_and_one_that_did_not_has_the_agents(
    tmp_path: Path, dialect: str
) -> None:
    version, asked = DIALECTS[dialect]
    with served(tmp_path, agent=hand()) as hub:
        async with hub.talk(version, **asked) as talk, hub.talk(2) as other, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            await join(other, session, version=2)
            talk.prompt("p1", session, "first")
            await prompts_heard(talk, session, 1)
            assert queues(talk) == []  # it never waited
            talk.prompt("p2", session, "second")
            waiting = (await talk.update("_antiphon_queue"))["entries"][0]["messageId"]
            end_turn(talk, session)
            await prompts_heard(talk, session, 2)
            end_turn(talk, session)
            answers = [(await talk.answer_to(id))["result"] for id in ("p1", "p2")]
            if dialect in LATE:
                assert [answer["stopReason"] for answer in answers] == ["end_turn", "end_turn"]
            elif dialect != "v2-proposed":
                assert [answer["messageId"] for answer in answers] == ["u1", waiting]
            await other.until(lambda frame: "done: second" in str(frame))
            assert user_messages(other) == {"u1": "first", waiting: "second"}
            metas = {
                update["messageId"]: update["_meta"]["antiphon"].get("agentMessageId")
                for update in other.updates()
                if update["sessionUpdate"] == "user_message"
            }
            assert metas == {"u1": None, waiting: "u2"}


@pytest.mark.parametrize("agent", ["v2", "v2-chunks", "v2-proposed"])
async def test_what_the_agent_says_later_of_such_a_message_is_renamed_also_after_a_crash(
    tmp_path: Path, agent: str
) -> None:
    """The hub is killed between the message and what the agent says of it."""
    with served(tmp_path, agent=hand(**AGENTS[agent], keeps=True)) as hub:
        async with hub.talk(2) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            entry = await talk.call("i", "_antiphon/inject", sessionId=session, content=text("first"))
            await prompts_heard(talk, session, 1)
            end_turn(talk, session)
            await talk.until(lambda frame: "done: first" in str(frame))
            say(talk, session, sessionUpdate="user_message", messageId="u1", content=text("live"))
            await talk.until(lambda frame: "live" in str(frame))
            assert user_messages(talk) == {entry["messageId"]: "live"}
            about = {"antiphon": {"about": {"messageId": "u1"}}}
            told = {"messageId": "a9", "content": {"type": "text", "text": "of it"}, "_meta": about}
            say(talk, session, sessionUpdate="agent_message_chunk", **told)
            say(talk, session, sessionUpdate="tool_call_update", toolCallId="t", title="of it", _meta=about)
            for kind in ("agent_message_chunk", "tool_call_update"):
                meta = (await talk.update(kind))["_meta"]["antiphon"]
                assert meta["about"] == {"messageId": entry["messageId"]}
        hub.kill()
        hub.restart()
        async with hub.talk(2) as talk, asyncio.timeout(DEADLINE):
            await join(talk, session, version=2)
            assert user_messages(talk) == {entry["messageId"]: "live"}
            talk.prompt("p", session, "again")
            await prompts_heard(talk, session, 1)
            say(talk, session, sessionUpdate="user_message", messageId="u1", content=text("changed"))
            await talk.until(lambda frame: "changed" in str(frame))
            assert user_messages(talk)[entry["messageId"]] == "changed"


async def test_a_fork_at_such_a_message_names_it_as_the_agent_does(tmp_path: Path) -> None:
    agent = hand(forks_at=True)
    with served(tmp_path, agent=agent) as hub:
        async with hub.talk(2) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            entry = await talk.call("i", "_antiphon/inject", sessionId=session, content=text("first"))
            await prompts_heard(talk, session, 1)
            end_turn(talk, session)
            await talk.until(lambda frame: "done: first" in str(frame))
            at = {"antiphon": {"messageId": entry["messageId"]}}
            forked = await talk.call("f", "session/fork", sessionId=session, cwd="/", mcpServers=[], _meta=at)
            forks = [one for one in await heard(talk, session) if one[0] == "session/fork"]
            assert forks == [["session/fork", {"antiphon": {"messageId": "u1"}}]]
            async with hub.talk(2) as late:
                await join(late, forked["sessionId"], version=2)
                assert user_messages(late) == {entry["messageId"]: "first"}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_cancel_by_the_promised_id_stops_its_turn(tmp_path: Path, dialect: str) -> None:
    version, asked = DIALECTS[dialect]
    with served(tmp_path, agent=hand()) as hub:
        async with hub.talk(version, **asked) as talk, hub.talk(2) as other, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            await join(other, session, version=2)
            entry = await talk.call("i", "_antiphon/inject", sessionId=session, content=text("first"))
            await other.update("state_update", state="running")
            meta = {"antiphon": {"messageId": entry["messageId"]}}
            talk.send(method="session/cancel", params={"sessionId": session, "_meta": meta})
            await other.update("state_update", state="idle", stopReason="cancelled")


@pytest.mark.parametrize("agent", ["v1", "v2", "v2-proposed-silent"])
async def test_what_was_edited_and_moved_keeps_its_id_over_a_crash_before_it_is_sent(
    tmp_path: Path, agent: str
) -> None:
    with served(tmp_path, agent=hand(**AGENTS[agent], keeps=True)) as hub:
        async with hub.talk(2) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            talk.prompt("p", session, "first")
            await prompts_heard(talk, session, 1)
            ids = {}
            for name in ("second", "third"):
                params = {"sessionId": session, "content": text(name)}
                ids[name] = (await talk.call(name, "_antiphon/inject", **params))["messageId"]
            moved = {"sessionId": session, "messageId": ids["third"], "before": ids["second"]}
            await talk.call("m", "_antiphon/move_inject", **moved)
            edited = {"sessionId": session, "messageId": ids["second"], "content": text("edited")}
            await talk.call("e", "_antiphon/replace_inject", **edited)
        hub.kill()
        hub.restart()
        async with hub.talk(2) as talk, asyncio.timeout(DEADLINE):
            await join(talk, session, version=2)
            await talk.call("r", "_antiphon/resume_queue", sessionId=session)
            for count, name in enumerate(("third", "edited"), start=1):
                await prompts_heard(talk, session, count)
                end_turn(talk, session)
                await talk.until(lambda frame, name=name: f"done: {name}" in str(frame))
            await talk.update("state_update", state="idle")
            shown = user_messages(talk)
            assert shown[ids["third"]] == "third"
            assert shown[ids["second"]] == "edited"
            assert [*shown.values()][-2:] == ["third", "edited"]
