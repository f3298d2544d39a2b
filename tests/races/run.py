"""One race: an agent or a hub, two clients that follow a schedule, and one that looks on."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any
from unittest import mock

from antiphon.agent import Agent
from antiphon.hub import Hub, HubOptions
from tests.races.agents import ByHand, InPlace, Lagging, Works, library, turns
from tests.races.checks import (
    Violation,
    check_answers,
    check_completions,
    check_journal,
    check_left,
    check_states,
)
from tests.races.clients import Link, Racer
from tests.races.schedule import Dialect, Op, Place, Schedule
from tests.races.stage import heard

DEADLINE = 60.0
"""Seconds for a whole race, on a slow machine: it takes some hundredths of one."""
SETTLING = 100
"""Turns of the event loop in which an agent in this process sees that its link was cut."""


class _Errors(logging.Handler):
    """What was logged as an error: nothing may be in a race."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(self.format(record))


class Race:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.works = Works()
        self.store = InPlace() if schedule.lag is None else Lagging(schedule.lag)
        self.hand: ByHand | None = None
        self.agent = self._agent()
        self.racers = {name: Racer(name, self.agent, dialect) for name, dialect in schedule.dialects.items()}
        self.onlooker = Racer("eve", self.agent, Dialect.V2)
        self._closes: list[asyncio.Task[None]] = []
        self._left_at_work: set[int] = set()
        """What was still worked on after the session was closed for all."""

    def _agent(self) -> Agent:
        place = self.schedule.place
        if place is Place.AGENT:
            return library(self.schedule.agent, self.works, self.store)
        version = 1 if place is Place.HUB_V1 else 2
        self.hand = ByHand(version, self.schedule.agent, self.works)
        behaviour = self.schedule.agent
        busy = "agent" if behaviour.inserts else "queue"
        return Hub(
            {"hand": self.hand}, store=self.store, options=HubOptions(share=behaviour.shared, busy=busy)
        )

    async def run(self) -> None:
        try:
            async with asyncio.timeout(DEADLINE), AsyncExitStack() as stack:
                await stack.enter_async_context(self.agent.serving())
                stack.push_async_callback(self._leave)
                await self._prepare()
                for step in self.schedule.steps:
                    await self._do(self.racers[step.client], step.op)
                    await turns(step.gap)
                await self._settle()
                await self._use_again()
                await self._check()
        except TimeoutError:
            raise Violation("a step took too long: something waits for ever") from None

    async def _leave(self) -> None:
        self.works.finish.set()
        for racer in (*self.racers.values(), self.onlooker):
            for link in racer.links:
                await link.close()

    # --- before ------------------------------------------------------------------------------------

    async def _prepare(self) -> None:
        ann, bob, eve = self.racers["ann"], self.racers["bob"], self.onlooker
        for racer in (ann, bob):
            await racer.connect()
        await eve.connect(seq=True)
        new = await ann.link.call("new", "session/new", cwd="/", mcpServers=[])
        for racer in (ann, bob, eve):
            racer.session = new["sessionId"]
        for racer in (bob, eve):
            await self._answered(racer, racer.do(Op.RESUME))
        if self.schedule.agent.shared:
            await eve.link.call("another", "session/new", cwd="/", mcpServers=[])
        setting = self.schedule.setting
        if setting == "idle":
            return
        if setting == "works by itself":
            await self._answered(ann, ann.do(Op.PROMPT, text="speak"))
            await heard(eve.link, "by itself")
            return
        ann.do(Op.PROMPT)
        await self.works.began()
        if setting == "works, one waits":
            bob.do(Op.PROMPT, text="quick")
        elif setting == "works, two wait":
            bob.do(Op.PROMPT, text="long")
            ann.do(Op.STEER, text="quick")
        elif setting == "queued":
            for racer in (ann, bob):
                await self._answered(racer, racer.do(Op.INJECT, text="quick"))

    async def _answered(self, racer: Racer, id: str | None) -> None:
        assert id is not None
        await racer.link.until(lambda: racer.link.answers(id))

    # --- the race ----------------------------------------------------------------------------------

    async def _do(self, racer: Racer, op: Op) -> None:
        if op is Op.KILL and self.hand is not None:
            await self.hand.kill()
        elif op is Op.KILL:
            racer.link.cut = True
            racer.link.arrived.set()
            await racer.link.transport.aclose()
            await racer.connect()
            racer.do(Op.LOAD)
        else:
            at_work = set(self.works.open)
            id = racer.do(op)
            if op is Op.CLOSE_ALL and id is not None:
                watching = self._watch_close(racer.link, id, at_work)
                self._closes.append(asyncio.get_running_loop().create_task(watching))

    async def _watch_close(self, link: Link, id: str, at_work: set[int]) -> None:
        await link.until(lambda: link.answers(id) or link.cut)
        if not link.cut:
            await turns(SETTLING)
            self._left_at_work |= at_work & self.works.open

    # --- afterwards --------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Let everything end that still works, and wait for every answer."""
        for watching in self._closes:
            await watching
        if self._left_at_work:
            raise Violation("the session was closed for all, and something of it is still worked on")
        self.works.finish.set()
        for racer in self.racers.values():
            for link in racer.links:
                try:
                    async with asyncio.timeout(DEADLINE / 2):
                        await link.until(lambda link=link: link.cut or not link.unanswered)
                except TimeoutError:
                    raise Violation(f"not answered: {link.unanswered}") from None

    async def _use_again(self) -> None:
        """Whatever happened, the session can be loaded, and works."""
        zed = Racer("zed", self.agent, Dialect.V2, self.onlooker.session)
        await zed.connect()
        try:
            loaded = zed.do(Op.LOAD)
            await self._answered(zed, loaded)
            prompt = zed.do(Op.PROMPT, text="quick")
            assert prompt is not None
            await self._answered(zed, prompt)
            (answer,) = zed.link.answers(prompt)
            if "result" not in answer:
                raise Violation(f"the session cannot be used any more: {answer}")
            message = answer["result"]["messageId"]
            await zed.link.until(lambda: _ended_behind(zed.link.updates(), message))
        except TimeoutError:
            raise Violation("the session cannot be used any more") from None
        finally:
            await zed.link.close()

    async def _check(self) -> None:
        if self.works.cut_short:
            raise Violation("a second cancel cut short what the agent did to end")
        for racer in self.racers.values():
            for link in racer.links:
                check_answers(link)
                check_completions(link)
                check_left(link, racer.session)
        eve = self.onlooker.link
        check_states(eve)
        await check_journal(eve, self.store, self.onlooker.session)


def _ended_behind(updates: list[dict[str, Any]], message_id: str) -> bool:
    """Whether a turn ended behind a message."""
    said = [params["update"] for params in updates]
    shown = [at for at, update in enumerate(said) if update.get("messageId") == message_id]
    return bool(shown) and any(
        update["sessionUpdate"] == "state_update" and update["state"] == "idle" for update in said[shown[0] :]
    )


async def race(schedule: Schedule) -> None:
    """Run a schedule. Raises `Violation`."""
    errors, logger = _Errors(), logging.getLogger("antiphon")
    unhandled: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(str(context)))
    logger.addHandler(errors)
    try:
        # An agent that was lost is not waited for: the race is with what happens, not with the clock.
        with mock.patch("antiphon.hub.worker.binding.BACKOFF", 0.0):
            await Race(schedule).run()
    except Violation as violation:
        told = "\n".join(errors.told)
        raise Violation(f"{violation}\n{schedule}\n{told}") from None
    finally:
        logger.removeHandler(errors)
    if errors.told or unhandled:
        raise Violation(f"logged: {errors.told} {unhandled}\n{schedule}")
