"""The official SDK's agent behind the hub; and a v1 pair through the hub, held against the pair alone."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Permissions
from antiphon.transports.base import Transport
from antiphon.transports.child import ChildTransport
from tests.agent.talk import INFO, Talk
from tests.hub.running import AGENT, ANTIPHON, DEADLINE, served
from tests.hub.test_sharing import heard, settled, told
from tests.peers.test_interop import AGENTS, CLIENTS, OUR_AGENT


@pytest.mark.parametrize("name", AGENTS)
async def test_every_sdk_s_agent_with_two_clients(tmp_path: Path, name: str) -> None:
    version, command = AGENTS[name]
    with served(tmp_path, "--acp-version", str(version), agent=command()) as hub:
        async with (
            asyncio.timeout(DEADLINE),
            hub.client(version=1, answers=Permissions(ask=_never)) as first,
            hub.client(version=2, answers=Permissions(allow="all")) as second,
        ):
            own = await first.new_session("/")
            other = await second.load_session(own.id, "/")
            for text in ("stream 50", "permission", "a word"):
                assert (await (await own.prompt(text)).drained()).stop_reason == "end_turn"
            await settled(other, "ord")
            assert told(own) == told(other)
            assert [call.status for call in other.tool_calls] == ["completed"]
            turn = await own.prompt("wait")
            await heard(other, "waiting")
            await other.cancel()
            assert (await turn.drained()).cancelled
            await settled(other, "waiting")
            assert told(own) == told(other)


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("version", ["1", "2"])
def test_every_sdk_s_client_through_the_hub(tmp_path: Path, name: str, version: str) -> None:
    """By `antiphon acp`, as an editor has it."""
    with served(tmp_path, "--acp-version", version, agent=OUR_AGENT):
        command = [*CLIENTS[name][1](), "--", *ANTIPHON, "acp", "--data", str(tmp_path)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert result.returncode == 0, result.stderr


async def _never(_: Any) -> None:
    await asyncio.get_running_loop().create_future()


async def converse(transport: Transport) -> list[str]:
    """A v1 client by hand; what it received, without ids of sessions, messages and calls, and our `_meta`."""
    talk = Talk(transport)
    async with asyncio.timeout(DEADLINE):
        await talk.call(
            "i", "initialize", protocolVersion=1, clientInfo=INFO, clientCapabilities={"session": {}}
        )
        began = len(talk.seen)
        session = (await talk.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        for number, text in enumerate(("say hello", "stream 20", "ask")):
            talk.prompt(number, session, text)
            if text == "ask":
                asked = await talk.request("session/request_permission")
                outcome = {"outcome": "selected", "optionId": asked["params"]["options"][0]["optionId"]}
                talk.send(id=asked["id"], result={"outcome": outcome})
            await talk.answer_to(number)
        talk.prompt("w", session, "wait")
        await talk.until(lambda frame: "waiting" in str(frame))
        talk.send(method="session/cancel", params={"sessionId": session})
        await talk.answer_to("w")
    return [_plain(frame) for frame in talk.seen[began:]]


def _plain(frame: dict[str, Any]) -> str:
    frame.get("params", {}).get("update", {}).pop("messageId", None)
    if "method" in frame:
        frame.pop("id", None)
    text = json.dumps(_without_meta(frame), sort_keys=True)
    return re.sub(r"\b(sess|call|msg|b:\w+)[_:][\w.:]+", r"\1", text)


def _without_meta(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_meta(each) for key, each in value.items() if key != "_meta"}
    return [_without_meta(each) for each in value] if isinstance(value, list) else value


async def test_a_v1_pair_says_the_same_through_the_hub_as_without_it(tmp_path: Path) -> None:
    direct = await ChildTransport.spawn(AGENT)
    expected = await converse(direct)
    await direct.aclose()
    with served(tmp_path, "--acp-version", "1", agent=AGENT):
        through = await ChildTransport.spawn([*ANTIPHON, "acp", "--data", str(tmp_path)])
        assert await converse(through) == expected
        await through.aclose()
