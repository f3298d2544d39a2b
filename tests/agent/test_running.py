"""`agent.run`: a real process, over stdio and over WebSocket, from its start to the signal that ends it."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.asyncio.client import connect as dial

from antiphon.agent import Agent, AgentOptions, AgentTurn
from antiphon.engine.session import Session
from antiphon.engine.turn import TurnState
from antiphon.errors import LinkLost, LocalError
from antiphon.live.session import LiveSession
from antiphon.stores import SQLiteStore
from antiphon.transports.processes.child import ChildTransport
from antiphon.transports.websocket import WebSocketTransport, connect_websocket
from tests.agent.talk import DEADLINE, INFO, Talk, session
from tests.hub.test_vanishing import call
from tests.requirements.marks import requirement

AGENT = """
import sys
from antiphon.agent import Agent
from antiphon.stores import SQLiteStore

agent = Agent("runner", version="1", store=SQLiteStore(sys.argv[1]))

@agent.on_prompt
async def work(turn):
    async with turn.message() as message:
        await message.write("heard " + turn.prompt.text)
    if turn.prompt.text == "sleep":
        async with turn.tool_call("sleep", kind="execute") as call:
            await call.run(["sh", "-c", "sleep 600 & echo $$ $!; wait"])

agent.run(*sys.argv[2:])
"""
SHAPES: dict[int, dict[str, Any]] = {
    1: {"clientInfo": INFO, "clientCapabilities": {}},
    2: {"info": INFO, "capabilities": {}},
}


class Running:
    """An agent's process and its clients."""

    def __init__(self, process: ChildTransport, store: Path, address: str | None) -> None:
        self._process = process
        self._store = store
        self.address = address
        self._stdio = Talk(process)
        self.clients = AsyncExitStack()
        self.commands: list[psutil.Process] = []
        """What its tool calls started."""

    async def client(self, version: int = 2) -> Talk:
        """Over its WebSocket, or over its stdin and stdout."""
        talk = self._stdio
        if self.address is not None:
            transport = await reached(self.address)
            self.clients.push_async_callback(transport.aclose)
            talk = Talk(transport)
        await talk.call("init", "initialize", protocolVersion=version, **SHAPES[version])
        return talk

    async def sleep(self, talk: Talk) -> str:
        """Open a session whose turn runs a command."""
        id = str((await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"])
        talk.prompt(1, id, "sleep")
        shown = await talk.update("terminal_output_chunk")
        self.commands = [psutil.Process(int(pid)) for pid in b64decode(shown["data"]).split()]
        return id

    async def end(self, number: signal.Signals) -> tuple[str, tuple[str, ...]]:
        """Send it a signal; how it ended, and what it wrote to stderr."""
        os.kill(self._process.pid, number)
        with pytest.raises(AssertionError, match="the link ended"):
            await self._stdio.until(lambda frame: False)
        return self._process.end_reason.partition(" ")[2], tuple(self._process.stderr)

    async def session(self, id: str) -> Session:
        """A session as another process finds it in the store; it is not to be claimed by anyone."""
        async with SQLiteStore(self._store) as store:
            return (await LiveSession.open(store, id, clock=lambda: 0)).fold


async def reached(address: str) -> WebSocketTransport:
    """Nothing tells when `agent.run` has begun to listen."""
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                return await connect_websocket(address)
            except LinkLost:
                await asyncio.sleep(0.02)


DEAF = ["sh", "-c", 'trap "" INT TERM; exec "$0" "$@"']
"""Starts a command with the signals ignored, as a shell without job control does in the background."""


@asynccontextmanager
async def running(folder: Path, address: str | None, *, start: Sequence[str] = ()) -> AsyncIterator[Running]:
    store = folder / "sessions.db"
    arguments = [str(store)] if address is None else [str(store), address]
    process = await ChildTransport.spawn([*start, sys.executable, "-c", AGENT, *arguments])
    agent = Running(process, store, address)
    try:
        yield agent
    finally:
        await agent.clients.aclose()
        if not process.end_reason:
            os.kill(process.pid, signal.SIGKILL)
        await process.aclose()
        for command in agent.commands:
            with suppress(psutil.NoSuchProcess):
                command.kill()


def free_address() -> str:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        return f"ws://127.0.0.1:{free.getsockname()[1]}/"


def alive(process: psutil.Process) -> bool:
    """Where nobody reaps them, the dead stay in the list."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_two_clients_of_an_agent_in_another_process_share_a_session(tmp_path: Path) -> None:
    async with running(tmp_path, free_address()) as agent:
        one, other = await agent.client(2), await agent.client(1)
        id = (await one.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        await other.call("load", "session/load", sessionId=id, cwd="/", mcpServers=[])
        one.prompt(1, id, "one")
        assert (await other.update("user_message_chunk"))["content"]["text"] == "one"
        await one.update("state_update", state="idle", stopReason="end_turn")
        other.prompt(2, id, "two")
        assert (await other.answer_to(2))["result"] == {"stopReason": "end_turn"}
        await one.update("state_update", state="idle", stopReason="end_turn")
        assert one.text() == other.text() == "heard oneheard two"


async def test_a_client_whose_connection_is_cut_costs_the_others_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, free_address()) as agent:
        stays = await agent.client()
        id = await agent.sleep(stays)
        cut = await dial(str(agent.address), proxy=None)
        await call(cut, "initialize", protocolVersion=2, **SHAPES[2])
        await call(cut, "session/resume", sessionId=id, cwd="/", replayFrom={"type": "start"})
        # It ends with bytes unread, as a process does that is killed: its kernel resets the connection.
        cut.transport.pause_reading()
        stays.prompt("next", id, "next", delivery="interrupt")
        await stays.update("state_update", state="idle", stopReason="end_turn")
        cut.transport.abort()
        await cut.wait_closed()
        back = await agent.client()
        await back.call("join", "session/resume", sessionId=id, cwd="/")
        stays.prompt("last", id, "last")
        await stays.update("state_update", state="idle", stopReason="end_turn")
        await back.update("state_update", state="idle", stopReason="end_turn")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("link", ["stdio", "websocket"])
async def test_a_signal_ends_an_agent_cleanly_and_its_commands_with_it(
    tmp_path: Path, link: str, number: signal.Signals
) -> None:
    async with running(tmp_path, None if link == "stdio" else free_address()) as agent:
        id = await agent.sleep(await agent.client())
        said = () if link == "stdio" else (f"serving at {agent.address}",)
        assert await agent.end(number) == ("exited with code 0", said)
        assert not any(alive(command) for command in agent.commands)
        fold = await agent.session(id)
        assert fold.state is TurnState.IDLE
        assert fold.turns.last is not None
        assert fold.turns.last.interrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_an_agent_that_was_started_with_it_ignored(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with running(tmp_path, None, start=DEAF) as agent:
        await agent.sleep(await agent.client())
        assert await agent.end(number) == ("exited with code 0", ())
        assert not any(alive(command) for command in agent.commands)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ties a child to its parent")
async def test_a_killed_agent_leaves_no_command_behind(tmp_path: Path) -> None:
    async with running(tmp_path, None) as agent:
        id = await agent.sleep(await agent.client())
        command = os.pidfd_open(agent.commands[0].pid)
        await agent.end(signal.SIGKILL)
        ended, _, _ = await asyncio.to_thread(select.select, [command], [], [], DEADLINE)
        os.close(command)
        assert ended
        assert (await agent.session(id)).state is TurnState.RUNNING, "it ends when the session is reopened"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:9000",
        "http://127.0.0.1:9000",
        "wss://127.0.0.1:9000",
        "ws://",
        "ws://127.0.0.1:x",
        "ws://h:99999",
    ],
)
def test_a_bad_address_is_told_to_whoever_wrote_it(address: str) -> None:
    with pytest.raises(LocalError, match="is no address to serve at"):
        Agent("nowhere").run(address)


def test_an_address_that_is_taken_is_told_too() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        address = f"ws://127.0.0.1:{taken.getsockname()[1]}/"
        with pytest.raises(LocalError, match=f"cannot serve at {address}"):
            Agent("late").run(address)


@requirement("TC-05")
async def test_an_agent_that_sends_turn_complete_to_all_says_so_and_does() -> None:
    agent = Agent("telling", turn_complete=True)

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.say("done")

    async with session(agent, 1) as (talk, id):
        capabilities = talk.seen[0]["result"]["agentCapabilities"]
        assert capabilities["sessionCapabilities"]["turnComplete"] == {}
        talk.prompt(7, id, "hello")
        await talk.answer_to(7)
        assert talk.story()[-3:] == ["agent_message_chunk", "turn_complete", "= 7"]
        complete = talk.seen[-2]["params"]["update"]
        assert (complete["promptRequestId"], complete["stopReason"]) == ("7", "end_turn")
    async with session(agent, 2) as (talk, id):
        assert "turnComplete" not in str(talk.seen[0])
        talk.prompt(7, id, "hello")
        await talk.update("state_update", state="idle")
        assert "turn_complete" not in talk.story(), "v2 has the state for it"


STUBBORN = """
import asyncio, sys
from antiphon.agent import Agent, AgentOptions
from antiphon.stores import SQLiteStore

agent = Agent("stubborn", store=SQLiteStore(sys.argv[1]), options=AgentOptions(stop_grace=0.3))

async def for_ever():
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

@agent.on_prompt
async def work(turn):
    await turn.say("I do not stop.")
    if turn.prompt.text == "behind":
        await turn.session.background("For ever", lambda call: for_ever())
    else:
        await for_ever()

agent.run(*sys.argv[2:])
"""


@pytest.mark.parametrize("way", ["SIGTERM", "SIGINT", "the end of input"])
@pytest.mark.parametrize("where", ["in a turn", "behind"])
async def test_work_that_ignores_its_cancellation_does_not_keep_the_process(
    tmp_path: Path, way: str, where: str
) -> None:
    store = tmp_path / "sessions.db"
    process = await ChildTransport.spawn([sys.executable, "-c", STUBBORN, str(store)])
    talk = Talk(process)
    await talk.call("init", "initialize", protocolVersion=2, **SHAPES[2])
    id = (await talk.call("new", "session/new", cwd="/"))["sessionId"]
    talk.prompt("stuck", id, where)
    await talk.update("agent_message")
    if where == "behind":
        await talk.update("state_update", state="idle")
    async with asyncio.timeout(DEADLINE):
        if way == "the end of input":
            await process.aclose()
        else:
            os.kill(process.pid, getattr(signal, way))
            with suppress(AssertionError):
                while True:
                    await talk.until(lambda frame: False)
            await process.aclose()
    assert "tasks do not end although they were cancelled" in "\n".join(process.stderr)
    async with SQLiteStore(store) as kept, await LiveSession.open(kept, id, clock=lambda: 0) as live:
        assert live.fold.state is TurnState.IDLE
        last = live.fold.turns.last
        assert last is not None
        assert last.interrupted is (where == "in a turn")


async def test_a_session_is_closed_although_its_handler_ignores_that() -> None:
    agent, free = Agent("stubborn", options=AgentOptions(stop_grace=0.2)), asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.say("I do not stop.")
        while not free.is_set():
            with suppress(asyncio.CancelledError):
                await free.wait()

    async with session(agent) as (talk, id):
        talk.prompt("stuck", id, "hello")
        await talk.update("agent_message")
        await talk.call("close", "session/close", sessionId=id)
        told = [update for update in talk.updates() if update.get("state") == "idle"]
        assert [update["stopReason"] for update in told] == ["cancelled"]
        free.set()


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_stdin_or_stdout_is_told_in_one_line(closed: str) -> None:
    code = "from antiphon.agent import Agent; Agent('mute').run()"
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("mute: stdin and stdout must be open to speak over them")
    assert done.stderr.count("\n") == 1
