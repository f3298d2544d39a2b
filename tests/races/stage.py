"""An agent or a hub with clients by hand, for one question at a time, in the places and dialects of races."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.hub import Hub
from tests.races.agents import ByHand, Lagging, Works, library
from tests.races.clients import Link, Racer
from tests.races.schedule import Agent as Behaviour
from tests.races.schedule import Dialect, Op, Place

DEADLINE = 60.0
PLACES = pytest.mark.parametrize("place", list(Place))
DIALECTS = pytest.mark.parametrize("dialect", list(Dialect))
V1 = pytest.mark.parametrize("dialect", [Dialect.V1, Dialect.V1_COMPLETE])


class Stage:
    def __init__(self, agent: Agent, works: Works, hand: ByHand | None) -> None:
        self.agent = agent
        self.works = works
        self.hand = hand
        self._racers: list[Racer] = []
        self.session = ""

    async def racer(self, dialect: Dialect, *, joins: bool = True, **extras: Any) -> Racer:
        """A client; the first one begins the session, the others join it."""
        racer = Racer(f"racer {len(self._racers)}", self.agent, dialect, self.session)
        self._racers.append(racer)
        await racer.connect(**extras)
        if not self.session:
            new = await racer.link.call("new", "session/new", cwd="/", mcpServers=[])
            racer.session = self.session = new["sessionId"]
        elif joins:
            await answer(racer.link, racer.do(Op.RESUME))
        return racer

    async def leave(self) -> None:
        self.works.finish.set()
        for racer in self._racers:
            for link in racer.links:
                await link.close()


@asynccontextmanager
async def stage(place: Place, behaviour: Behaviour | None = None) -> AsyncIterator[Stage]:
    works, store, hand = Works(), Lagging(1), None
    if place is Place.AGENT:
        agent = library(behaviour or Behaviour(), works, store)
    else:
        hand = ByHand(1 if place is Place.HUB_V1 else 2, behaviour or Behaviour(), works)
        agent = Hub({"hand": hand}, store=store)
    async with staged(agent, works, hand) as made:
        yield made


@asynccontextmanager
async def staged(
    agent: Agent, works: Works | None = None, hand: ByHand | None = None
) -> AsyncIterator[Stage]:
    async with asyncio.timeout(DEADLINE), agent.serving():
        made = Stage(agent, works or Works(), hand)
        try:
            yield made
        finally:
            await made.leave()


async def answer(link: Link, id: str | None) -> dict[str, Any]:
    """The one answer to a request."""
    assert id is not None
    await link.until(lambda: link.answers(id))
    (only,) = link.answers(id)
    return only


async def heard(link: Link, text: str) -> None:
    """Wait until the agent has said this."""
    await link.until(lambda: any(text in said for said in texts(link)))


def texts(link: Link) -> list[str]:
    """What the agent said, piece by piece."""
    said: list[str] = []
    for params in link.updates():
        update = params["update"]
        content = update.get("content")
        if update["sessionUpdate"] in ("agent_message", "agent_message_chunk") and content:
            blocks = content if isinstance(content, list) else [content]
            said += [block["text"] for block in blocks]
    return said


def ends(link: Link) -> list[str]:
    """Why turns ended, as the states say."""
    updates = [params["update"] for params in link.updates()]
    states = [u for u in updates if u["sessionUpdate"] in ("state_update", "state_change")]
    reasons = [u.get("stopReason", u.get("stop_reason")) for u in states if u["state"] == "idle"]
    return [reason for reason in reasons if reason is not None]


def completed(link: Link, id: str | None) -> list[str]:
    """Why the turn of a request ended, as `turn_complete` says."""
    updates = [params["update"] for params in link.updates()]
    told = [u for u in updates if u["sessionUpdate"] == "turn_complete"]
    return [u["stopReason"] for u in told if u.get("promptRequestId") == id]
