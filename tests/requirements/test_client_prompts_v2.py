"""Section 6, and of 22 what goes with it: prompts to a v2 agent and their echoes, as its client sees them."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.client import TurnEnd
from antiphon.errors import CallFailed, LocalError
from antiphon.schema import v2
from tests.requirements.agent_by_hand import Heard, session, story, text
from tests.requirements.heard_turns import END, kinds
from tests.requirements.marks import requirement


@requirement("PROMPT-V2-01")
async def test_a_prompt_says_its_session_and_its_content_and_an_empty_one_is_not_sent() -> None:
    async with session() as (of, agent):
        with pytest.raises(LocalError):
            await of.prompt()
        await agent.prompted(of, "hi")
        assert agent.sent("session/prompt") == [{"sessionId": "s", "prompt": [text("hi")]}]


@requirement("PROMPT-V2-05", "PROMPT-V2-53")
@pytest.mark.parametrize("echo", ["before the response", "after the response", "after running"])
@pytest.mark.parametrize("form", ["whole", "chunks"])
async def test_the_echo_may_come_at_any_time_and_makes_one_message_at_its_place(echo: str, form: str) -> None:
    async with session() as (of, agent):

        def show() -> None:
            if form == "whole":
                agent.update(of, "user_message", messageId="u1", content=[text("hello there")])
            else:
                agent.update(of, "user_message_chunk", messageId="u1", content=text("hello "))
                agent.update(of, "user_message_chunk", messageId="u1", content=text("there"))

        agent.says(of, "Welcome.", messageId="a0")
        prompting = agent.meanwhile(of.prompt("hello there"))
        request = await agent.request("session/prompt")
        if echo == "before the response":
            show()
        agent.answer(request, {"messageId": "u1"})
        turn = await prompting
        assert turn.message_id == "u1"
        if echo != "before the response":
            assert story(of) == [("agent", "a0", "Welcome.")], "only the echo makes a message"
        if echo == "after the response":
            show()
        agent.state(of, "running")
        if echo == "after running":
            show()
        agent.says(of, "Hi.", messageId="a1")
        agent.state(of, "idle", stopReason="end_turn")
        assert await turn.drained() == END
        assert story(of) == [
            ("agent", "a0", "Welcome."),
            ("user", "u1", "hello there"),
            ("agent", "a1", "Hi."),
        ]
        said = [(str(message.role), message.text) async for message in turn.messages()]
        assert said == [("user", "hello there"), ("agent", "Hi.")]


@requirement("PROMPT-V2-05")
@pytest.mark.parametrize("answer", [{"messageId": "u1"}, {}])
async def test_even_a_turn_that_is_over_before_its_response_is_found(answer: Any) -> None:
    async with session() as (of, agent):
        prompting = agent.meanwhile(of.prompt("hi"))
        request = await agent.request("session/prompt")
        agent.update(of, "user_message", messageId="u1", content=[text("hi")])
        agent.state(of, "running")
        agent.says(of, "Hello.", messageId="a")
        agent.state(of, "idle", stopReason="end_turn")
        agent.answer(request, answer)
        turn = await prompting
        assert await turn.drained() == END
        assert (turn.message_id, turn.text) == ("u1", "Hello.")


@requirement("PROMPT-V2-18")
async def test_running_is_not_an_acknowledgement() -> None:
    async with session() as (of, agent):
        prompting = agent.meanwhile(of.prompt("hi"))
        request = await agent.request("session/prompt")
        agent.state(of, "running")  # a hook
        agent.update(of, "tool_call_update", toolCallId="hook", title="A hook", status="completed")
        await agent.settled(of)
        assert not prompting.done()
        assert of.state == "running"
        agent.answer(request, {"messageId": "u1"})
        turn = await prompting
        agent.update(of, "user_message", messageId="u1", content=[text("hi")])
        agent.state(of, "idle", stopReason="end_turn")
        assert await turn.drained() == END
        assert await kinds(turn) == [
            "state_update running",
            "tool_call_update",
            "user_message",
            "state_update idle",
        ]


@requirement("PROMPT-V2-18", "PROMPT-V2-55")
async def test_a_refused_prompt_ends_no_work_and_is_seen_in_its_error_alone() -> None:
    async with session() as (of, agent):
        turn = await agent.working(of, "work")
        heard = Heard(of, agent)
        refused = agent.meanwhile(of.prompt("and this"))
        agent.refuse(await agent.request("session/prompt"), -32602, "One at a time")
        with pytest.raises(CallFailed) as failure:
            await refused
        assert (failure.value.error.code, failure.value.error.message) == (-32602, "One at a time")
        await agent.settled(of)
        assert heard.events == []
        assert (of.state, turn.end, of.turn) == ("running", None, turn)
        assert story(of) == [("user", "u1", "work")]
        agent.says(of, "Done.", messageId="a1")
        agent.state(of, "idle", stopReason="end_turn")
        assert await turn.drained() == END
        assert turn.text == "Done."


@requirement("PROMPT-V2-18")
async def test_a_prompt_refused_while_its_own_hook_runs_leaves_that_work_to_its_idle() -> None:
    async with session() as (of, agent):
        prompting = agent.meanwhile(of.prompt("hi"))
        request = await agent.request("session/prompt")
        agent.state(of, "running")
        agent.refuse(request, -32603, "The hook said no")
        with pytest.raises(CallFailed):
            await prompting
        assert of.state == "running"
        own = of.turn
        assert own is not None
        agent.state(of, "idle", stopReason="error")
        assert await own.drained() == TurnEnd(stop_reason=v2.StopReason.ERROR)
        assert of.messages == []


@requirement("PROMPT-V2-52")
async def test_the_response_ends_no_turn_and_the_text_comes_with_the_updates() -> None:
    async with session() as (of, agent):
        prompting = agent.meanwhile(of.prompt("hi"))
        stray = {"messageId": "u1", "stopReason": "end_turn", "text": "not from here"}
        agent.answer(await agent.request("session/prompt"), stray)
        turn = await prompting
        agent.state(of, "running")
        agent.says(of, "Hello.", messageId="a")
        await agent.settled(of)
        assert turn.end is None
        agent.state(of, "idle", stopReason="max_tokens")
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason.MAX_TOKENS)
        assert turn.text == "Hello."


@requirement("PROMPT-V2-55")
@pytest.mark.parametrize("busy", [False, True])
async def test_a_refused_prompt_leaves_nothing_in_the_session(busy: bool) -> None:
    async with session() as (of, agent):
        before = [("user", "u1", "work")] if busy else []
        if busy:
            await agent.working(of, "work")
        heard = Heard(of, agent)
        await agent.settled(of)
        refused = agent.meanwhile(of.prompt("no"))
        agent.refuse(await agent.request("session/prompt"), -32000, "Log in first")
        with pytest.raises(CallFailed, match="Log in first"):
            await refused
        await agent.settled(of)
        assert story(of) == before
        assert heard.events == []
        again = await agent.prompted(of, "yes", "u2")
        agent.update(of, "user_message", messageId="u2", content=[text("yes")])
        agent.state(of, "running")
        agent.state(of, "idle", stopReason="end_turn")
        assert await again.drained() == END


@requirement("SD-05", "PROMPT-V2-05")
@pytest.mark.parametrize("echo", ["before", "after"])
async def test_an_answer_that_names_no_message_is_named_by_the_echo(echo: str) -> None:
    async with session() as (of, agent):
        prompting = agent.meanwhile(of.prompt("hi"))
        request = await agent.request("session/prompt")
        if echo == "before":
            agent.update(of, "user_message", messageId="m7", content=[text("hi")])
        agent.answer(request, {})
        if echo == "after":
            agent.update(of, "user_message", messageId="m7", content=[text("hi")])
        turn = await prompting
        agent.state(of, "running")
        agent.state(of, "idle", stopReason="end_turn")
        assert await turn.drained() == END
        assert turn.message_id == "m7"
