"""A client whose attachment is moved to another feed of its session is sent what every other client is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from tests.engine.journals import asked, queued, selected, state, update
from tests.live.attached import Attached, attached
from tests.live.test_live import Gated, chunk, clock, create

from antiphon.engine import events as e
from antiphon.engine.events import AnyBody
from antiphon.errors import StoreBusy, StoreError
from antiphon.live.feed import SessionFeed
from antiphon.live.followed_session import FollowedSession
from antiphon.live.session import LiveSession
from antiphon.schema.version import Extras
from antiphon.stores.base import Page

DEADLINE = 60.0
EXTRAS = Extras(seq=True, queue_updates=True)
LONG = "long " * 100_000
"""A message that is replayed in several pieces."""


def ignore(*_: Any) -> None:
    """Take no answer."""


def turn(n: int) -> list[list[AnyBody]]:
    """The commits of a turn with everything that depends on what a client was sent before."""
    prompt, call, question, message = f"p{n}", f"t{n}", f"q{n}", f"m{n}"
    return [
        [queued(prompt), e.PromptAccepted(message_id=prompt), update("user_message", messageId=prompt)],
        [state("running"), chunk("Let me ", message), chunk("look.", message)],
        [update("tool_call_update", toolCallId=call, title="ls", status="in_progress")],
        [asked(question), state("requires_action")],
        [e.QuestionClosed(question_id=question, end=e.QuestionEnd.ANSWERED, result=selected("allow_once"))],
        [state("running"), queued(f"later {n}"), chunk("Found it.", message)],
        [update("tool_call_update", toolCallId=call, status="completed")],
        [e.PromptWithdrawn(message_id=f"later {n}"), state("idle", stopReason="end_turn")],
    ]


class Held(Gated):
    """A store whose reads can be held back."""

    def __init__(self) -> None:
        super().__init__()
        self.readable = asyncio.Event()
        self.readable.set()
        self.held = asyncio.Event()

    async def read(self, *arguments: Any, **options: Any) -> Page:
        if not self.readable.is_set():
            self.held.set()
            await self.readable.wait()
        return await super().read(*arguments, **options)


class Scene:
    """One session with two feeds, a client that is moved between them, and one that stays where it is."""

    def __init__(
        self,
        store: Held,
        live: LiveSession,
        followed: FollowedSession,
        moved: Attached,
        stays: Attached,
        *,
        at: str,
    ) -> None:
        self.store, self.live, self.followed = store, live, followed
        self.moved, self.stays = moved, stays
        self.feeds: list[SessionFeed] = [live, followed] if at == "live" else [followed, live]
        """Where the moved client is, and where it is moved to."""

    async def commit(self, *commits: list[AnyBody]) -> None:
        for bodies in commits:
            last = self.live.emit(bodies)
            await self.live.durable()
            if self.store.readable.is_set():
                async with asyncio.timeout(DEADLINE):
                    await self.followed.durable(last)

    def pin(self, **options: Any) -> None:
        self.stays.voice.pin(self.live, ignore, **options)
        self.moved.voice.pin(self.feeds[0], ignore, **options)

    def start(self) -> None:
        self.stays.voice.start(state=True)
        self.moved.voice.start(state=True)

    async def begin(self) -> None:
        self.pin(history=True)
        self.start()
        async with asyncio.timeout(DEADLINE):
            await self.moved.voice.caught_up()

    def move(self) -> None:
        self.feeds.reverse()
        self.moved.voice.move_to(self.feeds[0], ignore)
        assert self.moved.voice.follows(self.feeds[0])


@asynccontextmanager
async def scene(version: int, at: str) -> AsyncIterator[Scene]:
    store = Held()
    async with AsyncExitStack() as stack:
        live = await stack.enter_async_context(await create(store))
        followed = await FollowedSession.open(store, "s", clock=clock)
        await stack.enter_async_context(followed)
        clients = [await stack.enter_async_context(attached(version, extras=EXTRAS)) for _ in range(2)]
        yield Scene(store, live, followed, *clients, at=at)


# The moments. Each begins to follow, and moves the client once.


async def before_it_starts(it: Scene) -> None:
    it.pin(history=True)
    it.move()
    it.start()


async def at_the_tail(it: Scene) -> None:
    await it.begin()
    it.move()


async def in_its_replay(it: Scene) -> None:
    it.pin(history=True)
    it.moved.stop_reading()
    it.start()
    await it.moved.congested()
    it.move()
    await it.commit([chunk("while it is replayed")])
    it.moved.read_again()


async def congested(it: Scene) -> None:
    await it.begin()
    it.moved.stop_reading()
    await it.commit([chunk("a")])
    await it.moved.congested()
    await it.commit([chunk("b")], [chunk("c")])
    it.move()
    await it.commit([chunk("d")])
    it.moved.read_again()


async def catching_up(it: Scene) -> None:
    await it.begin()
    it.moved.stop_reading()
    await it.commit([chunk("a")])
    await it.moved.congested()
    await it.commit([chunk("b")], [chunk("c")], [chunk("d")])  # the tail has the last of them alone
    it.store.readable.clear()
    it.moved.read_again()
    async with asyncio.timeout(DEADLINE):
        await it.store.held.wait()
    it.move()
    await it.commit([chunk("e")])
    it.store.readable.set()


async def recalling(it: Scene) -> None:
    """A v1 client returns by its cursor: everything before that is read again, for its writer alone."""
    after = it.live.fold.last_seq - 1
    it.pin(after=after)
    it.store.readable.clear()
    it.start()
    await asyncio.sleep(0)
    it.move()
    it.store.readable.set()


async def to_a_feed_behind(it: Scene) -> None:
    await it.begin()
    it.store.readable.clear()
    await it.commit([chunk("a")], [chunk("b")])
    it.move()
    await it.commit([chunk("c")])
    it.store.readable.set()


async def to_and_fro(it: Scene) -> None:
    await it.begin()
    for n in range(4):
        it.move()
        it.move()
        it.move()
        await it.commit([chunk(str(n))])


MOMENTS: list[Callable[[Scene], Awaitable[None]]] = [
    before_it_starts, at_the_tail, in_its_replay, congested, catching_up, recalling, to_a_feed_behind,
    to_and_fro,
]  # fmt: skip


@pytest.mark.parametrize("at", ["live", "followed"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_moved_client_is_sent_the_same_bytes_as_one_that_stays(
    moment: Callable[[Scene], Awaitable[None]], version: int, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.live.tail.TAIL_BYTES", 1)  # a client that lags reads from the store
    async with scene(version, at) as it:
        await it.commit([chunk(LONG, "long")], *turn(1))
        await moment(it)
        for n in (2, 3):  # a turn at the second feed, and one that is moved back in the middle
            for step, bodies in enumerate(turn(n)):
                if step == 0:
                    for client in (it.moved, it.stays):
                        async with asyncio.timeout(DEADLINE):
                            await client.voice.caught_up()
                        client.prompt(f"p{n}")
                    await asyncio.sleep(0)
                if step == n and n == 3:
                    it.move()
                await it.commit(bodies)
        await it.commit([chunk("the end")])
        for client in (it.stays, it.moved):
            await client.until("the end")
        assert it.moved.frames == it.stays.frames
        assert [json.loads(frame)["id"] for frame in it.moved.frames if b'"result"' in frame] == ["p2", "p3"]
        assert len(it.moved.asked()) == 2


# --- questions ------------------------------------------------------------------------------------------


async def test_an_answer_goes_to_the_feed_that_the_client_was_moved_to() -> None:
    answers: list[tuple[str, str]] = []
    async with scene(2, "live") as it:
        await it.begin()
        await it.commit([state("running"), asked("q"), asked("r")])
        await it.moved.until("request_permission", times=2)
        it.moved.voice.move_to(it.followed, lambda id, *_: answers.append(("followed", id)))
        assert it.moved.voice.asks("q"), "it stays asked"
        await it.commit([chunk("meanwhile")])
        ids = {frame["params"]["_meta"]["antiphon"]["questionId"]: frame["id"] for frame in it.moved.asked()}
        outcome = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        it.moved.send(id=ids["q"], result=outcome)
        closed = e.QuestionClosed(question_id="r", end=e.QuestionEnd.CANCELLED, result=selected("x"))
        await it.commit([closed])
        await it.moved.until("$/cancel_request")
        assert answers == [("followed", "q")]
        assert not it.moved.voice.asks("r"), "the events retract it"
        assert len(it.moved.asked()) == 2, "nothing is asked twice"


# --- presence -------------------------------------------------------------------------------------------


async def test_clients_that_are_moved_together_see_nobody_leave() -> None:
    store = Held()
    extras = Extras(presence=True)
    async with await create(store) as live, AsyncExitStack() as stack:
        followed = await stack.enter_async_context(await FollowedSession.open(store, "s", clock=clock))
        clients = [await stack.enter_async_context(attached(who=who, extras=extras)) for who in "abc"]
        for client in clients:
            client.voice.pin(live, ignore, history=True)
            client.voice.start()
        for client in clients:
            await client.until('"clientId":"c"')
            client.frames.clear()
        for client in clients:
            client.voice.move_to(followed, ignore)
        assert live.presence.clients() == []
        assert [one.client_id for one in followed.presence.clients()] == ["a", "b", "c"]
        await clients[2].voice.stop()
        for client in clients[:2]:
            await client.until("_antiphon_presence")
            lists = [frame for frame in client.frames if b"_antiphon_presence" in frame]
            assert len(lists) == 1, "the move itself is not shown"
            assert b'"clientId":"c"' not in lists[0]


# --- a feed that fails ----------------------------------------------------------------------------------


@asynccontextmanager
async def failed(version: int, *, moves: bool) -> AsyncIterator[tuple[Scene, Attached]]:
    """A client of a live session whose store refuses its events, and one of the followed session."""
    async with scene(version, "live") as it:
        await it.commit(*turn(1))
        it.moved.voice.pin(it.live, ignore, history=True, moves=moves)
        it.moved.voice.start(state=True)
        it.stays.voice.pin(it.followed, ignore, history=True)
        it.stays.voice.start(state=True)
        async with asyncio.timeout(DEADLINE):
            await it.moved.voice.caught_up()
        it.moved.prompt("p2")
        it.stays.prompt("p2")
        await it.commit(*turn(2)[:2])
        it.store.failure = StoreError("another process wrote it")
        it.live.emit([chunk("never committed")])
        with pytest.raises(StoreError):
            await it.live.durable()
        it.store.failure = None
        yield it, it.moved


@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_of_a_failed_feed_goes_on_with_the_next_one(version: int) -> None:
    async with failed(version, moves=True) as (it, client), AsyncExitStack() as stack:
        again = await stack.enter_async_context(await LiveSession.open(it.store, "s", clock=clock))
        again.emit([chunk("the other process goes on")])
        again.emit([state("idle", stopReason="end_turn")])
        await again.durable()
        client.voice.move_to(it.followed, ignore)
        for each in (client, it.stays):
            await each.until('"id":"p2"')
        assert client.frames == it.stays.frames
        client.voice.move_to(again, ignore)
        again.emit([chunk("the end")])
        for each in (client, it.stays):
            await each.until("the end")
        assert client.frames == it.stays.frames


@pytest.mark.parametrize("moves", [False, True])
async def test_a_client_that_is_not_moved_in_time_is_told(
    moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if moves:
        monkeypatch.setattr("antiphon.live.attachment_writer.MOVE_WAIT", 0.05)
    async with failed(2, moves=moves) as (_, client):
        await client.until("The session cannot be kept")
        assert b'"state":"idle"' in client.frames[-1]


async def test_a_replay_that_was_never_committed_is_taken_again() -> None:
    """It has events that no journal has, so nothing of it may be sent."""
    async with scene(2, "live") as it:
        await it.commit([chunk("kept", "m")])
        it.store.gate.clear()
        it.live.emit([chunk(" and lost", "m")])
        it.moved.voice.pin(it.live, ignore, history=True, moves=True)
        it.moved.voice.start(state=True)
        await asyncio.sleep(0)
        it.store.failure = StoreError("another process wrote it")
        it.store.gate.set()
        with pytest.raises(StoreError):
            await it.live.durable()
        it.store.failure = None
        async with await LiveSession.open(it.store, "s", clock=clock) as again:
            again.emit([chunk(" by the next", "m")])
            it.moved.voice.move_to(again, ignore)
            await it.moved.until("state_update")
            again.emit([chunk("the end")])
            await it.moved.until("the end")
        assert not any(b"lost" in frame for frame in it.moved.frames)
        texts = [json.loads(frame)["params"]["update"].get("content") for frame in it.moved.frames]
        assert texts == [
            [{"type": "text", "text": "kept by the next"}],
            None,
            {"type": "text", "text": "the end"},
        ]
        assert it.moved.voice.joined_at == 3


async def test_a_client_that_lags_outlives_a_store_that_cannot_be_read_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("antiphon.live.attachment_writer.AGAIN", 0.01)
    monkeypatch.setattr("antiphon.live.tail.TAIL_BYTES", 1)

    class Busy(Held):
        failures = 0

        async def read(self, *arguments: Any, **options: Any) -> Page:
            if self.failures:
                self.failures -= 1
                raise StoreBusy("no server answers")
            return await super().read(*arguments, **options)

    store = Busy()
    async with await create(store) as live, attached() as client:
        client.voice.pin(live, ignore, after=1, moves=True)
        for n in range(5):
            live.emit([chunk(str(n))])
            await live.durable()
        store.failures = 3
        client.voice.start()
        await client.until('"text":"4"')
        assert store.failures == 0
        assert len(client.frames) == 5
