"""`--busy agent`: a prompt is handed over while the agent works, and the agent decides what it does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import connect
from antiphon.errors import LocalError
from antiphon.hub import Hub, HubFolder, HubOptions
from tests.agent.talk import Talk
from tests.cli.command import ended
from tests.hub.hands import (
    DIALECTS,
    LATE,
    end_turn,
    hand,
    heard,
    prompts_heard,
    queues,
    until_heard,
    user_messages,
)
from tests.hub.parrots import join, new_session
from tests.hub.running import ANTIPHON, DEADLINE, Served, served

BUSY = ("--busy", "agent")
MODES = ["queue", "steer", "interrupt"]


def text(said: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": said}]


def offered(talk: Talk) -> dict[str, Any]:
    """What the hub announced under our own key."""
    result = talk.seen[0]["result"]
    capabilities = result.get("capabilities") or result.get("agentCapabilities")
    return dict(capabilities["_meta"]["antiphon"])


async def begin(talk: Talk) -> str:
    """A session whose turn is open."""
    session = await new_session(talk)
    talk.prompt("first", session, "first")
    await until_heard(talk, session, "first")
    return session


async def test_an_inserting_agent_shows_where_a_prompt_went(tmp_path: Path) -> None:
    with served(tmp_path, *BUSY, agent=hand(busy="insert")) as hub:
        for dialect in DIALECTS:
            await insert(hub, dialect)


async def insert(hub: Served, dialect: str) -> None:
    version, asked = DIALECTS[dialect]
    async with hub.talk(version, **asked) as talk, hub.talk(2) as other, asyncio.timeout(DEADLINE):
        session = await begin(talk)
        await join(other, session, version=2)
        talk.prompt("second", session, "second")
        await until_heard(talk, session, "second")
        if dialect not in LATE:
            first, second = [(await talk.answer_to(id))["result"] for id in ("first", "second")]
            if dialect != "v2-proposed":
                assert int(second["messageId"][1:]) == int(first["messageId"][1:]) + 1, dialect
        end_turn(talk, session)
        await other.until(lambda frame: "done: first + second" in str(frame))
        await other.update("state_update", state="idle")
        answers = [await talk.answer_to(id) for id in ("first", "second")]
        if dialect in LATE:
            assert [answer["result"]["stopReason"] for answer in answers] == ["end_turn"] * 2, dialect
        assert [*user_messages(other).values()] == ["first", "second"], dialect
        assert queues(talk) == [], dialect
        states = [update["state"] for update in other.updates() if "state" in update]
        assert states[-2:] == ["running", "idle"], dialect


async def test_a_holding_agent_gets_prompts_in_order_before_it_answers_them(tmp_path: Path) -> None:
    with served(tmp_path, *BUSY, agent=hand(busy="hold")) as hub:
        for dialect in DIALECTS:
            await hold(hub, dialect)


async def hold(hub: Served, dialect: str) -> None:
    version, asked = DIALECTS[dialect]
    async with hub.talk(version, **asked) as talk, asyncio.timeout(DEADLINE):
        session = await begin(talk)
        talk.prompt("second", session, "second")
        talk.prompt("third", session, "third")
        await until_heard(talk, session, "third")
        told = [one[1] for one in await heard(talk, session) if one[0] == "session/prompt"]
        assert told[-3:] == ["first", "second", "third"], dialect
        assert not any(frame.get("id") == "second" for frame in talk.seen), dialect
        for id in ("first", "second", "third"):
            end_turn(talk, session)
            await talk.until(lambda frame, id=id: f"done: {id}" in str(frame))
            assert "result" in await talk.answer_to(id), dialect
        async with hub.talk(2) as late:
            await join(late, session, version=2)
            assert [*user_messages(late).values()] == ["first", "second", "third"], dialect


@pytest.mark.parametrize("agent", [{"version": 1}, {"version": 1, "delivery": MODES}])
async def test_a_v1_agent_gets_one_prompt_at_a_time(tmp_path: Path, agent: dict[str, Any]) -> None:
    with served(tmp_path, *BUSY, agent=hand(**agent)) as hub:
        async with hub.talk(2, **DIALECTS["v2"][1]) as talk, asyncio.timeout(DEADLINE):
            session = await begin(talk)
            talk.prompt("second", session, "second")
            listed = (await talk.update("_antiphon_queue"))["entries"]
            assert [entry["mode"] for entry in listed] == ["queue"]
            assert await prompts_heard(talk, session, 1) == ["first"]
            talk.prompt("asked", session, "asked", delivery="agent")
            assert (await talk.answer_to("asked"))["error"]["code"] == -32602
            end_turn(talk, session)
            await until_heard(talk, session, "second")
            end_turn(talk, session)
            await talk.until(lambda frame: "done: second" in str(frame))


@pytest.mark.parametrize(
    ("busy", "agent", "delivery", "does"),
    [
        ("queue", {}, ["queue", "interrupt"], "queue"),
        ("steer", {}, ["queue", "interrupt"], "queue"),
        ("steer", {"delivery": MODES}, MODES, "steer"),
        ("interrupt", {}, ["queue", "interrupt"], "interrupt"),
        ("agent", {}, [*MODES, "agent"], "agent"),
        ("agent", {"delivery": MODES}, [*MODES, "agent"], "agent"),
        ("agent", {"version": 1}, ["queue", "interrupt"], "queue"),
    ],
)
async def test_what_is_offered_is_what_happens(
    tmp_path: Path, busy: str, agent: dict[str, Any], delivery: list[str], does: str
) -> None:
    with served(tmp_path, "--busy", busy, agent=hand(**agent)) as hub:
        async with hub.talk(2) as first:
            await new_session(first)  # now the agent is known
        async with hub.talk(2) as talk:
            told = offered(talk)
            assert told["delivery"] == delivery
            assert told["inject"] == {"modes": [mode for mode in delivery if mode != "interrupt"]}
            assert told["busy"] == does


async def test_there_is_no_other_way_to_be_busy() -> None:
    with pytest.raises(LocalError, match="busy must be one of queue, steer, interrupt, agent, got 'now'"):
        Hub(["agent"], options=HubOptions(busy="now"))


async def test_what_was_handed_over_cannot_be_edited_and_is_asked_back(tmp_path: Path) -> None:
    with served(tmp_path, *BUSY, agent=hand(busy="hold")) as hub:
        async with hub.talk(2, **DIALECTS["v2"][1]) as talk, asyncio.timeout(DEADLINE):
            session = await begin(talk)
            params = {"sessionId": session, "content": text("second"), "mode": "agent"}
            entry = await talk.call("i", "_antiphon/inject", **params)
            await until_heard(talk, session, "second")
            named = {"sessionId": session, "messageId": entry["messageId"]}
            for method, more in (("replace_inject", {"content": text("other")}), ("move_inject", {})):
                talk.send(id=method, method=f"_antiphon/{method}", params={**named, **more})
                error = (await talk.answer_to(method))["error"]
                assert (error["code"], error["data"]["reason"]) == (-32010, "already_delivered")
            assert await talk.call("r", "_antiphon/revoke_inject", **named) == {}
            assert await talk.call("again", "_antiphon/revoke_inject", **named) == {}
            talk.prompt("third", session, "third")
            await until_heard(talk, session, "third")
            talk.send(method="$/cancel_request", params={"requestId": "third"})
            assert (await talk.answer_to("third"))["error"]["code"] == -32800
            assert [one for one in await heard(talk, session) if one[0] == "$/cancel_request"] == [
                ["$/cancel_request"]
            ] * 2
            assert ["session/cancel"] not in await heard(talk, session)
            end_turn(talk, session)
            await talk.until(lambda frame: "done: first" in str(frame))
            assert [*user_messages(talk).values()] == ["first"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_cancel_with_several_prompts_at_the_agent(tmp_path: Path, dialect: str) -> None:
    version, asked = DIALECTS[dialect]
    with served(tmp_path, *BUSY, agent=hand(busy="hold")) as hub:
        async with hub.talk(version, **asked) as talk, asyncio.timeout(DEADLINE):
            session = await begin(talk)
            for id in ("second", "third"):
                talk.prompt(id, session, id)
            await until_heard(talk, session, "third")
            talk.send(method="session/cancel", params={"sessionId": session})
            answers = [await talk.answer_to(id) for id in ("first", "second", "third")]
            if dialect in LATE:
                assert [answer["result"]["stopReason"] for answer in answers] == ["cancelled"] * 3
            else:
                assert "result" in answers[0]
                assert [answer["error"]["code"] for answer in answers[1:]] == [-32800] * 2
            talk.prompt("fourth", session, "fourth")
            await until_heard(talk, session, "fourth")
            end_turn(talk, session)
            await talk.until(lambda frame: "done: fourth" in str(frame))
            for id in ("first", "second", "third"):
                assert [frame.get("id") for frame in talk.seen].count(id) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_agent_that_dies_with_several_prompts(tmp_path: Path, dialect: str) -> None:
    version, asked = DIALECTS[dialect]
    with served(tmp_path, *BUSY, agent=hand(busy="hold", keeps=True)) as hub:
        async with hub.talk(version, **asked) as talk, asyncio.timeout(DEADLINE):
            session = await begin(talk)
            for id in ("second", "third"):
                talk.prompt(id, session, id)
            await until_heard(talk, session, "third")
            talk.send(method="_hand/die", params={"sessionId": session})
            answers = [await talk.answer_to(id) for id in ("first", "second", "third")]
            for answer in answers if dialect in LATE else answers[1:]:
                assert answer["error"]["data"]["reason"] == "interrupted"
            talk.prompt("fourth", session, "fourth")
            await until_heard(talk, session, "fourth")
            end_turn(talk, session)
            await talk.until(lambda frame: "done: fourth" in str(frame))
            for id in ("first", "second", "third"):
                assert [frame.get("id") for frame in talk.seen].count(id) == 1


@pytest.mark.parametrize("modes", [None, MODES])
async def test_steering_and_interrupting_are_what_the_agent_offers(
    tmp_path: Path, modes: list[str] | None
) -> None:
    offers = {} if modes is None else {"delivery": modes}
    with served(tmp_path, *BUSY, agent=hand(busy="insert", **offers)) as hub:
        async with hub.talk(2, **DIALECTS["v2"][1]) as talk, asyncio.timeout(DEADLINE):
            session = await begin(talk)
            talk.prompt("steer", session, "steer", delivery="steer")
            await until_heard(talk, session, "steer")
            talk.prompt("waits", session, "waits", delivery="queue")
            assert (await talk.update("_antiphon_queue"))["entries"][0]["mode"] == "queue"
            talk.prompt("interrupt", session, "interrupt", delivery="interrupt")
            await until_heard(talk, session, "interrupt")
            told = [one for one in await heard(talk, session) if one[0] != "session/new"]
            if modes is None:
                assert [one[0] for one in told] == [
                    *["session/prompt"] * 2,
                    "session/cancel",
                    "session/prompt",
                ]
            else:
                assert [one[0] for one in told] == ["session/prompt"] * 3
            asked = [(one[2] or {}).get("delivery") for one in told if one[0] == "session/prompt"]
            assert asked == [None, *([None] * 2 if modes is None else ["steer", "interrupt"])]
            end_turn(talk, session)
            await until_heard(talk, session, "waits")
            end_turn(talk, session)
            await talk.until(lambda frame: "done: waits" in str(frame))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_agent_of_ours_that_steers_by_itself(tmp_path: Path, dialect: str) -> None:
    version, asked = DIALECTS[dialect]
    agent = [sys.executable, str(Path(__file__).parent / "steered_agent.py")]
    with served(tmp_path, *BUSY, agent=agent) as hub:
        async with hub.talk(version, **asked) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            talk.prompt("first", session, "first")
            await talk.until(lambda frame: "working" in str(frame))
            for id in ("second", "stop"):
                talk.prompt(id, session, id)
            await talk.until(lambda frame: "done: first + second + stop" in str(frame))
            for id in ("first", "second", "stop"):
                assert "result" in await talk.answer_to(id)


async def test_an_editor_starts_a_hub_that_hands_prompts_over(tmp_path: Path) -> None:
    agent = hand(busy="insert")
    command = [*ANTIPHON, "acp", "--data", str(tmp_path), *BUSY, "--", *agent]
    try:
        async with asyncio.timeout(2 * DEADLINE), connect(command) as editor:
            session = await editor.new_session("/")
            first = await session.prompt("first")
            second = await session.prompt("second")
            assert (first.message_id, second.message_id) == ("u1", "u2")
            await editor.connection.notify("_hand/end", {"sessionId": session.id})
            for turn in (first, second):
                assert (await turn.drained()).stop_reason == "end_turn"
            assert [message.text for message in session.messages] == [
                "first",
                "second",
                "done: first + second",
            ]
    finally:
        running = HubFolder(str(tmp_path)).running()
        assert running is not None
        os.kill(running.pid, signal.SIGTERM)
        assert ended(running.pid)
