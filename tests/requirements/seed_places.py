"""The places and dialects of `seeds.tsv`, and peers in raw JSON for each of them.

Places: `agent` is the agent library with a raw client in front of it; `client` is the client library with a
raw agent behind it; `hub` is a real hub with raw clients in front of it. Behind the hub stands the agent
library, spoken to in v1 or v2, or a raw agent.

A test that is decorated with `served` gets `place` and `dialect` and opens a `Stage` with them. A test that
is decorated with `read` opens `session_of`. `test_seeds.py` reads the places and dialects of a test from
these decorators.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.client import Client, ClientSession
from antiphon.hub import Hub
from antiphon.schema.version import OptIns
from tests.agent.talk import Talk, client
from tests.options import hub_options
from tests.requirements import agent_by_hand
from tests.requirements.agent_by_hand import AgentByHand

DEADLINE = 60.0
PLACES = ("agent", "client", "hub")
ASKED_IN_V1: dict[str, dict[str, Any]] = {
    "v1": {},
    "v1+turn_complete": {"turnComplete": True},
    "v1+lifecycle2": {"promptLifecycle": 2},
}
"""What a v1 client asks for under `_meta["antiphon"]` of its capabilities, by dialect."""
DIALECTS = (*ASKED_IN_V1, "v2", "proposed")
ANSWERED_AT_END = ("v1", "v1+turn_complete")
"""Dialects in which the answer to a prompt ends its turn."""
WITH_STATES = ("v1+lifecycle2", "v2", "proposed")
"""Dialects in which a prompt is answered once it is accepted, and states tell the end of a turn."""
V1S = tuple(ASKED_IN_V1)
V2S = ("v2", "proposed")


def served(*dialects: str, places: tuple[str, ...] = ("agent", "hub-v1", "hub-v2")) -> Callable[[Any], Any]:
    """Run a test with the agent library: directly, and behind a hub that speaks v1 or v2 with it."""
    return _run_in(places, dialects)


def read(*dialects: str) -> Callable[[Any], Any]:
    """Run a test with the client library."""
    return _run_in(("client",), dialects)


def _run_in(places: tuple[str, ...], dialects: tuple[str, ...]) -> Callable[[Any], Any]:
    unknown = set(dialects) - set(DIALECTS)
    assert dialects, "name the dialects"
    assert not unknown, f"unknown dialects: {unknown}"

    def decorate(test: Any) -> Any:
        test = pytest.mark.parametrize("dialect", dialects)(test)
        return pytest.mark.parametrize("place", places)(test)

    return decorate


def version_of(dialect: str) -> int:
    return 1 if dialect in ASKED_IN_V1 else 2


class Wire(Talk):
    """A raw client that knows where its dialect tells the end of a turn."""

    dialect: str

    @property
    def state_kind(self) -> str:
        return "state_change" if self.dialect == "proposed" else "state_update"

    async def new_session(self) -> str:
        return str((await self.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"])

    async def join(self, session: str, id: str = "join") -> dict[str, Any]:
        """Open a session with its history: `session/load`, or `session/resume` from the start."""
        params: dict[str, Any] = {"sessionId": session, "cwd": "/", "mcpServers": []}
        if version_of(self.dialect) == 1:
            return dict(await self.call(id, "session/load", **params))
        return dict(await self.call(id, "session/resume", **params, replayFrom={"type": "start"}))

    def updates_of(self, *kinds: str) -> list[dict[str, Any]]:
        return [update for update in self.updates() if update["sessionUpdate"] in kinds]

    def states(self) -> list[str]:
        return [str(update["state"]) for update in self.updates_of("state_update", "state_change")]

    async def state(self, state: str) -> dict[str, Any]:
        """The next update that tells this state."""
        return await self.update(self.state_kind, state=state)

    async def ended(self, id: Any) -> str:
        """The stop reason of a prompt's turn, once the dialect has told it."""
        answer = await self.answer_to(id)
        assert "result" in answer, answer
        if self.dialect in ANSWERED_AT_END:
            return str(answer["result"]["stopReason"])
        behind = self.seen.index(answer)
        while True:
            for frame in self.seen[behind:]:
                update = frame.get("params", {}).get("update", {})
                if update.get("sessionUpdate") == self.state_kind and update["state"] == "idle":
                    return str(update.get("stop_reason") or update.get("stopReason"))
            await self.until(lambda _: True)

    async def everything(self, id: str = "everything") -> None:
        """Wait until whatever was sent before has been handled: an unknown method is answered last."""
        self.send(id=id, method="_everything")
        await self.answer_to(id)

    async def play(self, session: str, *texts: str) -> list[str]:
        """Prompt several times, one turn after another; the stop reasons."""
        reasons = []
        for text in texts:
            id = f"play-{text}"
            self.prompt(id, session, text)
            reasons.append(await self.ended(id))
        return reasons

    def words(self) -> list[tuple[str, str]]:
        """The messages as a reader shows them: role and text, in order, by their ids."""
        return [(role, text) for role, _, text in self.messages()]

    def messages(self) -> list[tuple[str, str | None, str]]:
        """Role, id and text of each message; without an id, another role begins another message."""
        found: list[tuple[str, str | None, str]] = []
        for update in self.updates():
            role, _, kind = update["sessionUpdate"].partition("_")
            if role not in ("user", "agent") or "message" not in kind:
                continue
            content = update.get("content") or []
            blocks = content if isinstance(content, list) else [content]
            text = "".join(block.get("text", "") for block in blocks)
            id = update.get("messageId")
            at = [n for n, (r, i, _) in enumerate(found) if (r, i) == (role, id) and id is not None]
            if at and kind.endswith("chunk"):
                found[at[0]] = (role, id, found[at[0]][2] + text)
            elif at:
                found[at[0]] = (role, id, text)
            else:
                found.append((role, id, text))
        return found


