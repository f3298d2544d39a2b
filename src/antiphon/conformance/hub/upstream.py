"""Upstream: the agents behind a hub that the judge starts. The judge plays each of them.

The hub starts a stand-in, which copies bytes to the judge. Every scenario has a folder of its own, and finds
the session that the hub made for it by that folder.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Any, Self

from msgspec import UNSET

from antiphon.conformance.client.program import STAND_IN
from antiphon.conformance.client.socket_transport import SocketTransport
from antiphon.conformance.link import Link, NotSeen
from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.transports.base import Transport

INFO = {"name": "antiphon-judge", "version": "1"}
OPTIONS = (
    {"optionId": "judge-allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "judge-reject", "name": "Reject", "kind": "reject_once"},
)
_prompts = count(1)


class Upstream:
    """Accepts the connections of stand-ins. `command` is what the hub starts as its agent."""

    def __init__(self, folder: Path, *, version: int, timeout: float) -> None:
        self.version = version
        self.links: list[Link] = []
        self._folder = folder
        self.timeout = timeout
        self._server: asyncio.Server
        self._sessions: dict[str, AgentSession] = {}
        self._added = asyncio.Event()

    @classmethod
    async def listen(cls, *, version: int, timeout: float) -> Self:
        # The folder belongs to this user alone, so nobody else can connect to the socket in it.
        self = cls(Path(tempfile.mkdtemp(prefix="judge-")), version=version, timeout=timeout)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._connect, self._folder / "agent")
        return self

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-I", "-S", str(STAND_IN), str(self._folder / "agent")]

    async def session(self, cwd: str) -> AgentSession:
        """Wait until the hub has made a session in a folder. Raises `NotSeen`."""
        try:
            async with asyncio.timeout(self.timeout):
                while True:
                    for session in reversed(self._sessions.values()):
                        if session.cwd == cwd:
                            return session
                    self._added.clear()
                    await self._added.wait()
        except TimeoutError:
            raise NotSeen("the hub made no session at the agent that the judge plays") from None

    async def aclose(self) -> None:
        self._server.close()
        for link in self.links:
            await link.aclose()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- one connection ----------------------------------------------------------------------------

    def _connect(self) -> asyncio.Protocol:
        transport = SocketTransport()
        return transport.protocol(lambda: self.accept(transport))

    def accept(self, transport: Transport) -> None:
        """Play the agent at the other end of a transport."""
        name = f"agent {len(self.links) + 1}"
        link = Link(transport, role=Role.AGENT, timeout=self.timeout, name=name)
        self.links.append(link)
        link.on_request("initialize", self._initialize)
        link.on_request("session/new", self._new_session)
        link.on_request("session/load", self._open_again)
        link.on_request("session/resume", self._open_again)
        link.on_request("session/list", self._list_sessions)
        link.on_request("session/close", lambda link, request: link.answer(request, {}))
        link.on_request("session/prompt", None)

    def _initialize(self, link: Link, request: RecordedFrame) -> None:
        asked = request.get("params", "protocolVersion")
        version = min(asked, self.version) if isinstance(asked, int) else self.version
        if version == 2:
            link.answer(request, {"protocolVersion": 2, "info": INFO, "capabilities": {"session": {}}})
        else:
            capabilities = {
                "loadSession": True,
                "sessionCapabilities": {"list": {}, "close": {}, "resume": {}},
            }
            result = {"protocolVersion": 1, "agentInfo": INFO, "agentCapabilities": capabilities}
            link.answer(request, {**result, "authMethods": []})

    def _new_session(self, link: Link, request: RecordedFrame) -> None:
        id = f"judge-session-{len(self._sessions) + 1}"
        self._sessions[id] = AgentSession(link, id, str(request.get("params", "cwd")), version=self.version)
        link.answer(request, {"sessionId": id})
        self._added.set()

    def _open_again(self, link: Link, request: RecordedFrame) -> None:
        """Load or resume a session: replay what is asked for, report the state, answer."""
        session = self._sessions.get(request.session_id)
        if session is None:
            link.refuse_session(request)
            return
        session.link = link
        if request.method == "session/load" or isinstance(request.get("params", "replayFrom"), dict):
            session.replay()
        if self.version == 2:
            session.send(state("running" if session.busy else "idle"))
        link.answer(request, {})
        self._added.set()

    def _list_sessions(self, link: Link, request: RecordedFrame) -> None:
        sessions = [{"sessionId": each.id, "cwd": each.cwd} for each in self._sessions.values()]
        link.answer(request, {"sessions": sessions})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def state(name: str, **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "state_update", "state": name, **fields}


class AgentSession:
    """One session, from the side of the agent."""

    def __init__(self, link: Link, id: str, cwd: str, *, version: int) -> None:
        self.link = link
        self.id = id
        self.cwd = cwd
        self.version = version
        self.busy = False
        self._messages: dict[tuple[str, str], list[dict[str, Any]]] = {}
        """The content of each message, by kind and id, in order."""

    async def prompt(self, *, after: RecordedFrame | None = None) -> RecordedFrame:
        """Wait for a prompt of the hub."""
        return await self.link.wait(
            lambda frame: frame.method == "session/prompt" and frame.session_id == self.id,
            "the prompt at the agent behind the hub", after=after,
        )  # fmt: skip

    def send(self, update: dict[str, Any], **params: Any) -> RecordedFrame:
        """Send an update."""
        return self.link.notify("session/update", {"sessionId": self.id, "update": update, **params})

    def accept(self, prompt: RecordedFrame) -> str:
        """Begin the turn of a prompt and return the id of its message. In v2 it is answered and echoed."""
        self.busy = True
        id = f"judge-prompt-{next(_prompts)}"
        content = prompt.get("params", "prompt")
        self._messages["user_message", id] = content
        if self.version == 2:
            self.link.answer(prompt, {"messageId": id})
            self.send({"sessionUpdate": "user_message", "messageId": id, "content": content})
            self.send(state("running"))
        return id

    def say(self, words: str, message: str, **fields: Any) -> RecordedFrame:
        """Send one chunk of a message."""
        block = text(words)
        self._messages.setdefault(("agent_message", message), []).append(block)
        return self.send(
            {"sessionUpdate": "agent_message_chunk", "messageId": message, "content": block, **fields}
        )

    def finish(self, prompt: RecordedFrame, reason: str = "end_turn") -> None:
        """End the turn of a prompt."""
        self.busy = False
        if self.version == 2:
            self.send(state("idle", stopReason=reason))
        else:
            self.link.answer(prompt, {"stopReason": reason})

    def ask(self) -> RecordedFrame:
        """Ask for a permission."""
        if self.version == 2:
            self.send(state("requires_action"))
            asked: dict[str, Any] = {"title": "May the judge go on?"}
        else:
            asked = {"toolCall": {"toolCallId": "judge-call", "title": "May the judge go on?"}}
        return self.link.request(
            "session/request_permission", {"sessionId": self.id, "options": list(OPTIONS), **asked}
        )

    async def answer(self, question: RecordedFrame) -> RecordedFrame:
        """Wait for the answer to a question, and go on with the turn."""
        answer = await self.link.response(question)
        if self.version == 2:
            self.send(state("running"))
        return answer

    def answers(self, question: RecordedFrame) -> list[RecordedFrame]:
        """Return every answer to a question so far."""
        return [
            frame for frame in self.link.since(question)
            if frame.is_response and frame.id == question.id and frame.result is not UNSET
        ]  # fmt: skip

    def replay(self) -> None:
        for (kind, id), content in self._messages.items():
            if self.version == 2:
                self.send({"sessionUpdate": kind, "messageId": id, "content": content})
                continue
            for block in content:
                self.send({"sessionUpdate": f"{kind}_chunk", "messageId": id, "content": block})
