"""One story of a hub: five clients, two agents, and kill -9 of the hub's process again and again."""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from antiphon.client import ClientSession
from antiphon.engine.transcript import MessageType
from tests.faults.hub_checks import (
    check_agents,
    check_counting,
    check_prompts,
    check_record,
    check_view,
    read_sessions,
)
from tests.faults.hub_client import Participant
from tests.faults.hub_process import HubProcess
from tests.faults.violation import Silence, Violation, check

DIALECTS = ("v2", "v1", "proposed")
CLIENTS = 5
FRAMES = 700
"""Up to so much all of them hear between two kills."""
AT_MOST = 10.0
"""Seconds after which it is killed even if not so much was heard."""
EARLY = 0.5
"""Some kills come in the first seconds of a life: while it reads its sessions, and clients come back."""
AT_REST = 60.0
"""Seconds within which all has to come to its end."""


class HubRun:
    def __init__(self, seed: int, folder: Path, kills: int) -> None:
        self.seed = seed
        self.kills = kills
        self.chance = random.Random(seed)
        self.folder = folder
        self.notes = folder / "notes"
        agents = {name: self._command(name) for name in ("one", "two")}
        versions = [f"--acp-version={name}={version}" for version, name in enumerate(agents, start=1)]
        named = [f"--agent={name}={command}" for name, command in agents.items()]
        self.hub = HubProcess(folder, [*named, *versions])
        # One who stays, of any dialect, and others who come and go.
        first = self.chance.choice(DIALECTS)
        mix = [first, *DIALECTS, self.chance.choice(DIALECTS)][:CLIENTS]
        self.participants = [
            Participant(at, dialect, f"{seed} {at}", self.hub, stays=at == 0)
            for at, dialect in enumerate(mix)
        ]
        self.sessions: list[str] = []
        self._heard = 0
        self._due: asyncio.Event = asyncio.Event()
        self._wanted = 0
        self._count = 0

    def _command(self, name: str) -> str:
        """An agent that can bring its sessions back, or one that cannot."""
        kept = f" {self.folder / name}.db" if self.chance.random() < 0.7 else ""
        return f"{sys.executable} -m tests.faults.hub_agent {self.notes}{kept}"

    async def play(self) -> str:
        """Raises `Violation`; returns in a few words what happened."""
        await self.hub.start()
        for participant in self.participants:
            participant.heard = self._hear
        first = self.participants[0]
        await first.connect()
        self.sessions = [await first.create("one"), await first.create("two")]
        acting = [asyncio.ensure_future(self._act(participant)) for participant in self.participants]
        killed_agents = 0
        try:
            for _ in range(self.kills):
                await self._load()
                if self.chance.random() < 0.2:
                    killed_agents += self.hub.kill_agents()
                    await self._load()
                self.hub.kill()
                await asyncio.sleep(self.chance.choice((0.0, 0.0, 0.1)))
                await self.hub.start()
        finally:
            for task in acting:
                task.cancel()
            ended = await asyncio.gather(*acting, return_exceptions=True)
        for end in ended:
            if isinstance(end, Exception):
                raise end
        try:
            async with asyncio.timeout(AT_REST):
                await self._rest()
        except TimeoutError:
            raise Silence(f"not at rest within {AT_REST:g} s: {self._state()}") from None
        await self._check()
        return (
            f"{self.kills} kills, {self._count} prompts, {self._heard} frames, {killed_agents} agents killed"
        )

    # --- the load ----------------------------------------------------------------------------------

    def _hear(self) -> None:
        self._heard += 1
        if self._heard >= self._wanted:
            self._due.set()

    async def _load(self) -> None:
        """Until the next thing is due: so many frames were heard, or too little for too long."""
        self._wanted = self._heard + self.chance.randint(1, FRAMES)
        self._due.clear()
        early = self.chance.random() < 0.3
        with suppress(TimeoutError):
            async with asyncio.timeout(EARLY * self.chance.random() if early else AT_MOST):
                for participant in self.participants:
                    await participant.connected()
                await self._due.wait()

    async def _act(self, participant: Participant) -> None:
        """Prompts now and then, cancels some, leaves and comes again."""
        chance, stays = random.Random(f"{self.seed} {participant.name}"), participant is self.participants[0]
        if not stays:
            await participant.join(*self.sessions)
        while True:
            await asyncio.sleep(chance.random() * 0.4)
            if len(participant.waits) >= 3:
                continue
            self._count += 1
            cancel = chance.random() * 0.2 if chance.random() < 0.2 else None
            text = f"prompt {self._count} of {self.seed}"
            participant.prompt(chance.choice(self.sessions), text, cancel_after=cancel)
            if not stays and chance.random() < 0.1:
                await asyncio.sleep(chance.random() * 0.4)
                await participant.leave()
                await asyncio.sleep(chance.random() * 0.3)
                await participant.join(*self.sessions)

    # --- the end -----------------------------------------------------------------------------------

    async def _rest(self) -> None:
        """Nobody does anything new: what waits comes to its end, and everybody hears of it."""
        for participant in self.participants:
            if not participant.present.is_set():
                await participant.join(*self.sessions)
            await participant.client.link.connected()
        first = self.participants[0]
        for session_id in self.sessions:
            await first.sessions[session_id].queue.resume()
        for participant in self.participants:
            await participant.finish()
        for session_id in self.sessions:
            self._count += 1
            text = f"the last one, {self._count} of {self.seed}"
            session = first.sessions[session_id]
            await _until(session, lambda session: not session.queue.entries)  # of those who have left
            first.prompt(session_id, text, cancel_after=None)
            await first.finish()
            check(first.outcomes[text] == "end_turn", f"at last a prompt {first.outcomes[text]}")
            wanted = _said(session)
            for participant in self.participants:
                await _until(
                    participant.sessions[session_id],
                    lambda session, wanted=wanted: _said(session) >= wanted and session.turn is None,
                )

    def _state(self) -> str:
        """For whoever finds it silent."""
        told = []
        for participant in self.participants:
            sessions = participant.sessions.values()
            states = [
                (session.cursor, str(session.state), len(session.queue.entries)) for session in sessions
            ]
            told.append(f"{participant.name} {participant.client.link.state} {states} {participant.waits}")
        return "\n".join(told)

    async def _check(self) -> None:
        for participant in self.participants:
            for record in participant.records:
                record.whole = record.session in participant.sessions.values()
            await participant.leave()
        await self.hub.end()
        kept = await read_sessions(self.folder / "sessions.db", self.sessions)
        for session in kept.values():
            check_counting(session)
        check_prompts(self.participants, kept.values(), self.notes)
        check_agents(self.notes)
        for participant in self.participants:
            for record in participant.records:
                check_record(record, kept[record.session.id])
                if record.whole:
                    check_view(record, kept[record.session.id], participant)
        check("Traceback" not in self.hub.complaints(), "the hub complained")


def _said(session: ClientSession) -> int:
    """How many messages there are of the agent."""
    return sum(message.type is not MessageType.USER for message in session.messages)


async def _until(session: ClientSession, holds: Callable[[ClientSession], bool]) -> None:
    events = session.events()
    while not holds(session):
        await anext(events)


def run_hub(seed: int, kills: int) -> str:
    """Raises `Violation`, with the seed, what the hub logged, and the folder, which is kept then."""
    folder = Path(tempfile.mkdtemp(prefix="antiphon-faults-"))
    played = HubRun(seed, folder, kills)
    try:
        told = asyncio.run(played.play())
    except Violation as violation:
        where = f"kept in {folder}\n{played.hub.complaints()}"
        raise Violation(f"seed {seed}: {violation}\n{where}") from None
    except Exception as error:
        error.add_note(f"in the run of seed {seed}, kept in {folder}\n{played.hub.complaints()}")
        raise
    finally:
        played.hub.clear()
    shutil.rmtree(folder)
    return told
