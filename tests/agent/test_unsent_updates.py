"""A client for which an update cannot be written is told and detached; the others notice nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.live.event_writer import EventWriter
from antiphon.live.replay import Replay
from antiphon.live.tail import Stretch
from antiphon.schema.version import Dialect
from tests.agent.talk import Talk, client, session
from tests.agent.test_who import join, named, present

CANNOT = "cannot be written"
DETACHED = "This client was detached from the session"
BOBS = pytest.mark.parametrize(("version", "dialect"), [(1, Dialect.V1), (2, Dialect.V2_PROPOSED)])


def bob(version: int) -> dict[str, Any]:
    proposed = {"_meta": {"antiphon": {"dialect": "proposed"}}} if version == 2 else {}
    return {**named("bob", version), **proposed}


def failing(dialect: Dialect) -> Callable[[EventWriter, Stretch], None]:
    """Return an `EventWriter.write` that fails for one text and the clients of one dialect."""
    write = EventWriter.write

    def failing_write(self: EventWriter, stretch: Stretch) -> None:
        raws = (bytes(getattr(event.body, "raw", b"")) for run in stretch.runs for event in run.events)
        if self._writer.dialect is dialect and any(CANNOT.encode() in raw for raw in raws):
            raise RuntimeError(CANNOT)
        write(self, stretch)

    return failing_write


def in_steps() -> tuple[Agent, asyncio.Event, asyncio.Event]:
    agent, goes_on, ends = Agent("steps", version="1"), asyncio.Event(), asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say("begun")
        await goes_on.wait()
        await turn.say(CANNOT)
        await ends.wait()

    return agent, goes_on, ends


async def begun(talk: Talk, version: int) -> None:
    await talk.update("agent_message_chunk" if version == 1 else "agent_message")


@BOBS
async def test_a_client_whose_attachment_fails_is_told_and_may_open_the_session_again(
    version: int, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, goes_on, ends = in_steps()
    monkeypatch.setattr(EventWriter, "write", failing(dialect))
    async with session(agent, **named("ann")) as (ann, id), client(agent, version, **bob(version)) as talk:
        await join(talk, id, version)
        await present(ann, "ann", "bob")
        talk.prompt("p", id, "go")
        await begun(talk, version)
        goes_on.set()
        await talk.until(lambda frame: DETACHED in str(frame))
        if version == 1:
            error = (await talk.answer_to("p"))["error"]
        else:
            error = (await talk.until(lambda frame: "state_change" in str(frame)))["params"]["update"][
                "error"
            ]
        assert (error["code"], error["data"]) == (-32603, {"reason": "detached"})
        await present(ann, "ann")
        ends.set()
        await ann.update("state_update", state="idle")
        assert CANNOT in str(ann.seen)
        assert CANNOT not in str(talk.seen)
        talk.prompt("outside", id, "go")
        assert (await talk.answer_to("outside"))["error"]["code"] == -32002
        await join(talk, id, version)
        assert CANNOT in str(talk.seen)
        await present(ann, "ann", "bob")


async def test_a_client_whose_replay_fails_is_not_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, *steps = in_steps()
    for step in steps:
        step.set()

    def unwritable(*_: Any) -> Any:
        raise RuntimeError(CANNOT)

    async with session(agent, **named("ann")) as (ann, id), client(agent, **named("bob")) as talk:
        ann.prompt("p", id, "go")
        await ann.update("state_update", state="idle")
        with monkeypatch.context() as failing_replay:
            failing_replay.setattr(Replay, "written", unwritable)
            resume = {"sessionId": id, "cwd": "/", "replayFrom": {"type": "start"}}
            talk.send(id="load", method="session/resume", params=resume)
            assert (await talk.answer_to("load"))["error"]["data"] == {"reason": "detached"}
        talk.prompt("outside", id, "go")
        assert (await talk.answer_to("outside"))["error"]["code"] == -32002
        await join(talk, id)
        assert CANNOT in str(talk.seen)
