"""An agent is started with the hub, and clients that come before it runs are told what is known of it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import connect
from antiphon.hub import Hub
from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk
from tests.hub.operating import processes, running_agents, until
from tests.hub.parrots import new_session, parrot, talking
from tests.hub.running import DEADLINE, served
from tests.options import hub_options

ABLE: dict[int, Any] = {
    1: {"promptCapabilities": {"image": True}, "auth": {"logout": {}}},
    2: {"session": {"prompt": {"image": {}}, "mcp": {"stdio": {}}}},
}
LOGINS: dict[int, Any] = {
    1: [{"id": "key", "name": "A key"}],
    2: [{"type": "agent", "methodId": "key", "name": "A key"}],
}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
LOGIN = {1: "authenticate", 2: "auth/login"}


def slow(folder: Path, version: int) -> list[str]:
    """An agent that takes images and a login. It starts once somebody writes into the pipe `gate`."""
    answers = {LOGIN[version]: {}}
    return parrot(
        version,
        capabilities=ABLE[version],
        initialize={"authMethods": LOGINS[version]},
        answers=answers,
        gate=str(folder / "gate"),
    )


@asynccontextmanager
async def life(folder: Path, agent: Any, **how: Any) -> AsyncIterator[Hub]:
    """One life of a hub with a data folder. Its agents carry the path of the folder as their mark."""
    agents = agent if isinstance(agent, dict) else {"slow": agent}
    store = SQLiteStore(folder / "hub.db")
    hub = Hub(
        agents, store=store, **hub_options(known_agents=folder / "agents.json", mark=str(folder), **how)
    )
    async with asyncio.timeout(DEADLINE), hub.listening():
        yield hub


async def started(folder: Path, count: int) -> bool:
    """Whether as many processes of agents run."""
    return len(processes(str(folder))) == count


async def learned(hub: Hub) -> None:
    """The first agent runs."""

    async def runs() -> bool:
        return await running_agents(hub, "slow") == 1

    await until(runs)
    async with connect(hub):
        pass


def close_gate(folder: Path) -> None:
    os.mkfifo(folder / "gate")


async def open_gate(folder: Path) -> None:
    """For the agent that waits, and for all that are started from here on."""
    await asyncio.to_thread((folder / "gate").write_bytes, b"go")
    (folder / "gate").unlink()


def offered(answer: dict[str, Any]) -> tuple[bool, list[Any]]:
    """Whether images are taken, and the ids of the logins."""
    if answer["protocolVersion"] == 1:
        able = answer["agentCapabilities"].get("promptCapabilities", {}).get("image", False)
    else:
        able = "image" in (answer["capabilities"]["session"].get("prompt") or {})
    methods = answer.get("authMethods", [])
    return able, [method.get("id", method.get("methodId")) for method in methods]


def opening(talk: Talk) -> dict[str, Any]:
    """The answer to `initialize`."""
    answer: dict[str, Any] = next(frame["result"] for frame in talk.seen if frame.get("id") == "init")
    return answer


async def show(talk: Talk, session: str) -> dict[str, Any]:
    """Prompt with an image; how that was answered."""
    blocks = [{"type": "text", "text": "[]"}, IMAGE]
    talk.send(id="image", method="session/prompt", params={"sessionId": session, "prompt": blocks})
    return await talk.answer_to("image")


VERSIONS = pytest.mark.parametrize("version", [1, 2])
CLIENTS = pytest.mark.parametrize("client", [1, 2])


async def test_the_agent_is_started_with_the_hub(tmp_path: Path) -> None:
    async with life(tmp_path, slow(tmp_path, 1)) as hub:
        await until(lambda: started(tmp_path, 1))  # before any client
        async with talking(hub, 1) as talk:
            assert offered(opening(talk)) == (True, ["key"])
            await new_session(talk)
        assert await started(tmp_path, 1)


@VERSIONS
@CLIENTS
async def test_a_client_waits_for_an_agent_of_which_nothing_is_known(
    tmp_path: Path, version: int, client: int
) -> None:
    close_gate(tmp_path)
    async with life(tmp_path, slow(tmp_path, version)) as hub, asyncio.TaskGroup() as tasks:
        opened = tasks.create_task(open_gate(tmp_path))
        async with talking(hub, client) as talk:
            await opened  # its thread may return after the agent has started
            assert offered(opening(talk)) == (True, ["key"])  # only the agent could say that
            assert "result" in await show(talk, await new_session(talk))


@VERSIONS
@CLIENTS
async def test_a_client_is_told_what_is_known_from_the_last_time_while_the_agent_starts(
    tmp_path: Path, version: int, client: int
) -> None:
    async with life(tmp_path, slow(tmp_path, version)) as hub:
        await learned(hub)
    close_gate(tmp_path)
    async with life(tmp_path, slow(tmp_path, version)) as hub, talking(hub, client) as talk:
        assert offered(opening(talk)) == (True, ["key"])  # the gate is closed
        login = {"methodId": "key"}
        talk.send(id="in", method=LOGIN[client], params=login)
        talk.send(id="new", method="session/new", params={"cwd": "/", "mcpServers": []})
        await open_gate(tmp_path)
        assert "result" in await talk.answer_to("in")
        session = (await talk.answer_to("new"))["result"]["sessionId"]
        assert "result" in await show(talk, session)


def alter(folder: Path, **abilities: Any) -> None:
    """Change what is known of the agent; `logins` too."""
    path = folder / "agents.json"
    kept = json.loads(path.read_text())
    known = kept["agents"]["slow"]["agent"]
    if "logins" in abilities:
        known["logins"] = abilities.pop("logins")
    known["abilities"] |= abilities
    path.write_text(json.dumps(kept))


@VERSIONS
@CLIENTS
async def test_who_was_told_less_than_is_true_is_not_refused_for_it(
    tmp_path: Path, version: int, client: int
) -> None:
    async with life(tmp_path, slow(tmp_path, version)) as hub:
        await learned(hub)
    alter(tmp_path, image=False, logins=[])
    close_gate(tmp_path)
    async with life(tmp_path, slow(tmp_path, version)) as hub, talking(hub, client) as talk:
        assert offered(opening(talk)) == (False, [])
        await open_gate(tmp_path)
        session = await new_session(talk)
        assert "result" in await show(talk, session)
        talk.send(id="in", method=LOGIN[client], params={"methodId": "key"})
        assert "result" in await talk.answer_to("in")
        async with talking(hub, client) as later:
            assert offered(opening(later)) == (True, ["key"])


@CLIENTS
async def test_what_the_agent_cannot_do_any_more_fails_with_a_clear_error(
    tmp_path: Path, client: int
) -> None:
    async with life(tmp_path, slow(tmp_path, 1)) as hub:
        await learned(hub)
    alter(tmp_path, audio=True, logins=[{"type": "agent", "methodId": "old", "name": "Old"}])
    close_gate(tmp_path)
    async with life(tmp_path, slow(tmp_path, 1)) as hub, talking(hub, client) as talk:
        assert offered(opening(talk))[1] == ["old"]
        await open_gate(tmp_path)
        session = await new_session(talk)
        audio = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
        talk.send(id="p", method="session/prompt", params={"sessionId": session, "prompt": [audio]})
        error = (await talk.answer_to("p"))["error"]
        assert (error["code"], "audio" in error["message"]) == (-32602, True)
        talk.send(id="in", method=LOGIN[client], params={"methodId": "old"})
        assert "offers no login 'old' any more" in (await talk.answer_to("in"))["error"]["message"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[]", b'{"format":0,"agents":{}}', b'{"format":1}']
)
async def test_a_file_that_cannot_be_read_is_ignored_and_written_anew(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "agents.json").write_bytes(content)
    with caplog.at_level(logging.WARNING, logger="antiphon.hub"):
        async with life(tmp_path, slow(tmp_path, 1)) as hub, talking(hub, 2) as talk:
            assert offered(opening(talk)) == (True, ["key"])
    assert "known agents in" in caplog.text
    kept = json.loads((tmp_path / "agents.json").read_text())
    assert kept["agents"]["slow"]["agent"]["name"] == "parrot"
    assert (tmp_path / "agents.json").stat().st_mode & 0o077 == 0


async def test_another_command_under_the_same_name_is_another_agent(tmp_path: Path) -> None:
    async with life(tmp_path, slow(tmp_path, 1)) as hub:
        await learned(hub)
    async with life(tmp_path, parrot(1)) as hub, talking(hub, 1) as talk:
        assert offered(opening(talk)) == (False, [])


async def test_an_agent_that_cannot_be_started_does_not_keep_the_hub_from_serving(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = tmp_path / "agent.py"
    agent = [sys.executable, str(script), *parrot(1, capabilities=ABLE[1])[2:]]
    with caplog.at_level(logging.WARNING, logger="antiphon.hub"):
        async with life(tmp_path, agent) as hub:
            async with talking(hub, 2) as talk:
                assert offered(opening(talk)) == (False, [])
                assert (await talk.call("l", "session/list"))["sessions"] == []
                talk.send(id="n", method="session/new", params={"cwd": "/", "mcpServers": []})
                assert "The agent ended" in (await talk.answer_to("n"))["error"]["message"]
                script.write_bytes(Path(parrot(1)[1]).read_bytes())  # noqa: ASYNC240 # a small file
                session = await new_session(talk)
                assert "result" in await show(talk, session)  # though it was told of no images
            async with talking(hub, 1) as later:
                assert offered(opening(later)) == (True, [])
    assert "agent slow could not be started; it is tried again when needed" in caplog.text


async def test_an_agent_that_could_not_be_started_is_tried_again_for_the_next_client(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    agent = [sys.executable, str(script), *parrot(1, capabilities=ABLE[1])[2:]]
    async with life(tmp_path, agent) as hub:
        async with talking(hub, 2) as talk:
            assert offered(opening(talk)) == (False, [])
        script.write_bytes(Path(parrot(1)[1]).read_bytes())  # noqa: ASYNC240 # a small file

        async def is_known() -> bool:
            async with talking(hub, 2) as talk:
                return offered(opening(talk)) == (True, [])

        await until(is_known)


async def test_a_prompt_is_judged_by_the_agent_of_its_session(tmp_path: Path) -> None:
    agents = {"plain": parrot(1), "rich": parrot(1, capabilities=ABLE[1])}
    async with life(tmp_path, agents) as hub, talking(hub, 1) as talk:
        plain = await new_session(talk)
        assert (await show(talk, plain))["error"]["code"] == -32602
        talk.forget()
        rich = await talk.call(
            "r", "session/new", cwd="/", mcpServers=[], _meta={"antiphon": {"agent": "rich"}}
        )
        assert "result" in await show(talk, rich["sessionId"])


async def test_an_agent_that_no_session_uses_rests_and_is_started_when_it_is_needed(tmp_path: Path) -> None:
    async with life(tmp_path, slow(tmp_path, 1), idle=1) as hub:
        await learned(hub)
        await until(lambda: started(tmp_path, 0))
        close_gate(tmp_path)
        async with talking(hub, 2) as talk:
            assert offered(opening(talk)) == (True, ["key"])
            assert await started(tmp_path, 0)
            await asyncio.gather(open_gate(tmp_path), new_session(talk))
            assert await running_agents(hub, "slow") == len(processes(str(tmp_path))) == 1


async def test_a_hub_that_ends_while_its_agent_starts_leaves_nothing_behind(tmp_path: Path) -> None:
    close_gate(tmp_path)
    with served(tmp_path, agent=slow(tmp_path, 1)) as hub:
        code, errors = await asyncio.to_thread(hub.end)
        assert code == 0, errors


async def test_the_limit_of_an_agent_s_start_can_be_set(tmp_path: Path) -> None:
    close_gate(tmp_path)
    with served(tmp_path, "--start", "0.5", agent=slow(tmp_path, 1)) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk(1) as talk:
            talk.send(id="n", method="session/new", params={"cwd": "/", "mcpServers": []})
            assert (
                "did not answer `initialize` within 0.5 s" in (await talk.answer_to("n"))["error"]["message"]
            )
        code, errors = await asyncio.to_thread(hub.end)
        assert code == 0
        assert "could not be started" in errors
