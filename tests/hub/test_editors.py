"""`antiphon acp`: an editor's session goes on when the hub behind it was killed and is there again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Client, Permission, Permissions, connect
from antiphon.errors import CallFailed
from antiphon.hub import HubFolder
from antiphon.transports.processes.child import ChildTransport
from tests.agent.talk import INFO, Talk
from tests.cli.command import ended
from tests.hub.parrots import parrot
from tests.hub.running import AGENT, ANTIPHON, DEADLINE, served
from tests.hub.test_sharing import heard, told

EDITORS = pytest.mark.parametrize("version", [1, 2])


async def _list(editor: Client) -> None:
    """Until it is not answered any more."""
    while True:
        await anext(editor.list_sessions())


@EDITORS
async def test_an_editor_goes_on_when_its_hub_comes_back(tmp_path: Path, version: int) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    command = [*ANTIPHON, "acp", "--data", str(tmp_path)]
    with served(tmp_path, agent=agent) as hub:
        async with asyncio.timeout(2 * DEADLINE), connect(command, version=version) as editor:
            session = await editor.new_session("/")
            await (await session.prompt("say before")).drained()
            turn = await session.prompt("wait")
            await heard(session, "waiting")
            hub.kill()
            with pytest.raises(CallFailed, match="not reachable"):
                await _list(editor)
            later = asyncio.ensure_future(session.prompt("say later"))
            await asyncio.to_thread(hub.restart)  # at another port
            end = await turn.drained()
            assert end.error is not None
            assert end.error.data == {"reason": "interrupted", "cause": "hub_lost"}
            assert (await (await later).drained()).stop_reason == "end_turn"
            said = [text for kind, text in told(session) if kind == "agent"]
            assert said == ["heard say before", "waiting", "heard say later"]
            texts = [text for _, text in told(session)]
            assert len(set(texts)) == len(texts) == 6
        assert (tmp_path / "agent.log").read_text() == "say before\nwait\nsay later\n"


@EDITORS
async def test_an_editor_is_asked_by_the_hub_that_came_back(tmp_path: Path, version: int) -> None:
    asked, killed = 0, asyncio.Event()

    async def ask(permission: Permission) -> Any:
        nonlocal asked
        asked += 1
        if asked == 1:
            hub.kill()
            killed.set()
            await asyncio.Event().wait()
        return permission.allow()

    command = [*ANTIPHON, "acp", "--data", str(tmp_path)]
    with served(tmp_path, agent=AGENT) as hub:
        answers = Permissions(ask=ask)
        async with (
            asyncio.timeout(2 * DEADLINE),
            connect(command, version=version, answers=answers) as editor,
        ):
            session = await editor.new_session("/")
            turn = await session.prompt("ask")
            await killed.wait()
            await asyncio.to_thread(hub.restart)
            assert (await turn.drained()).stop_reason == "error"  # the question died with its agent
            assert (await (await session.prompt("ask")).drained()).stop_reason == "end_turn"
            assert told(session)[-1] == ("agent", "allowed: True")
            assert asked == 2


async def test_a_hub_that_an_editor_has_started_is_started_again(tmp_path: Path) -> None:
    command = [*ANTIPHON, "acp", "--data", str(tmp_path), "--", *AGENT]
    folder, pids = HubFolder(tmp_path), []
    try:
        async with asyncio.timeout(2 * DEADLINE), connect(command) as editor:
            session = await editor.new_session("/")
            for number in range(2):
                await (await session.prompt(f"say {number}")).drained()
                running = folder.running()
                assert running is not None
                pids.append(running.pid)
                os.kill(running.pid, signal.SIGKILL)
            assert (await (await session.prompt("say more")).drained()).stop_reason == "end_turn"
            assert [text for kind, text in told(session) if kind == "user"] == ["say 0", "say 1", "say more"]
            assert len(set(pids)) == 2
    finally:
        last = folder.running()
        if last is not None:
            os.kill(last.pid, signal.SIGTERM)
            assert ended(last.pid)


@EDITORS
async def test_an_editor_is_not_told_again_what_came_with_the_agents_own_meta(
    tmp_path: Path, version: int
) -> None:
    """The agent puts `_meta` beside its updates, so our cursor does not stand there alone."""
    said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "once"}}
    said = said if version == 1 else {**said, "messageId": "m"}
    step = {"update": said, "beside": {"_meta": {"vendor.example/x": {"y": 1}}}}
    waits = {"ask": ["_vendor.example/wait", {"sessionId": "$session"}]}
    shape = "clientCapabilities" if version == 1 else "capabilities"
    info = "clientInfo" if version == 1 else "info"
    with served(tmp_path, agent=parrot(version)) as hub:
        transport = await ChildTransport.spawn([*ANTIPHON, "acp", "--data", str(tmp_path)])
        editor = Talk(transport)
        await editor.call("i", "initialize", protocolVersion=version, **{info: INFO, shape: {}})
        session = (await editor.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        editor.prompt("p", session, json.dumps([step, waits]))
        await editor.request("_vendor.example/wait")
        hub.kill()
        await asyncio.to_thread(hub.restart)
        await editor.answer_to("p") if version == 1 else await editor.update("state_update", state="idle")
        assert editor.text().count("once") == 1
        await transport.aclose()
