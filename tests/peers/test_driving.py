"""The client library drives real agents: a conversation, a restart, cancels, a kill; watched from both sides.

What an agent sent is read from a tap, what the library made of it from `session.events()`, `turn.events()`
and the fold, and the two are compared: `Watched.say` at each `drained()`, `Watched.check` at the end.

`agents.py` says how the agents are started and what is expected of each. All take the same conversation, said
in the words that each understands; most of the time goes into starting, so there are two runs of each.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from antiphon.client import (
    ClientSession,
    ClientTurn,
    Permissions,
    ProcessOptions,
    connect,
)
from antiphon.errors import LocalError
from tests.peers.agents import AGENTS, Launch, still_there
from tests.peers.watching import SOON, Case, Drive, OpenQuestion, Watched, Words, driving, gist, told

Prepared = Callable[[str], Launch]
SDK = Words(
    hello="hello there",
    answer="hello there",
    tool="permission",
    allowed="permission: yes",
    slow="wait",
    begun="waiting",
    makes=False,
)
REHEARSAL = Words(
    hello="stream 1",
    answer="Sentence 1 of 1, sung by one voice and heard by many.",
    tool="run touch made-by-tool.txt",
    allowed="It ended with code 0.",
    # It pauses between chunks and lasts for ten minutes. `stream` does not wait for its client: it may end
    # before the cancel comes.
    slow="/stream 10000",
    begun="Chunk 2 of 10000",
)


CASES = {
    # Without a version the newest is used that the agent speaks: the shape of the answer tells which.
    **{name: Case(name) for name in AGENTS if name != "claude-agent-acp"},
    "claude-agent-acp-v1": Case("claude-agent-acp", ask={"version": 1}),
    "claude-agent-acp-v2": Case("claude-agent-acp", version=2),
    "sdk-python-v1": Case("sdk-python", SDK, keeps=False),
    "sdk-ts-v1": Case("sdk-ts", SDK, keeps=False),
    "sdk-ts-v2": Case("sdk-ts-v2", SDK, version=2, keeps=False),
    "rehearse-v1": Case("rehearse", REHEARSAL, ask={"version": 1}),
    "rehearse-v2": Case("rehearse", REHEARSAL, version=2),
    "rehearse-proposed": Case("rehearse", REHEARSAL, version=2, ask={"version": "v2-proposed"}),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_conversation_a_restart_cancels_and_a_kill(
    name: str, real_agent: Prepared, caplog: pytest.LogCaptureFixture
) -> None:
    """A v1 agent is asked for its newest version first, and after the restart for v1 alone."""
    case = CASES[name]
    launch = real_agent(case.agent)
    async with driving(case, launch) as drive:
        watched = await a_session(drive)
        await text(drive, watched)
        await tools(drive, watched)
        await listed(drive, watched)
        await watched.quiet()
        if case.version == 1:
            assert drive.wire.chunks_behind_an_answer() == []
    await gone(launch)

    async with driving(replace(case, ask={"version": 1}) if case.version == 1 else case, launch) as drive:
        again = await reopened(drive, watched.session)
        await cancels(drive, again)
        await text(drive, again)
        if case.version == 1 and case.agent in AGENTS:
            await kill(drive, again)
    await gone(launch)

    told = [f"{record.name}: {record.getMessage()}" for record in caplog.records if is_trouble(record)]
    assert told == [], "an agent that does what agents do is nothing to warn about"


REHEARSALS = [name for name in CASES if name.startswith("rehearse")]


@pytest.mark.parametrize("name", REHEARSALS)
async def test_what_comes_behind_a_turn(name: str, real_agent: Prepared) -> None:
    """No other agent here is sure to say something behind its answer. This one reports on background work,
    then it speaks by itself: at v2 in a turn of its own, at v1, where nothing tells its end, in none."""
    case = CASES[name]
    async with driving(case, real_agent(case.agent)) as drive:
        watched = await a_session(drive)
        turn = (await watched.say("timer 1")).turn
        rung = "The timer of 1 s has rung."
        await watched.until(lambda: watched.session.messages[-1].text == rung and watched.caught_up)
        await watched.until(lambda: watched.session.state == "idle" and watched.caught_up)
        late = watched.events[max(at for at, event in enumerate(watched.events) if event.turn is turn) + 1 :]
        reported = [event.turn for event in late if gist(event.update)[0] == "tool_call_update"]
        spoken = [event.turn for event in late if gist(event.update)[0].startswith("agent_message")]
        assert set(reported) == {None}
        if case.version == 1:
            assert set(spoken) == {None}
        else:
            [by_itself] = set(spoken)
            assert by_itself is not None
            assert by_itself.prompt is None
            assert by_itself.text == rung
            assert (await by_itself.drained()).stop_reason == "end_turn"
            watched.by_itself = by_itself


@pytest.mark.parametrize("wrong", [{"version": 3}, {"version": "nonsense"}])
async def test_nothing_is_left_of_a_wrong_argument(wrong: dict[str, Any], real_agent: Prepared) -> None:
    launch = real_agent("rehearse")
    with pytest.raises(LocalError):
        async with connect(launch.command, process=ProcessOptions(cwd=launch.cwd), **wrong):
            pass
    await gone(launch)


async def gone(launch: Launch) -> None:
    """The end of the connection is the end of all that was started, though some need a moment for that."""
    assert await asyncio.to_thread(still_there, launch.left_running(), 3.0) == []


def is_trouble(record: logging.LogRecord) -> bool:
    """`asyncio` tells of exceptions that nobody took."""
    return record.levelno >= logging.WARNING and record.name.partition(".")[0] in ("antiphon", "asyncio")


# --- the conversation -------------------------------------------------------------------------------------


async def a_session(drive: Drive) -> Watched:
    """What is told before the session has a name is in the fold; what comes behind is seen, and no turn's."""
    agent = drive.launch.agent
    session = await drive.client.new_session(drive.launch.cwd)
    if agent.commands == "early":
        assert drive.wire.kinds(until=drive.wire.answer("session/new")) == ["available_commands_update"]
        assert session.commands
    watched = drive.watch(session)
    if agent.commands == "late" and drive.case.version == 1:
        await watched.until(lambda: bool(session.commands))
        assert all(event.turn is None for event in watched.events)
    assert session.messages == []
    return watched


