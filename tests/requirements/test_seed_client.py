"""Seed 000 as the client library keeps it, with a raw agent of every dialect behind it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.client import ClientOptions, Permission, Permissions, connect
from antiphon.errors import CallFailed
from antiphon.schema.v2.permissions import PermissionOption
from antiphon.schema.version import OptIns
from tests.requirements.agent_by_hand import opened, story, text
from tests.requirements.seed_agent import SeedAgent
from tests.requirements.seed_places import (
    ANSWERED_AT_END,
    CONFIRMED,
    DEADLINE,
    DIALECTS,
    V1S,
    V2S,
    WITH_STATES,
    client_of,
    read,
    session_of,
)

USAGE = {"totalTokens": 5, "inputTokens": 2, "outputTokens": 3}


async def never(permission: Permission) -> PermissionOption | None:
    await asyncio.Event().wait()
    raise AssertionError


@read(*DIALECTS)
async def test_updates_are_held_whenever_they_come_and_open_no_turn(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        script.says("Good morning.", "a1")
        script.tool("t", status="in_progress")
        agent.update(session, "session_info_update", title="Before any prompt")
        await agent.settled(session)
        assert (session.state, session.turn, session.title) == ("idle", None, "Before any prompt")
        prompting = agent.meanwhile(session.prompt("hi"))
        request = await script.accept("hi")
        script.end(request)
        await (await prompting).drained()
        script.says("By the way.", "a2")
        agent.update(session, "tool_call_update", toolCallId="t", status="completed")
        await agent.settled(session)
        assert [words for _, _, words in story(session)] == ["Good morning.", "hi", "By the way."]
        assert [str(call.status) for call in session.tool_calls] == ["completed"]
        assert (session.state, session.turn) == ("idle", None)


@read(*WITH_STATES)
async def test_a_turn_that_the_agent_opens_is_one_without_a_prompt(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        script.state("running")
        script.says("I noticed something.")
        await agent.settled(session)
        assert (session.state, session.turn is not None) == ("running", True)
        own = session.turn
        assert own is not None
        script.state("idle", **{"stop_reason" if dialect == "proposed" else "stopReason": "end_turn"})
        assert (await own.drained()).stop_reason == "end_turn"
        assert [role for role, _, _ in story(session)] == ["agent"]


@read(*WITH_STATES)
async def test_prompt_returns_at_acceptance_and_drained_at_the_end(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        prompting = script.agent.meanwhile(script.session.prompt("hi"))
        await script.accept("hi")
        turn = await prompting
        assert turn.end is None
        script.says("Hello.")
        key = "stop_reason" if dialect == "proposed" else "stopReason"
        script.state("idle", **{key: "end_turn"}, usage=USAGE)
        end = await turn.drained()
        assert (end.stop_reason, turn.text) == ("end_turn", "Hello.")
        assert end.usage is not None
        assert end.usage.total_tokens == 5


@read(*DIALECTS)
async def test_a_prompt_is_a_request_of_its_session_and_content_without_any_id(
    place: str, dialect: str
) -> None:
    async with session_of(dialect) as script:
        script.agent.meanwhile(script.session.prompt("Which way is north?"))
        sent = await script.agent.request("session/prompt")
        assert sent.keys() == {"jsonrpc", "id", "method", "params"}
        assert sent["params"] == {"sessionId": "s", "prompt": [text("Which way is north?")]}


@read(*WITH_STATES)
async def test_an_empty_answer_is_named_by_the_user_message(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        prompting = agent.meanwhile(session.prompt("hi"))
        agent.answer(await agent.request("session/prompt"), {})
        agent.update(session, "user_message", messageId="mess_1", content=[text("hi")])
        script.state("running")
        turn = await prompting
        script.says("Hello.")
        script.state("idle")
        assert (await turn.drained()).stop_reason is None, "why it is idle may be left out"
        assert story(session)[0] == ("user", "mess_1", "hi")


@read(*WITH_STATES)
async def test_a_prompt_stands_where_the_agent_accepted_it(place: str, dialect: str) -> None:
    """Behind what the agent said before it took the prompt, though that came after the prompt was sent."""
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        first = agent.meanwhile(session.prompt("one"))
        await script.accept("one", "u1")
        turn = await first
        second = agent.meanwhile(session.prompt("two"))
        request = await agent.request("session/prompt")
        script.says("Still at one.", "a1")
        agent.answer(request, {} if dialect == "proposed" else {"messageId": "u2"})
        agent.update(session, "user_message", messageId="u2", content=[text("two")])
        script.says("Now two.", "a2")
        script.state("idle", **{"stop_reason" if dialect == "proposed" else "stopReason": "end_turn"})
        await turn.drained()
        await (await second).drained()
        assert [words for _, _, words in story(session)] == ["one", "Still at one.", "two", "Now two."]
        assert agent.methods() == ["session/new", "session/prompt", "session/prompt"], "no cancel"


@read(*DIALECTS)
async def test_a_prompt_of_another_client_is_a_message_and_not_ours(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        if dialect in WITH_STATES:
            agent.update(session, "user_message", messageId="u9", content=[text("theirs")])
        else:
            agent.update(session, "user_message_chunk", messageId="u9", content=text("theirs"))
        script.says("For them.", "a9")
        await agent.settled(session)
        assert story(session) == [("user", "u9", "theirs"), ("agent", "a9", "For them.")]


@read(*V2S, "v1+lifecycle2")
async def test_whole_messages_and_chunks_are_two_ways_to_tell_one_message(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        if dialect == "v1+lifecycle2":  # v1 has no whole messages of the agent
            agent.update(session, "user_message", messageId="u", content=[text("whole")])
            await agent.settled(session)
            assert story(session) == [("user", "u", "whole")]
            return
        script.says("piece ", "a1")
        agent.update(session, "agent_message", messageId="a1", content=[text("in one piece")])
        agent.update(session, "agent_thought", messageId="t1", content=[text("hm")])
        script.says(" and more", "a1")
        await agent.settled(session)
        assert story(session) == [("agent", "a1", "in one piece and more"), ("thought", "t1", "hm")]


@read(*WITH_STATES)
async def test_requires_action_is_not_idle_and_ends_no_turn(place: str, dialect: str) -> None:
    async with session_of(dialect, answers=Permissions(ask=never)) as script:
        session, agent = script.session, script.agent
        prompting = agent.meanwhile(session.prompt("go"))
        request = await script.accept("go")
        turn = await prompting
        script.tool("t")
        script.asks()
        script.state("requires_action")
        await agent.settled(session)
        assert (session.state, turn.end, len(session.questions)) == ("requires_action", None, 1)
        script.state("running")
        script.end(request)
        assert (await turn.drained()).stop_reason == "end_turn"


@read(*DIALECTS)
async def test_a_loaded_session_has_its_messages_and_says_whether_it_works(place: str, dialect: str) -> None:
    async with client_of(dialect) as (client, agent):
        loading = agent.meanwhile(client.load_session("s", "/site"))
        method = "session/load" if dialect in V1S else "session/resume"
        request = await agent.request(method)
        user: dict[str, Any] = {"messageId": "u1", "content": text("one")}
        if dialect in V2S:
            agent.update("s", "user_message", messageId="u1", content=[text("one")])
        else:
            agent.update("s", "user_message_chunk", **user)
        agent.says("s", "Working.", messageId="a1")
        kind = "state_change" if dialect == "proposed" else "state_update"
        if dialect in WITH_STATES:
            agent.update("s", kind, state="running")
        agent.answer(request, {})
        session = await loading
        assert story(session) == [("user", "u1", "one"), ("agent", "a1", "Working.")]
        if dialect == "v1+turn_complete":  # the end of another client's turn
            agent.update("s", "turn_complete", stopReason="end_turn")
            await agent.settled(session)
            assert session.state == "idle"
        if dialect in WITH_STATES:
            turn = session.turn
            assert turn is not None, "a turn is open"
            agent.says("s", " Done.", messageId="a1")
            agent.update("s", kind, state="idle", stopReason="end_turn")
            assert (await turn.drained()).stop_reason == "end_turn"
            assert story(session)[-1] == ("agent", "a1", "Working. Done.")


@read(*DIALECTS)
async def test_an_invalid_prompt_is_the_error_of_its_request_and_leaves_nothing(
    place: str, dialect: str
) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        prompting = agent.meanwhile(session.prompt("no"))
        agent.refuse(await agent.request("session/prompt"), -32602, "Invalid params")
        if dialect in ANSWERED_AT_END:  # the answer is the end of the turn
            end = await (await prompting).drained()
            assert (end.stop_reason, end.error is not None) == ("error", True)
        else:
            with pytest.raises(CallFailed) as failed:
                await prompting
            assert failed.value.error.code == -32602
            assert story(session) == []
        assert session.state == "idle"
        again = agent.meanwhile(session.prompt("yes"))
        script.end(await script.accept("yes", "u2"))
        assert (await (await again).drained()).stop_reason == "end_turn"


@read("v1", "v1+lifecycle2")
async def test_the_flag_counts_only_where_the_agent_confirms_it(place: str, dialect: str) -> None:
    opt_ins = OptIns(prompt_lifecycle=True)
    async with opened(1, CONFIRMED[dialect], opt_ins=opt_ins) as (client, agent):
        asked = agent.seen[0]["params"]["clientCapabilities"]["_meta"]["antiphon"]
        assert asked["promptLifecycle"] == 2
        session = await agent.new_session(client)
        prompting = agent.meanwhile(session.prompt("hi"))
        request = await agent.request("session/prompt")
        if dialect == "v1":
            turn = await prompting
            agent.answer(request, {"stopReason": "end_turn"})
        else:
            agent.answer(request, {"messageId": "u1"})
            turn = await prompting
            agent.update(session, "user_message", messageId="u1", content=[text("hi")])
            agent.update(session, "state_update", state="running")
            agent.update(session, "state_update", state="idle", stopReason="end_turn")
        assert (await turn.drained()).stop_reason == "end_turn"


@read(*WITH_STATES)
async def test_a_cancel_names_the_message_of_its_turn(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        prompting = script.agent.meanwhile(script.session.prompt("go"))
        await script.accept("go", "mess_1")
        turn = await prompting
        await script.agent.settled(script.session)
        await turn.cancel()
        cancel = await script.agent.request("session/cancel")
        assert cancel["params"]["_meta"]["antiphon"]["messageId"] == "mess_1"
        assert turn.message_id == "mess_1"


@read("v1+lifecycle2")
async def test_a_queued_prompt_is_edited_and_withdrawn_under_the_flag(place: str, dialect: str) -> None:
    seed = SeedAgent()
    lifecycle = OptIns(prompt_lifecycle=True)
    async with (
        asyncio.timeout(DEADLINE),
        connect(seed.agent, version=1, options=ClientOptions(opt_ins=lifecycle)) as client,
    ):
        session = await client.new_session("/")
        first = await session.prompt("hold")
        kept, gone = [await session.queue.add(words) for words in ("as first written", "withdrawn")]
        await kept.edit("as edited")
        await gone.withdraw()
        seed.go.set()
        assert (await first.drained()).stop_reason == "end_turn"
        assert (await (await kept.accepted()).drained()).stop_reason == "end_turn"
        with pytest.raises(CallFailed):
            await kept.edit("too late")
        assert seed.prompts == ["hold", "as edited"]


@read("v1+lifecycle2")
async def test_the_agent_decides_what_a_prompt_does_during_a_turn(place: str, dialect: str) -> None:
    seed = SeedAgent(busy="interrupt")
    lifecycle = OptIns(prompt_lifecycle=True)
    async with (
        asyncio.timeout(DEADLINE),
        connect(seed.agent, version=1, options=ClientOptions(opt_ins=lifecycle)) as client,
    ):
        session = await client.new_session("/")
        first = await session.prompt("hold")
        second = await session.prompt("at once")
        assert (await first.drained()).cancelled
        assert (await second.drained()).stop_reason == "end_turn"
