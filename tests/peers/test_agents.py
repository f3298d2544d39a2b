"""Real agents, at v1, over stdio, offline: the smoke tests.

`agents.py` says how they are started and what is expected of each.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from antiphon.connection import Connection, Role
from antiphon.errors import CallFailed, LinkLost
from antiphon.jsonrpc.lines import Received
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1
from antiphon.transports.child import ChildTransport
from tests.peers import install
from tests.peers.agents import AGENTS, Launch, RealAgent, acpx, prepare_command, still_there

DEADLINE = 60.0
SOON = 60.0
"""What `SLOW` would take without a cancel is 30 seconds."""
WIRE_AGENT = [sys.executable, str(Path(__file__).parents[2] / "examples" / "wire_agent.py")]

Prepared = Callable[[str], Launch]


class Talk:
    """One run of an agent, seen from a client: what was on the wire, and what was handled of it."""

    def __init__(self, transport: ChildTransport) -> None:
        self.transport = transport
        self.connection = Connection(
            transport,
            role=Role.CLIENT,
            requests={"session/request_permission": self._decide},
            notifications={"session/update": self._on_update},
            tap=self._tap,
        )
        self.frames: list[tuple[str, dict[str, Any]]] = []
        self.updates: list[Any] = []
        self.permissions: list[v1.RequestPermissionRequest] = []
        self.opened: v1.InitializeResponse
        self.session = ""
        self.decision = "allow_once"
        """The kind of option that is chosen, or `later` to leave a request open until `release` is set."""
        self.release = asyncio.Event()
        self._progress = asyncio.Condition()
        self._prompting: list[asyncio.Task[str]] = []

    @classmethod
    @asynccontextmanager
    async def start(cls, launch: Launch) -> AsyncIterator[Self]:
        """Spawn the agent and initialize, with no abilities of the client's."""
        self = cls(await ChildTransport.spawn(launch.command, cwd=launch.cwd))
        info = {"name": "antiphon-tests", "version": "1"}
        offer = {"protocolVersion": 1, "clientInfo": info, "clientCapabilities": {}}
        try:
            async with asyncio.timeout(DEADLINE), self.connection as connection:
                self.opened = await connection.initialize(offer)
                yield self
        finally:
            await asyncio.gather(*self._prompting, return_exceptions=True)

    async def new_session(self, launch: Launch) -> None:
        request = v1.NewSessionRequest(cwd=str(launch.cwd), mcp_servers=[])
        self.session = (await self.connection.call("session/new", request)).session_id

    async def prompt(self, text: str) -> str:
        """Prompt, check that the turn's updates were handled before its answer, and return how it ended."""
        self.updates.clear()
        handled_before = self._updates_on_wire(len(self.frames))
        request = v1.PromptRequest(session_id=v1.SessionId(self.session), prompt=[v1.TextContent(text=text)])
        answer = await self.connection.call("session/prompt", request)
        handled = len(self.updates)
        before_answer = self._updates_on_wire(self._last_answer()) - handled_before
        assert handled >= before_answer, "everything sent before the answer was handled before it"
        return str(answer.stop_reason)

    def prompting(self, text: str) -> asyncio.Task[str]:
        """The same beside whatever the test does meanwhile."""
        task = asyncio.create_task(self.prompt(text))
        self._prompting.append(task)
        return task

    async def cancel(self) -> None:
        await self.connection.notify("session/cancel", {"sessionId": self.session})

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._progress:
            await self._progress.wait_for(condition)

    @property
    def text(self) -> str:
        """What the agent has said in this turn."""
        return "".join(getattr(chunk.content, "text", "") for chunk in self.chunks)

    @property
    def chunks(self) -> list[v1.AgentMessageChunk]:
        return [update for update in self.updates if isinstance(update, v1.AgentMessageChunk)]

    def statuses(self) -> list[str]:
        """The statuses of this turn's only tool call, in order."""
        told = [update for update in self.updates if isinstance(update, v1.ToolCall | v1.ToolCallUpdate)]
        assert len({update.tool_call_id for update in told}) == 1
        return [str(update.status) for update in told if update.status]

    def chunks_behind_an_answer(self) -> list[dict[str, Any]]:
        """Message chunks that came while no prompt was open."""
        open_prompts: set[Any] = set()
        late = []
        for direction, frame in self.frames:
            if frame.get("method") == "session/prompt":
                open_prompts.add(frame["id"])
            elif direction == "in" and "method" not in frame:
                open_prompts.discard(frame["id"])
            elif frame.get("method") == "session/update" and not open_prompts:
                late.append(frame["params"]["update"])
        return [update for update in late if update["sessionUpdate"].endswith("_chunk")]

    def asked_by_agent(self) -> set[str]:
        return {
            frame["method"] for way, frame in self.frames if way == "in" and {"id", "method"} <= set(frame)
        }

    # --- inside ---------------------------------------------------------------------------------------

    def _tap(self, direction: str, frame: Received) -> None:
        assert isinstance(frame, bytes), f"not a frame: {frame!r}"
        self.frames.append((direction, json.loads(frame)))

    def _updates_on_wire(self, until: int) -> int:
        return sum(frame.get("method") == "session/update" for _, frame in self.frames[:until])

    def _last_answer(self) -> int:
        answers = (at for at, (way, frame) in enumerate(self.frames) if way == "in" and "method" not in frame)
        return max(answers)

    async def _on_update(self, params: v1.SessionNotification) -> None:
        self.updates.append(params.update)
        async with self._progress:
            self._progress.notify_all()

    async def _decide(self, params: v1.RequestPermissionRequest, inbound: Inbound) -> Any:
        self.permissions.append(params)
        async with self._progress:
            self._progress.notify_all()
        if self.decision == "later":
            await self.release.wait()
            return {"outcome": {"outcome": "cancelled"}}
        chosen = next(option for option in params.options if option.kind == self.decision)
        return {"outcome": {"outcome": "selected", "optionId": chosen.option_id}}