async def text(drive: Drive, watched: Watched) -> None:
    words, agent = drive.case.words, drive.launch.agent
    before = len(drive.wire.frames)
    said = await watched.say(words.hello)
    assert said.end.stop_reason == "end_turn"
    assert said.end.cut is None
    assert (said.end.usage is not None) == agent.usage
    assert said.text.strip() == words.answer
    assert told(said.messages) == [("user", words.hello), ("agent", words.answer)]
    assert said.messages == watched.session.messages[-2:]
    assert drive.wire.names_messages(watched.session.id, before) == agent.message_ids


async def tools(drive: Drive, watched: Watched) -> None:
    """Allowed by the policy of the connection, then rejected by another one."""
    words, agent = drive.case.words, drive.launch.agent
    said = await watched.say(words.tool)
    assert said.end.stop_reason == "end_turn"
    assert words.allowed in said.text
    assert drive.wire.chosen() == ["allow_once"]
    assert said.tool_calls() == {"completed"}
    assert drive.made() == words.makes

    drive.client.answers = Permissions()
    said = await watched.say(words.tool)
    assert said.end.stop_reason == "end_turn"
    assert drive.wire.chosen() == ["allow_once", "reject_once"]
    assert said.tool_calls() == {agent.rejected}
    assert not drive.made()
    assert watched.session.questions == []


async def listed(drive: Drive, watched: Watched) -> None:
    client = drive.client
    if not drive.launch.agent.lists:
        if drive.case.version == 1:
            with pytest.raises(LocalError, match="cannot list"):
                await anext(client.list_sessions())
        return
    [info] = [info async for info in client.list_sessions()]
    assert info.session_id == watched.session.id
    assert info.cwd == str(drive.launch.cwd)


async def reopened(drive: Drive, before: ClientSession) -> Watched:
    """In a new process: resumed where that is offered, then loaded; it is the same conversation."""
    client, agent, cwd = drive.client, drive.launch.agent, drive.launch.cwd
    if not drive.case.keeps:
        if client.abilities.load and drive.case.version == 1:
            loaded = await client.load_session("any", cwd)
            assert told(loaded.messages) == [("user", "an earlier question"), ("agent", "an earlier answer")]
        return await a_session(drive)

    messages = list(before.messages)
    if agent.resumes:
        resumed = drive.watch(await client.resume_session(before.id, cwd))
        assert resumed.session.messages == [], "without its history"
        await text(drive, resumed)
        messages += resumed.session.messages
    elif client.abilities.resume:  # it offers what it does not have, and is loaded instead
        assert told((await client.resume_session(before.id, cwd)).messages) == told(messages)

    session = await client.load_session(before.id, cwd)
    assert told(session.messages) == told(messages)
    if drive.case.version == 2 or agent.message_ids:
        named = [message for message in messages if drive.case.version == 2 or message.role != "user"]
        again = {message.message_id for message in session.messages}
        assert [message.message_id for message in named if message.message_id not in again] == []
    assert session.state == "idle"
    assert session.turn is None
    assert {call.id for call in before.tool_calls} >= {call.id for call in session.tool_calls}
    return drive.watch(session)


async def cancels(drive: Drive, watched: Watched) -> None:
    """While it speaks, and while it waits for a permission. Then it goes on as if nothing had been."""
    words = drive.case.words

    async def in_the_middle(turn: ClientTurn) -> None:
        async for _ in turn.updates():
            if words.begun in turn.text:
                break
        await turn.cancel()

    said = await watched.say(words.slow, in_the_middle)
    assert said.end.cancelled
    assert "slow-50" not in said.text

    open_question = OpenQuestion()
    drive.client.answers = Permissions(ask=open_question)

    async def while_asked(turn: ClientTurn) -> None:
        await open_question.asked.wait()
        assert len(watched.session.questions) == 1
        await turn.cancel()

    said = await watched.say(words.tool, while_asked)
    assert said.end.cancelled
    assert not drive.made()
    assert open_question.withdrawn, "nobody is asked any longer"
    assert watched.session.questions == []
    assert drive.wire.chosen() == ["cancelled"]
    assert said.tool_calls() <= {"cancelled", "failed"}

    # What is over cannot be cancelled: the next turn would be hit.
    frames = len(drive.wire.frames)
    await said.turn.cancel()
    assert drive.wire.frames[frames:] == []


async def kill(drive: Drive, watched: Watched) -> None:
    """In the middle of a turn: nothing of it is left, neither the model nor what the agent had started."""
    words, launch = drive.case.words, drive.launch
    turn = watched.killed = await watched.session.prompt(words.slow)
    async for _ in turn.updates():
        if words.begun in turn.text:
            break
    running = launch.left_running()
    assert len(running) >= 2, "the agent and its model"
    os.kill(launch.started["pid"], signal.SIGKILL)
    end = await turn.drained()
    assert end.stop_reason == "error"
    assert end.cut is not None
    assert "SIGKILL" in end.cut
    assert await asyncio.to_thread(still_there, running, SOON) == []
