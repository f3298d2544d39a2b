"""What a client makes of what it does not know: methods, updates, `_meta` and outcomes (section EXT)."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Permissions
from tests.agent import talk
from tests.requirements.agent_by_hand import (
    opened,
    opening,
    session,
    story,
    text,
)
from tests.requirements.marks import requirement
from tests.requirements.test_client_opening import END


@requirement("EXT-01", "EXT-02")
@pytest.mark.parametrize("version", [1, 2])
async def test_strange_requests_are_answered_and_strange_notifications_are_not(
    version: int,
) -> None:
    async with session(version) as (of, agent):
        before = len(agent.seen)
        agent.send(method="_weather", params={"sessionId": "s"})
        agent.send(method="session/never_heard_of", params={"sessionId": "s"})
        agent.send(method="$/whatever", params=[1])
        custom = agent.ask("_weather", sessionId="s")
        files = agent.ask("fs/read_text_file", sessionId="s", path="/etc/passwd")
        wrong = agent.ask("session/prompt", sessionId="s", prompt=[text("you do it")])
        for id in (custom, files, wrong):
            assert (await agent.answer_to(id))["error"]["code"] == -32601
        await agent.settled(of)
        assert len(agent.seen) - before == 4, "one answer each, and nothing else"


@requirement("EXT-03", "EXT-05")
@pytest.mark.parametrize("version", [1, 2])
async def test_what_is_ours_stands_under_meta_and_never_at_the_root(version: int) -> None:
    able: dict[str, Any] = {"_meta": {"antiphon": {"delivery": ["steer"], "inject": {}}}}
    async with session(version, able if version == 1 else {"session": {}, **able}) as (of, agent):
        agent.meanwhile(of.prompt("hi", delivery="steer", operation_id="op-1"))
        request = await agent.request("session/prompt")
        assert request["params"] == {
            "sessionId": "s",
            "prompt": [text("hi")],
            "_meta": {"antiphon": {"delivery": "steer", "operationId": "op-1"}},
        }
        await of.cancel()
        assert (await agent.request("session/cancel"))["params"] == {"sessionId": "s"}


@requirement("EXT-11", "EXT-05")
@pytest.mark.parametrize("version", [1, 2])
async def test_meta_on_whatever_the_agent_sends_changes_nothing(version: int) -> None:
    meta: dict[str, Any] = {
        "_meta": {"anything": [1, {"x": None}], "traceparent": "00-0-0-00", "sessionId": "another"}
    }
    allow = Permissions(allow="all")
    async with opened(answer={**opening(version), **meta}, answers=allow) as (client, agent):
        of = await agent.new_session(client, **meta)
        assert of.id == "s"
        prompting = agent.meanwhile(of.prompt("hi"))
        request = await agent.request("session/prompt")
        if version == 2:
            agent.answer(request, {"messageId": "u", **meta})
            agent.state(of, "running", **meta)
        turn = await prompting
        agent.says(of, "Hello.", messageId="a", **meta)
        asked: dict[str, Any] = {"sessionId": "s", "options": [{**OPTION, **meta}], **meta}
        asked |= {"toolCall": {"toolCallId": "t", **meta}} if version == 1 else {"title": "May I?"}
        chosen = (await agent.answer_to(agent.ask("session/request_permission", **asked)))["result"]
        assert chosen["outcome"] == {"outcome": "selected", "optionId": "yes"}
        if version == 2:
            agent.state(of, "idle", stopReason="end_turn", **meta)
        else:
            agent.answer(request, {"stopReason": "end_turn", **meta})
        assert await turn.drained() == END
        assert turn.text == "Hello."


OPTION = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}


@requirement("EXT-10", "EXT-07")
@pytest.mark.parametrize("version", [1, 2])
async def test_an_unknown_update_reaches_who_watches_and_harms_nothing(version: int) -> None:
    strange = {"mood": "good", "n": [1]}
    async with session(version) as (of, agent):
        turn = await agent.prompted(of, "hi")
        if version == 2:
            agent.state(of, "running")
        agent.update(of, "_mood_update", **strange)
        agent.says(of, "Hello.", messageId="a")
        if version == 2:
            agent.state(of, "idle", stopReason="end_turn")
        else:
            agent.answer(await agent.request("session/prompt"), {"stopReason": "end_turn"})
        assert await turn.drained() == END
        told = [update async for update in turn.updates()]
        assert {"sessionUpdate": "_mood_update", **strange} in told
        assert turn.text == "Hello."


@requirement("EXT-08", "RPC-41")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_known_update_that_is_malformed_costs_itself_and_nothing_else(
    version: int,
) -> None:
    async with session(version) as (of, agent):
        turn = await agent.prompted(of, "hi")
        if version == 2:
            agent.state(of, "running")
        agent.says(of, "one ", messageId="a")
        agent.update(of, "agent_message_chunk", messageId="a", content={"type": "text", "text": 7})
        agent.update(of, "tool_call_update", title="no id")
        agent.update(of, "usage_update", used="much")
        agent.says(of, "two", messageId="a")
        if version == 2:
            agent.state(of, "idle", stopReason="end_turn")
        else:
            agent.answer(await agent.request("session/prompt"), {"stopReason": "end_turn"})
        assert await turn.drained() == END
        assert story(of)[-1] == ("agent", "a", "one two")
        assert (of.tool_calls, of.usage) == ([], None)


@requirement("EXT-13")
@pytest.mark.parametrize("outcome", ["_later", "_delegated"])
async def test_an_outcome_that_only_its_sender_knows_does_not_crash_an_agent(outcome: str) -> None:
    """The one row that binds a client towards an agent: ours has to live through it."""
    agent = Agent("careful")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Write", kind="edit") as call:
            await turn.say("yes" if await call.request_permission() else "no")

    async with talk.session(agent) as (client, id):
        client.prompt(1, id, "go")
        question = await client.request("session/request_permission")
        client.send(id=question["id"], result={"outcome": {"outcome": outcome, "until": "tomorrow"}})
        assert (await client.update("agent_message"))["content"] == [text("no")]
        await client.update("state_update", state="idle", stopReason="end_turn")
        assert await client.call(2, "session/list") != {}, "it lives"
