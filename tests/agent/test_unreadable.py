"""What an agent's author hands in, and JSON cannot hold, is refused at that call. Nothing else is lost."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.agent import Agent, AgentTurn
from antiphon.engine.events import decode_event
from antiphon.errors import EventRefused
from antiphon.live.stored_session import read_session
from antiphon.schema import v2
from antiphon.stores.memory import MemoryStore
from tests.agent import talk as talks

CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


BAD: dict[str, Any] = {
    "an object": object(),
    "a lone surrogate": {"a": "\ud83d"},
    "a lone surrogate as a key": {"\ud83d": 1},
    "a key that is none": {(1, 2): 3},
    "a circle": CIRCLE,
    "a long integer": {"a": 10**5000},
    "deep": nested(500),
    "very deep": nested(5000),
}
ODD = st.recursive(
    st.none()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(), max_size=5)
    | st.sampled_from(["\ud83d", b"\xff", 2**70, object()]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=6,
)

Try = Callable[[AgentTurn], Coroutine[Any, Any, object]]


async def lines_after(act: Try, *, refused: bool = False) -> list[bytes]:
    """Let a handler speak, try something, and speak again; gives the journal, once it has been read back."""
    store = MemoryStore()
    agent = Agent("author", store=store)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.message() as message:
            await message.write("before ")
            with pytest.raises(EventRefused) if refused else suppress(EventRefused):
                await act(turn)
            await message.write("after")

    async with talks.session(agent) as (talk, session):
        talk.prompt("p", session, "go")
        idle = await talk.update("state_update", state="idle")
        assert idle["stopReason"] == "end_turn", idle
        page = await store.read(session, 0)
        lines = [line for batch in page.batches for line in batch.events]
        for seq, line in enumerate(lines, start=1):
            assert decode_event(line).seq == seq
            json.loads(line)
        fold = await read_session(store, session)
        assert fold.turn is None
        assert "before after" in [
            "".join(block.text for block in message.content if isinstance(block, v2.TextContent))
            for message in fold.messages
        ]
    return lines


async def open_call(turn: AgentTurn, value: Any) -> None:
    async with turn.tool_call("T", raw_input=value):
        pass


async def write_meta(turn: AgentTurn, value: Any) -> None:
    content = v2.TextContent(text="", meta={"x": value})
    await turn.session.update(v2.AgentMessage(message_id=v2.MessageId("m"), content=[content]))


@pytest.mark.parametrize("value", BAD.values(), ids=BAD.keys())
async def test_a_value_that_json_cannot_hold_is_refused_where_it_is_given(value: Any) -> None:
    lines = await lines_after(lambda turn: open_call(turn, value), refused=True)
    assert not any(b"rawInput" in line for line in lines)
    await lines_after(lambda turn: write_meta(turn, value), refused=True)


async def test_text_with_a_lone_surrogate_is_refused_and_the_text_around_it_is_kept() -> None:
    async def write(turn: AgentTurn) -> None:
        async with turn.message() as message:
            await message.write("good")
            with pytest.raises(EventRefused, match="agent_message_chunk"):
                await message.write("bad \ud83d")
            await message.write("good \u4f60")

    lines = await lines_after(write)
    assert sum(b'"text":"good' in line for line in lines) == 2


async def test_an_update_of_the_wrong_type_is_refused() -> None:
    async def call(turn: AgentTurn) -> None:
        await turn.session.update(v2.SessionToolCallUpdate(tool_call_id=5, title="T"))  # type: ignore[arg-type]

    await lines_after(call, refused=True)


async def test_a_question_that_cannot_be_put_is_refused() -> None:
    async def ask(turn: AgentTurn) -> None:
        async with turn.tool_call("T") as call:
            await call.request_permission(title="\ud83d")

    await lines_after(ask, refused=True)


async def test_a_turn_ends_whose_usage_cannot_be_journalled(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent("author")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say("said")
        turn.usage = v2.Usage(total_tokens=object(), input_tokens=1, output_tokens=1)  # type: ignore[arg-type]

    async with talks.session(agent) as (talk, session):
        with caplog.at_level(logging.ERROR):
            talk.prompt("p", session, "go")
            assert (await talk.update("state_update", state="idle"))["stopReason"] == "error"
        assert "end of a turn refused" in caplog.text


@settings(max_examples=20, deadline=None)
@given(ODD, ODD)
def test_whatever_an_author_hands_in_the_journal_can_be_read_back(one: Any, other: Any) -> None:
    async def act(turn: AgentTurn) -> None:
        async with turn.tool_call("T", raw_input=one) as call:
            await call.set_raw_output(other)

    asyncio.run(lines_after(act))
