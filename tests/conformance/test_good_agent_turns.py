"""The turns of the good agent: updates, cancels, permissions, held prompts and background work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import Json
from tests.conformance.good_agent_client import (
    BOTH,
    connect,
    kinds,
    update_of,
)

# --- turns ---


async def test_a_v1_turn_sends_its_updates_before_the_response() -> None:
    async with connect(1) as client:
        session = await client.new_session()
        updates = await client.turn(session, "Hello")
        assert kinds(updates) == [
            *["agent_thought_chunk"] * 2, *["agent_message_chunk"] * 3, "session_info_update", "usage_update",
        ]  # fmt: skip
        assert client.frames[-1]["result"] == {"stopReason": "end_turn"}
        assert len({update["messageId"] for update in updates[:2]}) == 1
        assert len({update["messageId"] for update in updates[:5]}) == 2


async def test_a_v2_prompt_is_answered_then_shown_then_worked_on() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        start = len(client.frames)
        updates = await client.turn(session, "Hello")
        message = client.frames[start]["result"]["messageId"]
        assert updates[0] == {
            "sessionUpdate": "user_message",
            "messageId": message,
            "content": [{"type": "text", "text": "Hello"}],
        }
        assert kinds(updates)[1:] == [
            "running", *["agent_thought_chunk"] * 2, *["agent_message_chunk"] * 3,
            "session_info_update", "usage_update", "idle",
        ]  # fmt: skip
        assert updates[-1]["stopReason"] == "end_turn"
        assert all("background" in update for update in updates if "state" in update)


@BOTH
@pytest.mark.parametrize(
    "text", ["Count slowly", "Raise when cancelled", "Read the file slowly", "Ask twice"]
)
async def test_a_cancelled_turn_ends_with_cancelled_after_its_last_update(version: int, text: str) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        id = client.prompt(session, text)
        await client.until(lambda frame: "toolCallId" in str(frame) or "chunk" in str(frame))
        client.notify("session/cancel", sessionId=session)
        client.notify("session/cancel", sessionId=session)
        if version == 1:
            assert (await client.response(id))["result"] == {"stopReason": "cancelled"}
        else:
            await client.update("state_update", state="idle", stopReason="cancelled")
        assert await client.call("_barrier") == {"code": -32601, "message": "the method does not exist"}
        end = {1: client.frames[-2], 2: update_of(client.frames[-2])}[version]
        assert "cancelled" in str(end)


@BOTH
async def test_a_turn_that_is_cancelled_before_it_begins_ends_with_cancelled(version: int) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        id = client.prompt(session, "Hello")
        client.notify("session/cancel", sessionId=session)
        if version == 1:
            assert (await client.response(id))["result"] == {"stopReason": "cancelled"}
        else:
            await client.update("state_update", state="idle", stopReason="cancelled")


async def test_questions_of_a_cancelled_turn_are_withdrawn() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        client.prompt(session, "Ask twice")
        asked = [(await client.question(count=count))["id"] for count in (1, 2)]
        client.notify("session/cancel", sessionId=session)
        await client.update("state_update", state="idle", stopReason="cancelled")
        withdrawn = [
            frame["params"]["requestId"]
            for frame in client.frames
            if frame.get("method") == "$/cancel_request"
        ]
        assert withdrawn == asked
        client.respond(asked[0], {"outcome": {"outcome": "selected", "optionId": "allow"}})
        await client.call("_barrier")
        assert update_of(client.frames[-2])["stopReason"] == "cancelled"


async def test_failed_work_is_an_error_response_in_v1_and_an_idle_in_v2() -> None:
    async with connect(1) as client:
        id = client.prompt(await client.new_session(), "Fail")
        assert (await client.response(id))["error"]["code"] == -32603
    async with connect(2) as client:
        updates = await client.turn(await client.new_session(), "Fail")
        assert updates[-1]["stopReason"] == "error"
        assert updates[-1]["error"]["code"] == -32603


@BOTH
async def test_a_tool_call_is_pending_then_in_progress_then_completed(version: int, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("It is about bells.")
    async with connect(version) as client:
        updates = await client.turn(await client.new_session(str(tmp_path)), "Read the file README.md")
    calls = [update for update in updates if "toolCallId" in update]
    assert [call["status"] for call in calls] == ["pending", "in_progress", "completed"]
    assert calls[0]["sessionUpdate"] == ("tool_call" if version == 1 else "tool_call_update")
    assert calls[2]["content"][0]["content"]["text"] == "It is about bells."


@BOTH
async def test_a_plan_is_whole_each_time(version: int) -> None:
    async with connect(version) as client:
        updates = await client.turn(await client.new_session(), "Plan")
    plans = [update.get("plan", update) for update in updates if "plan" in update["sessionUpdate"]]
    assert [len(plan["entries"]) for plan in plans] == [3, 3, 3, 3]


# --- permissions ---


ALLOWED = {"outcome": {"outcome": "selected", "optionId": "allow"}}


NOT_ALLOWED = [
    {"outcome": {"outcome": "selected", "optionId": "reject"}},
    {"outcome": {"outcome": "selected", "optionId": "foreign"}},
    {"outcome": {"outcome": "cancelled"}},
    {"outcome": {"outcome": "_perhaps", "optionId": "allow"}},
    {"outcome": "allow"},
    {},
]


@BOTH
@pytest.mark.parametrize("result", [ALLOWED, *NOT_ALLOWED])
async def test_only_an_offered_allow_option_lets_it_go_on(version: int, result: Json) -> None:
    async with connect(version) as client:
        id = client.prompt(await client.new_session(), "Ask for permission")
        client.respond((await client.question())["id"], result)
        if version == 1:
            await client.response(id)
        else:
            await client.update("state_update", stopReason="end_turn")
        statuses = [update_of(f)["status"] for f in client.frames if "status" in update_of(f)]
        if result == ALLOWED:
            assert statuses == ["pending", "in_progress", "completed"]
        else:
            assert statuses == ["pending", "failed"]


async def test_one_answer_of_two_does_not_mean_running() -> None:
    async with connect(2) as client:
        client.prompt(await client.new_session(), "Ask twice")
        asked = [(await client.question(count=count))["id"] for count in (1, 2)]
        client.respond(asked[1], ALLOWED)
        await client.call("_barrier")
        assert kinds([update_of(f) for f in client.frames if "state" in update_of(f)]) == [
            "running", "requires_action",
        ]  # fmt: skip
        client.respond(asked[0], ALLOWED)
        await client.update("state_update", stopReason="end_turn")
        states = [update_of(f)["state"] for f in client.frames if "state" in update_of(f)]
        assert states == ["running", "requires_action", "running", "idle"]


# --- held prompts and background work ---


async def test_held_v2_prompts_are_answered_when_they_are_inserted() -> None:
    class Short(GoodAgent):
        steps = 3

    async with connect(2, Short) as client:
        session = await client.new_session()
        ids = [client.prompt(session, text) for text in ("Count slowly", "Second", "Third")]
        answers = [(await client.response(id))["result"]["messageId"] for id in ids]
        await client.update("state_update", stopReason="end_turn", count=3)
        shown = [
            update["messageId"]
            for update in map(update_of, client.frames)
            if update.get("sessionUpdate") == "user_message"
        ]
        assert answers == shown
        first_end = next(
            index for index, frame in enumerate(client.frames) if "stopReason" in update_of(frame)
        )
        assert client.frames[first_end + 1]["id"] == ids[1]


async def test_a_cancel_fails_held_v2_prompts_and_spares_later_ones() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        client.prompt(session, "Count slowly")
        held = client.prompt(session, "Second")
        withdrawn = client.prompt(session, "Third")
        client.notify("$/cancel_request", requestId=withdrawn)
        assert (await client.response(withdrawn))["error"]["code"] == -32800
        client.notify("session/cancel", sessionId=session)
        later = client.prompt(session, "Fourth")
        assert (await client.response(held))["error"]["code"] == -32800
        assert "result" in await client.response(later)
        await client.update("state_update", stopReason="end_turn")


async def test_queued_v1_prompts_are_worked_on_in_order() -> None:
    async with connect(1) as client:
        session = await client.new_session()
        ids = [client.prompt(session, text) for text in ("/echo one", "/echo two")]
        for id in ids:
            await client.response(id)
        order = [
            frame["id"] if "id" in frame else update_of(frame)["content"]["text"]
            for frame in client.frames
            if frame.get("id") in ids or "content" in update_of(frame)
        ]
        assert order == ["one", ids[0], "two", ids[1]]


async def test_a_cancel_spares_background_work_and_a_close_ends_it() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        idle = (await client.turn(session, "Work in background"))[-1]
        call = idle["background"][0]["toolCallId"]
        client.notify("session/cancel", sessionId=session)
        await client.update("tool_call_content_chunk", toolCallId=call, count=5)
        assert await client.call("session/close", sessionId=session) == {}
        ended, state = (update_of(frame) for frame in client.frames[-3:-1])
        assert ended["status"] == "cancelled"
        assert state == {"sessionUpdate": "state_update", "state": "idle", "background": []}


async def test_only_a_tool_call_that_says_so_can_be_cancelled() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        idle = (await client.turn(session, "Work in background"))[-1]
        call = idle["background"][0]["toolCallId"]
        assert await client.call("tool_call/cancel", sessionId=session, toolCallId=call) == {}
        await client.update("tool_call_update", toolCallId=call, status="cancelled", capabilities=None)
        for method, key in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
            assert (await client.call(method, sessionId=session, **{key: call}))["code"] == -32602


# --- turn_complete ---


@pytest.mark.parametrize("text", ["Hello", "Count slowly"])
async def test_turn_complete_is_sent_once_and_last_to_a_client_that_asked(text: str) -> None:
    async with connect(1, capabilities={"_meta": {"antiphon": {"turnComplete": True}}}) as client:
        session = await client.new_session()
        id = client.prompt(session, text)
        if text == "Count slowly":
            client.notify("session/cancel", sessionId=session)
        reason = (await client.response(id))["result"]["stopReason"]
        complete = {"sessionUpdate": "turn_complete", "promptRequestId": str(id), "stopReason": reason}
        assert update_of(client.frames[-2]) == complete
        assert sum("turn_complete" in str(frame) for frame in client.frames) == 1
