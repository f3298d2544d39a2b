"""What a hub says that it can do follows its agent; what it reads of a v2 agent it keeps in one spelling."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import connect
from antiphon.engine.events import Updated, decode_event
from antiphon.errors import CallFailed, LocalError
from antiphon.hub import Hub
from antiphon.schema import v2
from antiphon.schema.v2.proposed import StateChange
from tests.hub.parrots import new_session, parrot, prompt, updates
from tests.hub.running import AGENT, DEADLINE, served
from tests.hub.test_sharing import told
from tests.requirements.marks import requirement

VERSIONS = pytest.mark.parametrize("version", [1, 2])
RICH: dict[int, Any] = {
    1: {
        "promptCapabilities": {"image": True, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": True},
        "sessionCapabilities": {"additionalDirectories": {}},
        "_meta": {"example.com": {"echo": True}},
    },
    2: {
        "session": {
            "prompt": {"image": {}, "embeddedContext": {}},
            "mcp": {"stdio": {}, "http": {}},
            "additionalDirectories": {},
        },
        "_meta": {"example.com": {"echo": True}},
    },
}
IMAGE = v2.ImageContent(data="aGk=", mime_type="image/png")
HTTP = v2.McpServerHttp(name="web", url="https://example.com/mcp")


@requirement("PROXY-09")
@VERSIONS
@pytest.mark.parametrize("client", [1, 2])
async def test_inv_10_what_the_agent_can_is_said_and_works(version: int, client: int) -> None:
    hub = Hub({"parrot": parrot(version, capabilities=RICH[version])}, version=version)
    async with asyncio.timeout(DEADLINE), connect(hub, version=client) as clerk:
        able = clerk.abilities
        assert (able.image, able.audio, able.embedded_context) == (True, False, True)
        assert able.mcp == {"stdio", "http"}  # `sse` cannot cross (24.2)
        assert able.additional_directories
        assert able.announces == {"example.com": {"echo": True}}
        assert able.delivery == {"queue", "interrupt"}
        session = await clerk.new_session("/", mcp_servers=[HTTP], additional_directories=["/tmp"])
        turn = await session.prompt("[]", IMAGE)
        assert (await turn.drained()).stop_reason == "end_turn"
        await clerk.set_title(session.id, "T")
        await session.fork()
        await session.archive()


@requirement("PROXY-09")
@VERSIONS
@pytest.mark.parametrize("client", [1, 2])
async def test_inv_10_what_the_agent_cannot_is_not_said(version: int, client: int) -> None:
    plain = {} if version == 1 else {"session": {"mcp": {"stdio": {}}}}
    hub = Hub({"parrot": parrot(version, capabilities=plain)}, version=version)
    async with asyncio.timeout(DEADLINE), connect(hub, version=client) as clerk:
        able = clerk.abilities
        assert not any((able.image, able.audio, able.embedded_context, able.additional_directories))
        assert able.mcp == {"stdio"}
        assert able.announces == {}
        session = await clerk.new_session("/")
        with pytest.raises(LocalError):
            await session.prompt(IMAGE)
        # Who asks all the same is told so, and nothing of it reaches the agent.
        for method, params in (
            ("session/new", {"cwd": "/", "mcpServers": [], "additionalDirectories": ["/tmp"]}),
            ("session/new", {"cwd": "/", "mcpServers": [_http(client)]}),
            ("session/prompt", {"sessionId": session.id, "prompt": [IMAGE]}),
        ):
            with pytest.raises(CallFailed) as failed:
                await clerk.connection.call(method, params)
            assert failed.value.error.code == -32602
        heard = await clerk.call_extension("_parrot/heard", {"sessionId": session.id})
        assert [method for method, _ in heard["heard"]] == ["session/new"]


def _http(version: int) -> dict[str, Any]:
    return {"type": "http", "name": "web", "url": "https://example.com/mcp", "headers": []}


@requirement("PROXY-09")
async def test_an_agent_that_steers_is_said_to(tmp_path: Path) -> None:
    hub = Hub({"own": AGENT})
    async with asyncio.timeout(DEADLINE), connect(hub) as client:
        assert client.abilities.delivery == {"queue", "steer", "interrupt"}
        assert client.abilities.ours.inject == {"modes": ["queue", "steer"]}


@requirement("SD-02")
@pytest.mark.parametrize("proposed", [False, True], ids=["published", "proposed"])
async def test_a_v2_agent_of_either_spelling_is_kept_as_published(proposed: bool) -> None:
    hub = Hub({"parrot": parrot(2, proposed=proposed)}, version=2)
    chunk = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "m",
        "content": {"type": "text", "text": "x"},
    }
    async with asyncio.timeout(DEADLINE), connect(hub) as one, connect(hub, version="v2-proposed") as two:
        session = await one.new_session("/")
        other = await two.load_session(session.id, "/")
        end = await (await session.prompt(json.dumps([{"update": chunk}]))).drained()
        assert end.stop_reason == "end_turn"
        ended = await (await other.prompt(json.dumps([{"answer": {"stopReason": "refusal"}}]))).drained()
        assert ended.stop_reason == "refusal"
        assert told(session) == told(other)
        assert [message.type for message in session.messages] == ["user", "agent", "user"]
        page = await hub.store.read(session.id, 0)
        bodies = [decode_event(line).body for batch in page.batches for line in batch.events]
        kept = [body.update for body in bodies if isinstance(body, Updated)]
        assert not any(isinstance(update, StateChange) for update in kept)
        states = [(u.state, u.stop_reason) for u in kept if isinstance(u, v2.SessionStateUpdate)]
        assert [state for state in states if state[0] == "idle"] == [
            ("idle", "end_turn"),
            ("idle", "refusal"),
        ]
        users = [update.message_id for update in kept if isinstance(update, v2.UserMessage)]
        accepted = [body.became for body in bodies if getattr(body, "became", None)]
        assert accepted == users  # each prompt became the message that the agent showed


@requirement("SD-02")
@pytest.mark.parametrize("proposed", [False, True], ids=["published", "proposed"])
async def test_clients_by_hand_of_an_agent_of_either_spelling(tmp_path: Path, proposed: bool) -> None:
    with served(tmp_path, "--acp-version", "2", agent=parrot(2, proposed=proposed)) as hub:
        async with hub.talk(2) as talk:
            session = await new_session(talk)
            await prompt(talk, session)
            assert [update.get("state") for update in updates(talk, "state_update")] == ["running", "idle"]
            assert updates(talk, "state_update")[-1]["stopReason"] == "end_turn"
            assert not updates(talk, "state_change")
