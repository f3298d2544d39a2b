"""Seeds 000 to 003 through a hub with a raw agent behind it and raw clients in front of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.requirements.agent_by_hand import text
from tests.requirements.seed_places import ANSWERED_AT_END, DIALECTS, OPTIONS, V1S, V2S, Wire, staged
from tests.requirements.seed_raw_agent import AGENTS, RawAgent, RawTurn, place_of

PLACE = "hub"
"""Where the tests of this file run."""
relayed = pytest.mark.parametrize("dialect", DIALECTS)
of_every_agent = pytest.mark.parametrize("agent", AGENTS)
USAGE = {"totalTokens": 5, "inputTokens": 2, "outputTokens": 3}


@of_every_agent
@relayed
async def test_ids_of_the_agent_reach_every_client_as_they_are(dialect: str, agent: str) -> None:
    ids = ["0", "msg_agent_7", " ä/b ", "0f8fad5b-d9cb-469f-a165-70867728950e"]

    async def script(turn: RawTurn) -> None:
        for id in ids:
            turn.says("one ", messageId=id)
            turn.says("two", messageId=id)
        turn.update("agent_thought_chunk", messageId="thought", content=text("hm"))
        turn.end()

    raw = RawAgent(agent, script)
    async with (
        staged(place_of(agent), raw) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as late,
    ):
        assert await wire.play(session, "go") == ["end_turn"]
        told = [each["messageId"] for each in wire.updates_of("agent_message_chunk")]
        assert told == [id for id in ids for _ in range(2)]
        assert wire.updates_of("agent_thought_chunk")[0]["messageId"] == "thought"
        await late.join(session)
        assert [each for each in late.messages() if each[1] in ids] == [
            ("agent", id, "one two") for id in ids
        ]


@pytest.mark.parametrize("absent", [{}, {"messageId": None}], ids=["omitted", "null"])
@pytest.mark.parametrize("agent", ["v1", "v1+turn_complete"])
@relayed
async def test_a_v1_agent_without_ids_has_its_messages_parted_and_named(
    dialect: str, agent: str, absent: dict[str, Any]
) -> None:
    async def script(turn: RawTurn) -> None:
        turn.says("Looking... ", **absent)
        turn.says("Two problems.", **absent)
        turn.update("tool_call", toolCallId="t", title="Fix")
        turn.says("Both are mended.", **absent)
        turn.end()

    async with (
        staged("hub-v1", RawAgent(agent, script)) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as late,
    ):
        assert await wire.play(session, "go") == ["end_turn"]
        said = [each for each in wire.messages() if each[0] == "agent"]
        assert [words for _, _, words in said] == ["Looking... Two problems.", "Both are mended."]
        assert all(isinstance(id, str) and id for _, id, _ in said)
        await late.join(session)
        assert [each for each in late.messages() if each[0] == "agent"] == said, "the same ids in a replay"


@pytest.mark.parametrize(
    "wrong", [{}, {"messageId": None}, {"messageId": 7}], ids=["omitted", "null", "number"]
)
@pytest.mark.parametrize("agent", V2S)
@relayed
async def test_a_v2_chunk_without_an_id_reaches_nobody(
    dialect: str, agent: str, wrong: dict[str, Any]
) -> None:
    async def script(turn: RawTurn) -> None:
        turn.says("kept ", messageId="a1")
        turn.says("refused", **wrong)
        turn.says("whole", messageId="a1")
        turn.end()

    async with staged("hub-v2", RawAgent(agent, script)) as stage, stage.session(dialect) as (wire, session):
        assert await wire.play(session, "go") == ["end_turn"]
        assert [words for role, words in wire.words() if role == "agent"] == ["kept whole"]


@of_every_agent
@relayed
async def test_the_end_of_a_turn_is_told_in_the_clients_words_with_its_usage(
    dialect: str, agent: str
) -> None:
    async def script(turn: RawTurn) -> None:
        turn.says("Hello.", messageId="a")
        turn.end("max_tokens", usage=USAGE)

    async with (
        staged(place_of(agent), RawAgent(agent, script)) as stage,
        stage.session(dialect) as (wire, session),
    ):
        assert await wire.play(session, "go") == ["max_tokens"]
        if dialect in ANSWERED_AT_END:
            result = (await wire.answer_to("play-go"))["result"]
            assert result == {"stopReason": "max_tokens", "usage": USAGE}
        else:
            idle = wire.updates_of(wire.state_kind)[-1]
            key = "stop_reason" if dialect == "proposed" else "stopReason"
            assert {k: idle[k] for k in ("state", key, "usage")} == {
                "state": "idle", key: "max_tokens", "usage": USAGE,
            }  # fmt: skip


@of_every_agent
@relayed
async def test_late_updates_of_a_cancelled_turn_come_before_its_end(dialect: str, agent: str) -> None:
    async def script(turn: RawTurn) -> None:
        turn.says("Working. ", messageId="a")
        await turn.cancelled.wait()
        turn.says("Stopping.", messageId="a")
        turn.end("cancelled")

    async with (
        staged(place_of(agent), RawAgent(agent, script)) as stage,
        stage.session(dialect) as (wire, session),
    ):
        wire.prompt(1, session, "go")
        await wire.update("agent_message_chunk")
        wire.send(method="session/cancel", params={"sessionId": session})
        assert await wire.ended(1) == "cancelled"
        assert wire.text() == "Working. Stopping."


@of_every_agent
@relayed
async def test_updates_after_a_turn_reach_every_client_and_open_no_turn(dialect: str, agent: str) -> None:
    turns: list[RawTurn] = []

    async def script(turn: RawTurn) -> None:
        turns.append(turn)
        turn.end()

    async with (
        staged(place_of(agent), RawAgent(agent, script)) as stage,
        stage.session(dialect) as (wire, session),
        stage.client("v2") as other,
    ):
        await other.join(session)
        assert await wire.play(session, "go") == ["end_turn"]
        states = wire.states()
        turns[0].says("By the way.", messageId="late")
        await _heard(wire, "By the way.")
        await _heard(other, "By the way.")
        assert [state for state in wire.states()[len(states) :] if state == "running"] == []
        assert await wire.play(session, "next") == ["end_turn"]


@of_every_agent
@relayed
async def test_a_prompt_reaches_the_agent_without_any_id_of_a_message(dialect: str, agent: str) -> None:
    async def script(turn: RawTurn) -> None:
        turn.end()

    raw = RawAgent(agent, script)
    async with staged(place_of(agent), raw) as stage, stage.session(dialect) as (wire, session):
        params = {"sessionId": session, "prompt": [text("go")], "messageId": "the-clients-own"}
        wire.send(id=1, method="session/prompt", params=params)
        await wire.ended(1)
        (sent,) = [frame["params"] for frame in raw.seen if frame.get("method") == "session/prompt"]
        assert {key: sent[key] for key in ("sessionId", "prompt")} == {
            "sessionId": "raw",
            "prompt": [text("go")],
        }
        assert "the-clients-own" not in str(sent.get("messageId"))


@pytest.mark.parametrize("agent", ["v1", "v1+turn_complete"])
@pytest.mark.parametrize("dialect", V1S)
async def test_the_updates_of_a_v1_turn_reach_v1_clients_as_they_were_written(
    dialect: str, agent: str
) -> None:
    entries = [{"content": "Check", "priority": "high", "status": "pending"}]
    content = [{"type": "content", "content": text("All was read")}]
    written = [
        {"sessionUpdate": "plan", "entries": entries},
        {"sessionUpdate": "agent_message_chunk", "content": text("I will look.")},
        {
            "sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "Reading",
            "kind": "other", "status": "pending",
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "in_progress"},
        {
            "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed",
            "content": content,
        },
    ]  # fmt: skip

    async def script(turn: RawTurn) -> None:
        for update in written:
            turn.agent.send(method="session/update", params={"sessionId": turn.session, "update": update})
        turn.end()

    async with staged("hub-v1", RawAgent(agent, script)) as stage, stage.session(dialect) as (wire, session):
        assert await wire.play(session, "go") == ["end_turn"]
        told = [
            {key: value for key, value in update.items() if key != "messageId"}
            for update in wire.updates()
            if update["sessionUpdate"] not in ("turn_complete", "state_update", "user_message")
        ]
        assert told == written


@of_every_agent
@relayed
async def test_what_a_chunk_carries_in_meta_passes_through(dialect: str, agent: str) -> None:
    meta = {"example.com/message": {"id": "m-7", "part": None}}

    async def script(turn: RawTurn) -> None:
        turn.says("one", messageId="a", _meta=meta)
        turn.end()

    async with (
        staged(place_of(agent), RawAgent(agent, script)) as stage,
        stage.session(dialect) as (wire, session),
    ):
        await wire.play(session, "go")
        (told,) = wire.updates_of("agent_message_chunk")
        assert told == {
            "sessionUpdate": "agent_message_chunk", "messageId": "a", "content": text("one"), "_meta": meta,
        }  # fmt: skip


@pytest.mark.parametrize("agent", V2S)
@relayed
async def test_an_idle_that_does_not_say_why_ends_the_turn(dialect: str, agent: str) -> None:
    async def script(turn: RawTurn) -> None:
        turn.says("Hello.", messageId="a")
        turn.state("idle")

    async with staged("hub-v2", RawAgent(agent, script)) as stage, stage.session(dialect) as (wire, session):
        for id in (1, 2):
            wire.prompt(id, session, "go")
            assert await wire.ended(id) in ("end_turn", "None"), (
                "no reason is made up for those who need none"
            )


@of_every_agent
@relayed
async def test_a_cancel_answers_the_open_permission_of_the_agent_as_cancelled(
    dialect: str, agent: str
) -> None:
    """Also where the client that was asked does not answer any more."""

    async def script(turn: RawTurn) -> None:
        call = {"toolCallId": "t", "title": "Look", "status": "in_progress"}
        first = "tool_call" if agent.startswith("v1") else "tool_call_update"
        turn.update(first, **call)
        about: dict[str, Any] = {"toolCall": {"toolCallId": "t"}}
        if not agent.startswith("v1"):
            about = {"title": "May I?", "subject": {"type": "tool_call", **about}}
        turn.agent.send(
            id="ask",
            method="session/request_permission",
            params={"sessionId": turn.session, "options": OPTIONS, **about},
        )
        await turn.cancelled.wait()
        turn.update("tool_call_update", toolCallId="t", status="failed")
        turn.end("cancelled")

    raw = RawAgent(agent, script)
    async with staged(place_of(agent), raw) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "go")
        await wire.request("session/request_permission")
        wire.send(method="session/cancel", params={"sessionId": session})
        assert await wire.ended(1) == "cancelled"
        answers = [frame for frame in raw.seen if frame.get("id") == "ask" and "method" not in frame]
        assert [answer.get("result") for answer in answers] == [{"outcome": {"outcome": "cancelled"}}]
        statuses = [each.get("status") for each in wire.updates_of("tool_call", "tool_call_update")]
        assert statuses[-1] == "failed", "updates of tool calls still come"


async def _heard(wire: Wire, words: str) -> None:
    if words not in str(wire.updates()):
        await wire.until(lambda frame: words in str(frame))
