"""What a driven agent is watched with: its wire, what it said, and what of that is compared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

from antiphon.client import (
    Client,
    ClientOptions,
    ClientSession,
    ClientTurn,
    Permission,
    Permissions,
    ProcessOptions,
    SessionEvent,
    TurnEnd,
    connect,
)
from antiphon.engine.transcript import Message
from antiphon.jsonrpc.lines import Received
from antiphon.schema.v2.permissions import PermissionOption
from tests.peers.agents import Launch

DEADLINE = 180.0
"""For a whole conversation: it starts a real agent up to three times."""
SOON = 60.0
"""What `SLOW` would take without a cancel is 30 seconds."""
QUIET = 0.3
"""Once in a run, so long is listened for what comes behind the last turn: nobody can say that it will not."""
Frame = dict[str, Any]


@dataclass(frozen=True)
class Words:
    """What is said to an agent, and what it then says itself."""

    hello: str
    answer: str
    tool: str
    allowed: str
    """What it says, among other things, when the tool was allowed."""
    slow: str
    begun: str
    """What it has said when it is in the middle of `slow`."""
    makes: bool = True
    """Whether the tool makes the file `made-by-tool.txt`."""


MODEL = Words(
    hello="hello there",
    answer="Hello from the fake LLM. You said: hello there",
    tool="TOOL",
    allowed="Tool said",
    slow="SLOW",
    begun="slow-1",
)


@dataclass(frozen=True)
class Case:
    """An agent, the version that is spoken with it, and how it is asked for that."""

    agent: str
    words: Words = MODEL
    version: int = 1
    ask: dict[str, Any] = field(default_factory=dict)
    keeps: bool = True
    """Whether a session outlives the process."""


class OpenQuestion:
    """Somebody who is asked, and does not answer."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.withdrawn = False

    async def __call__(self, permission: Permission) -> PermissionOption | None:
        self.asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.withdrawn = True
        raise AssertionError("unreachable")


def told(messages: Iterable[Message]) -> list[tuple[str, str]]:
    return [(str(message.role), message.text.strip()) for message in messages]


# --- what is watched --------------------------------------------------------------------------------------


class Wire:
    """All frames of a run, in order, as the tap saw them."""

    def __init__(self) -> None:
        self.frames: list[tuple[str, Frame]] = []

    def tap(self, direction: str, frame: Received) -> None:
        assert isinstance(frame, bytes), f"not a frame: {frame!r}"
        self.frames.append((direction, json.loads(frame)))

    def updates(self, session: str, since: int = 0, until: int | None = None) -> list[Frame]:
        return [
            frame["params"]["update"]
            for way, frame in self.frames[since:until]
            if frame.get("method") == "session/update" and frame["params"]["sessionId"] == session
        ]

    def kinds(self, *, until: int) -> list[str]:
        return [
            frame["params"]["update"]["sessionUpdate"]
            for way, frame in self.frames[:until]
            if frame.get("method") == "session/update"
        ]

    def sent(self, method: str) -> int:
        """Where the last call of a method is."""
        calls = (at for at, (way, frame) in enumerate(self.frames) if frame.get("method") == method)
        return max(calls, default=0)

    def answer(self, method: str) -> int:
        """Where the answer to the last call of a method is."""
        call = self.frames[self.sent(method)][1]["id"]
        answers = (at for at, (way, frame) in enumerate(self.frames) if way == "in" and is_answer(frame))
        return next(at for at in answers if self.frames[at][1]["id"] == call and at > self.sent(method))

    def idle(self, since: int) -> int:
        """Where an agent of v2 first says that it is idle."""
        for at, (_, frame) in enumerate(self.frames[since:], since):
            if frame.get("method") == "session/update":
                update = frame["params"]["update"]
                if update["sessionUpdate"] in STATES and update["state"] == "idle":
                    return at
        raise AssertionError("it never was")

    def beginning(self, since: int) -> int:
        """Where an agent of v2 first speaks of a turn."""
        for at, (_, frame) in enumerate(self.frames[since:], since):
            if frame.get("method") == "session/update":
                update = frame["params"]["update"]
                if update["sessionUpdate"] in STATES or update["sessionUpdate"].startswith("user_message"):
                    return at
        raise AssertionError("it never does")

    def turn_complete(self, since: int) -> int:
        """Where a v1 agent that does so says that the turn is complete."""
        for at, (_, frame) in enumerate(self.frames[since:], since):
            if frame.get("params", {}).get("update", {}).get("sessionUpdate") == "turn_complete":
                return at
        return 0

    def names_messages(self, session: str, since: int) -> bool:
        """Whether the agent gives its messages ids."""
        chunks = (
            each for each in self.updates(session, since) if each["sessionUpdate"].startswith("agent_message")
        )
        named = {bool(each.get("messageId")) for each in chunks}
        assert len(named) == 1
        return named.pop()

    def chosen(self) -> list[str]:
        """How permission requests were answered: the kind of the option that was chosen, or `cancelled`."""
        asked: dict[Any, Frame] = {}
        chosen = []
        for way, frame in self.frames:
            if way == "in" and frame.get("method") == "session/request_permission":
                asked[frame["id"]] = {each["optionId"]: each["kind"] for each in frame["params"]["options"]}
            elif way == "out" and is_answer(frame) and frame["id"] in asked:
                outcome = frame["result"]["outcome"]
                options = asked.pop(frame["id"])
                chosen.append(options[outcome["optionId"]] if "optionId" in outcome else outcome["outcome"])
        return chosen

    def chunks_behind_an_answer(self) -> list[Frame]:
        """Message chunks that came while no prompt was open."""
        open_prompts: set[Any] = set()
        late = []
        for way, frame in self.frames:
            if frame.get("method") == "session/prompt":
                open_prompts.add(frame["id"])
            elif way == "in" and is_answer(frame):
                open_prompts.discard(frame["id"])
            elif frame.get("method") == "session/update" and not open_prompts:
                late.append(frame["params"]["update"])
        return [update for update in late if update["sessionUpdate"].endswith("_chunk")]

    def asked_by_agent(self) -> set[str]:
        return {
            frame["method"] for way, frame in self.frames if way == "in" and {"id", "method"} <= set(frame)
        }

    def check(self) -> None:
        """Every request of the agent's was answered, once."""
        asked = [frame["id"] for way, frame in self.frames if way == "in" and {"id", "method"} <= set(frame)]
        answered = [frame["id"] for way, frame in self.frames if way == "out" and is_answer(frame)]
        assert sorted(answered, key=str) == sorted(asked, key=str)


