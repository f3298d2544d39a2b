"""`session.fork`: what a client sends, what it refuses, and that a fork has its history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentOptions, AgentTurn
from antiphon.client import ClientSession, connect
from antiphon.errors import CallFailed, LocalError
from antiphon.schema import v2
from tests.client.driving import WAYS, driven
from tests.requirements.agent_by_hand import ALL_V1, ALL_V2, DEADLINE, session, story, text
from tests.requirements.marks import requirement

VERSIONS = [1, 2]


def able(version: int, **unstable: Any) -> dict[str, Any]:
    """Everything, and these unstable capabilities of sessions."""
    if version == 1:
        return {**ALL_V1, "sessionCapabilities": {**ALL_V1["sessionCapabilities"], **unstable}}
    return {**ALL_V2, "session": {**ALL_V2["session"], **unstable}}


def words(session: ClientSession) -> list[str]:
    return [message.text for message in session.messages]


def talker() -> Agent:
    agent = Agent("talker")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say(f"re: {turn.prompt.text}")

    return agent


@requirement("SESS-51", "SESS-52")
@pytest.mark.parametrize("way", WAYS)
async def test_a_fork_has_the_history_and_each_goes_its_own_way(way: str) -> None:
    async with driven(talker(), way) as source:
        await (await source.prompt("one")).drained()
        await (await source.prompt("two")).drained()
        fork = await source.fork()
        assert fork.id != source.id
        assert words(fork) == words(source) == ["one", "re: one", "two", "re: two"]
        assert fork.cwd == source.cwd
        await (await fork.prompt("three")).drained()
        assert words(fork)[-2:] == ["three", "re: three"]
        assert words(source)[-1] == "re: two"
        at = await source.fork(at=source.messages[1].message_id, cwd="/tmp")
        assert words(at) == ["one", "re: one"]
        assert at.cwd == "/tmp"
        assert {one.id for one in source.client.sessions} == {source.id, fork.id, at.id}
        with pytest.raises(CallFailed, match="-32002"):
            await source.fork(at="nowhere")
        second = await at.fork()  # a fork of a fork
        assert story(second) == story(at)  # ids and all


@requirement("SESS-51")
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_not_offered_is_not_asked_for(version: int) -> None:
    async with session(version) as (source, agent):
        with pytest.raises(LocalError, match="cannot fork"):
            await source.fork()
        assert agent.methods() == ["session/new"]
    async with session(version, able(version, fork={})) as (source, agent):
        with pytest.raises(LocalError, match="at a message"):
            await source.fork(at="m")
        with pytest.raises(LocalError, match="system prompt"):
            await source.fork(system_prompt="Be brief.")
        assert agent.methods() == ["session/new"]


@requirement("SESS-51")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fork_is_asked_for_and_then_its_history(version: int) -> None:
    async with session(version, able(version, fork={})) as (source, agent):
        forking = agent.meanwhile(source.fork())
        request = await agent.request("session/fork")
        assert request["params"] == {"sessionId": "s", "cwd": "/site"}
        agent.update("f", "session_info_update", title="Early")  # before anybody knows it
        agent.answer(request, {"sessionId": "f"})
        history = await agent.request("session/load" if version == 1 else "session/resume")
        assert history["params"]["sessionId"] == "f"
        agent.update("f", "session_info_update", title="Whole")
        if version == 1:
            agent.update("f", "agent_message_chunk", content=text("before"))
        else:
            agent.update("f", "agent_message", messageId="m", content=[text("before")])
            agent.state("f", "idle")
        agent.answer(history, {})
        fork = await forking
        assert (fork.id, fork.title, [message.text for message in fork.messages]) == (
            "f",
            "Whole",
            ["before"],
        )
        assert source.client.find("f") is fork


@requirement("SESS-51")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fork_that_cannot_be_replayed_is_there_all_the_same(version: int) -> None:
    async with session(version, able(version, fork={})) as (source, agent):
        forking = agent.meanwhile(source.fork())
        agent.answer(await agent.request("session/fork"), {"sessionId": "f"})
        agent.refuse(await agent.request("session/load" if version == 1 else "session/resume"), -32002)
        fork = await forking
        assert source.client.find("f") is fork
        agent.update("f", "session_info_update", title="Live")
        await agent.settled(fork)
        assert fork.title == "Live"
    if version == 1:
        only = {**able(1, fork={}), "loadSession": False}
        async with session(1, only) as (source, agent):
            forking = agent.meanwhile(source.fork())
            modes = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}]}
            agent.answer(await agent.request("session/fork"), {"sessionId": "f", "modes": modes})
            fork = await forking
            assert [option.category for option in fork.config_options] == ["mode"]


@requirement("SESS-58")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_system_prompt_is_sent_only_as_it_was_offered(version: int) -> None:
    able_to = able(version, systemPrompt={}, fork={})
    async with session(version, able_to) as (opened, agent):
        client = opened.client
        override = v2.SystemPrompt(
            mode=v2.SystemPromptMode.OVERRIDE, content=[v2.TextContent(text="Be odd.")]
        )
        empty = v2.SystemPrompt(mode=v2.SystemPromptMode.APPEND, content=[])
        for bad in (override, empty, ""):
            with pytest.raises(LocalError, match="system prompt"):
                await client.new_session("/", system_prompt=bad)
            with pytest.raises(LocalError, match="system prompt"):
                await client.load_session("x", "/", system_prompt=bad)
            with pytest.raises(LocalError, match="system prompt"):
                await opened.fork(system_prompt=bad)
        agent.meanwhile(client.new_session("/", system_prompt="Be brief."))
        request = await agent.request("session/new")
        while "systemPrompt" not in request["params"]:
            request = await agent.request("session/new")
        content = [{"type": "text", "text": "Be brief."}]
        assert request["params"]["systemPrompt"] == {"mode": "append", "content": content}
    able_to = able(version, systemPrompt={"mode": {"override": {}}})
    async with session(version, able_to) as (opened, agent):
        agent.meanwhile(opened.client.resume_session("x", "/", system_prompt=override))
        request = await agent.request("session/resume")
        assert request["params"]["systemPrompt"]["mode"] == "override"


@requirement("SESS-58")
async def test_a_system_prompt_reaches_the_agents_session() -> None:
    agent = Agent("told", options=AgentOptions(system_prompt=True))
    for version in VERSIONS:
        async with asyncio.timeout(DEADLINE), connect(agent, version=version) as client:
            assert client.abilities.system_prompt == {"append"}
            opened = await client.new_session("/", system_prompt="Be brief.")
            fork = await opened.fork(system_prompt="Be new.")
            for one, words in [(opened, "Be brief."), (fork, "Be new.")]:
                found = agent.find(one.id)
                assert found is not None
                assert found.system_prompt is not None
                assert found.system_prompt.text == words
        agent = Agent("told again", options=AgentOptions(system_prompt=True))
