"""Model providers that a client may set (section 23, unstable), on both sides and in both versions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn, Provider, ProviderSetting
from antiphon.client import connect
from antiphon.errors import CallFailed, InvalidParams, LocalError
from antiphon.schema import v2
from tests.agent.talk import client
from tests.requirements.marks import requirement

DEADLINE = 60.0
BOTH = pytest.mark.parametrize("version", [1, 2])


def agent_with_providers() -> tuple[Agent, Provider, Provider]:
    agent = Agent("reacher")
    main = agent.provider(
        "main", supports=["anthropic", "openai"], required=True, base_url="https://api.example.org"
    )
    spare = agent.provider("spare", supports=["openai", "_mine"])
    return agent, main, spare


def info(
    id: str, supported: list[str], *, required: bool, current: tuple[str, str] | None
) -> v2.ProviderInfo:
    return v2.ProviderInfo(
        provider_id=v2.ProviderId(id),
        supported=[v2.LlmProtocol(one) for one in supported],
        required=required,
        current=None
        if current is None
        else v2.ProviderCurrentConfig(api_type=v2.LlmProtocol(current[0]), base_url=current[1]),
    )


@requirement("PROV-01")
@BOTH
async def test_a_provider_is_listed_set_and_disabled(version: int) -> None:
    agent, main, spare = agent_with_providers()
    async with asyncio.timeout(DEADLINE), connect(agent, version=version) as client:
        assert client.abilities.providers
        assert await client.providers.list() == [
            info(
                "main",
                ["anthropic", "openai"],
                required=True,
                current=("anthropic", "https://api.example.org"),
            ),
            info("spare", ["openai", "_mine"], required=False, current=None),
        ]
        await client.providers.set(
            "spare", api_type="_mine", base_url="http://127.0.0.1:1/v1", headers={"Authorization": "Bearer s"}
        )
        assert spare.current == ProviderSetting(
            api_type=v2.LlmProtocol("_mine"),
            base_url="http://127.0.0.1:1/v1",
            headers={"Authorization": "Bearer s"},
        )
        listed = await client.providers.list()
        assert listed[1].current == v2.ProviderCurrentConfig(
            api_type=v2.LlmProtocol("_mine"), base_url="http://127.0.0.1:1/v1"
        )
        assert "Bearer" not in repr([listed, spare.current])
        await client.providers.set("spare", api_type="openai", base_url="https://other.example.org")
        assert spare.current is not None
        assert spare.current.headers == {}, "all of it is replaced"
        await client.providers.disable("spare")
        assert spare.current is None
        assert (await client.providers.list())[1].current is None
        await client.providers.disable("spare")
        assert main.current is not None


@requirement("PROV-01")
@BOTH
async def test_a_required_provider_is_not_disabled_by_either_side(version: int) -> None:
    agent, main, _ = agent_with_providers()
    async with asyncio.timeout(DEADLINE), connect(agent, version=version) as client:
        with pytest.raises(LocalError, match="requires"):
            await client.providers.disable("main")
        with pytest.raises(CallFailed) as failed:
            await client.connection.call(
                "providers/disable", v2.DisableProviderRequest(provider_id=v2.ProviderId("main"))
            )
    assert failed.value.error.code == -32602
    assert main.current is not None


@requirement("PROV-01")
@BOTH
async def test_without_the_capability_there_are_no_such_methods(version: int) -> None:
    async with asyncio.timeout(DEADLINE), connect(Agent("plain"), version=version) as client:
        assert not client.abilities.providers
        with pytest.raises(LocalError, match="no providers"):
            await client.providers.list()
        for method in ("providers/list", "providers/set", "providers/disable"):
            params = {"providerId": "main", "apiType": "openai", "baseUrl": "https://example.org"}
            with pytest.raises(CallFailed) as failed:
                await client.connection.call(method, params)
            assert failed.value.error.code == -32601


@requirement("PROV-01")
@BOTH
async def test_the_capability_is_advertised_where_it_belongs(version: int) -> None:
    agent, _, _ = agent_with_providers()
    async with client(agent, version) as talk:
        result = talk.seen[0]["result"]
        able = result["agentCapabilities"] if version == 1 else result["capabilities"]
        assert able["providers"] == {}
        listed = await talk.call("list", "providers/list")
        assert listed["providers"][0] == {
            "providerId": "main",
            "supported": ["anthropic", "openai"],
            "required": True,
            "current": {"apiType": "anthropic", "baseUrl": "https://api.example.org"},
        }


@requirement("PROV-01")
@BOTH
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"providerId": "nobody"}, "no provider"),
        ({"apiType": "bedrock"}, "bedrock"),
        ({"baseUrl": "file:///etc/passwd"}, "base URL"),
        ({"baseUrl": "nowhere"}, "base URL"),
        ({"headers": {"a": 1}}, ""),
        ({"baseUrl": 7}, ""),
    ],
)
async def test_what_cannot_be_set_is_refused_and_changes_nothing(
    version: int, wrong: dict[str, Any], said: str
) -> None:
    agent, main, _ = agent_with_providers()
    before = main.current
    async with asyncio.timeout(DEADLINE), connect(agent, version=version) as client:
        params = {"providerId": "main", "apiType": "openai", "baseUrl": "https://example.org", **wrong}
        with pytest.raises(CallFailed) as failed:
            await client.connection.call("providers/set", params)
    assert failed.value.error.code == -32602
    assert said in failed.value.error.message
    assert main.current is before


@requirement("PROV-01")
async def test_a_client_does_not_ask_for_what_is_not_supported() -> None:
    agent, _, _ = agent_with_providers()
    async with asyncio.timeout(DEADLINE), connect(agent) as client:
        with pytest.raises(LocalError, match="bedrock"):
            await client.providers.set("main", api_type="bedrock", base_url="https://example.org")
        with pytest.raises(LocalError, match="no provider"):
            await client.providers.set("nobody", api_type="openai", base_url="https://example.org")
        with pytest.raises(LocalError, match="no provider"):
            await client.providers.disable("nobody")


async def test_the_agents_author_is_asked_and_may_refuse() -> None:
    agent, _, spare = agent_with_providers()
    asked: list[ProviderSetting | None] = []

    @spare
    async def check(wanted: ProviderSetting | None) -> None:
        asked.append(wanted)
        if wanted is not None and "bad" in wanted.base_url:
            raise InvalidParams("that one is down")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        assert spare.current is not None
        await turn.say(spare.current.base_url)

    async with asyncio.timeout(DEADLINE), connect(agent) as client:
        session = await client.new_session("/")
        await client.providers.set("spare", api_type="openai", base_url="https://good.example.org")
        with pytest.raises(CallFailed, match="that one is down"):
            await client.providers.set("spare", api_type="openai", base_url="https://bad.example.org")
        turn = await session.prompt("Where?")
        await turn.drained()
        assert turn.text == "https://good.example.org"
    assert [None if one is None else one.base_url for one in asked] == [
        "https://good.example.org",
        "https://bad.example.org",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "main", "supports": ["openai"]},
        {"id": "", "supports": ["openai"]},
        {"id": "x", "supports": []},
        {"id": "x", "supports": ["openai"], "base_url": "nowhere"},
        {"id": "x", "supports": ["openai"], "api_type": "vertex", "base_url": "https://example.org"},
    ],
)
def test_what_could_not_be_offered_is_refused_where_it_is_declared(wrong: dict[str, Any]) -> None:
    agent, _, _ = agent_with_providers()
    with pytest.raises(LocalError):
        agent.provider(wrong.pop("id"), **wrong)