@dataclass
class Said:
    """A turn, as it was on the line behind `drained()`."""

    session: ClientSession
    turn: ClientTurn
    end: TurnEnd
    text: str
    messages: list[Message]
    events: list[SessionEvent]

    def tool_calls(self) -> set[str]:
        """The statuses, now, of the tool calls of this turn."""
        ids = {getattr(event.update, "tool_call_id", None) for event in self.events} - {None}
        assert ids
        return {str(call.status) for call in self.session.tool_calls if call.id in ids}


class Watched:
    """A session, and everything that is seen of it."""

    def __init__(self, session: ClientSession, wire: Wire, version: int) -> None:
        self.session = session
        self.events: list[SessionEvent] = []
        self.turns: list[Said] = []
        self.by_itself: ClientTurn | None = None
        """A turn that the agent opened."""
        self.killed: ClientTurn | None = None
        """A turn in which the agent was killed."""
        self._wire = wire
        self._version = version
        self._over = 0
        """Where the last turn was over."""
        self.left: int | None = None
        """Where the session was opened again, as another object."""
        self._news = asyncio.Condition()
        self._begun = len(wire.updates(session.id))
        self._watching = asyncio.create_task(self._watch(session.events()))

    async def say(self, text: str, during: Callable[[ClientTurn], Awaitable[None]] | None = None) -> Said:
        """A turn, and what the library has of it when it says that it is drained."""
        wire, session = self._wire, self.session
        sent = len(wire.frames)
        turn = await session.prompt(text)
        live = asyncio.create_task(collected(turn.messages()))
        if during is not None:
            await during(turn)
        async with asyncio.timeout(SOON):
            end = await turn.drained()
        # Nothing below here waits for anything: this is what a program finds on its next line.
        applied = session.fold.last_seq
        said = Said(
            session,
            turn,
            end,
            turn.text,
            await collected(turn.messages()),
            await collected(turn.events()),
        )
        assert session.turn is None
        assert session.state == "idle"

        # The drained barrier: all that came before the end has been applied, in order, and nothing else.
        if self._version == 1:
            begun, over = sent, max(wire.answer("session/prompt"), wire.turn_complete(sent))
        else:
            begun, over = wire.beginning(sent), wire.idle(sent)
        heard = gists(self._version, (event.update for event in said.events))
        came = gists(self._version, wire.updates(session.id, begun, over + 1))
        came = [each for each in came if each[0] not in BESIDE]
        assert heard[-len(came) :] == came
        if heard != came:  # only what was on its way into the fold when the prompt was sent
            waited = gists(self._version, wire.updates(session.id, self._over, begun))
            waited = [each for each in waited if each[0] not in BESIDE]
            assert self._version == 1
            assert heard[: -len(came)] == waited[len(came) - len(heard) :]
        self._over = over + 1
        spoken = "".join(message.text for message in said.messages if message.role == "agent")
        assert spoken == "".join(map(agent_text, wire.updates(session.id, begun, over)))
        assert all(event.turn is turn for event in said.events)
        assert said.events[-1].seq <= applied
        assert said.events[-1].update is not None
        assert getattr(said.events[-1].update, "state", None) == "idle", "the end is the last of it"

        assert await live == said.messages, "whoever watched from the beginning saw the same"
        self.turns.append(said)
        return said

    @property
    def caught_up(self) -> bool:
        """Whether all has been seen that is in the fold."""
        return self.events[-1].seq == self.session.fold.last_seq

    async def quiet(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET):
                await self.until(lambda: False)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._news:
            await self._news.wait_for(condition)

    async def _watch(self, events: AsyncIterator[SessionEvent]) -> None:
        async for event in events:
            self.events.append(event)
            async with self._news:
                self._news.notify_all()

    async def check(self) -> None:
        """The link has ended: nothing was lost or doubled, and each event was told whose it is."""
        async with asyncio.timeout(5):
            await self._watching  # it ends with the link
        assert all(before.seq < after.seq for before, after in pairwise(self.events))
        updates = self._wire.updates(self.session.id, until=self.left)
        calls = {None, *(update.get("toolCallId") for update in updates)}
        # A tool call that the agent only ever asked about is ended by the library, when the link has ended.
        heard = (event.update for event in self.events)
        seen = gists(self._version, (each for each in heard if getattr(each, "tool_call_id", None) in calls))
        sent = gists(self._version, updates)
        missed = len(sent) - len(seen)
        assert sent[missed:] == seen
        assert missed <= self._begun, "all that came since it was watched"
        for said in self.turns:
            assert await collected(said.turn.events()) == said.events, "nothing of the turn after it"
        belongs = {event.seq: said.turn for said in self.turns for event in said.events}
        for event in self.events:
            if event.turn is not None and event.turn in (self.by_itself, self.killed):
                continue
            if event.turn is not belongs.get(event.seq):
                # At v2 the message may come before the answer that tells whose it is: the turn knows, who
                # watched the session could not.
                assert event.turn is None
                assert gist(event.update)[0] in ("user_message", "user_message_chunk")
                assert self._version == 2


