"""One story of a cluster: five clients at three hubs, two sessions, and one seeded fault after the other.

After each fault everything is mended and comes to rest; then what each client was told and holds is held
against the store, and what its prompts came to against the notes of the agents.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from antiphon.errors import AntiphonError
from tests.cluster.members import agree, becomes
from tests.cluster.nats_proxy import Link
from tests.cluster.stand import LEASE, ClusterHub, Stand
from tests.faults.hub_checks import Kept, check_agents, check_counting, check_prompts
from tests.faults.hub_client import Participant
from tests.faults.violation import Silence, check

DIALECTS = ("v2", "v1", "proposed", "v1", "v2")
FRAMES = 300
"""Up to so much all clients hear before a fault."""
AT_MOST = 4.0
"""Seconds after which a fault comes even if not so much was heard."""
AT_REST = 90.0
"""Seconds within which everything has to come to its end."""
SHORT, LONG = (0.2, LEASE / 2), (LEASE * 1.5, LEASE * 2.5)


def agent_command(folder: Path) -> list[str]:
    """Return the agent of a cluster whose story is told: it notes everything."""
    return [sys.executable, "-m", "tests.faults.hub_agent", str(folder / "notes"), str(folder / "agent.db")]


class ClusterRun:
    def __init__(self, seed: int, stand: Stand) -> None:
        self.stand = stand
        self.chance = random.Random(seed)
        self.seed = seed
        self.notes = stand.folder / "notes"
        self.takeovers: list[float] = []
        """Seconds from the loss of an owner until its session had another one."""
        self.sessions: list[str] = []
        self.participants = [
            Participant(at, dialect, random.Random(f"{seed} {at}"), self._any_hub().process, stays=at == 0)
            for at, dialect in enumerate(DIALECTS)
        ]
        self._heard = self._wanted = self._count = 0
        self._due = asyncio.Event()
        self._may_act = asyncio.Event()
        self._faults: dict[str, Callable[[], Awaitable[None]]] = {
            "kill -9 of an owner": self._kill_owner,
            "kill -9 of any hub": self._kill_any,
            "SIGTERM of an owner": self._stop_owner,
            "short SIGSTOP of an owner": lambda: self._pause_owner(SHORT),
            "long SIGSTOP of an owner": lambda: self._pause_owner(LONG),
            "short partition of a hub": lambda: self._part(self._any_hub(), SHORT),
            "long partition of a hub": lambda: self._part(self._any_hub(), LONG),
            "long partition of an owner": self._part_owner,
            "kill -9 of a NATS server": self._kill_nats,
            "kill -9 of a stream's leader": self._kill_leader,
            "lost replies": self._lose_replies,
            "lost requests": self._lose_requests,
            "kill -9 of all agents of a hub": self._kill_agents,
        }

    def _any_hub(self) -> ClusterHub:
        return self.chance.choice(self.stand.hubs)

    async def play(self, faults: int) -> str:
        """Raises `Violation`; returns in a few words what happened."""
        first = self.participants[0]
        for participant in self.participants:
            participant.heard = self._hear
        await first.connect()
        self.sessions = [await first.create(), await first.create()]
        acting = [asyncio.ensure_future(self._act(participant)) for participant in self.participants]
        names = []
        try:
            for _ in range(faults):
                name = self.chance.choice(list(self._faults))
                names.append(name)
                await self._load(acting)
                await self._faults[name]()
                await self._rest(name)
        finally:
            for task in acting:
                task.cancel()
            await asyncio.gather(*acting, return_exceptions=True)
            for participant in self.participants:
                with suppress(AntiphonError):
                    await participant.leave()
        return f"{self._count} prompts, {self._heard} frames; {', '.join(names)}"

    # --- the load ----------------------------------------------------------------------------------

    def _hear(self) -> None:
        self._heard += 1
        if self._heard >= self._wanted:
            self._due.set()

    async def _load(self, acting: list[asyncio.Future[None]]) -> None:
        """Let clients act until the fault is due."""
        self._may_act.set()
        self._wanted = self._heard + self.chance.randint(20, FRAMES)
        self._due.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(AT_MOST):
                await self._due.wait()
        for task in acting:
            if task.done():
                task.result()

    async def _act(self, participant: Participant) -> None:
        """Prompt now and then, cancel some, leave, and come again at another hub."""
        chance, stays = random.Random(f"{self.seed} {participant.name}"), participant is self.participants[0]
        if not stays:
            await participant.join(*self.sessions)
        while True:
            await self._may_act.wait()
            await asyncio.sleep(chance.random() * 0.4)
            if len(participant.waits) >= 3 or not self._may_act.is_set():
                continue
            self._count += 1
            cancel = chance.random() * 0.2 if chance.random() < 0.2 else None
            text = f"prompt {self._count} of {self.seed}"
            participant.prompt(chance.choice(self.sessions), text, cancel_after=cancel)
            if not stays and chance.random() < 0.05:
                await participant.leave()
                participant.hub = self._any_hub().process
                await participant.join(*self.sessions)

    # --- the faults --------------------------------------------------------------------------------

    async def _owner(self) -> ClusterHub:
        found = await self.stand.owner(self.chance.choice(self.sessions))
        return found or self._any_hub()

    async def _lost(self, hub: ClusterHub) -> None:
        """Measure how long it takes until the sessions of a hub have other owners."""
        loop = asyncio.get_running_loop()
        began, left = loop.time(), set(self.sessions)
        async with self.stand.store() as store:
            before = {id: await store.owner(id) for id in self.sessions}
            left = {id for id, owner in before.items() if owner is not None and owner.pid == hub.process.pid}
            with suppress(TimeoutError):
                async with asyncio.timeout(LEASE * 4):
                    while left:
                        for id in tuple(left):
                            owner = await store.owner(id)
                            if owner is not None and owner != before[id]:
                                left.discard(id)
                                self.takeovers.append(loop.time() - began)
                        await asyncio.sleep(0.05)

    async def _kill_owner(self) -> None:
        await self._kill(await self._owner())

    async def _kill_any(self) -> None:
        await self._kill(self._any_hub())

    async def _kill(self, hub: ClusterHub) -> None:
        hub.process.kill()
        await self._lost(hub)

    async def _stop_owner(self) -> None:
        await (await self._owner()).process.end()

    async def _pause_owner(self, seconds: tuple[float, float]) -> None:
        hub = await self._owner()
        hub.pause()
        if seconds is LONG:
            await self._lost(hub)
        await asyncio.sleep(self.chance.uniform(*SHORT))
        hub.go_on()

    async def _part_owner(self) -> None:
        await self._part(await self._owner(), LONG)

    async def _part(self, hub: ClusterHub, seconds: tuple[float, float]) -> None:
        hub.proxy.set(self.chance.choice([Link.STALLED, Link.BLACK_HOLE, Link.CUT]))
        await asyncio.sleep(self.chance.uniform(*seconds))
        hub.proxy.heal()

    async def _kill_nats(self) -> None:
        self.chance.choice(self.stand.nats.servers).kill()
        await asyncio.sleep(self.chance.uniform(*SHORT))

    async def _kill_leader(self) -> None:
        async with self.stand.store() as store:
            leaders = [each.leader for each in await store.status() if each.leader and each.messages]
        self.stand.nats.named(self.chance.choice(leaders)).kill()
        await asyncio.sleep(self.chance.uniform(*SHORT))

    async def _lose_replies(self) -> None:
        for hub in self.stand.hubs:
            hub.proxy.lose_replies(self.chance.randint(1, 3))
        await asyncio.sleep(self.chance.uniform(*SHORT))

    async def _lose_requests(self) -> None:
        for hub in self.stand.hubs:
            hub.proxy.lose_requests(self.chance.randint(1, 3))
        await asyncio.sleep(self.chance.uniform(*SHORT))

    async def _kill_agents(self) -> None:
        self._any_hub().process.kill_agents()

    # --- the check ---------------------------------------------------------------------------------

    async def _rest(self, fault: str) -> None:
        """Let everything come to its end, and check that all agree."""
        self._may_act.clear()
        try:
            async with asyncio.timeout(AT_REST):
                await self.stand.heal()
                kept = await self._settle(fault)
        except TimeoutError:
            raise Silence(f"not at rest {AT_REST:g} s after {fault}: {self._state()}") from None
        for each in kept:
            check_counting(each)
        check_prompts(self.participants, kept, self.notes)
        check_agents(self.notes)
        check("Traceback" not in self.stand.complaints(), "a hub complained")

    async def _settle(self, fault: str) -> list[Kept]:
        for participant in self.participants:
            await participant.present.wait()
            await participant.client.link.connected()
        first, kept = self.participants[0], []
        for session_id in self.sessions:
            session = first.sessions[session_id]
            await session.queue.resume()
            for participant in self.participants:
                await participant.finish()
            await becomes(session, lambda session=session: not session.queue.entries and session.turn is None)
            self._count += 1
            text = f"prompt {self._count} of {self.seed} after {fault}"
            first.prompt(session_id, text, cancel_after=None)
            await first.finish()
            check(first.outcomes[text] == "end_turn", f"a prompt after {fault} {first.outcomes[text]}")
            kept.append(await agree(self.stand, session_id, self.participants))
        return kept

    def _state(self) -> str:
        """For whoever finds it silent."""
        told = []
        for participant in self.participants:
            states = [
                (id, session.cursor, str(session.state), len(session.queue.entries))
                for id, session in participant.sessions.items()
            ]
            told.append(f"{participant.name} {participant.client.link.state} {states} {participant.waits}")
        return "\n".join(told)
