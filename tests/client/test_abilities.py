"""What an agent did not say it can, it is not asked for."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.client import Abilities, ClientSession
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import AgentCapabilitiesMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.wire import Unknown
from tests.client.driving import by_hand, opened

IMAGE = v2.ImageContent(data="", mime_type="image/png")
AUDIO = v2.AudioContent(data="", mime_type="audio/wav")
CONTEXT = v2.EmbeddedResource(resource=v2.TextResourceContents(uri="file:///a", text=""))
LINK = v2.ResourceLink(uri="file:///a", name="a")
STDIO = v2.McpServerStdio(name="m", command="/bin/true")
HTTP = v2.McpServerHttp(name="m", url="http://localhost")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("block", [IMAGE, AUDIO, CONTEXT])
async def test_content_that_was_not_offered_is_refused_before_it_is_sent(
    version: int, block: v2.ContentBlock
) -> None:
    async with by_hand(version) as (session, agent):
        with pytest.raises(LocalError, match="this agent takes no"):
            await session.prompt("look", block)
        await agent.heard_nothing(session)
        assert session.messages == []


async def test_an_empty_prompt_and_an_unknown_block_are_refused() -> None:
    async with by_hand(1) as (session, _):
        with pytest.raises(LocalError, match="needs at least one"):
            await session.prompt()
        with pytest.raises(LocalError, match="hologram"):
            await session.prompt(Unknown({"type": "hologram"}))


def test_text_and_links_may_always_be_sent() -> None:
    Abilities().check_content([v2.TextContent(text="hi"), LINK])


async def test_what_a_v1_agent_offers_is_known_in_the_words_of_both_versions() -> None:
    able = {
        "loadSession": True,
        "promptCapabilities": {"image": True},
        "mcpCapabilities": {"http": True},
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
        "_meta": {"antiphon": {"delivery": ["queue"], "inject": {}, "replayAfter": True}},
    }
    async with opened(1, able) as (client, _):
        assert client.abilities == Abilities(
            sessions=True,
            image=True,
            load=True,
            resume=True,
            listing=True,
            close=True,
            mcp=frozenset({"stdio", "http"}),
            delivery=frozenset({"queue"}),
            queue=True,
            replay_after=True,
            ours=read_meta(AgentCapabilitiesMeta, able["_meta"]),
        )


async def test_what_a_v2_agent_offers() -> None:
    able = {"session": {"prompt": {"audio": {}}, "mcp": {"http": {}}, "delete": {}}}
    async with opened(2, able) as (client, _):
        assert client.abilities == Abilities(
            sessions=True, audio=True, load=True, resume=True, listing=True, close=True, delete=True,
            mcp=frozenset({"http"}),
        )  # fmt: skip


async def test_an_agent_without_sessions_is_asked_for_none() -> None:
    async with opened(2, {}) as (client, _):
        with pytest.raises(LocalError, match="no sessions"):
            await client.new_session("/")


@pytest.mark.parametrize("version", [1, 2])
async def test_what_a_session_cannot_have_is_refused(version: int) -> None:
    able = {} if version == 1 else {"session": {"mcp": {"stdio": {}}}}
    async with opened(version, able) as (client, _):
        with pytest.raises(LocalError, match="additional directories"):
            await client.new_session("/", additional_directories=["/tmp"])
        with pytest.raises(LocalError, match="MCP servers of type 'http'"):
            await client.new_session("/", mcp_servers=[HTTP])
        with pytest.raises(LocalError, match="must be an absolute path"):
            await client.new_session("/", mcp_servers=[v2.McpServerStdio(name="m", command="true")])
        client.abilities.check_setup([STDIO], [])


async def attach(session: ClientSession) -> None:
    async with session.client.attach("x"):
        pass


async def listed(session: ClientSession) -> None:
    _ = [info async for info in session.client.list_sessions()]


@pytest.mark.parametrize(
    "call",
    [
        lambda session: session.client.load_session("x"),
        lambda session: session.client.resume_session("x"),
        attach,
        listed,
        lambda session: session.close(),
        lambda session: session.client.delete_session("x"),
    ],
    ids=["load", "resume", "attach", "list", "close", "delete"],
)
async def test_a_v1_agent_is_asked_for_nothing_that_it_did_not_offer(call: Any) -> None:
    async with by_hand(1) as (session, agent):
        with pytest.raises(LocalError, match="this agent cannot"):
            await call(session)
        await agent.heard_nothing(session)


async def test_deliveries_and_a_queue_that_were_not_offered_are_refused() -> None:
    async with by_hand() as (session, _):
        for delivery in ("queue", "steer", "interrupt", "teleport"):
            with pytest.raises(LocalError, match="does not offer"):
                await session.prompt("hi", delivery=delivery)
        with pytest.raises(LocalError, match="offers no queue"):
            await session.queue.add("hi")