@pytest.mark.parametrize("name", AGENTS)
async def test_a_conversation_a_restart_and_a_kill(name: str, real_agent: Prepared) -> None:
    """All in one: most of the time goes into starting."""
    launch = real_agent(name)
    async with Talk.start(launch) as talk:
        assert talk.opened.protocol_version == 1
        assert talk.opened.agent_capabilities is not None
        assert talk.opened.agent_capabilities.load_session
        await talk.new_session(launch)
        await text_and_tools(talk, launch)
        await cancels(talk, launch)
        assert talk.chunks_behind_an_answer() == []
        assert talk.asked_by_agent() <= {"session/request_permission"} | launch.agent.own_requests
        session = talk.session
    assert launch.left_running() == [], "the end of stdin is enough, or a SIGTERM"

    async with Talk.start(launch) as talk:
        talk.session = session
        await load_and_resume(talk, launch)
        await kill(talk, launch)


async def text_and_tools(talk: Talk, launch: Launch) -> None:
    assert await talk.prompt("hello there") == "end_turn"
    assert talk.text.strip() == "Hello from the fake LLM. You said: hello there"
    assert all(bool(chunk.message_id) == launch.agent.message_ids for chunk in talk.chunks)

    made = launch.cwd / "made-by-tool.txt"
    assert await talk.prompt("TOOL") == "end_turn"
    assert talk.statuses()[-1] == "completed"
    assert made.read_text() == "hello-from-tool\n"
    assert "Tool said" in talk.text
    assert "hello-from-tool" in talk.text
    assert len(talk.permissions) == 1

    made.unlink()
    talk.decision = "reject_once"
    assert await talk.prompt("TOOL") == "end_turn"
    assert talk.statuses()[-1] == launch.agent.rejected
    assert not made.exists()
    assert len(talk.permissions) == 2


async def cancels(talk: Talk, launch: Launch) -> None:
    """While it speaks, and while it waits for a permission. Then it goes on as if nothing had been."""
    prompting = talk.prompting("SLOW")
    await talk.until(lambda: "slow-1" in talk.text)
    await talk.cancel()
    assert await asyncio.wait_for(prompting, SOON) == "cancelled"
    assert "slow-50" not in talk.text

    talk.decision = "later"
    prompting = talk.prompting("TOOL")
    await talk.until(lambda: len(talk.permissions) == 3)
    await talk.cancel()
    if launch.agent.waits_for_permission:
        talk.release.set()
    assert await asyncio.wait_for(prompting, SOON) == "cancelled"
    assert not (launch.cwd / "made-by-tool.txt").exists()
    talk.release.set()

    assert await talk.prompt("hello again") == "end_turn"
    assert talk.text.strip().endswith("You said: hello again")


