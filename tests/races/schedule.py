"""A schedule: who does what to one session, and how many turns of the event loop lie between. All of it comes
from a seed, and it prints itself, so that a failure can be read and run again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import StrEnum


class Place(StrEnum):
    AGENT = "agent"
    """Clients of an agent made with the library."""
    HUB_V1 = "hub-v1"
    HUB_V2 = "hub-v2"
    """Clients of a hub, with an agent of v1 or v2 behind it that is written by hand."""


class Dialect(StrEnum):
    V1 = "v1"
    V1_COMPLETE = "v1+turn_complete"
    V1_FUTURE = "v1+promptLifecycle"
    V2 = "v2"
    V2_PROPOSED = "v2-proposed"

    @property
    def version(self) -> int:
        return 1 if self.value.startswith("v1") else 2

    @property
    def answers_at_the_end(self) -> bool:
        return self in (Dialect.V1, Dialect.V1_COMPLETE)


class Op(StrEnum):
    PROMPT = "prompt"
    STEER = "steer"
    INTERRUPT = "interrupt"
    INJECT = "inject"
    CANCEL = "cancel"
    EDIT = "edit"
    MOVE = "move"
    WITHDRAW = "withdraw"
    TAKE_BACK = "take back"
    """`$/cancel_request` for the client's last prompt."""
    CLOSE = "close"
    CLOSE_ALL = "close for all"
    LOAD = "load"
    RESUME = "resume"
    ATTACH = "attach"
    DETACH = "detach"
    KILL = "kill"
    """Cut the link to the agent behind the hub; without a hub, the link of this client."""


RACED = tuple(op for op in Op if op is not Op.INJECT)
PAIRS = [(one, other) for one in RACED for other in RACED]
GAPS = (0, 0, 0, 1, 1, 2, 3, 5, 8, 13, 30)
"""Turns of the event loop between two steps."""
SETTINGS = ("idle", "works", "works, one waits", "works, two wait", "queued", "works by itself")
"""What the session is at when the race begins."""


@dataclass(frozen=True)
class Step:
    client: str
    op: Op
    gap: int

    def __str__(self) -> str:
        return f"{self.client} {self.op}, then {self.gap} turns"


@dataclass(frozen=True)
class Agent:
    """How the agent behaves."""

    late_accept: int = 0
    """Turns of the event loop before a v2 agent accepts a prompt."""
    late_end: int = 0
    """Turns of the event loop between a cancel and the end of the turn."""
    refuses: int = -32800
    """The code by which a v2 agent refuses a prompt that is cancelled before it was accepted."""
    deaf: bool = False
    """Whether a v2 agent ignores the cancel of a prompt that it has not accepted."""
    dies: bool = False
    """Whether it is gone as soon as it is cancelled."""
    closes: bool = True
    """Whether it offers `session/close`."""
    shared: bool = False
    """Whether it has another session, so that it is not ended with this one."""
    inserts: bool = False
    """Whether a hub hands it prompts while it works (`--busy agent`)."""


@dataclass(frozen=True)
class Schedule:
    seed: int
    place: Place
    dialects: dict[str, Dialect]
    agent: Agent
    setting: str
    lag: int | None
    """Turns of the event loop that the store takes for a commit; `None` where it commits in place."""
    steps: tuple[Step, ...] = field(default=())

    @property
    def is_pair(self) -> bool:
        return len(self.steps) == 2

    def __str__(self) -> str:
        clients = ", ".join(f"{name} speaks {dialect}" for name, dialect in self.dialects.items())
        lines = [
            f"seed {self.seed}: {self.place}; {clients}",
            f"  {self.agent}, store lag {self.lag}, session: {self.setting}",
            *(f"  {number}. {step}" for number, step in enumerate(self.steps, 1)),
            f"  run it again: python -m tests.races.campaign --runs 1 --seed {self.seed}",
        ]
        return "\n".join(lines)


def schedule(seed: int) -> Schedule:
    """The schedule of a seed. Two of three are pairs, in turn over all of them; the others are storms."""
    chance = random.Random(seed)
    round, within = divmod(seed, 9)
    place = list(Place)[seed % 3]
    dialects = {name: chance.choice(list(Dialect)) for name in ("ann", "bob")}
    agent = Agent(
        late_accept=chance.choice((0, 0, 1, 4, 12)),
        late_end=chance.choice((0, 0, 1, 4, 12)),
        dies=place is not Place.AGENT and chance.random() < 0.1,
        closes=chance.random() < 0.7,
        shared=chance.random() < 0.3,
        inserts=chance.random() < 0.3,
    )
    setting, lag = chance.choice(SETTINGS), chance.choice((None, None, 0, 1, 3, 9))
    if within < 6:
        first, second = PAIRS[(round * 2 + within // 3) % len(PAIRS)]
        other = chance.choice(("ann", "bob"))
        steps = [Step("ann", first, chance.choice(GAPS)), Step(other, second, chance.choice(GAPS))]
    else:
        steps = [
            Step(chance.choice(("ann", "bob")), chance.choice(list(Op)), chance.choice(GAPS))
            for _ in range(chance.randint(4, 14))
        ]
    return Schedule(seed, place, dialects, agent, setting, lag, tuple(steps))
