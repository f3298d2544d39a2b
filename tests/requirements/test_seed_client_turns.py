"""Seeds 001 to 003 as the client library keeps them, with a raw agent of every dialect behind it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.client import Permission, Permissions
from antiphon.errors import LocalError
from antiphon.schema.v2 import ImageContent
from antiphon.schema.v2.permissions import PermissionOption
from antiphon.schema.version import OptIns
from tests.requirements.agent_by_hand import Heard, opened, story, text, whole
from tests.requirements.seed_places import (
    ANSWERED_AT_END,
    ASKED_IN_V1,
    CONFIRMED,
    DIALECTS,
    V1S,
    V2S,
    read,
    session_of,
    version_of,
)


async def never(permission: Permission) -> PermissionOption | None:
    await asyncio.Event().wait()
    raise AssertionError


# --- seed 001 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
@read(*DIALECTS)
async def test_every_stop_reason_ends_the_turn_and_is_told(place: str, dialect: str, reason: str) -> None:
    async with session_of(dialect) as script:
        prompting = script.agent.meanwhile(script.session.prompt("go"))
        script.end(await script.accept("go"), reason)
        assert (await (await prompting).drained()).stop_reason == reason
        assert script.session.state == "idle"


@read(*DIALECTS)
async def test_content_that_the_agent_did_not_offer_to_take_is_not_sent(place: str, dialect: str) -> None:
    version = version_of(dialect)
    able: dict[str, Any] = (
        {**CONFIRMED[dialect], "promptCapabilities": {}} if version == 1 else {"session": {}}
    )
    opt_ins = OptIns.from_meta(ASKED_IN_V1.get(dialect, {}))
    async with opened(version, able, opt_ins=opt_ins) as (client, agent):
        session = await agent.new_session(client)
        with pytest.raises(LocalError, match="image"):
            await session.prompt("look", ImageContent(data="aGk=", mime_type="image/png"))
        await agent.settled(session)
        assert agent.methods() == ["session/new"]


@read(*DIALECTS)
async def test_plan_tool_calls_and_words_are_there_when_the_turn_is_drained(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        prompting = agent.meanwhile(session.prompt("go"))
        request = await script.accept("go")
        entries = [{"content": "look", "priority": "high", "status": "pending"}]
        if dialect in V1S:
            agent.update(session, "plan", entries=entries)
        else:
            agent.update(session, "plan_update", plan={"type": "items", "planId": "p", "entries": entries})
        script.says("I will look.", "a1")
        script.tool("t", kind="other", status="pending")
        agent.update(session, "tool_call_update", toolCallId="t", status="in_progress")
        content = [{"type": "content", "content": text("All good.")}]
        agent.update(session, "tool_call_update", toolCallId="t", status="completed", content=content)
        script.says("It is fine.", "a2")
        script.end(request)
        await (await prompting).drained()
        (call,) = session.tool_calls
        assert (call.id, str(call.status)) == ("t", "completed")
        assert whole(call)["content"] == content
        (plan,) = session.plans
        assert [entry["content"] for entry in whole(plan)["plan"]["entries"]] == ["look"]
        assert [words for role, _, words in story(session) if role == "agent"] == [
            "I will look.",
            "It is fine.",
        ]


@read(*DIALECTS)
async def test_a_cancel_marks_tool_calls_answers_permissions_and_still_takes_late_updates(
    place: str, dialect: str
) -> None:
    async with session_of(dialect, answers=Permissions(ask=never)) as script:
        session, agent = script.session, script.agent
        prompting = agent.meanwhile(session.prompt("go"))
        request = await script.accept("go")
        turn = await prompting
        script.tool("done", status="completed")
        script.tool("t", status="in_progress")
        asked = script.asks()
        await agent.settled(session)
        await turn.cancel()
        statuses = {call.id: str(call.status) for call in session.tool_calls}
        assert statuses == {"done": "completed", "t": "cancelled"}, "at once, before the agent says so"
        cancel = await agent.request("session/cancel")
        assert cancel.keys() == {"jsonrpc", "method", "params"}
        assert cancel["params"]["sessionId"] == "s"
        if version_of(dialect) == 1:
            assert (await agent.answer_to(asked))["result"]["outcome"] == {"outcome": "cancelled"}
        agent.update(session, "tool_call_update", toolCallId="t", status="failed", title="Stopped")
        script.says("I stopped.")
        script.end(request, "cancelled")
        end = await turn.drained()
        assert end.cancelled
        assert [(call.id, str(call.status)) for call in session.tool_calls][1] == ("t", "failed")
        assert turn.text == "I stopped."
        if version_of(dialect) == 2:  # there the agent takes its question back, at the latest with its turn
            assert (await agent.answer_to(asked))["result"]["outcome"] == {"outcome": "cancelled"}


@read(*ANSWERED_AT_END)
async def test_an_error_after_a_cancel_is_a_cancelled_turn(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        turn = await script.session.prompt("go")
        request = await script.accept("go")
        await turn.cancel()
        await script.agent.request("session/cancel")
        script.agent.refuse(request, -32603, "The operation was aborted")
        assert (await turn.drained()).cancelled


@read(*DIALECTS)
async def test_the_next_prompt_is_sent_once_a_turn_has_ended(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        for number in range(3):
            prompting = script.agent.meanwhile(script.session.prompt(f"prompt {number}"))
            request = await script.accept(f"prompt {number}", f"u{number}")
            script.says(f"answer {number}", f"a{number}")
            script.end(request)
            turn = await prompting
            assert (await turn.drained()).stop_reason == "end_turn"
            assert turn.text == f"answer {number}"
        assert [words for _, _, words in story(script.session)] == [
            f"{word} {number}" for number in range(3) for word in ("prompt", "answer")
        ]


# --- seed 002 ----------------------------------------------------------------------------------------------


@read(*DIALECTS)
async def test_another_id_begins_another_message_and_the_same_id_goes_on(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        for words, id in (("one ", "m1"), ("message", "m1"), ("another ", "m2"), ("one", "m2")):
            script.says(words, id)
        await script.agent.settled(script.session)
        assert story(script.session) == [("agent", "m1", "one message"), ("agent", "m2", "another one")]


@pytest.mark.parametrize("absent", [{}, {"messageId": None}], ids=["omitted", "null"])
@read(*V1S)
async def test_without_ids_v1_parts_messages_by_kind_and_by_what_stands_between(
    place: str, dialect: str, absent: dict[str, Any]
) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        agent.says(session, "Looking... ", **absent)
        agent.says(session, "Two problems.", **absent)
        agent.update(session, "tool_call", toolCallId="t", title="Fix")
        agent.says(session, "Both are mended.", **absent)
        agent.update(session, "agent_thought_chunk", content=text("Done?"), **absent)
        agent.says(session, "Yes.", **absent)
        await agent.settled(session)
        assert [(role, words) for role, _, words in story(session)] == [
            ("agent", "Looking... Two problems."),
            ("agent", "Both are mended."),
            ("thought", "Done?"),
            ("agent", "Yes."),
        ]
        assert all(id for _, id, _ in story(session))


@read(*V1S)
async def test_null_and_no_id_are_the_same_message(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        script.agent.says(script.session, "one ")
        script.agent.says(script.session, "message", messageId=None)
        await script.agent.settled(script.session)
        assert [words for _, _, words in story(script.session)] == ["one message"]


@pytest.mark.parametrize(
    "wrong", [{}, {"messageId": None}, {"messageId": 7}], ids=["omitted", "null", "number"]
)
@pytest.mark.parametrize("kind", ["agent_message_chunk", "user_message_chunk", "agent_thought_chunk"])
@read(*V2S)
async def test_in_v2_a_chunk_without_an_id_is_refused_and_nothing_else(
    place: str, dialect: str, kind: str, wrong: dict[str, Any]
) -> None:
    async with session_of(dialect) as script:
        script.says("kept ", "a1")
        script.agent.update(script.session, kind, content=text("refused"), **wrong)
        script.says("whole", "a1")
        await script.agent.settled(script.session)
        assert story(script.session) == [("agent", "a1", "kept whole")]


@read(*DIALECTS)
async def test_ids_are_opaque_strings_of_any_form(place: str, dialect: str) -> None:
    ids = [
        "1",
        "01",
        "msg_user_9",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        "{}",
        "null",
        "ä b",
        "x" * 300,
    ]
    async with session_of(dialect) as script:
        for id in ids:
            script.says(f"<{id}>", id)
        await script.agent.settled(script.session)
        assert story(script.session) == [("agent", id, f"<{id}>") for id in ids]


@read(*V2S)
async def test_in_v2_chunks_of_two_messages_may_alternate(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        for number in range(3):
            script.says(f"a{number}", "a")
            script.says(f"b{number}", "b")
        await script.agent.settled(script.session)
        assert story(script.session) == [("agent", "a", "a0a1a2"), ("agent", "b", "b0b1b2")]


@pytest.mark.parametrize("kept", [True, False], ids=["ids kept", "ids made anew"])
@read(*DIALECTS)
async def test_a_session_may_be_loaded_with_the_same_ids_or_with_others(
    place: str, dialect: str, kept: bool
) -> None:
    async with session_of(dialect) as script:
        client, agent = script.session.client, script.agent
        script.says("Hello.", "a1")
        await agent.settled(script.session)
        loading = agent.meanwhile(client.load_session("s", "/site"))
        request = await agent.request("session/load" if dialect in V1S else "session/resume")
        agent.says("s", "Hello.", messageId="a1" if kept else "z1")
        agent.answer(request, {})
        session = await loading
        assert story(session) == [("agent", "a1" if kept else "z1", "Hello.")]


@read(*DIALECTS)
async def test_meta_of_a_chunk_does_no_harm_and_is_there_for_who_watches(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        heard = Heard(script.session, script.agent)
        meta = {"example.com/message": "m-7"}
        script.agent.says(script.session, "one", messageId="a1", _meta=meta)
        told = await heard.until(lambda event: event.update is not None)
        assert getattr(told.update, "meta", None) == meta
        assert story(script.session) == [("agent", "a1", "one")]


@read(*DIALECTS)
async def test_tool_calls_are_told_apart_by_their_ids_and_plan_entries_by_their_place(
    place: str, dialect: str
) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        script.tool("t1")
        script.tool("t2")
        agent.update(session, "tool_call_update", toolCallId="t1", status="completed")
        for status in ("pending", "completed"):
            entries = [{"content": name, "priority": "low", "status": status} for name in ("a", "b")]
            if dialect in V1S:
                agent.update(session, "plan", entries=entries)
            else:
                agent.update(
                    session, "plan_update", plan={"type": "items", "planId": "p", "entries": entries}
                )
        await agent.settled(session)
        assert [(call.id, str(call.status)) for call in session.tool_calls] == [
            ("t1", "completed"), ("t2", "pending"),
        ]  # fmt: skip
        (plan,) = session.plans
        assert [(each["content"], each["status"]) for each in whole(plan)["plan"]["entries"]] == [
            ("a", "completed"), ("b", "completed"),
        ]  # fmt: skip


# --- seed 003 ----------------------------------------------------------------------------------------------


@read(*DIALECTS)
async def test_drained_waits_for_everything_of_the_turn_without_any_sleep(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        prompting = script.agent.meanwhile(script.session.prompt("count"))
        request = await script.accept("count")
        for number in range(200):
            script.says(f"{number};")
        script.end(request)
        turn = await prompting
        await turn.drained()
        assert turn.text == "".join(f"{number};" for number in range(200))


@read("v1+turn_complete")
async def test_with_the_capability_drained_waits_for_the_signal_of_its_own_prompt(
    place: str, dialect: str
) -> None:
    async with session_of(dialect) as script:
        session, agent = script.session, script.agent
        turn = await session.prompt("go")
        request = await agent.request("session/prompt")
        agent.answer(request, {"stopReason": "end_turn"})
        agent.update(session, "turn_complete", promptRequestId="another", stopReason="end_turn")
        await agent.settled(session)
        assert turn.end is None, "the signal of its own prompt has not come"
        script.says("late words")
        agent.update(session, "turn_complete", promptRequestId=str(request["id"]), stopReason="end_turn")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "late words"


@read("v1")
async def test_without_the_capability_the_answer_is_the_end(place: str, dialect: str) -> None:
    async with session_of(dialect) as script:
        turn = await script.session.prompt("go")
        request = await script.agent.request("session/prompt")
        script.says("words")
        script.agent.answer(request, {"stopReason": "end_turn"})
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "words"
