"""Sessions outlive clients, agents and the hub: kill -9 of each, and an orderly end."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from pathlib import Path

import httpx
import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Client, ClientSession, ClientTurn, Permissions, connect
from antiphon.errors import CallFailed
from antiphon.hub import Hub, HubOptions
from tests.cli.command import ended
from tests.hub.operating import processes
from tests.hub.running import AGENT, DEADLINE, SLOPPY, agents_of, kill_agents, left_by, running_for, served
from tests.hub.test_sharing import VERSIONS, heard, settled, told


async def begun(
    client: Client, prompt: str = "wait", says: str = "waiting"
) -> tuple[ClientSession, ClientTurn]:
    session = await client.new_session("/")
    turn = await session.prompt(prompt)
    await heard(session, says)
    return session, turn


@VERSIONS
async def test_an_agent_that_is_killed_cuts_its_turn_short_and_comes_back(
    tmp_path: Path, version: str
) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, "--acp-version", version, agent=agent) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client, hub.client(version=1) as other:
            session, turn = await begun(client)
            second = await other.load_session(session.id, "/")
            assert kill_agents(hub) >= 1
            end = await turn.drained()
            assert end.stop_reason == "error"
            assert end.error is not None
            assert end.error.data == {"reason": "interrupted", "cause": "agent_lost"}
            again = await session.prompt("say more")
            assert (await again.drained()).stop_reason == "end_turn"
            await settled(second, "heard say more")
            # What the agent replayed of itself is not said twice.
            assert told(session) == told(second)
            assert [text for _, text in told(session)] == ["wait", "waiting", "say more", "heard say more"]
            assert (tmp_path / "agent.log").read_text() == "wait\nsay more\n"


@VERSIONS
async def test_who_waits_behind_a_turn_that_is_cut_short_is_answered_by_the_agent_that_comes_back(
    tmp_path: Path, version: str
) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, "--acp-version", version, agent=agent) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client, hub.talk(1) as other:
            session, turn = await begun(client)
            await other.call("load", "session/load", sessionId=session.id, cwd="/", mcpServers=[])
            text = {"type": "text", "text": "say more"}
            other.send(id="held", method="session/prompt", params={"sessionId": session.id, "prompt": [text]})
            listed = await other.call("list", "_antiphon/list_inject", sessionId=session.id)
            assert [entry["content"] for entry in listed["entries"]] == [[text]]
            assert kill_agents(hub) >= 1
            assert (await turn.drained()).stop_reason == "error"
            assert (await other.answer_to("held"))["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize("how", ["--v2", ""])
async def test_an_agent_that_cannot_bring_a_session_back_is_told_what_happened(
    tmp_path: Path, how: str
) -> None:
    forgetful = shlex.join([*SLOPPY, *([how] if how else [])])
    with served(tmp_path, "--agent", f"one={forgetful}", agent=()) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/")
            await (await session.prompt("echo")).drained()
            turn = await session.prompt("kill")
            end = await turn.drained()
            assert end.error is not None
            assert end.error.data == {"reason": "interrupted", "cause": "agent_lost"}
            assert "last words" in turn.text or how  # one id for all of its messages
    with served(tmp_path, "--agent", f"one={shlex.join(AGENT)}", agent=()) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.load_session(session.id, "/")
            turn = await session.prompt("story")
            assert (await turn.drained()).stop_reason == "end_turn"
            assert ("User: echo" in turn.text) is (how == "")  # the other one shows prompts as it likes
            assert "last words" in turn.text
            asked = [message.text for message in session.messages if message.type == "user"]
            assert asked[-1] == "story"  # and not what the agent was told beside it


async def test_a_slash_command_is_one_also_for_an_agent_that_has_to_be_told_what_happened(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as hub:
        async with asyncio.timeout(DEADLINE), hub.client(answers=Permissions(allow="all")) as client:
            session = await client.new_session("/")
            await (await session.prompt("hello")).drained()
            assert (await (await session.prompt("/crash")).drained()).stop_reason == "error"
            helped = await session.prompt("/help")
            await helped.drained()
            assert "/tour" in helped.text


async def test_who_is_told_nothing_with_a_slash_command_is_told_with_the_next_prompt(tmp_path: Path) -> None:
    with served(tmp_path, agent=[*AGENT, "--story"]) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session, turn = await begun(client)
            assert kill_agents(hub) >= 1
            await turn.drained()
            said = []
            for prompt in ("/story", "story", "story"):
                turn = await session.prompt(prompt)
                await turn.drained()
                said.append(turn.text)
            command, plain, after = said
            assert command == "/story"
            assert "User: wait\n\nYou: waiting\n\nUser: /story\n\nYou: /story\n" in plain
            assert after == "story"


async def test_a_session_whose_agent_the_hub_has_no_more_says_so(tmp_path: Path) -> None:
    with served(tmp_path, "--agent", f"one={shlex.join(AGENT)}", agent=()) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/")
    with served(tmp_path, "--agent", f"two={shlex.join(AGENT)}", agent=()) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.load_session(session.id, "/")
            with pytest.raises(CallFailed, match="has no agent 'one'"):
                await session.prompt("say a")


async def test_a_prompt_that_kills_its_agent_is_not_sent_again(tmp_path: Path) -> None:
    with served(tmp_path, agent=SLOPPY) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/")
            for _ in range(2):
                assert (await (await session.prompt("crash")).drained()).stop_reason == "error"
            said = [text for _, text in told(session)]
            assert said[:3] == ["crash", "last words", "crash"]


@VERSIONS
async def test_after_kill_9_of_the_hub_every_session_is_back(tmp_path: Path, version: str) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, "--acp-version", version, agent=agent) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session, turn = await begun(client)
            queued = await session.queue.add("say later")
            assert queued.message_id
            hub.kill()
            assert (await turn.drained()).cut is not None
        hub.restart()
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            listed = [info.session_id async for info in client.list_sessions()]
            assert listed == [session.id]
            back = await client.load_session(session.id, "/")
            assert told(back) == [("user", "wait"), ("agent", "waiting")]
            assert back.turn is None
            last = back.fold.turns.latest
            assert getattr(last, "stop_reason", None) == "error"
            events = back.events()
            if not back.queue.entries:  # told behind the answer
                await anext(events)
            assert [entry["content"][0]["text"] for entry in back.queue.entries] == ["say later"]
            await back.queue.resume()
            await settled(back, "heard say later")
            assert (await (await back.prompt("say more")).drained()).stop_reason == "end_turn"
            assert [m for kind, m in told(back) if kind == "user"] == ["wait", "say later", "say more"]
            ids = [message.message_id for message in back.messages]
            assert len(set(ids)) == len(ids)
        assert (tmp_path / "agent.log").read_text() == "wait\nsay later\nsay more\n"


async def test_orphans_of_a_killed_hub_are_ended_at_the_next_start(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            await begun(client, "child", "left behind")
            hub.kill()
        assert any("sleep" in command for command in running_for(tmp_path))
        hub.restart()
        assert not left_by(tmp_path, "sleep")


async def test_sigterm_lets_a_turn_end_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/")
            turn = await session.prompt("stream 5000")
            pids = agents_of(hub)
            os.kill(hub.process.pid, 15)
            end = await turn.drained()
            assert end.stop_reason == "end_turn"
        _, errors = hub.process.communicate(timeout=DEADLINE)
        assert hub.process.returncode == 0, errors
        assert b"Traceback" not in errors, errors
        assert all(map(ended, pids))


async def test_a_session_goes_on_with_nobody_attached(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE):
            async with hub.client() as client:
                session = await client.new_session("/")
                await session.prompt("stream 5000")
            async with hub.client(version=1) as client:
                later = await client.load_session(session.id, "/")
                await settled(later, "4999")


async def test_killed_again_and_again_nothing_that_was_seen_is_lost_or_said_twice(tmp_path: Path) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    prompts = [f"stream {3000 + number}" for number in range(4)]
    whole = "".join(f"{number} " for number in range(4000))
    with served(tmp_path, agent=agent) as hub:
        session_id, seen = None, []
        for at, text in enumerate(prompts):
            async with asyncio.timeout(DEADLINE), hub.client() as client:
                if session_id is None:
                    session = await client.new_session("/")
                    session_id = session.id
                else:
                    session = await client.load_session(session_id, "/")
                    assert [m.text for m in session.messages][: len(seen)] == seen
                    assert session.turn is None
                turn = await session.prompt(text)
                async for _ in turn.updates():
                    if len(turn.text) > 400 * (at + 1):
                        break
                hub.kill()
                await turn.drained()
            hub.restart()
            async with asyncio.timeout(DEADLINE), hub.client() as client:
                kept = [m.text for m in (await client.load_session(session_id, "/")).messages]
            assert kept[:-1] == [*seen, text]
            assert whole.startswith(kept[-1])
            assert kept[-1].startswith(turn.text)  # what a client has seen, no crash takes back
            seen = kept
        assert (tmp_path / "agent.log").read_text().splitlines() == prompts


SHORT_GRACE = """
import sys
from antiphon import Hub
from antiphon.hub import HubOptions

