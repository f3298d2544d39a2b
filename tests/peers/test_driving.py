"""The client library drives real agents: a conversation, a restart, cancels; each watched from both sides.

What an agent sent is read from a tap, what the library made of it from `session.events()`, `turn.events()`
and the fold, and the two are compared: `Watched.say` at each `drained()`, `Watched.check` at the end.

`agents.py` says how the agents are started and what is expected of each. All take the same conversation, said
in the words that each understands; most of the time goes into starting, so there are two runs of each.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from antiphon.client import (
    Client,
    ClientSession,
    ClientTurn,
    Permission,
    Permissions,
    SessionEvent,
    TurnEnd,
    connect,
)
from antiphon.engine.transcript import Message
from antiphon.errors import LocalError
from antiphon.jsonrpc.lines import Received
from antiphon.schema.v2.permissions import PermissionOption
from tests.peers.agents import AGENTS, Launch, still_there

DEADLINE = 60.0
SOON = 20.0
"""What `SLOW` would take without a cancel is 30 seconds."""
QUIET = 0.3
"""Once in a run, so long is listened for what comes behind the last turn: nobody can say that it will not."""

Prepared = Callable[[str], Launch]
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
SDK = Words(
    hello="hello there",
    answer="hello there",
    tool="permission",
    allowed="permission: yes",
    slow="wait",
    begun="waiting",
    makes=False,
)
REHEARSAL = Words(
    hello="stream 1",
    answer="Sentence 1 of 1, sung by one voice and heard by many.",
    tool="run touch made-by-tool.txt",
    allowed="It ended with code 0.",
    slow="stream 100000",
    begun="Sentence 2 of 100000",
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


CASES = {
    # Without a version the newest is used that the agent speaks: the shape of the answer tells which.
    **{name: Case(name) for name in AGENTS if name != "claude-agent-acp"},
    "claude-agent-acp-v1": Case("claude-agent-acp", ask={"version": 1}),
    "claude-agent-acp-v2": Case("claude-agent-acp", version=2),
    "sdk-python-v1": Case("sdk-python", SDK, keeps=False),
    "sdk-ts-v1": Case("sdk-ts", SDK, keeps=False),
    "sdk-ts-v2": Case("sdk-ts-v2", SDK, version=2, keeps=False),
    "rehearse-v1": Case("rehearse", REHEARSAL, ask={"version": 1}),
    "rehearse-v2": Case("rehearse", REHEARSAL, version=2),
    "rehearse-proposed": Case("rehearse", REHEARSAL, version=2, ask={"dialect": "v2-proposed"}),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_conversation_a_restart_and_cancels(
    name: str, real_agent: Prepared, caplog: pytest.LogCaptureFixture
) -> None:
    case = CASES[name]
    launch = real_agent(case.agent)
    async with driving(case, launch) as drive:
        watched = await a_session(drive)
        await text(drive, watched)
        await tools(drive, watched)
        await listed(drive, watched)
        await watched.quiet()
    await gone(launch)

    async with driving(case, launch) as drive:
        again = await reopened(drive, watched.session)
        await cancels(drive, again)
        await text(drive, again)
    await gone(launch)

    told = [f"{record.name}: {record.getMessage()}" for record in caplog.records if is_trouble(record)]
    assert told == [], "an agent that does what agents do is nothing to warn about"


REHEARSALS = [name for name in CASES if name.startswith("rehearse")]


@pytest.mark.parametrize("name", REHEARSALS)
async def test_what_comes_behind_a_turn(name: str, real_agent: Prepared) -> None:
    """No other agent here is sure to say something behind its answer. This one reports on background work,
    then it speaks by itself: at v2 in a turn of its own, at v1, where nothing tells its end, in none."""
    case = CASES[name]
    async with driving(case, real_agent(case.agent)) as drive:
        watched = await a_session(drive)
        turn = (await watched.say("timer 1")).turn
        rung = "The timer of 1 s has rung."
        await watched.until(lambda: watched.session.messages[-1].text == rung and watched.caught_up)
        await watched.until(lambda: watched.session.state == "idle" and watched.caught_up)
        late = watched.events[max(at for at, event in enumerate(watched.events) if event.turn is turn) + 1 :]
        reported = [event.turn for event in late if gist(event.update)[0] == "tool_call_update"]
        spoken = [event.turn for event in late if gist(event.update)[0].startswith("agent_message")]
        assert set(reported) == {None}
        if case.version == 1:
            assert set(spoken) == {None}
        else:
            [by_itself] = set(spoken)
            assert by_itself is not None
            assert by_itself.prompt is None
            assert by_itself.text == rung
            assert (await by_itself.drained()).stop_reason == "end_turn"
            watched.by_itself = by_itself


@pytest.mark.parametrize("wrong", [{"version": 3}, {"dialect": "nonsense"}, {"version": 1, "dialect": "v2"}])
async def test_nothing_is_left_of_a_wrong_argument(wrong: dict[str, Any], real_agent: Prepared) -> None:
    launch = real_agent("rehearse")
    with pytest.raises(LocalError):
        async with connect(launch.command, cwd=launch.cwd, **wrong):
            pass
    await gone(launch)


async def gone(launch: Launch) -> None:
    """The end of the connection is the end of all that was started, though some need a moment for that."""
    assert await asyncio.to_thread(still_there, launch.left_running(), 3.0) == []


def is_trouble(record: logging.LogRecord) -> bool:
    """`asyncio` tells of exceptions that nobody took."""
    return record.levelno >= logging.WARNING and record.name.partition(".")[0] in ("antiphon", "asyncio")


# --- the conversation -------------------------------------------------------------------------------------


async def a_session(drive: Drive) -> Watched:
    """What is told before the session has a name is in the fold; what comes behind is seen, and no turn's."""
    agent = drive.launch.agent
    session = await drive.client.new_session(drive.launch.cwd)
    if agent.commands == "early":
        assert drive.wire.kinds(until=drive.wire.answer("session/new")) == ["available_commands_update"]
        assert session.commands
    watched = drive.watch(session)
    if agent.commands == "late" and drive.case.version == 1:
        await watched.until(lambda: bool(session.commands))
        assert all(event.turn is None for event in watched.events)
    assert session.messages == []
    return watched


