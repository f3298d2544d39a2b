"""One run of a plan: five clients at three hubs, two sessions, and one fault after the other.

After each fault everything is mended and comes to rest; then what each client was told and holds is held
against the store, and what its prompts came to against the notes of the agents.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path

from antiphon.errors import AntiphonError
from tests.cluster.members import agree, becomes
from tests.cluster.plan import DIALECTS, SESSIONS, Fault, Plan, Round, Step
from tests.cluster.stand import LEASE, ClusterHub, Stand
from tests.faults.hub_checks import Kept, check_agents, check_counting, check_prompts
from tests.faults.hub_client import Participant
from tests.faults.violation import Silence, check

AT_MOST = 4.0
"""Seconds after which a fault comes even if fewer frames were heard than planned."""
INTERRUPTED = ("failed: interrupted", "failed: agent")
"""What a prompt may come to whose hub is not run for longer than its lease."""
WAITING = 3
"""Prompts that a client waits for before it sends another one."""
AT_REST = 600.0
"""Seconds within which everything has to come to its end, also on a machine with much else to do."""


def agent_command(folder: Path) -> list[str]:
    """Return the agent of a cluster whose story is told: it notes everything."""
    return [sys.executable, "-m", "tests.faults.hub_agent", str(folder / "notes"), str(folder / "agent.db")]


class ClusterRun:
    def __init__(self, plan: Plan, stand: Stand) -> None:
        self.stand = stand
        self.plan = plan
        self.notes = stand.folder / "notes"
        self.takeovers: list[float] = []
        """Seconds from the loss of an owner until its session had another one."""
        self.sessions: list[str] = []
        self.participants = [
            Participant(at, dialect, f"{plan.seed} {at}", stand.hubs[plan.hubs[at]].process, stays=at == 0)
            for at, dialect in enumerate(DIALECTS)
        ]
        self._heard = self._wanted = self._tried_again = 0
        self._due = asyncio.Event()
        self._to_rest = asyncio.Event()
        self._faults: dict[Fault, Callable[[Round], Awaitable[None]]] = {
            Fault.KILL_OWNER: self._kill_owner,
            Fault.KILL_HUB: self._kill_hub,
            Fault.STOP_OWNER: self._stop_owner,
            Fault.PAUSE_OWNER: self._pause_owner,
            Fault.PAUSE_OWNER_LONG: self._pause_owner,
            Fault.PART_HUB: self._part_hub,
            Fault.PART_HUB_LONG: self._part_hub,
            Fault.PART_OWNER_LONG: self._part_owner,
            Fault.KILL_NATS: self._kill_nats,
            Fault.KILL_LEADER: self._kill_leader,
            Fault.LOSE_REPLIES: self._lose_replies,
            Fault.LOSE_REQUESTS: self._lose_requests,
            Fault.KILL_AGENTS: self._kill_agents,
        }

    async def play(self) -> str:
        """Raises `Violation`; returns in a few words what happened."""
        first, *others = self.participants
        for participant in self.participants:
            participant.heard = self._hear
        try:
            await first.connect()
            self.sessions = [await first.create() for _ in range(SESSIONS)]
            await asyncio.gather(*(participant.join(*self.sessions) for participant in others))
            for number, round in enumerate(self.plan.rounds, start=1):
                await self._play(number, round)
        finally:
            for participant in self.participants:
                with suppress(AntiphonError):
                    await participant.leave()
        faults = ", ".join(round.fault for round in self.plan.rounds)
        return f"{self._heard} frames, {self._tried_again} prompts at rest tried again; {faults}"

    async def _play(self, number: int, round: Round) -> None:
        self._to_rest.clear()
        self._due.clear()
        self._wanted = self._heard + round.frames
        acting = asyncio.ensure_future(self._act_all(round))
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(AT_MOST):
                    await self._due.wait()
            await self._faults[round.fault](round)
            await self._rest(number, round.fault, acting)
        finally:
            acting.cancel()
            await asyncio.wait([acting])

    # --- the load ----------------------------------------------------------------------------------

    def _hear(self) -> None:
        self._heard += 1
        if self._heard >= self._wanted:
            self._due.set()

    async def _act_all(self, round: Round) -> None:
        """Let the clients act. The fault is due at the latest when they have nothing more to do."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for participant, script in zip(self.participants, round.scripts, strict=True):
                    tasks.create_task(self._act(participant, script))
        finally:
            self._due.set()

    async def _act(self, participant: Participant, script: Sequence[Step]) -> None:
        """Do what the script says; all that is left of it at once when everything is to come to rest."""
        for step in script:
            await self._until_rest(asyncio.sleep(step.wait))
            await self._until_rest(participant.wait_for_room(WAITING))
            participant.prompt(self.sessions[step.session], step.text, cancel_after=step.cancel_after)
            if step.next_hub is not None:
                await participant.leave()
                participant.hub = self.stand.hubs[step.next_hub].process
                await participant.join(*self.sessions)

    async def _until_rest(self, work: Coroutine[None, None, None]) -> None:
        """Wait for `work`, but not longer than until everything is to come to rest."""
        waiting = [asyncio.ensure_future(work), asyncio.ensure_future(self._to_rest.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    # --- the faults --------------------------------------------------------------------------------

    def _hub(self, round: Round) -> ClusterHub:
        return self.stand.hubs[round.hub]

    async def _owner(self, round: Round) -> ClusterHub:
        return await self.stand.owner(self.sessions[round.session]) or self._hub(round)

    async def _lose(self, hub: ClusterHub, act: Callable[[], None]) -> None:
        """Break a hub, and measure how long it takes until its sessions have other owners."""
        async with self.stand.store() as store:
            before = {id: await store.owner(id) for id in self.sessions}
            left = {id for id, owner in before.items() if owner is not None and owner.pid == hub.process.pid}
            act()
            loop = asyncio.get_running_loop()
            began = loop.time()
            with suppress(TimeoutError):
                async with asyncio.timeout(LEASE * 4):
                    while left:
                        for id in tuple(left):
                            owner = await store.owner(id)
                            if owner is not None and owner != before[id]:
                                left.discard(id)
                                self.takeovers.append(loop.time() - began)
                        await asyncio.sleep(0.05)

    async def _kill_owner(self, round: Round) -> None:
        await self._kill(await self._owner(round))

    async def _kill_hub(self, round: Round) -> None:
        await self._kill(self._hub(round))

    async def _kill(self, hub: ClusterHub) -> None:
        await self._lose(hub, hub.process.kill)

    async def _stop_owner(self, round: Round) -> None:
        await (await self._owner(round)).process.end()

    async def _pause_owner(self, round: Round) -> None:
        hub = await self._owner(round)
        if round.fault is Fault.PAUSE_OWNER_LONG:
            await self._lose(hub, hub.pause)
        else:
            hub.pause()
        await asyncio.sleep(round.seconds)
        hub.go_on()

    async def _part_hub(self, round: Round) -> None:
        await self._part(self._hub(round), round)

    async def _part_owner(self, round: Round) -> None:
        await self._part(await self._owner(round), round)

    async def _part(self, hub: ClusterHub, round: Round) -> None:
        hub.proxy.set(round.link)
        await asyncio.sleep(round.seconds)
        hub.proxy.heal()

    async def _kill_nats(self, round: Round) -> None:
        self.stand.nats.servers[round.node].kill()
        await asyncio.sleep(round.seconds)

    async def _kill_leader(self, round: Round) -> None:
        async with self.stand.store() as store:
            leaders = [each.leader for each in await store.status() if each.leader and each.messages]
        self.stand.nats.named(leaders[round.stream % len(leaders)]).kill()
        await asyncio.sleep(round.seconds)

    async def _lose_replies(self, round: Round) -> None:
        for hub, count in zip(self.stand.hubs, round.losses, strict=True):
            hub.proxy.lose_replies(count)
        await asyncio.sleep(round.seconds)

    async def _lose_requests(self, round: Round) -> None:
        for hub, count in zip(self.stand.hubs, round.losses, strict=True):
            hub.proxy.lose_requests(count)
        await asyncio.sleep(round.seconds)

    async def _kill_agents(self, round: Round) -> None:
        self._hub(round).process.kill_agents()

    # --- the check ---------------------------------------------------------------------------------

    async def _rest(self, number: int, fault: Fault, acting: asyncio.Future[None]) -> None:
        """Let everything come to its end, and check that all agree."""
        self._to_rest.set()
        try:
            async with asyncio.timeout(AT_REST):
                await self.stand.heal()
                await acting
                kept = await self._settle(number, fault)
        except TimeoutError:
            raise Silence(f"not at rest {AT_REST:g} s after {fault}: {self._state()}") from None
        for each in kept:
            check_counting(each)
        check_prompts(self.participants, kept, self.notes)
        check_agents(self.notes)
        check("Traceback" not in self.stand.complaints(), "a hub complained")

    async def _settle(self, number: int, fault: Fault) -> list[Kept]:
        for participant in self.participants:
            await participant.present.wait()
            await participant.client.link.connected()
        first, kept = self.participants[0], []
        for at, session_id in enumerate(self.sessions):
            session = first.sessions[session_id]
            await session.queue.resume()
            for participant in self.participants:
                await participant.finish()
            await becomes(session, lambda session=session: not session.queue.entries and session.turn is None)
            await self._prompt_at_rest(f"prompt {number}.{at} of {self.plan.seed} after {fault}", session_id)
            kept.append(await agree(self.stand, session_id, self.participants))
        return kept

    async def _prompt_at_rest(self, text: str, session_id: str) -> None:
        """Prompt until a prompt comes to its end: a hub that is not run for longer than its lease loses its
        sessions, also without a fault."""
        first = self.participants[0]
        for attempt in itertools.count(1):
            asked = f"{text}, attempt {attempt}"
            first.prompt(session_id, asked, cancel_after=None)
            await first.finish()
            if first.outcomes[asked] == "end_turn":
                return
            check(first.outcomes[asked] in INTERRUPTED, f"{asked!r} {first.outcomes[asked]}")
            self._tried_again += 1

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