hub = Hub({"stand-in": sys.argv[1:]}, options=HubOptions(grace=2.0))
hub.run("127.0.0.1:0", on_ready=lambda: print(hub.port, hub.token, flush=True))
"""


async def test_a_turn_that_takes_too_long_at_the_end_is_cut_and_its_clients_are_told() -> None:
    command = [sys.executable, "-c", SHORT_GRACE, *AGENT]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE):
            port, token = (await process.stdout.readline()).decode().split()
            url = f"http://127.0.0.1:{port}/healthz"
            async with (
                connect(f"ws://127.0.0.1:{port}/acp", token=token) as client,
                httpx.AsyncClient() as http,
            ):
                session, turn = await begun(client)
                process.terminate()
                while (await http.get(url)).status_code != 503:
                    pass
                with pytest.raises(CallFailed, match="about to end"):
                    await session.prompt("say more")
                end = await turn.drained()
                assert end.cut is None
                assert end.error is not None
                assert end.error.data == {"reason": "interrupted", "cause": "hub_stopped"}
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_who_leaves_while_a_session_is_made_leaves_no_agent_behind(tmp_path: Path) -> None:
    hub = Hub({"stand-in": AGENT}, options=HubOptions(mark=str(tmp_path)))
    async with asyncio.timeout(DEADLINE), hub.listening():
        address = f"ws://127.0.0.1:{hub.port}/acp"
        for _ in range(3):
            async with connect(address, token=hub.token) as client:
                making = asyncio.ensure_future(client.new_session("/"))
                await asyncio.sleep(0)
                making.cancel()
        async with connect(address, token=hub.token) as client:
            await (await (await client.new_session("/")).prompt("say a")).drained()
            assert processes(str(tmp_path))
    assert not processes(str(tmp_path))


@pytest.mark.parametrize("how", ["--v2", ""])
async def test_an_agent_that_does_not_stop_is_ended(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr("antiphon.hub.worker.canceller.CANCEL_GRACE", 0.2)
    hub = Hub({"sloppy": [*SLOPPY, *([how] if how else [])]})
    async with asyncio.timeout(DEADLINE), connect(hub) as client:
        session = await client.new_session("/")
        turn = await session.prompt("silence")
        await heard(session, "first and last words")
        await session.cancel()
        end = await turn.drained()
        assert (end.stop_reason, end.error) == ("cancelled", None)  # what was cancelled ends as that


@pytest.mark.parametrize("command", [["/no/such/agent"], ["false"], ["echo", "no protocol"]])
async def test_an_agent_that_cannot_be_started_is_an_error_and_no_session(command: list[str]) -> None:
    async with asyncio.timeout(DEADLINE), connect(Hub({"broken": command})) as client:
        with pytest.raises(CallFailed, match=r"agent|start"):
            await client.new_session("/")
        assert [info async for info in client.list_sessions()] == []


async def test_one_tool_call_is_cancelled_through_the_hub() -> None:
    agent, begun_call = Agent("slow"), asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Dig", cancellable=True) as call:
            begun_call.set()
            await asyncio.Event().wait()
        await turn.say(f"cancelled: {call.cancelled}")

    async with asyncio.timeout(DEADLINE), connect(Hub({"slow": agent})) as client:
        session = await client.new_session("/")
        turn = await session.prompt("dig")
        async for _ in turn.updates():
            if session.tool_calls:
                break
        await session.cancel_tool_call(session.tool_calls[0].id)
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "cancelled: True"
