"""Bytes that are made once for many clients: nobody can tell, whatever the dialect and wherever it joined."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.talk import INFO
from tests.engine.journals import (
    chunk,
    events,
    facts,
    messages,
    plans,
    prompts,
    questions,
    state,
    states,
    strangers,
    terminals,
    text,
    tools,
    update,
)

from antiphon.agent import Agent, AgentTurn
from antiphon.engine.events import AnyBody, Updated
from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.live.runs import Envelope, split
from antiphon.transports.base import OUTBOX_HIGH, Inbox
from antiphon.transports.memory import MemoryTransport
from antiphon.transports.pipes import join_lines
from antiphon.transports.websocket import text_frames

DEADLINE = 60.0
LAST = "the last of it"

CLIENTS: dict[str, tuple[int, dict[str, Any]]] = {
    "v1": (1, {}),
    "v1 turn_complete": (1, {"turnComplete": True, "messageUpdate": True}),
    "v1 lifecycle": (1, {"promptLifecycle": 2}),
    "v1 numbered": (1, {"seq": True, "messageUpdate": True}),
    "v2": (2, {}),
    "v2 numbered": (2, {"seq": True, "queueUpdates": True}),
    "proposed": (2, {"dialect": "proposed"}),
    "proposed numbered": (2, {"dialect": "proposed", "seq": True}),
}


class Framed(MemoryTransport):
    """A memory transport on which frames stand as lines, so that they can be prepared for many."""

    framing = staticmethod(join_lines)  # type: ignore[assignment]
    prepared = 0

    def send_framed(self, data: bytes) -> None:
        if self._outbox.flush_before_write():
            frames = data.split(b"\n")[:-1]
            self.prepared += len(frames)
            self._write(frames)


class Client:
    """Keeps the frames it gets, byte for byte."""

    def __init__(self, *, framed: bool) -> None:
        kind = Framed if framed else MemoryTransport
        self.ours = kind(bound=DEFAULT_BOUND, high=OUTBOX_HIGH)
        self.theirs = MemoryTransport(bound=DEFAULT_BOUND, high=OUTBOX_HIGH)
        self.ours._other, self.theirs._other = self.theirs, self.ours
        self._inbox = Inbox(self.theirs)
        self.frames: list[bytes] = []

    async def call(self, method: str, **params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self.theirs.send(msgspec.json.encode(request))
        answer = await self.until(f'"id":"{method}"')
        return msgspec.json.decode(answer)["result"]

    async def until(self, word: str) -> bytes:
        async with asyncio.timeout(DEADLINE):
            while True:
                for frame in self.frames:
                    if word.encode() in frame:
                        return frame
                self.frames += [bytes(frame) for frame in await self._inbox.take()]  # type: ignore[arg-type]


async def joined(agent: Agent, session_id: str, kind: str, stack: AsyncExitStack, *, framed: bool) -> Client:
    version, asked = CLIENTS[kind]
    client = Client(framed=framed)
    serving = asyncio.ensure_future(agent.serve(client.ours))

    async def leave() -> None:
        await client.theirs.aclose()
        await serving

    stack.push_async_callback(leave)
    meta = {"_meta": {"antiphon": asked}}
    shape = (
        {"clientInfo": INFO, "clientCapabilities": meta}
        if version == 1
        else {"info": INFO, "capabilities": meta, **meta}
    )
    await client.call("initialize", protocolVersion=version, **shape)
    method = "session/load" if version == 1 else "session/resume"
    await client.call(method, sessionId=session_id, cwd="/", mcpServers=[])
    return client


async def told(steps: list[tuple[AnyBody, str]], kinds: list[str]) -> dict[str, tuple[Client, Client]]:
    """Clients that were told these steps, each kind twice: by itself, and prepared. With a step comes what is
    done before it: `commit`, or `join` for everybody to join once more."""
    agent = Agent("told")

    @agent.on_prompt
    async def nothing(turn: AgentTurn) -> None: ...

    clients: dict[str, tuple[Client, Client]] = {}
    async with agent.serving(), AsyncExitStack() as stack:
        opener = Client(framed=False)
        serving = asyncio.ensure_future(agent.serve(opener.ours))
        await opener.call("initialize", protocolVersion=2, info=INFO, capabilities={})
        opened = await opener.call("session/new", cwd="/", mcpServers=[])
        session_id = opened["sessionId"]
        session = agent.find(session_id)
        assert session is not None
        live = session.live

        async def join(name: str) -> None:
            for kind in kinds:
                pair = [await joined(agent, session_id, kind, stack, framed=way) for way in (False, True)]
                clients[f"{kind} {name}"] = pair[0], pair[1]

        await join("at first")
        for number, (body, before) in enumerate(steps):
            if before == "join":
                await join(f"at {number}")
            elif before == "commit":
                await live.durable()
            live.emit([body])
        await live.durable()
        live.emit([chunk("end", LAST)])
        for one, other in clients.values():
            await one.until(LAST)
            await other.until(LAST)
        await opener.theirs.aclose()
        await serving
    return clients


BODIES = st.one_of(
    messages(),
    st.builds(chunk, st.sampled_from(["a", "b"]), st.text(max_size=3)),
    st.builds(chunk, st.sampled_from(["a", "b"]), st.text(max_size=3)),
    tools(),
    terminals(),
    plans(),
    facts(),
    states(),
    prompts().filter(lambda body: getattr(body, "sender", None) is None),
    questions().filter(lambda body: getattr(body, "by", None) is None),
    strangers(),
)
STEPS = st.lists(
    st.tuples(BODIES, st.sampled_from(["", "", "", "commit", "commit", "join"])), min_size=8, max_size=40
)


@given(steps=STEPS, kinds=st.lists(st.sampled_from(sorted(CLIENTS)), min_size=1, max_size=3, unique=True))
def test_what_is_prepared_for_many_is_what_each_would_get_alone(
    steps: list[tuple[AnyBody, str]], kinds: list[str]
) -> None:
    for kind, (alone, prepared) in asyncio.run(told(steps, kinds)).items():
        assert prepared.frames == alone.frames, kind


@pytest.mark.parametrize("kind", CLIENTS)
async def test_a_stream_is_prepared_for_every_kind_of_client(kind: str) -> None:
    said: list[tuple[AnyBody, str]] = [(chunk("m", f"{n}"), "") for n in range(50)]
    steps = [(state("running"), ""), *said, (state("idle"), "")]
    for alone, prepared in (await told(steps, [kind])).values():
        assert prepared.frames == alone.frames
        assert isinstance(prepared.ours, Framed)
        assert prepared.ours.prepared == 51


async def test_a_text_that_is_more_than_its_words_counts_as_what_it_is() -> None:
    """A v1 client is shown a message that changes only where it is another one by that."""
    steps: list[tuple[AnyBody, str]] = [
        (chunk("m", "a"), ""),
        (update("agent_message_chunk", messageId="m", content=text("b", _meta={"k": 1})), ""),
        (chunk("m", "c"), ""),
        (update("agent_message", messageId="m", content=[text("abc")]), "commit"),
    ]
    for alone, prepared in (await told(steps, ["v1", "v1 turn_complete"])).values():
        assert prepared.frames == alone.frames


def test_a_run_is_one_message_or_one_type_and_never_a_state() -> None:
    told = events(
        chunk("m", "a"),
        chunk("m", "b"),
        chunk("n", "c"),
        update("agent_message_chunk", messageId="n", content=text("d", _meta={"k": 1})),
        update("agent_message_chunk", messageId="n", content=text("e", _meta={"k": 1})),
        update("tool_call_update", toolCallId="t", title="T"),
        update("tool_call_update", toolCallId="u", title="U"),
        state("running"),
        update("_antiphon_queue", entries=[]),
        chunk("m", "f"),
    )
    runs = split(told)
    assert [len(run.events) for run in runs] == [2, 1, 1, 1, 2, 2, 1]
    assert [run.update is None for run in runs] == [False, False, False, False, False, True, False]
    assert runs[0].update == chunk("m", "ab").update
    assert [event for run in runs for event in run.events] == told


def test_a_run_is_framed_once_for_each_kind_of_link() -> None:
    run = split(events(chunk("m", "a"), chunk("m", "b")))[0]
    lines = Envelope(join_lines, b"<", b">", False)
    raws = [bytes(event.body.raw) for event in run.events if isinstance(event.body, Updated)]
    assert run.framed(lines) == b"".join(b"<%b>\n" % raw for raw in raws)
    assert run.framed(lines) is run.framed(Envelope(join_lines, b"<", b">", False))
    numbered = run.framed(Envelope(join_lines, b"<", b">", True))
    assert numbered.splitlines()[1] == b'<%b,"_meta":{"antiphon":{"seq":2}}>' % raws[1]
    in_frames = run.framed(Envelope(text_frames, b"<", b">", False))
    assert in_frames == text_frames([b"<%b>" % raw for raw in raws])
