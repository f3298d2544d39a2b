"""Clients of every make, each a voice that is told what to do: ours over WebSockets, those of the official
SDKs over WebSockets where they have them and otherwise over `antiphon acp`, and acpx over `antiphon acp`."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from antiphon.client import ClientSession, ClientTurn, Permission, Permissions
from tests.hub.running import ANTIPHON, Served
from tests.peers.agents import RealAgent, acpx, prepare_command
from tests.peers.test_interop import available, python_sdk, ts_sdk

DEADLINE = 60.0
"""Seconds for one step: real agents take their time to start."""
Seen = dict[str, Any]
"""One update in short: `kind`, and where it has them `text`, `status`, `toolCallId`."""


class Voice(ABC):
    """One client of one session."""

    def __init__(self, hub: Served, folder: Path) -> None:
        self.hub = hub
        self.folder = folder
        self.seen: list[Seen] = []
        self.asked = 0
        self._news = asyncio.Condition()

    @abstractmethod
    async def new(self, agent: str, cwd: Path) -> str: ...
    @abstractmethod
    async def join(self, session: str, cwd: Path) -> None: ...
    @abstractmethod
    async def prompt(self, text: str) -> None:
        """Begin a turn."""

    @abstractmethod
    async def ended(self) -> str:
        """How the turn ended, once it has."""

    @abstractmethod
    async def cancel(self) -> None: ...

    @abstractmethod
    async def allow(self) -> None:
        """Answer the question that it was asked."""

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE), self._news:
            await self._news.wait_for(condition)

    async def tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def hears(self, text: str, since: int) -> None:
        await self.until(lambda: text in said(self.seen[since:]))

    @abstractmethod
    async def aclose(self) -> None: ...


def said(seen: Sequence[Seen]) -> str:
    return "".join(each.get("text", "") for each in seen if each["kind"].startswith("agent_message"))


def order(seen: Sequence[Seen]) -> list[str]:
    """What an agent did, in the order in which it was read, whatever version it was written in: runs of text,
    and the steps of tool calls."""
    told: list[str] = []
    before = ""
    steps: dict[str, str] = {}
    for each in seen:
        kind, status, call = each["kind"], each.get("status"), each.get("toolCallId", "")
        if kind.startswith(("agent_message", "agent_thought")):
            speaker = kind.split("_")[1]
            if before == speaker:
                told[-1] += each.get("text", "")
            else:
                told.append(f"{speaker}: {each.get('text', '')}")
            before = speaker
        elif kind.startswith("tool_call") and (call not in steps or status not in (None, steps[call])):
            steps[call] = status or "pending"
            told.append(f"tool {steps[call]}")
            before = ""
    return told


class Ours(Voice):
    def __init__(self, hub: Served, folder: Path, **asked: Any) -> None:
        super().__init__(hub, folder)
        self._asked = asked
        self._allowed = asyncio.Event()
        self._read = 0
        self._open = AsyncExitStack()
        self.session: ClientSession
        self._turn: ClientTurn

    async def _connect(self) -> Any:
        return await self._open.enter_async_context(
            self.hub.client(answers=Permissions(ask=self._decide), **self._asked)
        )

    async def _decide(self, permission: Permission) -> Any:
        self.asked += 1
        await self.tell()
        await self._allowed.wait()
        return permission.allow()

    async def allow(self) -> None:
        self._allowed.set()

    async def new(self, agent: str, cwd: Path) -> str:
        client = await self._connect()
        self._follow(await client.new_session(str(cwd), agent=agent))
        return self.session.id

    async def join(self, session: str, cwd: Path) -> None:
        client = await self._connect()
        self._follow(await client.load_session(session, str(cwd)))

    def _follow(self, session: ClientSession) -> None:
        self.session = session
        events = session.events()
        task = asyncio.get_running_loop().create_task(self._watch(events))
        self._open.callback(task.cancel)

    async def _watch(self, events: AsyncIterator[Any]) -> None:
        async for event in events:
            self._read = event.seq
            if event.update is not None:
                self.seen.append(_describe(msgspec.to_builtins(event.update)))
            await self.tell()

    async def prompt(self, text: str) -> None:
        self._turn = await self.session.prompt(text)

    async def ended(self) -> str:
        async with asyncio.timeout(DEADLINE):
            end = await self._turn.drained()
        await self.until(lambda: self._read >= self.session.fold.last_seq)  # what is watched beside it
        return str(end.stop_reason)

    async def cancel(self) -> None:
        await self.session.cancel()

    async def aclose(self) -> None:
        await self._open.aclose()


def _describe(told: dict[str, Any]) -> Seen:
    seen: Seen = {"kind": told.get("sessionUpdate", "")}
    content = told.get("content") or []
    blocks = [content] if isinstance(content, dict) else content
    texts = [block["text"] for block in blocks if block.get("type") == "text"]
    if texts:
        seen["text"] = "".join(texts)
    return seen | {key: told[key] for key in ("status", "toolCallId", "state", "stopReason") if told.get(key)}


class Driven(Voice):
    """A client in a process of its own, which takes orders on its stdin (see tests/peers/README.md)."""

    def __init__(self, hub: Served, folder: Path, command: Sequence[str], *, websocket: bool = False) -> None:
        super().__init__(hub, folder)
        self._command = command
        self._websocket = websocket
        self._steps: list[Seen] = []
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None]

    async def _start(self, *acp: str) -> None:
        way = (
            [self.hub.acp]
            if self._websocket
            else ["--", *ANTIPHON, "acp", "--data", str(self.hub.folder), *acp]
        )
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            *way,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "ACP_TOKEN": self.hub.token},
            limit=1 << 24,
        )
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            step = json.loads(line)
            if step["step"] == "update":
                self.seen.append(step)
            elif step["step"] == "permission":
                self.asked += 1
            else:
                self._steps.append(step)
            await self.tell()

    async def _order(self, **order: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()

    async def _step(self, name: str) -> Seen:
        """The next of its steps, which is this one."""
        await self.until(lambda: bool(self._steps) and self._steps[0]["step"] != "initialize")
        step = self._steps.pop(0)
        assert step["step"] == name, step
        return step

    async def _initialized(self) -> None:
        await self.until(lambda: bool(self._steps))
        assert self._steps.pop(0)["step"] == "initialize"

    async def new(self, agent: str, cwd: Path) -> str:
        await self._start("--", agent)
        await self._initialized()
        await self._order(
            do="new", cwd=str(cwd), meta={"antiphon": {"agent": agent}} if self._websocket else None
        )
        return str((await self._step("session"))["sessionId"])

    async def join(self, session: str, cwd: Path) -> None:
        await self._start()
        await self._initialized()
        await self._order(do="join", session=session, cwd=str(cwd))
        await self._step("session")

    async def prompt(self, text: str) -> None:
        await self._order(do="prompt", text=text)

    async def ended(self) -> str:
        return str((await self._step("ended"))["stopReason"])

    async def cancel(self) -> None:
        await self._order(do="cancel")

    async def allow(self) -> None:
        await self._order(do="allow")

    async def aclose(self) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(DEADLINE):
            await self._reading
            assert await self._process.wait() == 0


class Acpx(Voice):
    """A run of acpx for each turn, all of them in the one session: `antiphon acp --session`."""

    def __init__(self, hub: Served, folder: Path) -> None:
        super().__init__(hub, folder)
        self._cwd = folder
        self._acp: list[str] = []
        self._runs = 0
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None]
        self._stop = ""

    async def new(self, agent: str, cwd: Path) -> str:
        async with self.hub.client() as client:
            session = await client.new_session(str(cwd), agent=agent)
        await self.join(session.id, cwd)
        return session.id

    async def join(self, session: str, cwd: Path) -> None:
        self._cwd = cwd
        self._acp = [*ANTIPHON, "acp", "--data", str(self.hub.folder), "--session", session]

    async def prompt(self, text: str) -> None:
        options = ["--cwd", str(self._cwd), "--approve-all", "--format", "json", "--timeout", str(DEADLINE)]
        call = [*acpx(), *options, "--agent", shlex.join(self._acp), "exec", text]
        self._runs += 1
        home = self.folder / f"acpx-{self._runs}"
        launch = prepare_command(RealAgent("acpx", lambda: call, {}), home)
        command = json.loads((home / "launch.json").read_text())
        self._process = await asyncio.create_subprocess_exec(
            *command["command"],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **command["env"]},
            cwd=launch.cwd,
            limit=1 << 24,
        )
        self._stop = ""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        asked = False
        async for line in self._process.stdout:
            frame = json.loads(line)
            asked = asked or frame.get("method") == "session/prompt"
            if frame.get("method") == "session/update" and asked:  # what came before is what was said earlier
                self.seen.append(_describe(frame["params"]["update"]))
            elif frame.get("method") == "session/request_permission":
                self.asked += 1
            elif "stopReason" in (frame.get("result") or {}):
                self._stop = frame["result"]["stopReason"]
            await self.tell()

    async def ended(self) -> str:
        assert self._process is not None
        async with asyncio.timeout(DEADLINE):
            _, errors = await self._reading, await self._process.communicate()
        assert self._stop, errors[1].decode()
        return self._stop

    async def cancel(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)

    async def allow(self) -> None:
        """It has (`--approve-all`)."""

    async def aclose(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.communicate()


CLIENTS: dict[str, Callable[[Served, Path], Voice]] = {
    "antiphon-v1": lambda hub, folder: Ours(hub, folder, version=1),
    "antiphon-v2": lambda hub, folder: Ours(hub, folder, version=2),
    "antiphon-proposed": lambda hub, folder: Ours(hub, folder, version="v2-proposed"),
    "python-sdk-v1": lambda hub, folder: Driven(hub, folder, python_sdk("driven.py")),
    "ts-sdk-v1": lambda hub, folder: Driven(hub, folder, [*ts_sdk("driven.mjs"), "1"], websocket=True),
    "ts-sdk-v2": lambda hub, folder: Driven(hub, folder, [*ts_sdk("driven.mjs"), "2"], websocket=True),
    "acpx": lambda hub, folder: available(acpx) and Acpx(hub, folder),
}


@asynccontextmanager
async def speaking(voice: Voice) -> AsyncIterator[Voice]:
    try:
        yield voice
    finally:
        await voice.aclose()
