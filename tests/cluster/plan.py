"""Plan: everything that a run of the campaign does, drawn from its seed before the run begins.

A plan of fewer rounds is the beginning of one of more. What a plan cannot say is when something happens, and
who owns a session or leads a stream then.
"""

from __future__ import annotations

import random
from enum import StrEnum
from typing import NamedTuple

from tests.cluster.nats_proxy import Link
from tests.cluster.stand import LEASE

DIALECTS = ("v2", "v1", "proposed", "v1", "v2")
"""Those of the clients. The first client never leaves."""
SESSIONS = 2
HUBS = NODES = 3
"""Those of a `Stand`."""
FRAMES = (20, 300)
"""How much all clients hear before a fault."""
STEPS = (2, 8)
"""How many prompts a client sends around a fault, at least and at most."""
SHORT, LONG = (0.2, LEASE / 2), (LEASE * 1.5, LEASE * 2.5)


class Fault(StrEnum):
    KILL_OWNER = "kill -9 of an owner"
    KILL_HUB = "kill -9 of any hub"
    STOP_OWNER = "SIGTERM of an owner"
    PAUSE_OWNER = "short SIGSTOP of an owner"
    PAUSE_OWNER_LONG = "long SIGSTOP of an owner"
    PART_HUB = "short partition of a hub"
    PART_HUB_LONG = "long partition of a hub"
    PART_OWNER_LONG = "long partition of an owner"
    KILL_NATS = "kill -9 of a NATS server"
    KILL_LEADER = "kill -9 of a stream's leader"
    LOSE_REPLIES = "lost replies"
    LOSE_REQUESTS = "lost requests"
    KILL_AGENTS = "kill -9 of all agents of a hub"


LONG_PARTITIONS = (Fault.PART_HUB_LONG, Fault.PART_OWNER_LONG)


class Step(NamedTuple):
    """A client waits, prompts, and then may leave and come again."""

    wait: float
    session: int
    text: str
    cancel_after: float | None
    next_hub: int | None
    """The hub at which it comes again, if it leaves."""

    def __str__(self) -> str:
        cancelled = "" if self.cancel_after is None else f", cancelled after {self.cancel_after:.2f} s"
        moved = "" if self.next_hub is None else f", then to hub {self.next_hub}"
        return f"{self.wait:.2f} s later {self.text!r} to session {self.session}{cancelled}{moved}"


class Round(NamedTuple):
    """One fault, and what the clients do meanwhile. A fault uses only what it needs of the rest."""

    fault: Fault
    frames: int
    """How much all clients hear before the fault."""
    session: int
    """The session whose owner is the victim."""
    hub: int
    """The victim, if it may be any hub, or if the session has no owner."""
    node: int
    """The NATS server that is the victim."""
    stream: int
    """The stream whose leader is the victim, among those that have messages."""
    link: Link
    seconds: float
    """How long the fault lasts."""
    losses: tuple[int, ...]
    """How many messages each hub loses."""
    scripts: tuple[tuple[Step, ...], ...]
    """What each client does."""

    def __str__(self) -> str:
        lines = [
            f"{self.fault} after {self.frames} frames, for {self.seconds:.2f} s; owner of session"
            f" {self.session}, hub {self.hub}, node {self.node}, stream {self.stream}, link {self.link},"
            f" losses {self.losses}"
        ]
        for number, script in enumerate(self.scripts):
            lines += [f"    client {number}: {step}" for step in script]
        return "\n".join(lines)


class Plan(NamedTuple):
    seed: int
    hubs: tuple[int, ...]
    """The hub that each client comes to first."""
    rounds: tuple[Round, ...]

    def __str__(self) -> str:
        rounds = (f"  {number}. {each}" for number, each in enumerate(self.rounds, start=1))
        return "\n".join([f"plan of seed {self.seed}; clients begin at hubs {self.hubs}", *rounds])


def draw_plan(seed: int, faults: int, *, steps: tuple[int, int] = STEPS) -> Plan:
    """`steps`: at least and at most how many prompts a client sends around a fault."""
    chance = random.Random(seed)
    hubs = tuple(chance.randrange(HUBS) for _ in DIALECTS)
    rounds = tuple(_draw_round(seed, number, steps, chance) for number in range(1, faults + 1))
    return Plan(seed, hubs, rounds)


def _draw_round(seed: int, number: int, steps: tuple[int, int], chance: random.Random) -> Round:
    fault = chance.choice(list(Fault))
    return Round(
        fault=fault,
        frames=chance.randint(*FRAMES),
        session=chance.randrange(SESSIONS),
        hub=chance.randrange(HUBS),
        node=chance.randrange(NODES),
        stream=chance.randrange(100),
        link=chance.choice([Link.STALLED, Link.BLACK_HOLE, Link.CUT]),
        seconds=chance.uniform(*(LONG if fault in LONG_PARTITIONS else SHORT)),
        losses=tuple(chance.randint(1, 3) for _ in range(HUBS)),
        scripts=tuple(_draw_script(seed, number, client, steps, chance) for client in range(len(DIALECTS))),
    )


def _draw_script(
    seed: int, round: int, client: int, steps: tuple[int, int], chance: random.Random
) -> tuple[Step, ...]:
    return tuple(
        Step(
            wait=chance.random() * 0.4,
            session=chance.randrange(SESSIONS),
            text=f"prompt {round}.{client}.{number} of {seed}",
            cancel_after=chance.random() * 0.2 if chance.random() < 0.2 else None,
            next_hub=chance.randrange(HUBS) if client and chance.random() < 0.05 else None,
        )
        for number in range(chance.randint(*steps))
    )