def offers(dialect: str) -> dict[str, Any]:
    """What a raw client of a dialect adds to its `initialize`."""
    if dialect in ASKED_IN_V1:
        return {"clientCapabilities": {"_meta": {"antiphon": ASKED_IN_V1[dialect]}}}
    return {"_meta": {"antiphon": {"dialect": "proposed"}}} if dialect == "proposed" else {}


class Stage:
    """What raw clients connect to."""

    def __init__(self, front: Agent | Hub, place: str) -> None:
        self.front = front
        self.place = place

    @asynccontextmanager
    async def client(self, dialect: str, **initialize: Any) -> AsyncIterator[Wire]:
        async with client(self.front, version_of(dialect), **{**offers(dialect), **initialize}) as talk:
            talk.__class__ = Wire
            assert isinstance(talk, Wire)
            talk.dialect = dialect
            yield talk

    @asynccontextmanager
    async def session(self, dialect: str) -> AsyncIterator[tuple[Wire, str]]:
        async with self.client(dialect) as wire:
            yield wire, await wire.new_session()


@asynccontextmanager
async def staged(place: str, agent: Any, **options: Any) -> AsyncIterator[Stage]:
    """The agent itself, or a hub in front of it that speaks v1 or v2 with it."""
    async with asyncio.timeout(DEADLINE):
        if place == "agent":
            yield Stage(agent, place)
            return
        hub = Hub({"agent": agent}, version=int(place[-1]), **hub_options(**options))
        async with hub.serving():
            yield Stage(hub, place)


OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
CONFIRMED: dict[str, dict[str, Any]] = {
    dialect: {**agent_by_hand.ALL_V1, "_meta": {"antiphon": asked}} for dialect, asked in ASKED_IN_V1.items()
}
"""The capabilities of a raw v1 agent that confirms what its client asked for."""


class Script:
    """A raw agent that tells the beginning and the end of a turn as its dialect has them."""

    def __init__(self, agent: AgentByHand, session: ClientSession, dialect: str) -> None:
        self.agent = agent
        self.session = session
        self.dialect = dialect

    def state(self, state: str, **fields: Any) -> None:
        kind = "state_change" if self.dialect == "proposed" else "state_update"
        self.agent.update(self.session, kind, state=state, **fields)

    def tool(self, id: str, **fields: Any) -> None:
        """Tell a tool call for the first time."""
        kind = "tool_call" if version_of(self.dialect) == 1 else "tool_call_update"
        self.agent.update(self.session, kind, toolCallId=id, title="Look", **fields)

    def asks(self) -> str:
        """Ask for a permission about the tool call `t`."""
        call = {"toolCallId": "t", "title": "Look"}
        about: dict[str, Any] = {"toolCall": call}
        if version_of(self.dialect) == 2:
            about = {"title": "May I?", "subject": {"type": "tool_call", "toolCall": call}}
        return self.agent.ask("session/request_permission", sessionId="s", options=OPTIONS, **about)

    def says(self, words: str, id: str = "a1") -> None:
        self.agent.says(self.session, words, messageId=id)

    async def accept(self, words: str, id: str = "u1") -> dict[str, Any]:
        """Take the next prompt: nothing in v1; the answer, its message and `running` otherwise."""
        request = await self.agent.request("session/prompt")
        if self.dialect in WITH_STATES:
            self.agent.answer(request, {} if self.dialect == "proposed" else {"messageId": id})
            content = [agent_by_hand.text(words)]
            self.agent.update(self.session, "user_message", messageId=id, content=content)
            self.state("running")
        return request

    def end(self, request: dict[str, Any], reason: str = "end_turn", **fields: Any) -> None:
        """End the turn of a prompt that was accepted."""
        if self.dialect == "v1+turn_complete":
            named = {"promptRequestId": str(request["id"]), "stopReason": reason}
            self.agent.update(self.session, "turn_complete", **named)
        if self.dialect in ANSWERED_AT_END:
            self.agent.answer(request, {"stopReason": reason, **fields})
        else:
            key = "stop_reason" if self.dialect == "proposed" else "stopReason"
            self.state("idle", **{key: reason}, **fields)


@asynccontextmanager
async def client_of(dialect: str, **options: Any) -> AsyncIterator[tuple[Client, AgentByHand]]:
    """The client library, connected to a raw agent of a dialect."""
    opt_ins = OptIns.from_meta({**ASKED_IN_V1.get(dialect, {}), "messageUpdate": True})
    if dialect in ASKED_IN_V1:
        async with agent_by_hand.opened(1, CONFIRMED[dialect], opt_ins=opt_ins, **options) as opened:
            yield opened
    else:
        only = "v2-proposed" if dialect == "proposed" else 2
        async with agent_by_hand.opened(2, only=only, **options) as opened:
            yield opened


@asynccontextmanager
async def session_of(dialect: str, **options: Any) -> AsyncIterator[Script]:
    """The same with a session."""
    async with client_of(dialect, **options) as (client, agent):
        yield Script(agent, await agent.new_session(client), dialect)