async def text(drive: Drive, watched: Watched) -> None:
    words, agent = drive.case.words, drive.launch.agent
    before = len(drive.wire.frames)
    said = await watched.say(words.hello)
    assert said.end.stop_reason == "end_turn"
    assert said.end.cut is None
    assert (said.end.usage is not None) == agent.usage
    assert said.text.strip() == words.answer
    assert told(said.messages) == [("user", words.hello), ("agent", words.answer)]
    assert said.messages == watched.session.messages[-2:]
    assert drive.wire.names_messages(watched.session.id, before) == agent.message_ids


async def tools(drive: Drive, watched: Watched) -> None:
    """Allowed by the policy of the connection, then rejected by another one."""
    words, agent = drive.case.words, drive.launch.agent
    said = await watched.say(words.tool)
    assert said.end.stop_reason == "end_turn"
    assert words.allowed in said.text
    assert drive.wire.chosen() == ["allow_once"]
    assert said.tool_calls() == {"completed"}
    assert drive.made() == words.makes

    drive.client.answers = Permissions()
    said = await watched.say(words.tool)
    assert said.end.stop_reason == "end_turn"
    assert drive.wire.chosen() == ["allow_once", "reject_once"]
    assert said.tool_calls() == {agent.rejected}
    assert not drive.made()
    assert watched.session.questions == []


async def listed(drive: Drive, watched: Watched) -> None:
    client = drive.client
    if not drive.launch.agent.lists:
        if drive.case.version == 1:
            with pytest.raises(LocalError, match="cannot list"):
                await anext(client.list_sessions())
        return
    [info] = [info async for info in client.list_sessions()]
    assert info.session_id == watched.session.id
    assert info.cwd == str(drive.launch.cwd)