async def collected(source: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in source]


class Drive:
    """One run of an agent."""

    def __init__(self, case: Case, launch: Launch, client: Client, wire: Wire) -> None:
        self.case = case
        self.launch = launch
        self.client = client
        self.wire = wire
        self.watched: list[Watched] = []

    def watch(self, session: ClientSession) -> Watched:
        for before in self.watched:
            if before.session.id == session.id:
                before.left = max(map(self.wire.sent, ("session/load", "session/resume")))
        watched = Watched(session, self.wire, self.case.version)
        self.watched.append(watched)
        return watched

    def made(self) -> bool:
        """Whether the tool ran since this was asked last."""
        made = self.launch.cwd / "made-by-tool.txt"
        there = made.exists()
        made.unlink(missing_ok=True)
        return there


@asynccontextmanager
async def driving(case: Case, launch: Launch) -> AsyncIterator[Drive]:
    """Start the agent, and at the end look at everything that was there to see."""
    wire = Wire()
    policy = Permissions(allow=["execute", "edit", "other"])
    async with asyncio.timeout(DEADLINE):
        connecting = connect(
            launch.command,
            answers=policy,
            process=ProcessOptions(cwd=launch.cwd),
            options=ClientOptions(tap=wire.tap),
            **case.ask,
        )
        async with connecting as client:
            assert client.agreement.version == case.version
            assert ("proposed" in str(client.agreement.dialect)) == (case.ask.get("version") == "v2-proposed")
            if case.version == 1:
                assert client.abilities.listing == launch.agent.lists
            drive = Drive(case, launch, client, wire)
            yield drive
        wire.check()
        assert wire.asked_by_agent() <= {"session/request_permission"} | launch.agent.own_requests
        for watched in drive.watched:
            await watched.check()


# --- what is compared -------------------------------------------------------------------------------------

STATES = ("state_update", "state_change")
V2_NAMES = {"tool_call": "tool_call_update", "plan": "plan_update", "state_change": "state_update"}
BESIDE = ("_antiphon_queue", "_antiphon_presence", "_antiphon_question")
"""What is of the session and of no turn, whenever it comes."""
OURS_AT_V1 = ("state_update", "user_message", "turn_complete")
"""At v1 the library tells the state and the prompts by itself, and takes the end of a turn for itself."""


def gist(update: Any) -> tuple[Any, ...]:
    """What is the same of an update on the wire and of what the library makes of it."""
    raw = update if isinstance(update, dict) else msgspec.to_builtins(update)
    kind = V2_NAMES.get(raw["sessionUpdate"], raw["sessionUpdate"])
    content = raw.get("content")
    if isinstance(content, dict) and "text" in content:
        return kind, content["text"]
    return kind, raw.get("toolCallId"), raw.get("state"), raw.get("status")


def gists(version: int, updates: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Of all that the agent told. That a cancel ends the tool calls is told by the library, at once."""
    found = [gist(update) for update in updates if update is not None]
    ours = OURS_AT_V1 if version == 1 else ()
    return [each for each in found if each[0] not in ours and each[-1] != "cancelled"]


def agent_text(update: Frame) -> str:
    """What the agent says in an update."""
    if not update["sessionUpdate"].startswith("agent_message"):
        return ""
    content = update["content"]
    return "".join(block["text"] for block in (content if isinstance(content, list) else [content]))


def is_answer(frame: Frame) -> bool:
    return "id" in frame and "method" not in frame
