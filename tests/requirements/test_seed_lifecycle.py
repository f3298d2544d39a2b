"""Seed 000 (and 004), as a raw client sees it: the agent library, directly and behind a hub."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from antiphon.agent import Agent, AgentTurn
from tests.requirements.seed_agent import SeedAgent
from tests.requirements.seed_places import (
    ANSWERED_AT_END,
    DIALECTS,
    WITH_STATES,
    Wire,
    offers,
    served,
    staged,
    version_of,
)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@served(*DIALECTS)
async def test_background_work_reports_after_its_turn_without_another_prompt(
    place: str, dialect: str
) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        assert await wire.play(session, "behind") == ["end_turn"]
        states = wire.states()
        seed.go.set()
        done = await wire.update("tool_call_update", status="completed")
        assert done["toolCallId"]
        assert [state for state in wire.states()[len(states) :] if state != "idle"] == [], "no turn is opened"
        assert await wire.play(session, "again") == ["end_turn"]


@served(*DIALECTS)
async def test_the_agent_opens_a_turn_that_no_prompt_asked_for(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "wake")
        before = len(wire.updates())
        seed.go.set()
        await wire.until(lambda frame: "by myself" in str(frame))
        if dialect in WITH_STATES and place != "hub-v1":  # a v1 agent has no words for the states
            await wire.state("idle")
            kinds = [update.get("state", update["sessionUpdate"]) for update in wire.updates()[before:]]
            assert [kinds[0], kinds[-1]] == ["running", "idle"]
        assert [update for update in wire.updates()[before:] if "user" in update["sessionUpdate"]] == []
        assert await wire.play(session, "again") == ["end_turn"]


@served(*WITH_STATES)
async def test_a_prompt_is_answered_when_it_is_accepted_and_shown_whole_with_the_agents_id(
    place: str, dialect: str
) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt("req_1", session, "hold")
        answer = await wire.answer_to("req_1")
        assert answer["jsonrpc"] == "2.0"
        shown = await wire.update("user_message")
        assert shown.keys() - {"_meta"} == {"sessionUpdate", "messageId", "content"}
        assert shown["content"] == [text("hold")]
        assert isinstance(shown["messageId"], str)
        assert shown["messageId"]
        assert "idle" not in wire.states(), "answered while its turn goes on"
        if dialect == "proposed":
            assert answer == {"jsonrpc": "2.0", "id": "req_1", "result": {}}
        else:
            assert answer["result"] == {"messageId": shown["messageId"]}
        seed.go.set()
        assert await wire.ended("req_1") == "end_turn"
        assert wire.states() == ["running", "idle"]


@served(*ANSWERED_AT_END)
async def test_without_the_flag_v1_stays_as_it_is(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "hold")
        await wire.update("agent_message_chunk")
        await wire.everything()
        assert "= 1" not in wire.story(), "the answer waits for the end of the turn"
        seed.go.set()
        assert (await wire.answer_to(1))["result"] == {"stopReason": "end_turn"}
        assert wire.updates_of("user_message", "user_message_chunk", "state_update", "state_change") == []


@served(*WITH_STATES)
async def test_states_say_running_and_idle_with_reason_and_usage(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "usage")
        running, idle = wire.updates_of("state_update", "state_change")
        reason = "stop_reason" if dialect == "proposed" else "stopReason"
        assert running == {"sessionUpdate": wire.state_kind, "state": "running"}
        assert idle == {
            "sessionUpdate": wire.state_kind,
            "state": "idle",
            reason: "end_turn",
            "usage": {"totalTokens": 5, "inputTokens": 2, "outputTokens": 3},
        }


@served(*WITH_STATES)
async def test_requires_action_is_told_while_a_permission_is_waited_for_and_named(
    place: str, dialect: str
) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "ask")
        asked = await wire.request("session/request_permission")
        waits = await wire.state("requires_action")
        assert waits.keys() - {"_meta"} == {"sessionUpdate", "state"}
        named = asked["params"]["_meta"]["antiphon"]["questionId"]
        assert waits["_meta"]["antiphon"]["waitingFor"] == [named]
        assert "idle" not in wire.states(), "it is not idle: it waits"
        wire.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "allow"}})
        assert await wire.ended(1) == "end_turn"
        assert wire.states() == ["running", "requires_action", "running", "idle"]


@served(*DIALECTS)
async def test_a_replay_turns_prompts_into_user_messages_with_the_same_ids(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with (
        staged(place, seed.agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as late,
    ):
        await wire.play(session, "one", "two")
        await late.join(session)
        said = [("user", "one"), ("agent", "You said: one"), ("user", "two")]
        said += [("agent", "the first message"), ("agent", "the second message")]
        assert late.words() == said
        assert all(id for _, id, _ in late.messages())
        live = [id for role, id, _ in wire.messages() if role == "agent" and id]
        assert [id for role, id, _ in late.messages() if role == "agent"] == live
        if dialect in WITH_STATES:
            assert late.states()[-1:] == ["idle"], "the end of the last turn is told too"


@served(*DIALECTS)
async def test_a_session_loaded_at_work_says_that_it_works_and_when_it_ends(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with (
        staged(place, seed.agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as late,
    ):
        wire.prompt(1, session, "hold")
        await wire.update("agent_message_chunk")
        await late.join(session)
        assert late.words()[:2] == [("user", "hold"), ("agent", "holding")]
        if dialect in WITH_STATES:
            assert late.states() == ["running"]
            told = [line for line in late.story() if line.startswith((late.state_kind, "= join"))]
            assert told == [f"{late.state_kind} running", "= join"], "the state comes before the answer"
        seed.go.set()
        assert await wire.ended(1) == "end_turn"
        if dialect == "v1+turn_complete":
            complete = await late.update("turn_complete", stopReason="end_turn")
            assert "promptRequestId" not in complete, "the prompt was another client's"
        elif dialect in WITH_STATES:
            await late.state("idle")
        late.prompt(2, session, "next")
        assert await late.ended(2) == "end_turn"


@served(*DIALECTS)
async def test_every_client_sees_the_prompts_of_the_others_at_the_same_place(
    place: str, dialect: str
) -> None:
    seed = SeedAgent()
    async with (
        staged(place, seed.agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client(dialect) as other,
        stage.client("v2") as watcher,
    ):
        await other.join(session)
        await watcher.join(session)
        await wire.play(session, "mine")
        await other.play(session, "theirs")
        for told in (other, wire):
            user = [("user", "mine"), ("user", "theirs")]
            own = dialect in ANSWERED_AT_END  # v1 does not repeat a client's own prompt to it
            shown = [each for each in user if not own or each[1] != ("mine" if told is wire else "theirs")]
            await told.until(lambda frame: "theirs" in str(frame)) if told is wire else None
            assert [each for each in told.words() if each[0] == "user"] == shown
        await watcher.update("state_update", state="idle")
        await watcher.update("state_update", state="idle")
        assert watcher.words() == [
            ("user", "mine"), ("agent", "You said: mine"), ("user", "theirs"), ("agent", "You said: theirs"),
        ]  # fmt: skip


@served(*DIALECTS)
async def test_a_prompt_during_a_turn_needs_no_cancel_and_is_taken_in_order(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "hold")
        await wire.update("agent_message_chunk")
        wire.prompt(2, session, "second")
        wire.prompt(3, session, "third")
        await wire.everything()
        assert [line for line in wire.story() if line in ("= 2", "= 3")] == [], "they wait"
        seed.go.set()
        assert [await wire.ended(id) for id in (1, 2, 3)] == ["end_turn"] * 3
        assert seed.prompts == ["hold", "second", "third"], "each as soon as the one before has ended"
        if dialect in WITH_STATES:
            shown = [each for each in wire.words() if each[0] == "user"]
            assert shown == [("user", "hold"), ("user", "second"), ("user", "third")]
            assert wire.story().index("= 2") > wire.story().index(f"{wire.state_kind} idle")


@served(*DIALECTS)
async def test_the_agent_may_cancel_its_turn_and_insert_the_prompt_at_once(place: str, dialect: str) -> None:
    """Directly the agent decides it for every prompt; through a hub the client asks for it."""
    seed = SeedAgent(busy="interrupt")
    asked = {} if place == "agent" else {"delivery": "interrupt"}
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "hold")
        await wire.update("agent_message_chunk")
        wire.prompt(2, session, "at once", **asked)
        assert await wire.ended(1) == "cancelled"
        assert await wire.ended(2) == "end_turn"
        assert seed.prompts == ["hold", "at once"]
        assert wire.text() == "holding, and late wordsYou said: once"


@served(*DIALECTS)
async def test_the_agent_may_insert_the_prompt_at_its_next_break_and_its_tools_go_on(
    place: str, dialect: str
) -> None:
    seed = SeedAgent(busy="steer")
    asked = {} if place == "agent" else {"delivery": "steer"}
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "tool")
        await wire.until(lambda frame: "looking" in str(frame))
        wire.prompt(2, session, "this way", **asked)
        await wire.everything()
        if place != "hub-v1":  # a v1 agent does not say where it inserts a prompt: it counts as sent
            assert "= 2" not in wire.story(), "not yet inserted"
        seed.go.set()
        assert await wire.ended(1) == await wire.ended(2) == "end_turn"
        assert seed.prompts == ["tool", "this way"]
        statuses = [update.get("status") for update in wire.updates_of("tool_call", "tool_call_update")]
        assert statuses[-1] == "completed", "no tool call was cancelled for it"
        if dialect in WITH_STATES:
            assert wire.states() == ["running", "idle"], "one turn took both"
            assert wire.words() == [("user", "tool"), ("user", "this way"), ("agent", "looked")]


@served(*DIALECTS)
async def test_an_error_of_an_invalid_prompt_answers_its_request(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        wire.send(id=1, method="session/prompt", params={"sessionId": session, "prompt": "no list"})
        wire.send(id=2, method="session/prompt", params={"sessionId": session, "prompt": []})
        wire.send(id=3, method="session/prompt", params={"sessionId": "unknown", "prompt": [text("x")]})
        strange = [{"type": "hologram", "data": "x"}]
        wire.send(id=4, method="session/prompt", params={"sessionId": session, "prompt": strange})
        codes = [(await wire.answer_to(id))["error"]["code"] for id in (1, 2, 3, 4)]
        assert codes == [-32602, -32602, -32002, -32602]
        assert wire.updates_of("user_message", "user_message_chunk", wire.state_kind) == []
        assert await wire.play(session, "valid") == ["end_turn"]
        assert seed.prompts == ["valid"]


@served(*DIALECTS)
async def test_only_the_agent_notifies_and_a_client_prompts_by_requests(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with (
        staged(place, seed.agent) as stage,
        stage.session(dialect) as (wire, session),
        stage.client("v2") as watcher,
    ):
        await watcher.join(session)
        forged = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text("forged")}
        wire.send(method="session/update", params={"sessionId": session, "update": forged})
        wire.send(method="session/prompt", params={"sessionId": session, "prompt": [text("no request")]})
        assert await wire.play(session, "a request") == ["end_turn"]
        await watcher.update("state_update", state="idle")
        assert "forged" not in str(watcher.seen)
        assert seed.prompts == ["a request"]


@served(*DIALECTS)
async def test_ids_of_messages_are_the_agents_and_never_the_clients(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        params = {"sessionId": session, "prompt": [text("x")], "messageId": "made-by-the-client"}
        wire.send(id=1, method="session/prompt", params=params)
        assert await wire.ended(1) == "end_turn"
        assert "made-by-the-client" not in str(wire.seen)
        assert (await wire.answer_to(1))["result"].get("messageId") != "made-by-the-client"


async def _injected(wire: Wire, session: str, words: str, id: str) -> str:
    params = {"sessionId": session, "content": [text(words)], "mode": "queue"}
    return str((await wire.call(id, "_antiphon/inject", **params))["messageId"])


@served(*DIALECTS)
async def test_queued_prompts_are_edited_and_withdrawn_until_they_are_accepted(
    place: str, dialect: str
) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(1, session, "hold")
        await wire.update("agent_message_chunk")
        kept = await _injected(wire, session, "as first written", "i1")
        gone = await _injected(wire, session, "withdrawn", "i2")
        edited = {"sessionId": session, "messageId": kept, "content": [text("as edited")]}
        await wire.call("e", "_antiphon/replace_inject", **edited)
        await wire.call("r", "_antiphon/revoke_inject", sessionId=session, messageId=gone)
        assert "idle" not in wire.states(), "the turn that runs is not touched"
        seed.go.set()
        assert await wire.ended(1) == "end_turn"
        await wire.until(lambda frame: "as edited" in str(frame.get("params")))
        wire.send(id="late", method="_antiphon/replace_inject", params=edited)
        late = await wire.answer_to("late")
        assert late["error"]["data"]["reason"] == "already_delivered"
        await wire.play(session, "last")
        assert seed.prompts == ["hold", "as edited", "last"]


@served("v1", "v1+lifecycle2")
async def test_the_future_flag_is_asked_for_and_confirmed_in_meta(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.client(dialect) as wire:
        able = wire.seen[0]["result"]["agentCapabilities"]
        confirmed = able.get("_meta", {}).get("antiphon", {}).get("promptLifecycle")
        assert confirmed == (2 if dialect == "v1+lifecycle2" else None)


@served(*DIALECTS)
async def test_the_version_is_the_one_that_was_asked_for(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.client(dialect) as wire:
        assert wire.seen[0]["result"]["protocolVersion"] == version_of(dialect)


@served(*WITH_STATES)
async def test_the_id_of_a_message_names_it_in_later_requests(place: str, dialect: str) -> None:
    """A cancel that names a message ends the turn of that message and no later one."""
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "one")
        (old,) = wire.updates_of("user_message")
        wire.prompt(2, session, "hold")
        await wire.until(lambda frame: "holding" in str(frame))

        def cancel(id: str) -> None:
            params = {"sessionId": session, "_meta": {"antiphon": {"messageId": id}}}
            wire.send(method="session/cancel", params=params)

        cancel(old["messageId"])
        await wire.everything()
        assert wire.states()[-1] == "running"
        cancel(wire.updates_of("user_message")[-1]["messageId"])
        assert await wire.ended(2) == "cancelled"


class Where(Struct):
    city: str


@served(*WITH_STATES)
async def test_requires_action_names_an_elicitation_too(place: str, dialect: str) -> None:
    agent = Agent("asks", version="1")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.ask("Where?", Where)

    able = {"elicitation": {"form": {}}}
    key = "clientCapabilities" if version_of(dialect) == 1 else "capabilities"
    offered = {key: {**offers(dialect).get(key, {}), **able}}
    async with staged(place, agent) as stage, stage.client(dialect, **offered) as wire:
        session = await wire.new_session()
        wire.prompt(1, session, "go")
        asked = await wire.request("elicitation/create")
        waits = await wire.state("requires_action")
        named = asked["params"]["_meta"]["antiphon"]["questionId"]
        assert waits["_meta"]["antiphon"]["waitingFor"] == [named]
        wire.send(id=asked["id"], result={"action": "accept", "content": {"city": "Lyon"}})
        assert await wire.ended(1) == "end_turn"


@served(*DIALECTS)
async def test_the_ids_of_messages_stand_in_the_journal(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "two")
        page = await stage.front.store.read(session, 0)
        kept = b"".join(line for batch in page.batches for line in batch.events).decode()
        told = {each["messageId"] for each in wire.updates_of("agent_message_chunk")}
        assert len(told) == 2
        assert all(id in kept for id in told)