async def reopened(drive: Drive, before: ClientSession) -> Watched:
    """In a new process: resumed where that is offered, then loaded; it is the same conversation."""
    client, agent, cwd = drive.client, drive.launch.agent, drive.launch.cwd
    if not drive.case.keeps:
        if client.abilities.load and drive.case.version == 1:
            loaded = await client.load_session("any", cwd)
            assert told(loaded.messages) == [("user", "an earlier question"), ("agent", "an earlier answer")]
        return await a_session(drive)

    messages = list(before.messages)
    if agent.resumes:
        resumed = drive.watch(await client.resume_session(before.id, cwd))
        assert resumed.session.messages == [], "without its history"
        await text(drive, resumed)
        messages += resumed.session.messages
    elif client.abilities.resume:  # it offers what it does not have, and is loaded instead
        assert told((await client.resume_session(before.id, cwd)).messages) == told(messages)

    session = await client.load_session(before.id, cwd)
    assert told(session.messages) == told(messages)
    if drive.case.version == 2 or agent.message_ids:
        named = [message for message in messages if drive.case.version == 2 or message.role != "user"]
        again = {message.message_id for message in session.messages}
        assert [message.message_id for message in named if message.message_id not in again] == []
    assert session.state == "idle"
    assert session.turn is None
    assert {call.id for call in before.tool_calls} >= {call.id for call in session.tool_calls}
    return drive.watch(session)


async def cancels(drive: Drive, watched: Watched) -> None:
    """While it speaks, and while it waits for a permission. Then it goes on as if nothing had been."""
    words = drive.case.words

    async def in_the_middle(turn: ClientTurn) -> None:
        async for _ in turn.updates():
            if words.begun in turn.text:
                break
        await turn.cancel()

    said = await watched.say(words.slow, in_the_middle)
    assert said.end.cancelled
    assert "slow-50" not in said.text

    open_question = OpenQuestion()
    drive.client.answers = Permissions(ask=open_question)

    async def while_asked(turn: ClientTurn) -> None:
        await open_question.asked.wait()
        assert len(watched.session.questions) == 1
        await turn.cancel()

    said = await watched.say(words.tool, while_asked)
    assert said.end.cancelled
    assert not drive.made()
    assert open_question.withdrawn, "nobody is asked any longer"
    assert watched.session.questions == []
    assert drive.wire.chosen() == ["cancelled"]
    assert said.tool_calls() <= {"cancelled", "failed"}

    # What is over cannot be cancelled: the next turn would be hit.
    frames = len(drive.wire.frames)
    await said.turn.cancel()
    assert drive.wire.frames[frames:] == []


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

    def check(self) -> None:
        """Every request of the agent's was answered, once."""
        asked = [frame["id"] for way, frame in self.frames if way == "in" and {"id", "method"} <= set(frame)]
        answered = [frame["id"] for way, frame in self.frames if way == "out" and is_answer(frame)]
        assert sorted(answered, key=str) == sorted(asked, key=str)


@dataclass
class Said:
    """A turn, as it was on the line behind `drained()`."""

    turn: ClientTurn
    end: TurnEnd
    text: str
    messages: list[Message]
    events: list[SessionEvent]

    def tool_calls(self) -> set[str]:
        """The statuses, now, of the tool calls of this turn."""
        ids = {getattr(event.update, "tool_call_id", None) for event in self.events} - {None}
        assert ids
        return {str(call.status) for call in self.turn.session.tool_calls if call.id in ids}


class Watched:
    """A session, and everything that is seen of it."""

    def __init__(self, session: ClientSession, wire: Wire, version: int) -> None:
        self.session = session
        self.events: list[SessionEvent] = []
        self.turns: list[Said] = []
        self.by_itself: ClientTurn | None = None
        """A turn that the agent opened."""
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
        said = Said(turn, end, turn.text, await collected(turn.messages()), await collected(turn.events()))
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
            if event.turn is not None and event.turn is self.by_itself:
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
        connecting = connect(launch.command, cwd=launch.cwd, answers=policy, tap=wire.tap, **case.ask)
        async with connecting as client:
            assert client.agreement.version == case.version
            assert ("proposed" in str(client.agreement.dialect)) == ("dialect" in case.ask)
            if case.version == 1:
                assert client.abilities.listing == launch.agent.lists
            drive = Drive(case, launch, client, wire)
            yield drive
        wire.check()
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