async def load_and_resume(talk: Talk, launch: Launch) -> None:
    """What was said is told again before the answer, and the talk goes on."""
    where = {"sessionId": talk.session, "cwd": str(launch.cwd), "mcpServers": []}
    await talk.connection.call("session/load", where)
    said = [update.content for update in talk.updates if isinstance(update, v1.UserMessageChunk)]
    texts = [content.text for content in said if isinstance(content, v1.TextContent)]
    assert texts[:4] == ["hello there", "TOOL", "TOOL", "SLOW"]
    assert texts[-1] == "hello again"
    assert talk.text.startswith("Hello from the fake LLM. You said: hello there")
    if launch.agent.resumes:
        await talk.connection.call("session/resume", where)
    else:
        with pytest.raises(CallFailed, match="-32601"):
            await talk.connection.call("session/resume", where)
    assert await talk.prompt("and now") == "end_turn"
    assert talk.text.strip().endswith("You said: and now")


async def kill(talk: Talk, launch: Launch) -> None:
    """In the middle of a turn: nothing of it is left, neither the model nor what the agent had started."""
    prompting = talk.prompting("SLOW")
    await talk.until(lambda: "slow-1" in talk.text)
    running = launch.left_running()
    assert len(running) >= 2, "the agent and its model"
    os.kill(talk.transport.pid, signal.SIGKILL)
    with pytest.raises(LinkLost, match="SIGKILL"):
        await prompting
    assert await asyncio.to_thread(still_there, running, SOON) == []


def test_only_loopback_exists(tmp_path: Path) -> None:
    """The model is reached from where the agent is; nothing else can be, where that is permitted."""
    look = (
        "import json, os, socket, urllib.request as web; "
        "models = json.load(web.urlopen(os.environ['WHERE'] + '/v1/models', timeout=5))['data']; "
        "print(json.dumps({'nets': [name for _, name in socket.if_nameindex()], 'models': len(models)}))"
    )
    agent = RealAgent("look", lambda: [sys.executable, "-c", look], {"WHERE": "@MODEL@"})
    launch = prepare_command(agent, tmp_path)
    said = subprocess.run(launch.command, capture_output=True, text=True, timeout=SOON, check=True)
    seen = json.loads(said.stdout)
    assert seen["models"] > 0
    if launch.started["isolated"]:
        assert seen["nets"] == ["lo"]
        assert said.stderr == ""
    else:
        assert launch.started["obstacle"] in said.stderr, "it is said that the network is in reach"
    assert launch.left_running() == []


@pytest.mark.parametrize("end", ["stdin closed", "killed"])
def test_the_model_ends_with_the_agent(end: str, tmp_path: Path) -> None:
    """Without the help of whoever spawned it: no process group, no clean-up."""
    wait = "import sys; print('up', flush=True); sys.stdin.read()"
    agent = RealAgent("wait", lambda: [sys.executable, "-c", wait], {})
    launch = prepare_command(agent, tmp_path)
    with subprocess.Popen(launch.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"up\n"
        model = psutil.Process(process.pid).children()
        assert len(model) == 1
        if end == "killed":
            process.kill()
        else:
            process.stdin.close()
        process.wait(SOON)
        assert still_there(model, SOON) == []


@pytest.mark.parametrize("name", ["ours", "claude-agent-acp"])
def test_acpx_drives_an_agent(name: str, tmp_path: Path, real_agent: Prepared) -> None:
    """A real client, and a command line that any client can start."""
    try:
        client = acpx()
    except install.PeerUnavailable as reason:
        pytest.skip(f"acpx cannot be had: {reason}")
    command = WIRE_AGENT if name == "ours" else real_agent(name).command
    options = ["--cwd", str(tmp_path), "--approve-all", "--format", "json", "--timeout", str(SOON)]
    text = "permission" if name == "ours" else "TOOL"
    call = [*client, *options, "--agent", shlex.join(command), "exec", text]
    launch = prepare_command(RealAgent("acpx", lambda: call, {}), tmp_path / "acpx")
    said = subprocess.run(launch.command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    frames = [json.loads(line) for line in said.stdout.splitlines()]
    assert [frame["method"] for frame in frames if {"id", "method"} <= set(frame)] == [
        "initialize",
        "session/new",
        "session/prompt",
        "session/request_permission",
    ]
    [ended] = [frame for frame in frames if "stopReason" in frame.get("result", {})]
    assert ended["result"]["stopReason"] == "end_turn"
    updates = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
    assert [update["status"] for update in updates if update.get("status")][-1] == "completed"
    assert launch.left_running() == []
