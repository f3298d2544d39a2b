"""A real agent process with bad manners: the client survives each of them, and tells what belongs where."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon.client import ClientSession, ClientTurn, Permissions, SessionEvent
from antiphon.client.protocol import prompt_calls
from antiphon.errors import LinkLost
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from tests.client.driving import kinds, sloppy, updates_of

BOTH = pytest.mark.parametrize("flags", [(), ("--v2",)], ids=["v1", "v2"])


def said(session: ClientSession) -> list[tuple[str, str]]:
    return [(str(message.role), message.text) for message in session.messages if message.role != "user"]


async def chunks_of(turn: ClientTurn) -> str:
    """What was said within the turn: `turn.text` has the messages whole, wherever they began or ended."""
    chunks = (update for update in await updates_of(turn) if isinstance(update, v2.AgentMessageChunk))
    return "".join(chunk.content.text for chunk in chunks if isinstance(chunk.content, v2.TextContent))


async def until(events: AsyncIterator[SessionEvent], kind: str) -> SessionEvent:
    async for event in events:
        if event.update is not None and kinds([event.update]) == [kind]:
            return event
    raise AssertionError("the session ended")


@BOTH
async def test_what_is_said_before_the_session_has_a_name_is_in_the_session(flags: tuple[str, ...]) -> None:
    async with sloppy("--early", *flags) as session:
        assert [command.name for command in session.commands] == ["early"]
        assert said(session) == [("agent", "before you knew me")]
        turn = await session.prompt("echo")
        assert (await turn.drained()).stop_reason == "end_turn"
        if not flags:
            assert turn.text == "heard"


@BOTH
async def test_an_update_after_the_end_belongs_to_the_session_and_not_to_the_turn(
    flags: tuple[str, ...],
) -> None:
    async with sloppy(*flags) as session:
        turn = await session.prompt("late")
        await turn.drained()
        assert turn.text == "in time"
        late = await until(session.events(), "agent_message_chunk")
        assert late.turn is None
        assert said(session) == [("agent", "in time"), ("agent", "too late")]
        assert turn.text == "in time"


async def test_messages_without_ids_are_told_apart_by_what_stands_between_them() -> None:
    async with sloppy() as session:
        turn = await session.prompt("no_ids")
        told = [(str(m.role), m.text) async for m in turn.messages()]
        assert told[1:] == [("thought", "hm"), ("agent", "one message"), ("agent", "another")]
        assert len({message.message_id for message in session.messages}) == 4


@BOTH
async def test_unknown_kinds_pass_whole(flags: tuple[str, ...]) -> None:
    async with sloppy(*flags) as session:
        turn = await session.prompt("unknown_kinds")
        unknown = [update for update in await updates_of(turn) if isinstance(update, Unknown)]
        assert dict(unknown[0]) == {
            "sessionUpdate": "weather",
            "sky": "blue",
            "nested": {"kept": [1, None]},
        }
        assert kinds(unknown) == ["weather", "_vendor_thing"]
        assert turn.text == "well"


@BOTH
@pytest.mark.parametrize(
    ("way", "text"), [("logs", "ab"), ("garbage", "still here"), ("stray_answers", "fine")]
)
async def test_what_is_no_frame_of_ours_costs_nothing(way: str, text: str, flags: tuple[str, ...]) -> None:
    async with sloppy(*flags) as session:
        turn = await session.prompt(way)
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == text
        again = await session.prompt("echo")
        assert (await again.drained()).stop_reason == "end_turn"


async def test_five_megabytes_in_one_update_arrive() -> None:
    async with sloppy() as session:
        turn = await session.prompt("big")
        await turn.drained()
        assert len(turn.text) == 5_000_000


async def test_of_two_turns_at_once_each_ends_by_its_own_answer_and_nothing_is_lost() -> None:
    """v1 cannot say whose an update is: it goes to the prompt that has waited longest."""
    async with sloppy() as session:
        first = await session.prompt("interleaved")
        second = await session.prompt("interleaved")
        assert (await first.drained()).stop_reason == "end_turn"
        assert (await second.drained()).stop_reason == "end_turn"
        assert await chunks_of(first) == "1a 2a 1b "
        assert await chunks_of(second) == "2b "
        assert session.state == "idle"


@BOTH
@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("kill", "was killed by SIGKILL"),
        ("crash", "exited with code 1"),
        ("half_a_line", "exited with code 3"),
    ],
)
async def test_a_death_in_the_midst_of_a_turn_ends_it_with_the_reason(
    way: str, reason: str, flags: tuple[str, ...]
) -> None:
    async with sloppy(*flags) as session:
        events = session.events()
        turn = await session.prompt(way)
        end = await turn.drained()
        assert end.stop_reason == "error"
        assert end.cut is not None
        assert end.cut.endswith(reason)
        assert turn.text == "last words"  # what came before is applied
        assert session.state == "idle"
        assert [event async for event in events][-1].turn is turn  # and watching ends
        with pytest.raises(LinkLost) as lost:
            await session.prompt("echo")
        if way == "crash":
            assert lost.value.stderr == ("Traceback: something broke", "out of memory")


@BOTH
async def test_an_agent_that_is_silent_for_too_long_ends_its_turn(flags: tuple[str, ...]) -> None:
    async with sloppy(*flags, silence=0.8) as session:
        turn = await session.prompt("silence")
        end = await turn.drained()
        assert end.cut == "the agent was silent for 0.8 s"
        assert turn.text == "first and last words"
        again = await session.prompt("echo")
        if not flags:
            assert (await again.drained()).stop_reason == "end_turn"
            assert again.text == "heard"


@BOTH
async def test_a_permission_for_an_unknown_tool_call_is_asked_and_answered(flags: tuple[str, ...]) -> None:
    asked: list[Any] = []

    async def ask(permission: Any) -> str:
        asked.append((permission.title, permission.kind, permission.tool_call.title))
        return "y"

    async with sloppy(*flags, answers=Permissions(ask=ask)) as session:
        turn = await session.prompt("strange_permission")
        await turn.drained()
        assert json.loads(turn.text) == {"outcome": "selected", "optionId": "y"}
        assert asked == [("Launch?" if flags else "Launch", "execute", "Launch")]
        assert [call.id for call in session.tool_calls] == ["never-heard-of"]


async def test_a_promised_turn_complete_that_never_comes_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(prompt_calls, "OVERDUE", 0.2)
    async with sloppy("--turn-complete") as session:
        turn = await session.prompt("no_completion")
        with caplog.at_level(logging.WARNING, "antiphon.client"):
            end = await turn.drained()
        assert (end.stop_reason, end.cut, turn.text) == ("end_turn", None, "over")
        assert "turn_complete missing" in caplog.text
        monkeypatch.setattr(prompt_calls, "OVERDUE", 60.0)
        async with asyncio.timeout(5):
            await (await session.prompt("no_completion")).drained()
            another = await session.client.new_session()
            await (await another.prompt("no_completion")).drained()


async def test_what_comes_between_the_answer_and_the_turn_complete_belongs_to_the_turn() -> None:
    async with sloppy("--turn-complete") as session:
        turn = await session.prompt("completion_last")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "one two three"


async def test_a_turn_complete_is_matched_by_the_id_of_the_prompt() -> None:
    async with sloppy("--turn-complete") as session:
        turn = await session.prompt("completion_of_another")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "one \n\ntwo"  # somebody's turn ended in between


async def test_an_error_answer_ends_the_turn_without_a_turn_complete() -> None:
    async with sloppy("--turn-complete") as session:
        turn = await session.prompt("completion_and_failure")
        end = await turn.drained()
        assert end.stop_reason == "error"
        assert end.error is not None
        assert (end.error.message, end.cut) == ("it broke", None)
