"""The official TypeScript SDK over HTTP: its clients at our hub, and our client at its server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.client import Permission, Permissions, connect
from tests.hub import test_matrix as matrix
from tests.hub.running import AGENT, served
from tests.peers.test_interop import AGENTS
from tests.requirements.marks import requirement

DEADLINE = 30.0


@pytest.fixture(scope="module", params=["http", "ws"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[matrix.Stage]:
    folder = tmp_path_factory.mktemp("over")
    (folder / "antiphon-v2" / "work").mkdir(parents=True)
    command = f"antiphon-v2={' '.join(AGENT)}"
    with served(folder / "hub", "--agent", command, agent=()) as hub:
        hub.acp = hub.acp.replace("ws://", f"{request.param}://")
        yield matrix.Stage(hub, folder, {})


@requirement("HTTP-02", "HTTP-09", "HTTP-11")
@pytest.mark.parametrize("client", ["antiphon-v1", "antiphon-v2", "ts-sdk-v1", "ts-sdk-v2"])
async def test_a_conversation_of_two_clients(stage: matrix.Stage, tmp_path: Path, client: str) -> None:
    await matrix.test_an_agent_and_a_client_and_a_second_one(stage, tmp_path, "antiphon-v2", client)


@asynccontextmanager
async def at_a_port(command: list[str]) -> AsyncIterator[str]:
    """A server of the SDK; where it is."""
    process = await asyncio.create_subprocess_exec(
        *command, "--http", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE):
            port = json.loads(await process.stdout.readline())["port"]
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.stdin.close()
        assert await process.wait() == 0


@requirement("HTTP-02", "HTTP-05", "HTTP-11")
@pytest.mark.parametrize("name", ["ts-sdk-v1", "ts-sdk-v2"])
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_our_client_at_the_server_of_the_sdk(name: str, scheme: str) -> None:
    version, command = AGENTS[name]

    async def allow(permission: Permission) -> object:
        return permission.allow()

    async with at_a_port(command()) as address, asyncio.timeout(DEADLINE):
        url = address.replace("http", scheme)
        async with connect(url, version=version, answers=Permissions(ask=allow)) as client:
            session = await client.new_session("/")
            for text, said in (("hello there", "hello there"), ("permission", "permission: yes")):
                end = await (await session.prompt(text)).drained()
                assert (str(end.stop_reason), session.messages[-1].text) == ("end_turn", said)
            turn = await session.prompt("stream 500")
            await turn.drained()
            assert len(session.messages[-1].text) == 500 * 40
            events = session.events()
            turn = await session.prompt("wait")
            async for event in events:
                if "waiting" in str(event):
                    break
            await session.cancel()
            assert str((await turn.drained()).stop_reason) == "cancelled"
            if version == 1:
                again = await client.load_session(session.id, "/")
                assert [message.text for message in again.messages][-1] == "an earlier answer"
